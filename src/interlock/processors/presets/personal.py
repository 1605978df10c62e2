"""Personal data: what the preset ``pii`` finds."""

from __future__ import annotations

import re
from ipaddress import IPv6Address

from interlock.processors.presets.cards import CARD
from interlock.processors.presets.ibans import IBAN
from interlock.processors.presets.phones import PHONE
from interlock.processors.presets.rule import DIGITS, PresetRule

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


# --------------------------------------------------------------------------------------------------------------- SSN

_DASH = r"[\-\u2010-\u2013]"
_SSN = (
    r"(?<![\w\-])(?<![0-9][., ])(?!000|666|9)[0-9]{3}"
    rf"(?:{_DASH}(?!00)[0-9]{{2}}{_DASH}|[ \u00a0](?!00)[0-9]{{2}}[ \u00a0])"
    r"(?!0000)[0-9]{4}(?![\w\-]|[., ][0-9])"
)

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


PII: tuple[PresetRule, ...] = (
    PresetRule(name="email", patterns=(_EMAIL,), accept=is_email),
    CARD,
    IBAN,
    PresetRule(name="ssn", patterns=(_SSN,)),
    PHONE,
    PresetRule(name="ip", patterns=(_IPV4, _IPV6), accept=is_ip),
)
