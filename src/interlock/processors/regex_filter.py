"""RegexFilter: patterns that are redacted, blocked or reported, wherever the stream is cut."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, Unpack

from interlock.core.errors import UsageError
from interlock.core.shapes import is_sequence
from interlock.processors.presets import preset_rules
from interlock.release.guard import CHANNELS, Channel, GuardOptions, SpanGuard
from interlock.release.pattern import ExactPattern
from interlock.release.scanner import Rule, TextScanner

log = logging.getLogger("interlock")

_SHORT = 256
"""A pattern that is searched without a clock in texts of this length costs nothing out of the ordinary."""

Phases: TypeAlias = Literal["input", "output", "all"]
PHASES: dict[Phases, tuple[Channel, ...]] = {
    "all": CHANNELS,
    "input": ("input",),
    "output": tuple(channel for channel in CHANNELS if channel != "input"),
}
"""The channels of each phase."""


class RegexFilter(SpanGuard):
    """Finds patterns in everything that passes.

    While text streams, nothing is held that no future text can turn into a match, extend or revoke; the joined
    client text is what the filter makes of the whole text, for every way of cutting the stream (spec R0).

    Args:
        rules: patterns by rule name, or Rule objects. Patterns are in the syntax of the ``regex`` package, a superset
            of ``re``.
        presets: names of ready-made rule sets to add: ``pii`` (e-mail, card, IBAN, SSN, phone, IP; needs the extra
            ``pii``), ``secrets`` (keys, tokens, PEM blocks, connection strings), ``urls``.
        region: where phone numbers without a country code are from, as ISO 3166 code.
        flags: ``regex`` flags for patterns given as text.
        timeout: seconds one search may take before the check counts as failed.
        phases: ``all`` (as without it), ``input`` (the channel ``input``: messages on their way in) or ``output``
            (every other channel). Short for ``channels``; give one of the two.
        options: strategy, channels, redaction, replacement, on_detection, report_text, error_strategy: see
            :class:`interlock.processors.SpanGuard`. The default replacement is ``[NAME]``, the rule's name in capitals.

    Attributes:
        costs: the rules that cost more than others, by name, and why. The log says so too, once.
            ``whole text``: the engine cannot follow the pattern; all text waits until it is complete.
            ``look-ahead``: it may look ahead without a limit; where it could match, text waits for what it looks for,
            at worst to the end. ``look-behind``: it may look back without a limit; up to 65,536 released characters
            are kept. ``timed``: there are so many ways to read a text that searches look at the clock.

    Raises:
        UsageError: no rules, a pattern that does not compile, an unknown preset or option, a missing extra.

    >>> guard = RegexFilter({"pin": r"\\b\\d{4}\\b"})
    >>> import asyncio
    >>> from interlock import guard_text
    >>> asyncio.run(guard_text("my pin is 1234.", [guard])).text
    'my pin is [PIN].'
    """

    def __init__(
        self,
        rules: Mapping[str, str] | Sequence[Rule] = (),
        *,
        presets: Sequence[str] = (),
        region: str = "US",
        id: str = "regex-filter",
        flags: int = 0,
        timeout: float = 1.0,
        phases: Phases | None = None,
        **options: Unpack[GuardOptions],
    ) -> None:
        if phases is not None:
            if "channels" in options:
                raise UsageError("RegexFilter: phases and channels say the same; give one of them")
            if phases not in PHASES:
                raise UsageError(
                    f"RegexFilter: phases is one of {', '.join(map(repr, PHASES))}, not {phases!r}"
                )
            options["channels"] = PHASES[phases]
        super().__init__(id=id, **options)
        if isinstance(presets, str):
            raise UsageError(f"RegexFilter: presets is a list of names: presets=[{presets!r}]")
        ready = [rule for name in presets for rule in preset_rules(name, region=region)]
        self.rules = (*_rules(rules, flags, timeout), *ready)
        if not self.rules:
            example = r"{'email': r'[\w.]+@[\w.]+\w'}"
            raise UsageError(
                f"RegexFilter needs at least one rule, such as {example}, or a preset, such as ['pii']"
            )

        self.costs = {rule.name: why for rule in self.rules if (why := _costs(rule.pattern))}
        if self.costs:
            told = "; ".join(f"{name} ({', '.join(why)})" for name, why in self.costs.items())
            log.info("RegexFilter %r has rules that cost more than others: %s", id, told)

    def new_scanner(self) -> TextScanner:
        """A scanner of all rules for one text."""
        return TextScanner(self.rules)


def _costs(pattern: ExactPattern) -> tuple[str, ...]:
    if pattern.needs_whole_text:
        return ("whole text",)
    costs = {
        "look-ahead": pattern.looks_ahead is None,
        "look-behind": pattern.looks_back is None,
        "timed": pattern.untimed < _SHORT,
    }
    return tuple(name for name, is_so in costs.items() if is_so)


def _rules(given: Any, flags: int, timeout: float) -> tuple[Rule, ...]:
    if isinstance(given, Mapping):
        pairs: Mapping[str, Any] = given  # pyright: ignore[reportUnknownVariableType]
        for name, source in pairs.items():
            if not isinstance(source, str):
                raise UsageError(
                    f"RegexFilter: rule {name!r}: a pattern is a text, not {type(source).__name__}"
                )
        made = [Rule(pattern=ExactPattern(name, source, flags, timeout)) for name, source in pairs.items()]
    elif not is_sequence(given) or not all(isinstance(rule, Rule) for rule in given):
        raise UsageError("RegexFilter: rules are a mapping of names to patterns, or a list of Rule objects")
    else:
        made = list(given)
    return tuple(made)
