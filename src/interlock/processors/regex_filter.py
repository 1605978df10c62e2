"""RegexFilter: patterns that are redacted, blocked or reported, wherever the stream is cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from interlock.core.errors import UsageError
from interlock.core.shapes import is_sequence
from interlock.processors.presets import preset_rules
from interlock.release.guard import CHANNELS, Channel, Detection, Redaction, SpanGuard, Strategy
from interlock.release.pattern import ExactPattern
from interlock.release.scanner import Rule, TextScanner


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
        strategy, channels, redaction, replacement, on_detection, report_text, error_strategy: see
            :class:`interlock.processors.SpanGuard`. The default replacement is ``[NAME]``, the rule's name in capitals.

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
        strategy: Strategy = "redact",
        channels: Sequence[Channel] = CHANNELS,
        redaction: Redaction = "placeholder",
        replacement: str | Callable[[str, str], str] | None = None,
        on_detection: Callable[[Detection], object] | None = None,
        report_text: bool = False,
        error_strategy: Literal["strict", "warn"] = "strict",
        flags: int = 0,
        timeout: float = 1.0,
    ) -> None:
        super().__init__(
            id=id,
            strategy=strategy,
            channels=channels,
            redaction=redaction,
            replacement=replacement,
            on_detection=on_detection,
            report_text=report_text,
            error_strategy=error_strategy,
        )
        if isinstance(presets, str):
            raise UsageError(f"RegexFilter: presets is a list of names: presets=[{presets!r}]")
        ready = [rule for name in presets for rule in preset_rules(name, region=region)]
        self.rules = (*_rules(rules, flags, timeout), *ready)
        if not self.rules:
            example = r"{'email': r'[\w.]+@[\w.]+\w'}"
            raise UsageError(
                f"RegexFilter needs at least one rule, such as {example}, or a preset, such as ['pii']"
            )

    def new_scanner(self) -> TextScanner:
        """A scanner of all rules for one text."""
        return TextScanner(self.rules)


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
