"""Finding spans in a text that is still being written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from interlock.core.record import FrozenRecord
from interlock.release.pattern import ExactPattern

EAGER = 512
"""Characters held up to which every chunk is searched; beyond, only when the text has grown by an eighth.

So a match of any length, one character a chunk, costs linear time; what is held for it leaves an eighth later.
"""


class Span(FrozenRecord, frozen=True, kw_only=True):
    """A place in a text that a rule objects to."""

    rule: str
    start: int
    end: int


class Rule(FrozenRecord, frozen=True, kw_only=True):
    """A named pattern, with a check that a candidate has to pass (a checksum, say)."""

    pattern: ExactPattern
    accept: Callable[[str], bool] | None = None

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.pattern.name


class RuleScanner:
    """One rule over one growing text.

    Attributes:
        safe: everything in front of this place is decided.
    """

    __slots__ = ("_next", "_rule", "_searched", "safe", "spans")

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._next = 0
        self._searched = 0
        self.safe = 0
        self.spans: list[Span] = []

    def scan(self, text: str, *, final: bool) -> None:
        """Look at the text as it stands now; ``final``: no more will come."""
        pattern = self._rule.pattern
        held = self._searched - self.safe
        if not final and held > EAGER and len(text) - self._searched < held // 8:
            return
        self._searched = len(text)
        while True:
            undecided = len(text) + 1 if final else pattern.first_undecided(text, self._next)
            self._take_until(text, undecided)
            if self._next <= undecided or final:
                break
        self.safe = len(text) if final else max(min(undecided, len(text)), self._next)

    def _take_until(self, text: str, undecided: int) -> None:
        """Take the matches that begin in front of the first undecided place."""
        while self._next < undecided and (found := self._rule.pattern.search(text, self._next)) is not None:
            start, end = found.start(), found.end()
            if start >= undecided:
                return
            if end > start and (self._rule.accept is None or self._rule.accept(text[start:end])):
                self.spans.append(Span(rule=self._rule.name, start=start, end=end))
            self._next = max(end, start + 1) if end > start else end + 1
            if self._next > undecided:
                return

    def forget(self, count: int) -> None:
        """The text's first characters are gone."""
        self._next -= count
        self._searched -= count
        self.safe -= count
        self.spans = [span.replace(start=span.start - count, end=span.end - count) for span in self.spans]


def merged(spans: Sequence[Span]) -> list[Span]:
    """Overlapping spans as one; the longest gives the name, the first rule among equals."""
    clusters: list[tuple[int, int, Span]] = []
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        if clusters and span.start < clusters[-1][1]:
            start, end, longest = clusters[-1]
            better = span if span.end - span.start > longest.end - longest.start else longest
            clusters[-1] = (start, max(end, span.end), better)
        else:
            clusters.append((span.start, span.end, span))
    return [Span(rule=longest.rule, start=start, end=end) for start, end, longest in clusters]


class TextScanner:
    """All rules over one growing text: what is decided, what has to wait.

    Args:
        rules: the rules.
        context: characters of released text to keep for what looks behind.
    """

    def __init__(self, rules: Sequence[Rule], context: int = 4096) -> None:
        self._scanners = [RuleScanner(rule) for rule in rules]
        self._context = context
        self._text = ""
        self._taken = 0
        self.offset = 0

    @property
    def held(self) -> int:
        """How many characters wait."""
        return len(self._text) - self._taken

    def feed(self, text: str, *, final: bool = False) -> tuple[str, list[Span]]:
        """More text.

        Args:
            text: what came.
            final: the text is complete with it.

        Returns:
            The text that is decided now, and the spans in it (merged, offsets within it).
        """
        self._text += text
        for scanner in self._scanners:
            scanner.scan(self._text, final=final)
        safe = min((scanner.safe for scanner in self._scanners), default=len(self._text))
        spans = merged([span for scanner in self._scanners for span in scanner.spans])
        for span in spans:
            if span.start < safe < span.end:
                safe = span.start
        ready = [span for span in spans if span.end <= safe]
        for scanner in self._scanners:
            scanner.spans = [span for span in scanner.spans if span.end > safe]
        start, self._taken = self._taken, safe
        decided = self._text[start:safe]
        placed = [span.replace(start=span.start - start, end=span.end - start) for span in ready]
        self._trim()
        return decided, placed

    def _trim(self) -> None:
        excess = self._taken - self._context
        if excess > self._context:
            self._text = self._text[excess:]
            self._taken -= excess
            self.offset += excess
            for scanner in self._scanners:
                scanner.forget(excess)
