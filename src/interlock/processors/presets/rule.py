"""A rule as data, until it is built: neither ``regex`` nor what a check needs is imported before."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from interlock.core.record import FrozenRecord
from interlock.release.pattern import ExactPattern
from interlock.release.scanner import Rule

DIGITS = frozenset("0123456789")
GAP = r"[ \-\u00a0\u2007\u202f\u2010-\u2014]"
"""One space or dash between groups of digits, also the typographic ones that models like to write."""


class PresetRule(FrozenRecord, frozen=True, kw_only=True):
    """A rule to be built: patterns, each searched on its own, and a check for what they find.

    Attributes:
        name: the rule's name.
        patterns: its patterns, in the syntax of ``regex``.
        accept: a check that a candidate of any of them has to pass.
    """

    name: str
    patterns: tuple[str, ...]
    accept: Callable[[str], bool] | None = None

    def rules(self, region: str = "US") -> tuple[Rule, ...]:
        """The rule, built: one for each pattern, all of the same name.

        Args:
            region: the country whose national phone numbers are found (only the rule ``phone`` looks at it).
        """
        return _built(self.name, self.patterns, self.accept)


@cache
def _built(name: str, patterns: tuple[str, ...], accept: Callable[[str], bool] | None) -> tuple[Rule, ...]:
    return tuple(Rule(pattern=ExactPattern(name, source, linear=True), accept=accept) for source in patterns)
