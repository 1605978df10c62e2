"""Keys, tokens and passwords: what the preset ``secrets`` finds."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from typing import Any, cast

from interlock.processors.presets.rule import DIGITS, PresetRule

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

SECRETS: tuple[PresetRule, ...] = (
    PresetRule(
        name="aws-key",
        patterns=(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",),
    ),
    PresetRule(name="aws-secret", patterns=(_AWS_SECRET,), accept=has_digit),
    PresetRule(
        name="github-token",
        patterns=(_FRESH + "(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{36,255})",),
    ),
    PresetRule(
        name="gitlab-token",
        patterns=(
            _FRESH
            + rf"(?:gl(?:pat|dt|rtr?|cbt|ptt|oas|ft|ffct|imt|agent|soat|wt)-|GR1348941){_TOKEN}{{20,300}}"
            r"(?:\.[0-9a-z]{2}\.[0-9a-z]{7,9})?",
        ),
        accept=has_digit,
    ),
    PresetRule(
        name="slack-token",
        patterns=(
            _FRESH + r"(?:xox[abceoprs](?:\.xox[bp])?|xapp)-[A-Za-z0-9\-]{10,300}",
            _FRESH + r"xoxd-[A-Za-z0-9%+/=\-]{20,300}",
            r"(?<![A-Za-z0-9])https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,100}",
        ),
        accept=has_digit,
    ),
    PresetRule(
        name="stripe-key",
        patterns=(_FRESH + "(?:[sr]k_(?:org_)?(?:live|test)_[A-Za-z0-9]{16,255}|whsec_[A-Za-z0-9]{32,64})",),
    ),
    PresetRule(
        name="openai-key",
        patterns=(
            rf"(?<![A-Za-z0-9_\-])sk-(?:(?:proj|svcacct|admin|None)-{_TOKEN}{{20,300}}"
            rf"|[A-Za-z0-9]{{20,128}}(?!{_TOKEN}))",
        ),
        accept=has_digit,
    ),
    PresetRule(
        name="anthropic-key",
        patterns=(rf"(?<![A-Za-z0-9_\-])sk-ant-{_TOKEN}{{20,300}}",),
        accept=has_digit,
    ),
    PresetRule(
        name="google-key",
        patterns=(
            rf"(?<!{_TOKEN})(?:AIza{_TOKEN}{{35}}|GOCSPX-{_TOKEN}{{28}})(?!{_TOKEN})",
            rf"(?<!{_TOKEN})(?:ya29\.{_TOKEN}{{50,1000}}|AQ\.Ab8{_TOKEN}{{40,100}})",
        ),
        accept=has_digit,
    ),
    PresetRule(
        name="huggingface-token",
        patterns=(_FRESH + "(?:hf|api_org)_[A-Za-z0-9]{30,64}(?![A-Za-z0-9_])",),
    ),
    PresetRule(
        name="sendgrid-key",
        patterns=(rf"(?<![A-Za-z0-9_\-])SG\.{_TOKEN}{{22}}\.{_TOKEN}{{43}}(?!{_TOKEN})",),
    ),
    PresetRule(
        name="twilio-key",
        patterns=(_FRESH + "(?:SK|AC)[0-9a-f]{32}(?![A-Za-z0-9_])",),
        accept=has_digit,
    ),
    PresetRule(
        name="npm-token",
        patterns=(_FRESH + "npm_[A-Za-z0-9]{36}(?![A-Za-z0-9_])",),
    ),
    PresetRule(
        name="pypi-token",
        patterns=(_FRESH + rf"pypi-Ag{_TOKEN}{{48,1000}}",),
        accept=has_digit,
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
    ),
    PresetRule(name="ai-key", patterns=_AI_KEYS, accept=has_digit),
    PresetRule(name="service-token", patterns=_SERVICE_TOKENS, accept=has_digit),
    PresetRule(name="pem", patterns=(_PEM,), accept=is_pem),
    PresetRule(name="jwt", patterns=(_JWT,), accept=is_jwt),
    PresetRule(name="connection-string", patterns=(_CONNECTION,), accept=has_password),
    PresetRule(name="credential", patterns=(_CREDENTIAL, _BEARER), accept=is_credential),
)
