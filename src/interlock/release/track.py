"""One text on its way through a guard: what came in, what has been decided of it, what may go out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from interlock.core.errors import InterlockError
from interlock.release.scanner import Span, TextScanner

Replace: TypeAlias = Callable[[Span, str], str]
"""Gives what stands for a span: called with the span (offsets in the whole text) and the removed text."""


class Decided:
    """What has been decided of a text, waiting to be handed out in the lengths it came in."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: deque[tuple[int, str, bool]] = deque()

    def feed(self, text: str, *, final: bool = False) -> None:
        """More of the text; here it is decided elsewhere, and :meth:`add` tells."""

    def add(self, length: int, text: str, *, replaced: bool) -> None:
        """The next ``length`` characters are decided: the text stands for them."""
        self._pieces.append((length, text, replaced))

    def take(self, length: int) -> tuple[int, str]:
        """Hand out what is decided of the next ``length`` characters that came in.

        Returns:
            How many of them are decided, and what stands for those.
        """
        if len(self._pieces) == 1 and self._pieces[0][0] == length and not self._pieces[0][2]:
            return length, self._pieces.popleft()[1]
        taken = 0
        out: list[str] = []
        while self._pieces and taken < length:
            size, text, replaced = self._pieces.popleft()
            used = min(size, length - taken)
            out.append(text if replaced else text[:used])
            if used < size:
                self._pieces.appendleft((size - used, "" if replaced else text[used:], replaced))
            taken += used
        return taken, "".join(out)

    def take_all(self) -> str:
        """Hand out everything that is decided."""
        out = "".join(text for _, text, _ in self._pieces)
        self._pieces.clear()
        return out


class Track(Decided):
    """A text through a scanner, its decided pieces waiting to be handed out in the lengths they came in.

    Args:
        scanner: finds the spans.
        replace: gives what stands for each; called once per span, in order.
        failed: told when the check cannot be made. It raises to stop; if it returns, the text goes on unchecked.
    """

    __slots__ = ("_failed", "_offset", "_replace", "_undecided", "scanner")

    def __init__(
        self, scanner: TextScanner, replace: Replace, failed: Callable[[InterlockError], object]
    ) -> None:
        super().__init__()
        self.scanner: TextScanner | None = scanner
        self._replace = replace
        self._failed = failed
        self._undecided = ""
        self._offset = 0

    def feed(self, text: str, *, final: bool = False) -> None:
        """More of the text."""
        self._undecided += text
        decided, spans = self._decided(text, final=final)
        self._undecided = self._undecided[len(decided) :]
        at = 0
        for span in spans:
            self._plain(decided[at : span.start])
            removed = decided[span.start : span.end]
            placed = span.replace(start=self._offset + span.start, end=self._offset + span.end)
            self._pieces.append((len(removed), self._replace(placed, removed), True))
            at = span.end
        self._plain(decided[at:])
        self._offset += len(decided)

    def _decided(self, text: str, *, final: bool) -> tuple[str, list[Span]]:
        if self.scanner is None:
            return self._undecided, []
        try:
            return self.scanner.feed(text, final=final)
        except InterlockError as problem:
            self._failed(problem)
            self.scanner = None
            return self._undecided, []

    def _plain(self, text: str) -> None:
        if text:
            self._pieces.append((len(text), text, False))


def through(track: Track, texts: list[str]) -> list[str]:
    """Complete texts that are one text together, each with what stands for its part."""
    for text in texts:
        track.feed(text)
    track.feed("", final=True)
    return [track.take(len(text))[1] for text in texts]
