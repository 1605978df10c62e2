r"""Ready-made rules: personal data, secrets and addresses of pages.

A preset rule is data until it is built, so neither ``regex`` nor ``phonenumbers`` is imported before it is used. Every
pattern is bounded and has one way to read a text, so that its cost is linear; it starts with something specific, so
that little waits while a text is streaming. Several patterns of one rule are searched independently: a candidate that
one of them rejects does not hide what another one finds inside it.

>>> [rule.name for rule in PRESETS["urls"]]
['url']
>>> from interlock.release.scanner import TextScanner
>>> rules = [rule for preset in PRESETS["pii"] if preset.name == "card" for rule in preset.rules()]
>>> TextScanner(rules).feed("Card 4539 1488 0343 6467, order 4539 1488 0343 6468.", final=True)[1]
[Span(rule='card', start=5, end=24)]
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable
from functools import cache
from ipaddress import IPv6Address
from typing import Any, cast

from interlock.core.errors import UsageError
from interlock.core.record import FrozenRecord
from interlock.release.pattern import ExactPattern
from interlock.release.scanner import Rule

INSTALL = "pip install 'interlock[pii]'"

DIGITS = frozenset("0123456789")
_GAP = r"[ \-\u00a0\u2007\u202f\u2010-\u2014]"
"""One space or dash between groups of digits, also the typographic ones that models like to write."""


class PresetRule(FrozenRecord, frozen=True, kw_only=True):
    """A rule to be built: patterns, each searched on its own, and a check for what they find.

    Attributes:
        name: the rule's name.
        patterns: its patterns, in the syntax of ``regex``.
        accept: a check that a candidate of any of them has to pass.
        trigger: characters of which every match has at least one; None if there are no such characters.
    """

    name: str
    patterns: tuple[str, ...]
    accept: Callable[[str], bool] | None = None
    trigger: frozenset[str] | None = None

    def rules(self, region: str = "US") -> tuple[Rule, ...]:
        """The rule, built: one for each pattern, all of the same name.

        Args:
            region: the country whose national phone numbers are found (only the rule ``phone`` looks at it).
        """
        return _built(self.name, self.patterns, self.accept)


class PhoneRule(PresetRule, frozen=True, kw_only=True):
    """Phone numbers: candidates, which the library ``phonenumbers`` judges."""

    def rules(self, region: str = "US") -> tuple[Rule, ...]:
        """The rule, built.

        Args:
            region: the country whose national numbers are found beside the international ones, two capitals.

        Raises:
            UsageError: ``phonenumbers`` is not installed, or does not know the region.
        """
        return _phone_rules(self.name, self.patterns, region)


@cache
def _built(name: str, patterns: tuple[str, ...], accept: Callable[[str], bool] | None) -> tuple[Rule, ...]:
    return tuple(Rule(pattern=ExactPattern(name, source, linear=True), accept=accept) for source in patterns)


def preset_rules(name: str, *, region: str = "US") -> list[Rule]:
    """All rules of a preset, built.

    Args:
        name: ``pii``, ``secrets`` or ``urls``.
        region: the country whose national phone numbers ``pii`` finds beside the international ones.

    Raises:
        UsageError: there is no such preset, or a library it needs is missing.
    """
    if name not in PRESETS:
        raise UsageError(f"no preset {name!r}; there is {', '.join(PRESETS)}")
    return [rule for preset in PRESETS[name] for rule in preset.rules(region)]


# ------------------------------------------------------------------------------------------------------------ e-mail

_EMAIL = (
    r"(?<![^\W_])[^\W_][\w.%+'\-]{0,63}@(?:[^\W_][\w\-]{0,62}\.){1,8}(?:xn--[a-z0-9\-]{2,59}|[^\W\d_]{2,24})"
)
_FILE_ENDINGS = frozenset(("png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "pdf", "html", "css", "json"))


def is_email(text: str) -> bool:
    """Not ``git@host`` (a way to a repository), ``package@1.2.beta`` or ``icon@2x.png``."""
    local, _, domain = text.partition("@")
    ending = domain.rpartition(".")[2].lower()
    return local != "git" and ending not in _FILE_ENDINGS and re.match(r"\d+\.\d", domain) is None


# ------------------------------------------------------------------------------------------------------------- cards

# Looked at after the first digit, which is found faster: not inside a longer number, not the decimals of one, not the
# tail of a UUID.
_CARD_START = r"[2-9](?<!\w.)(?<![0-9][.,].)(?<![0-9A-Fa-f]{4}-.)"
_CARD_END = r"(?!\w)"


def _groups(*sizes: int) -> str:
    return _GAP.join(f"[0-9]{{{size}}}" for size in sizes)


_CARDS = (
    _CARD_START
    + f"(?:[0-9]{{12,18}}|{_groups(3, 4, 4, 4)}|{_groups(3, 6, 5)}|{_groups(3, 6, 4)}|{_groups(3, 3, 3, 3)})"
    + _CARD_END,
    # with its own pattern, so that a security code after a number of 16 digits hides nothing
    _CARD_START + _groups(3, 4, 4, 4, 3) + _CARD_END,
    # a number after other groups of digits, which a candidate that begins with them would hide
    rf"[0-9](?<!\w.)(?<![0-9]{_GAP}.)[0-9]{{0,3}}(?:{_GAP}[0-9]{{4}}){{4,11}}" + _CARD_END,
    # unusual groups: whatever they are, no single digits
    _CARD_START + rf"(?:{_GAP}?[0-9]){{12,18}}" + _CARD_END,
)
# who issues such numbers, and how long they are
_ISSUERS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})"  # Visa
    r"|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}"  # Mastercard
    r"|3[47]\d{13}"  # American Express
    r"|3(?:0[0-5]|[689]\d)\d{11}(?:\d{2,5})?"  # Diners
    r"|35\d{14,17}"  # JCB
    r"|6\d{12,18}|5[06-8]\d{11,17}"  # Discover, UnionPay, RuPay, Maestro
    r"|220[0-5]\d{12,15}|81\d{14,17}|9792\d{12}"  # Mir, RuPay, Troy
)
_USUAL = re.compile(
    rf"[0-9]+|{_groups(4, 4, 4, 4)}|{_groups(4, 4, 4, 4, 3)}|{_groups(4, 6, 4)}|{_groups(4, 6, 5)}"
)


def is_card(text: str) -> bool:
    """A payment card's number: an issuer's range and length, the Luhn sum, not one digit over and over."""
    groups = re.findall("[0-9]+", text)
    if len(groups) > 4 and all(len(group) == 4 for group in groups[1:]):
        return _hides_a_number(groups)
    return (_USUAL.fullmatch(text) is not None or min(map(len, groups)) > 1) and _is_card_number(
        "".join(groups)
    )


def _hides_a_number(groups: list[str]) -> bool:
    """Whether the pattern of four groups of four, which goes on behind a candidate it rejects, misses a number."""
    numbers = {at for at in range(len(groups) - 3) if _is_card_number("".join(groups[at : at + 4]))}
    at = 0
    while at < len(groups) - 3:
        numbers.discard(at)
        at += 4 if len(groups[at]) == 4 and groups[at] >= "2" else 1
    return bool(numbers)


def _is_card_number(digits: str) -> bool:
    if _ISSUERS.fullmatch(digits) is None or len(set(digits)) == 1:
        return False
    doubled = [int(digit) * 2 for digit in digits[-2::-2]]
    return (sum(map(int, digits[-1::-2])) + sum(each - 9 * (each > 9) for each in doubled)) % 10 == 0


# -------------------------------------------------------------------------------------------------------------- IBAN

_IBAN_LENGTHS = {
    15: "NO",
    16: "BE",
    18: "DK FK FI FO GL NL SD",
    19: "MK SI",
    20: "AT BA EE KZ LT LU MN XK",
    21: "CH HR LI LV",
    22: "BG BH CR DE GB GE IE ME RS VA",
    23: "AE GI IL IQ OM SO TL",
    24: "AD CZ DZ ES MD PK RO SA SE SK TN VG YE",
    25: "AO CV GW LY MZ PT ST",
    26: "IR IS TR",
    27: "BF BI BJ CF CG CI CM DJ FR GA GF GP GQ GR IT KM MC MG ML MQ MR NC NE PF PM RE SM SN TD TF TG WF YT",
    28: "AL AZ BY CY DO GT HN HU LB MA NI PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU",
    31: "MT SC",
    32: "LC",
    33: "RU",
}


def _any_case(countries: str) -> str:
    return "|".join(f"[{a}{a.lower()}][{b}{b.lower()}]" for a, b in countries.split())


# Groups of four: where the last one is full, the country tells how many there are (a word may follow); where it is
# not, it is the end.
_IBAN = (
    r"(?<![A-Za-z0-9])[A-Za-z]{{2}}[0-9]{{2}}(?:{run}|{full}|(?:{four}){{2,7}}{last})(?![A-Za-z0-9])".format(
        run="[A-Za-z0-9]{11,29}",
        full="|".join(
            f"(?<=(?:{_any_case(countries)})..)" + f"{_GAP}[A-Za-z0-9]{{4}}" * (length // 4 - 1)
            for length, countries in _IBAN_LENGTHS.items()
            if length % 4 == 0
        ),
        four=f"{_GAP}[A-Za-z0-9]{{4}}",
        last=f"{_GAP}[A-Za-z0-9]{{1,3}}",
    )
)
_IBAN_LENGTH = {
    country: length for length, countries in _IBAN_LENGTHS.items() for country in countries.split()
}


def is_iban(text: str) -> bool:
    """As long as the country has them, and the remainder of the number by 97 is 1."""
    plain = "".join(char for char in text if char.isalnum()).upper()
    return (
        len(plain) == _IBAN_LENGTH.get(plain[:2])
        and int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1
    )


# --------------------------------------------------------------------------------------------------------------- SSN

_DASH = r"[\-\u2010-\u2013]"
_SSN = (
    r"(?<![\w\-])(?<![0-9][., ])(?!000|666|9)[0-9]{3}"
    rf"(?:{_DASH}(?!00)[0-9]{{2}}{_DASH}|[ \u00a0](?!00)[0-9]{{2}}[ \u00a0])"
    r"(?!0000)[0-9]{4}(?![\w\-]|[., ][0-9])"
)

# ------------------------------------------------------------------------------------------------------------ phones

_PHONE_GAP = r"[ \-./\u00a0\u2007\u202f\u2010-\u2014]"
_NANP = rf"(?:[(][2-9][0-9]{{2}}[)]{_PHONE_GAP}?|[2-9][0-9]{{2}}{_PHONE_GAP}%s)[2-9][0-9]{{2}}{_PHONE_GAP}%s[0-9]{{4}}"
_INTERNATIONAL = (
    rf"(?<![\w+])[+](?:1{_PHONE_GAP}?{_NANP % ('?', '?')}"
    rf"|[2-9](?:[)]?{_PHONE_GAP}?[(]?[0-9]){{6,14}})(?![0-9])"
)
_NATIONAL_NANP = rf"(?=[(1-9])(?<![\w+.\-])(?:1{_PHONE_GAP})?{_NANP % ('', '')}(?!\w|[.\-][0-9])"
_NATIONAL = rf"(?=[(0-9])(?<![\w+.,:\-])[(]?[0-9](?:[)]?{_PHONE_GAP}?[(]?[0-9]){{5,13}}(?!\w|[.,:\-][0-9])"
_DATE = re.compile(r"(?:19|20)\d\d[-./]\d\d?[-./]\d\d?(?!\d)|\d\d?[-./]\d\d?[-./](?:19|20)\d\d(?!\d)")


@cache
def _phone_rules(name: str, patterns: tuple[str, ...], region: str) -> tuple[Rule, ...]:
    try:
        import phonenumbers
    except ImportError:
        raise UsageError(f"rule {name!r}: phonenumbers is not installed; run: {INSTALL}") from None
    if region not in phonenumbers.SUPPORTED_REGIONS:
        raise UsageError(
            f"rule {name!r}: no region {region!r}; a region is a country's two capitals, US or DE"
        )

    def is_valid(text: str) -> bool:
        try:
            return phonenumbers.is_valid_number(phonenumbers.parse(text, region))
        except phonenumbers.NumberParseException:
            return False

    def is_international(text: str) -> bool:
        """The candidate, or its beginning: "+49 30 901820 24/7" has to go as well, with what follows."""
        return any(is_valid(text[:end]) for end in _ends_of_groups(text))

    def is_national(text: str) -> bool:
        if _DATE.match(text):
            return False
        if text.startswith(("0", "(0")):
            return is_international(text)
        return not text.isdigit() and is_valid(text)

    american = phonenumbers.country_code_for_region(region) == 1
    national = ExactPattern(name, _NATIONAL_NANP if american else _NATIONAL, linear=True)
    return (
        *(
            Rule(pattern=ExactPattern(name, source, linear=True), accept=is_international)
            for source in patterns
        ),
        Rule(pattern=national, accept=is_valid if american else is_national),
    )


def _ends_of_groups(text: str) -> list[int]:
    """Where groups of digits end, the last one first; a number has seven digits or more."""
    ends = [found.end() for found in re.finditer("[0-9]+", text)]
    return [end for end in reversed(ends) if end > 7]


# --------------------------------------------------------------------------------------------------- IP addresses

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"(?<![\w.])(?<!(?:[Vv]ersion|[Rr]elease|[Ss]ection|[Cc]hapter) )(?:{_OCTET}\.){{3}}{_OCTET}(?!\w|\.[0-9])"
_IPV6 = (
    r"(?<![\w:.])(?<![\w)\]]\[)(?:[0-9A-Fa-f]{1,4}:|:(?=:))(?:[0-9A-Fa-f]{0,4}:){1,7}"
    rf"(?:(?:{_OCTET}\.){{3}}{_OCTET}|[0-9A-Fa-f]{{1,4}}|(?<=::))(?!\w|:[0-9A-Fa-f:]|\.[0-9])"
)

_SLICE = re.compile("[0-9]+::[0-9]*|::(?!1$)[0-9]+")


def is_ip(text: str) -> bool:
    """For version 6, what ``ipaddress`` takes, unless it is as short as ``add::`` or ``::2``: that is a program."""
    if ":" not in text:
        return True
    if _SLICE.fullmatch(text) is not None:
        return False
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return text.count(":") > 3 or not DIGITS.isdisjoint(text)


# ----------------------------------------------------------------------------------------------------------- secrets

_FRESH = "(?<![A-Za-z0-9_])"
_TOKEN = r"[A-Za-z0-9_\-]"

_PEM_KIND = r"(?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_PEM = (
    rf"-----BEGIN {_PEM_KIND}"
    # after the header a key or its fields, else it is prose that nothing has to wait for
    r"(?:[\s>|\"']|\\[rnt]){0,32}(?:[A-Za-z0-9+/]{16}|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset): )"
    rf"(?:[^\-]|-(?!----)){{0,20000}}(?:-----END {_PEM_KIND}|\Z)"
)


def is_pem(text: str) -> bool:
    """Ends, or was cut off after a line of the key."""
    return text.endswith("-----") or re.search("[A-Za-z0-9+/]{40}", text) is not None


_JWT = (
    rf"(?<![A-Za-z0-9_\-])e(?:yJ|yA|yI|wo|w0|wk){_TOKEN}{{8,4000}}"
    rf"\.{_TOKEN}{{8,16000}}\.{_TOKEN}{{0,2000}}"
)


def is_jwt(text: str) -> bool:
    """The header is JSON and names its algorithm."""
    header = text.partition(".")[0]
    try:
        fields = json.loads(urlsafe_b64decode(header + "=" * (-len(header) % 4)))
    except ValueError:
        return False
    return isinstance(fields, dict) and isinstance(cast("dict[str, Any]", fields).get("alg"), str)


_CONNECTION = (
    r"(?<![A-Za-z0-9])(?i:postgres(?:ql)?|mysqlx?|mariadb|mongodb|rediss?|valkeys?|amqps?|mssql|sqlserver|oracle"
    r"|clickhouse|cockroachdb|nats|mqtts?|kafka|ldaps?|smtps?|ftps?|sftp|ssh|https?)(?:\+[a-z0-9]{1,20})?://"
    r"[^\s:/@\"'<>`]{0,128}:[^\s/\"'<>`]{1,256}@"
    r"[\w.\-\[\]:,%]{0,254}[\w\]](?:[/?][\w\-./?=&%+,:;~#@!$*]{0,1024}[\w\-/=&%+~#$*])?"
)


def has_password(text: str) -> bool:
    """The password is written out: not ``$PASSWORD``, ``{password}`` or ``***``."""
    password = text.partition("://")[2].rpartition("@")[0].partition(":")[2]
    return not password.startswith(("$", "{", "%(", "[")) and bool(set(password) - set("*.xX"))


# The name of what is assigned stays: only the value goes.
_ASSIGNED = r"[\"']?\s{0,3}(?::=|=>|==|[:=])\s{0,3}[\"']?"
_CREDENTIAL = (
    r"(?<=[:=>]\s{0,3}[\"']?)(?<=(?i:password|passwd|passphrase|passcode|pwd|secret|(?:api|access|secret|private|account|auth)"
    rf"[_\- ]?key|(?:api|access|auth|refresh|bearer|secret|session)[_\- ]?token){_ASSIGNED})"
    r"[\w!#$%&*+\-./?@\^~|=:]{8,512}+(?![(\[])"
)
_BEARER = r"(?<=[ ])(?<=(?i:authorization)[\"']?:\s?[\"']?(?i:bearer|basic|token) )[\w.~+/=\-]{16,4000}+"
_NO_VALUE = re.compile(
    r"[$%{<]|(?:process\.|os\.|env[.:]|secrets\.|vault:|self\.)|\w+://|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\.?$"
)


def is_credential(text: str) -> bool:
    """Letters and digits, and no expression that only names where the value is."""
    letters = any(char.isalpha() for char in text)
    return letters and not DIGITS.isdisjoint(text) and _NO_VALUE.match(text) is None


_AWS_SECRET = (
    r"(?<=[:=>]\s{0,3}[\"']?)(?<=(?i:aws_?secret(?:_?access)?_?key|secret_?access_?key|aws secret(?: access)? key)"
    rf"{_ASSIGNED})[A-Za-z0-9/+]{{40}}(?![A-Za-z0-9/+=])"
)


def has_digit(text: str) -> bool:
    """A key drawn at random has a digit; words with hyphens between them have none."""
    return not DIGITS.isdisjoint(text)


# Keys told by how they begin, as their issuers document them for scanners: at least so many characters follow.
_AI_KEYS = (
    rf"(?<!{_TOKEN})(?:gsk_[A-Za-z0-9]{{40,100}}|r8_[A-Za-z0-9]{{37,40}}|fw_[A-Za-z0-9]{{22,40}}"
    rf"|pcsk_[A-Za-z0-9_]{{40,120}}|lsv2_(?:pt|sk)_[0-9a-f]{{32}}_[0-9a-f]{{10}}|sk_[0-9a-f]{{48}}"
    rf"|sk-(?:or-v1-[0-9a-f]{{64}}|lf-[0-9a-f]{{8}}-[0-9a-f\-]{{27}})|csk-[a-z0-9]{{40,64}}|xai-[A-Za-z0-9]{{60,120}}"
    rf"|pplx-[A-Za-z0-9]{{40,80}}|nvapi-{_TOKEN}{{40,120}}|tvly-(?:dev-|prod-)?[A-Za-z0-9]{{28,60}}"
    r"|ABSK[A-Za-z0-9+/]{100,300}={0,2}|bedrock-api-key-[A-Za-z0-9+/=_\-]{50,4000})",
)
_SERVICE_TOKENS = (
    # clouds, hosts, registries
    rf"(?<!{_TOKEN})(?:do[opr]_v1_[0-9a-f]{{64}}|dapi[0-9a-f]{{32}}|dp\.(?:pt|ct|sa|scim|audit|st(?:\.[\w\-]{{1,35}})?)\."
    rf"[A-Za-z0-9]{{40,60}}|hv[sbr]\.{_TOKEN}{{24,300}}|dckr_(?:pat|oat)_{_TOKEN}{{20,60}}|rubygems_[0-9a-f]{{48}}"
    rf"|pul-[0-9a-f]{{40}}|HRKU-{_TOKEN}{{36,80}}|pscale_(?:tkn|pw|oauth)_[\w.\-]{{32,80}}|sbp_[0-9a-f]{{40}}"
    rf"|sb_secret_{_TOKEN}{{20,80}}|nf[pcoub]_[A-Za-z0-9]{{36,60}}|AGE-SECRET-KEY-1[A-Z0-9]{{58}})",
    # everything else
    rf"(?<!{_TOKEN})(?:shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{{32}}|sq0[a-z]{{3}}-{_TOKEN}{{22,60}}|lin_(?:api|oauth)_[A-Za-z0-9]{{40,80}}"
    rf"|ntn_[A-Za-z0-9]{{40,60}}|secret_[A-Za-z0-9]{{43}}(?!{_TOKEN})|figd_{_TOKEN}{{36,80}}|PMAK-[0-9a-f]{{24}}-[0-9a-f]{{34}}"
    rf"|gl(?:sa_[A-Za-z0-9]{{32}}_[0-9a-f]{{8}}|c_[A-Za-z0-9+/]{{50,400}}={{0,2}})|NRAK-[A-Z0-9]{{27}}"
    rf"|sntry(?:s_[A-Za-z0-9+/=_\-]{{50,400}}|u_[0-9a-f]{{64}})|AT(?:ATT3|CTT3)[A-Za-z0-9_\-=]{{80,300}}|ATBB[A-Za-z0-9]{{32}}"
    rf"|pat[A-Za-z0-9]{{14}}\.[0-9a-f]{{64}}|aio_[A-Za-z0-9]{{28}}|key-[0-9a-f]{{32}}(?!{_TOKEN})|xkeysib-[0-9a-f]{{64}}"
    r"(?:-[A-Za-z0-9]{16})?)",
    rf"(?<![0-9A-Za-su-z:])(?<!(?<!/bo)t)[0-9]{{8,10}}:AA{_TOKEN}{{33}}(?!{_TOKEN})",  # Telegram's bots
    rf"(?<!{_TOKEN})[MNO]{_TOKEN}{{23,27}}\.{_TOKEN}{{6}}\.{_TOKEN}{{27,38}}(?!{_TOKEN})",  # Discord's
    rf"(?<![A-Za-z0-9])https://(?:[a-z]{{2,10}}\.)?discord(?:app)?\.com/api/webhooks/[0-9]{{17,20}}/{_TOKEN}{{60,90}}",
)

# --------------------------------------------------------------------------------------------------------------- URLs

_URL_TAIL = r"(?:[.,:;!?'*_~]{0,16}(?:[^\W_]|[\-/#%&=+@$|]|[(][^\s()<>\"`]{0,256}[)]))"
_URLS = (
    rf"(?<![A-Za-z0-9])(?i:https?|wss?|ftps?)://(?:\[[0-9A-Fa-f:.]{{2,45}}\]|[^\W_]|[\-$%]){_URL_TAIL}{{0,2048}}",
    rf"(?<![\w@/.\-])(?i:www)\.(?:[^\W_][\w\-]{{0,62}}\.){{1,6}}[^\W\d_]{{2,24}}(?:(?=[/?#:]){_URL_TAIL}{{1,2048}})?",
)

# ----------------------------------------------------------------------------------------------------------- presets

PRESETS: dict[str, tuple[PresetRule, ...]] = {
    "pii": (
        PresetRule(name="email", patterns=(_EMAIL,), accept=is_email, trigger=frozenset("@")),
        PresetRule(name="card", patterns=_CARDS, accept=is_card, trigger=DIGITS),
        PresetRule(name="iban", patterns=(_IBAN,), accept=is_iban, trigger=DIGITS),
        PresetRule(name="ssn", patterns=(_SSN,), trigger=DIGITS),
        PhoneRule(name="phone", patterns=(_INTERNATIONAL,), trigger=DIGITS),
        PresetRule(name="ip", patterns=(_IPV4, _IPV6), accept=is_ip, trigger=frozenset(".:")),
    ),
    "secrets": (
        PresetRule(
            name="aws-key",
            patterns=(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",),
            trigger=frozenset("A"),
        ),
        PresetRule(name="aws-secret", patterns=(_AWS_SECRET,), accept=has_digit, trigger=DIGITS),
        PresetRule(
            name="github-token",
            patterns=(_FRESH + "(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{36,255})",),
            trigger=frozenset("_"),
        ),
        PresetRule(
            name="gitlab-token",
            patterns=(
                _FRESH
                + rf"(?:gl(?:pat|dt|rtr?|cbt|ptt|oas|ft|ffct|imt|agent|soat|wt)-|GR1348941){_TOKEN}{{20,300}}"
                r"(?:\.[0-9a-z]{2}\.[0-9a-z]{7,9})?",
            ),
            accept=has_digit,
            trigger=DIGITS,
        ),
        PresetRule(
            name="slack-token",
            patterns=(
                _FRESH + r"(?:xox[abceoprs](?:\.xox[bp])?|xapp)-[A-Za-z0-9\-]{10,300}",
                _FRESH + r"xoxd-[A-Za-z0-9%+/=\-]{20,300}",
                r"(?<![A-Za-z0-9])https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,100}",
            ),
            accept=has_digit,
            trigger=frozenset("-/"),
        ),
        PresetRule(
            name="stripe-key",
            patterns=(
                _FRESH + "(?:[sr]k_(?:org_)?(?:live|test)_[A-Za-z0-9]{16,255}|whsec_[A-Za-z0-9]{32,64})",
            ),
            trigger=frozenset("_"),
        ),
        PresetRule(
            name="openai-key",
            patterns=(
                rf"(?<![A-Za-z0-9_\-])sk-(?:(?:proj|svcacct|admin|None)-{_TOKEN}{{20,300}}"
                rf"|[A-Za-z0-9]{{20,128}}(?!{_TOKEN}))",
            ),
            accept=has_digit,
            trigger=frozenset("-"),
        ),
        PresetRule(
            name="anthropic-key",
            patterns=(rf"(?<![A-Za-z0-9_\-])sk-ant-{_TOKEN}{{20,300}}",),
            accept=has_digit,
            trigger=frozenset("-"),
        ),
        PresetRule(
            name="google-key",
            patterns=(
                rf"(?<!{_TOKEN})(?:AIza{_TOKEN}{{35}}|GOCSPX-{_TOKEN}{{28}})(?!{_TOKEN})",
                rf"(?<!{_TOKEN})(?:ya29\.{_TOKEN}{{50,1000}}|AQ\.Ab8{_TOKEN}{{40,100}})",
            ),
            accept=has_digit,
            trigger=frozenset("AGy"),
        ),
        PresetRule(
            name="huggingface-token",
            patterns=(_FRESH + "(?:hf|api_org)_[A-Za-z0-9]{30,64}(?![A-Za-z0-9_])",),
            trigger=frozenset("_"),
        ),
        PresetRule(
            name="sendgrid-key",
            patterns=(rf"(?<![A-Za-z0-9_\-])SG\.{_TOKEN}{{22}}\.{_TOKEN}{{43}}(?!{_TOKEN})",),
            trigger=frozenset("."),
        ),
        PresetRule(
            name="twilio-key",
            patterns=(_FRESH + "(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9_])",),
            accept=has_digit,
            trigger=DIGITS,
        ),
        PresetRule(
            name="npm-token",
            patterns=(_FRESH + "npm_[A-Za-z0-9]{36}(?![A-Za-z0-9_])",),
            trigger=frozenset("_"),
        ),
        PresetRule(
            name="pypi-token",
            patterns=(_FRESH + rf"pypi-Ag{_TOKEN}{{48,1000}}",),
            accept=has_digit,
            trigger=frozenset("-"),
        ),
        PresetRule(
            name="azure-key",
            patterns=(
                r"(?<==)(?<=(?i:AccountKey|SharedAccessKey)=)"
                r"(?:[A-Za-z0-9+/]{86}==|[A-Za-z0-9+/]{43}=)(?![A-Za-z0-9+/=])",
                # what a shared access signature is worth is its end
                r"(?<=[?&;])sig=[A-Za-z0-9%+/]{40,80}(?:=|%3[Dd])",
                # the three characters in front of the mark say nothing
                r"(?<=[A-Za-z0-9_~.\-]{3}[0-9])Q~[A-Za-z0-9_~.\-]{31,34}(?![A-Za-z0-9_~.\-])",
            ),
            trigger=frozenset("=%~"),
        ),
        PresetRule(name="ai-key", patterns=_AI_KEYS, accept=has_digit, trigger=frozenset("_-K")),
        PresetRule(name="service-token", patterns=_SERVICE_TOKENS, accept=has_digit, trigger=DIGITS),
        PresetRule(name="pem", patterns=(_PEM,), accept=is_pem, trigger=frozenset("-")),
        PresetRule(name="jwt", patterns=(_JWT,), accept=is_jwt, trigger=frozenset(".")),
        PresetRule(
            name="connection-string", patterns=(_CONNECTION,), accept=has_password, trigger=frozenset("@")
        ),
        PresetRule(name="credential", patterns=(_CREDENTIAL, _BEARER), accept=is_credential, trigger=DIGITS),
    ),
    "urls": (PresetRule(name="url", patterns=_URLS, trigger=frozenset(".:")),),
}
"""The presets by name, each a number of rules to build."""
