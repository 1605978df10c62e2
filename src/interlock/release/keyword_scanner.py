"""The terms of an index over a text that is still being written.

*Letters.* Text and terms are compared letter by letter (see ``letters``), and a match begins and ends where letters do:
"cafe" is not in "café", nor "s" in "ß".

*What is undecided.* The first letter from which the text so far is the beginning of some term: nothing in front of it
can still be matched, or matched longer. That place only ever moves forward, so finding it costs a question a character.
"""

from __future__ import annotations

from heapq import heappop, heappush
from unicodedata import normalize

from interlock.release.keywords import KeywordIndex, Matches
from interlock.release.letters import NO_LETTER, narrow, settled
from interlock.release.scanner import Span

_LAZY = 32
"""Marks on one letter beyond which it is folded once, when it is complete."""

_NOWHERE = -1

_IOTA = "\u0345"
"""The one mark that is a letter in lower case; marks that follow it are sorted in front of it."""


class KeywordScanner:
    """The terms of an index over one growing text: leftmost, longest, not overlapping.

    Attributes:
        safe: everything in front of this place is decided.
        spans: the matches in front of it.
    """

    # Places in the folded text are counted from its beginning, of which the first `_base` characters are gone. Per
    # place in the window: where in the text a match may begin or stop there, or `_NOWHERE`. The last letter is open:
    # marks may follow, and the character after it says whether a word ends.
    __slots__ = (
        "_base",
        "_begins",
        "_folded",
        "_forgotten",
        "_found",
        "_fresh",
        "_index",
        "_matches",
        "_next",
        "_open",
        "_seen",
        "_starts",
        "_stops",
        "_undecided",
        "_window",
        "safe",
        "spans",
    )

    def __init__(self, index: KeywordIndex) -> None:
        self._index = index
        self._matches = index.matches() if index.longest else None
        self._seen = 0
        self._forgotten = 0
        self._open = ""
        self._folded: str | None = ""
        self._fresh: list[str] = []
        self._window = ""
        self._base = 0
        self._begins = [0]
        self._stops = [_NOWHERE]
        self._found: dict[int, tuple[int, str]] = {}
        self._starts: list[int] = []
        self._next = 0
        self._undecided = 0
        self.safe = 0
        self.spans: list[Span] = []

    def scan(self, text: str, *, final: bool) -> None:
        """Look at the text as it stands now; ``final``: no more will come."""
        new = text[self._seen - self._forgotten :]
        if self._matches is None:
            self._seen += len(new)
            self.safe = len(text)
            return
        if new:
            if new.isascii():
                self._read_ascii(new)
            else:
                self._read(new)
        if final and self._open:
            self._close(before_word=False)
            self._open = ""
        if self._fresh:
            self._search(self._matches)
        last = self._settle(final=final)
        self.safe = (self._seen if last else self._begins[self._undecided - self._base]) - self._forgotten
        self._trim()

    def _read(self, new: str) -> None:
        """Take letters, character by character."""
        folding = self._index.folding
        for char in new:
            continues, folded, word = folding[char]
            if continues and self._open:
                if folded:
                    self._extend(char)
            else:
                if self._open:
                    self._close(before_word=word)
                self._open = char
                self._folded = folded
            self._seen += 1

    def _read_ascii(self, new: str) -> None:
        """The same for letters of one character that stay one."""
        folding, whole = self._index.folding, self._index.whole_words
        if self._open:
            self._close(before_word=folding[new[0]][2])
        start, self._seen = self._seen + 1, self._seen + len(new)
        places = range(start, self._seen)
        if whole:
            words = [folding[char][2] for char in new]
            self._begins.extend(
                _NOWHERE if word else place for place, word in zip(places, words, strict=False)
            )
            self._stops.extend(
                _NOWHERE if word else place for place, word in zip(places, words[1:], strict=True)
            )
        else:
            self._begins.extend(places)
            self._stops.extend(places)
        folded = folding.fold(new)
        self._fresh.append(folded[:-1])
        self._open, self._folded = new[-1], folded[-1]

    def _extend(self, char: str) -> None:
        """One more mark on the open letter."""
        if len(self._open) > self._index.longest:
            self._folded = NO_LETTER
            return
        self._open += char
        self._folded = None if len(self._open) > _LAZY else narrow(self._index.folding.fold(self._open))

    def _close(self, *, before_word: bool) -> None:
        """The open letter ends here."""
        folding, whole = self._index.folding, self._index.whole_words
        folded = narrow(folding.fold(self._open)) if self._folded is None else self._folded
        begin = _NOWHERE if whole and folding[self._open[0]][2] else self._seen
        if not folded:  # a mark at the very beginning that folds to nothing
            self._begins[-1] = begin
            return
        self._fresh.append(folded)
        if len(folded) > 1:
            within = [_NOWHERE] * (len(folded) - 1)
            self._begins += within
            self._stops += within
        self._begins.append(begin)
        self._stops.append(_NOWHERE if whole and before_word else self._seen)

    def _search(self, matches: Matches) -> None:
        """Collect the matches that end in the letters just closed."""
        fresh = "".join(self._fresh)
        self._fresh.clear()
        self._window += fresh
        matches.set(fresh, False)
        begins, stops, base, earliest = self._begins, self._stops, self._base, self._undecided
        found = self._found
        for last, (length, rule) in matches:
            start = last + 1 - length
            if start >= earliest and begins[start - base] >= 0 and stops[last + 1 - base] >= 0:
                if start not in found:
                    heappush(self._starts, start)
                found[start] = (last + 1, rule)  # ends come in order: the last is the longest

    def _settle(self, *, final: bool) -> bool:
        """Decide what can be decided; returns whether that is everything."""
        end = self._base + len(self._window)
        endings = self._endings()
        while True:
            if final:
                self._undecided = end + 1
            else:
                self._advance(end, endings)
            while self._starts and self._starts[0] < self._undecided:
                start = heappop(self._starts)
                stop, rule = self._found.pop(start)
                if start >= self._next:
                    self._next = stop
                    self._take(start, stop, rule)
            if self._undecided >= self._next:
                return self._undecided > end or not endings[0]
            self._undecided = self._next

    def _endings(self) -> list[str]:
        """What the open letter may be compared as, whatever marks still follow."""
        folding = self._index.folding
        if self._folded is None:
            return [narrow(folding.fold(settled(self._open[0])))]
        if self._folded.isascii() or self._folded == NO_LETTER:
            return [self._folded]
        if self._index.stacked or _IOTA in normalize("NFD", self._open):
            return [self._folded, narrow(folding.fold(settled(self._open)))]
        return [self._folded]

    def _advance(self, end: int, endings: list[str]) -> None:
        """Move to the first place from which the text is the beginning of a term."""
        index, begins, base, window = self._index, self._begins, self._base, self._window
        if not endings[0]:
            return
        place = max(self._undecided, end - index.longest)
        while place <= end:
            if begins[place - base] >= 0:
                rest = window[place - base :]
                if any(index.begins(rest + ending) for ending in endings):
                    break
            place += 1
        self._undecided = place

    def _take(self, start: int, stop: int, rule: str) -> None:
        self.spans.append(
            Span(
                rule=rule,
                start=self._begins[start - self._base] - self._forgotten,
                end=self._stops[stop - self._base] - self._forgotten,
            )
        )

    def _trim(self) -> None:
        """Let go of what is decided, when that is most of what is there."""
        gone = min(self._undecided - self._base, len(self._window))
        if 2 * gone > len(self._window):
            self._window = self._window[gone:]
            del self._begins[:gone], self._stops[:gone]
            self._base += gone

    def forget(self, count: int) -> None:
        """The text's first characters are gone."""
        self._forgotten += count
        self.safe -= count
        self.spans = [span.replace(start=span.start - count, end=span.end - count) for span in self.spans]
