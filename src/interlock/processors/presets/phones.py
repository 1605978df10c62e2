"""Phone numbers: candidates, which the library ``phonenumbers`` judges."""

from __future__ import annotations

import re
from functools import cache

from interlock.core.errors import UsageError
from interlock.processors.presets.rule import PresetRule
from interlock.release.pattern import ExactPattern
from interlock.release.scanner import Rule

INSTALL = "pip install 'interlock[pii]'"

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


PHONE = PhoneRule(name="phone", patterns=(_INTERNATIONAL,))
