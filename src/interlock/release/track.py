"""One text on its way through a guard: what came in, what has been decided of it, what may go out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
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
        if len(self._pieces) == 1:
            size, text, replaced = self._pieces[0]
            if size <= length and not replaced:
                self._pieces.clear()
                return size, text
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

    __slots__ = ("_failed", "_offset", "_replace", "scanner")

    def __init__(
        self, scanner: TextScanner, replace: Replace, failed: Callable[[InterlockError], object]
    ) -> None:
        super().__init__()
        self.scanner: TextScanner | None = scanner
        self._replace = replace
        self._failed = failed
        self._offset = 0

    def feed(self, text: str, *, final: bool = False) -> None:
        """More of the text."""
        scanner = self.scanner
        if scanner is None:
            decided = text
        else:
            try:
                decided, spans = scanner.feed(text, final=final)
            except InterlockError as problem:
                self._failed(problem)
                self.scanner = None
                decided, spans = scanner.left, ()
            if spans:
                decided = self._replaced(decided, spans)
        if decided:
            self._pieces.append((len(decided), decided, False))
            self._offset += len(decided)

    def _replaced(self, decided: str, spans: Sequence[Span]) -> str:
        """What stands for the spans, and the text between them. Returns what is left behind the last one."""
        at = 0
        for span in spans:
            if span.start > at:
                self._pieces.append((span.start - at, decided[at : span.start], False))
            removed = decided[span.start : span.end]
            placed = span.replace(start=self._offset + span.start, end=self._offset + span.end)
            self._pieces.append((len(removed), self._replace(placed, removed), True))
            at = span.end
        self._offset += at
        return decided[at:]


def through(track: Track, texts: list[str]) -> list[str]:
    """Complete texts that are one text together, each with what stands for its part."""
    for text in texts:
        track.feed(text)
    track.feed("", final=True)
    return [track.take(len(text))[1] for text in texts]
