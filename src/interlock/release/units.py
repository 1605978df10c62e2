"""Cutting a text that is still being written into the units a judge looks at (spec R0, R4.6)."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

UnitKind: TypeAlias = Literal["word", "sentence", "answer"] | int

_NARROW = ".!?…‼⁇⁈⁉؟۔।॥"  # noqa: RUF001
_WIDE = "。！？．"  # noqa: RUF001  # these end a sentence without white space behind them
_CLOSING = "\"'”’»›)]}）】」』*_~`"  # noqa: RUF001
_PUNCTUATION = re.escape(_NARROW + _WIDE + _CLOSING)
_RUN = re.compile(rf"(\s+)|([{_PUNCTUATION}]+)|[^\s{_PUNCTUATION}]+")
_ANY_END = re.compile(f"[{re.escape(_NARROW + _WIDE)}]")
_WIDE_END = re.compile(f"[{_WIDE}]")


class UnitCutter:
    """Cuts one growing text. The units of a text are the same however it is streamed, and joined they are the text.

    A unit has the white space behind it; white space in front of the text goes with its first unit.

    - ``"word"``: complete when the next word begins.
    - ``"sentence"``: complete when the first character after its closing punctuation (``.!?…`` with brackets and
      quotes) and white space has come; East Asian full stops need no white space. A blank line ends a sentence too.
      Abbreviations are not known: ``Dr. Who`` is two.
    - a number: so many characters; complete when they are there.
    - ``"answer"``: the whole text.

    The last unit is complete when the text is.

    Args:
        unit: the kind of unit.
    """

    __slots__ = ("_closed", "_filled", "_length", "_lines", "_pieces", "_spaced", "_wide", "unit")

    def __init__(self, unit: UnitKind) -> None:
        self.unit: UnitKind = unit
        self._begin()

    def _begin(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._filled = False  # the unit has more than white space
        self._closed = False  # closing punctuation has come,
        self._wide = False  # of the kind that needs no white space,
        self._spaced = False  # and white space,
        self._lines = 0  # with so many line ends

    @property
    def held(self) -> int:
        """How many characters of the unit under way have come and were not given out."""
        return self._length

    def feed(self, text: str, *, final: bool = False) -> list[str]:
        """More of the text.

        Args:
            text: what came.
            final: the text is complete with it.

        Returns:
            The units that are complete now; none is empty.
        """
        if isinstance(self.unit, int):
            units = self._windows(text, self.unit)
        elif self.unit == "answer":
            self._keep(text)
            units = []
        else:
            units = self._runs(text)
        if final:
            if self._length:
                units.append("".join(self._pieces))
            self._begin()
        return units

    def take_held(self) -> str:
        """Give out what has come of the unit under way; the rest of it follows when it is complete."""
        out = "".join(self._pieces)
        self._pieces, self._length = [], 0
        return out

    def _keep(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self._length += len(text)

    def _windows(self, text: str, size: int) -> list[str]:
        if self._length + len(text) < size:
            self._keep(text)
            return []
        whole = "".join(self._pieces) + text
        full = len(whole) // size * size
        self._begin()
        self._keep(whole[full:])
        return [whole[at : at + size] for at in range(0, full, size)]

    def _runs(self, text: str) -> list[str]:
        units: list[str] = []
        start = 0
        by_word = self.unit == "word"
        for run in _RUN.finditer(text):
            space, ending = run.groups()
            if space is not None:
                self._spaced = True
                self._lines += space.count("\n")
                continue
            if self._filled and self._ends(by_word, ending is not None):
                self._keep(text[start : run.start()])
                units.append("".join(self._pieces))
                self._begin()
                start = run.start()
            if ending is None:
                self._closed = self._wide = False
            elif _ANY_END.search(ending):
                self._closed = True
                self._wide = self._wide or _WIDE_END.search(ending) is not None
            self._filled, self._spaced, self._lines = True, False, 0
        self._keep(text[start:])
        return units

    def _ends(self, by_word: bool, ending: bool) -> bool:
        """Whether a unit ends in front of a run that is not white space."""
        if self._spaced:
            return by_word or self._closed or self._lines > 1
        return self._wide and not ending and not by_word
