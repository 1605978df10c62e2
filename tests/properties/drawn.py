"""Guards drawn at random, and what they make of a whole text, said without the engine."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import regex
from hypothesis import assume
from hypothesis import strategies as st
from streaming import PATTERNS, compiles, expected

from interlock import Processor
from interlock.processors import KeywordFilter, RegexFilter, Unit, UnitGuard, Verdict
from interlock.release.units import UnitCutter, UnitKind

SENTINELS = "ЖЮЯ"
"""Letters that occur in nothing but forbidden phrases."""


class Judge(UnitGuard):
    """Objects to units with one of these characters in them."""

    bad = "1"

    def judge(self, unit: Unit, ctx: Any) -> Verdict:
        """Replace them by their length."""
        if any(char in unit.text for char in self.bad):
            return Verdict.replace(f"<{len(unit.text)}>")
        return Verdict.allow()


class Censor(Judge):
    """Objects to units with a sentinel in them."""

    bad = SENTINELS


@dataclass(frozen=True)
class Drawn:
    """A guard: patterns, words, or a unit to be judged."""

    patterns: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    unit: UnitKind | None = None

    def made(self, number: int, **options: Any) -> Processor:
        """The guard, as number so and so in its row."""
        id = f"g{number}"
        if self.unit is not None:
            judge = Censor if options.get("strategy") == "block" else Judge
            options.setdefault("strategy", "redact")
            return judge(id=id, unit=self.unit, **options)
        options.setdefault("replacement", _replacement)
        if self.words:
            return KeywordFilter(
                self.words, rule=id, case_sensitive=True, whole_words=False, id=id, **options
            )
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # [[:alpha:]] and the like: `regex` warns of what `re` would warn of
            return RegexFilter(dict(self._named(number)), id=id, **options)

    def whole(self, number: int, given: str) -> str:
        """What it makes of a whole text."""
        if self.unit is not None:
            units = UnitCutter(self.unit).feed(given, final=True)
            return "".join(f"<{len(unit)}>" if "1" in unit else unit for unit in units)
        if self.words:
            return self._without_words(number, given)
        return expected(self._named(number), given)

    def _named(self, number: int) -> list[tuple[str, str]]:
        return [(f"g{number}r{each}", source) for each, source in enumerate(self.patterns)]

    def _without_words(self, number: int, given: str) -> str:
        """The leftmost word, of these the longest, and so on; a word ends where no mark follows."""
        longest_first = sorted(self.words, key=len, reverse=True)
        return regex.sub("|".join(map(regex.escape, longest_first)), f"<g{number}>", given)


def _replacement(rule: str, text: str) -> str:
    return f"<{rule}>"


_WORDS = st.lists(
    st.sampled_from(["ab", "ba", "a1", "b", "bb1", "AA", "-a", "é", "aab1"]),
    min_size=1,
    max_size=3,
    unique=True,
).map(lambda each: Drawn(words=tuple(each)))
_UNITS = st.sampled_from([Drawn(unit="word"), Drawn(unit="sentence"), Drawn(unit="answer"), Drawn(unit=3)])


def _of_patterns(sources: Sequence[str]) -> Drawn:
    return Drawn(patterns=tuple(sources))


@st.composite
def rows(draw: st.DrawFn) -> tuple[Drawn, ...]:
    """Guards that redact, one to three in a row."""
    patterns = st.lists(PATTERNS, min_size=1, max_size=2).map(_of_patterns)
    return tuple(draw(st.lists(patterns | patterns | patterns | _WORDS | _UNITS, min_size=1, max_size=3)))


def all_compile(row: Sequence[Drawn]) -> bool:
    """Whether these guards can be made. No part of drawing them: `regex` rolls dice as it compiles."""
    return all(map(compiles, [source for drawn in row for source in drawn.patterns]))


def through_all(row: Sequence[Drawn], given: str, first: int = 0) -> str:
    """What guards in a row make of a whole text; ``first``: the number of the first of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for number, drawn in enumerate(row, first):
                given = drawn.whole(number, given)
        except (MemoryError, TimeoutError):  # a pattern that `regex` itself cannot cope with
            assume(False)
    return given


# ------------------------------------------------------------------------------------------------- forbidden phrases

_SIMPLE = [
    ("Ж", "Ж"),
    ("Ж+", "ЖЖЖ"),
    ("Ю{2,4}", "ЮЮ"),
    ("(?:Ю|ЮЯ)", "ЮЯ"),
    ("Я*?Ж", "ЯЖ"),
    ("(?:Ю Я)?", ""),
    ("(?:Ю Я)?", "Ю Я"),
    (r"[ЖЯ]\s", "Я "),
    (r"(?i:жя)", "ЖЯ"),
    (r"Ж.Ю", "ЖaЮ"),
    (r"(?>Я+)", "ЯЯ"),
]
_BEFORE = ["", "", r"\b", r"(?<!1)", r"(?<=\W|^)", r"(?<!ab)", "^"]
_AFTER = ["", "", r"\b", r"(?!1)", r"(?=\W|$)", r"(?!a+b)", "$", r"\Z"]


@st.composite
def forbidden(draw: st.DrawFn) -> tuple[Drawn, str]:
    """A guard for a phrase, and the phrase: its sentinels are in nothing else."""
    pieces = draw(st.lists(st.sampled_from(_SIMPLE), min_size=1, max_size=4))
    phrase = "".join(text for _, text in pieces)
    assume(any(char in phrase for char in SENTINELS))
    kind = draw(st.sampled_from(["pattern", "pattern", "words", "unit"]))
    if kind == "words":
        more = [phrase + "Ж", "Ж" + phrase] if draw(st.booleans()) else []
        return Drawn(words=(phrase, *more)), phrase
    if kind == "unit":
        return draw(_UNITS), phrase
    source = (
        draw(st.sampled_from(_BEFORE))
        + "".join(source for source, _ in pieces)
        + draw(st.sampled_from(_AFTER))
    )
    return Drawn(patterns=(source,)), phrase


def covers(drawn: Drawn, text: str) -> bool:
    """Whether the guard finds the sentinels of a text, all of them."""
    if drawn.patterns:
        text = regex.sub(drawn.patterns[0], "", text)
    return not drawn.patterns or not any(char in text for char in SENTINELS)


innocent = st.lists(st.sampled_from([Drawn(words=("ab",)), Drawn(words=("b", "a1"))]), max_size=1).map(tuple)
"""Guards that hold text back and leave sentinels alone."""
