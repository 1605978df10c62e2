"""Finding spans in a text that is still being written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from interlock.core.errors import InterlockError
from interlock.core.record import FrozenRecord
from interlock.release.glance import Glance
from interlock.release.pattern import ExactPattern

EAGER = 512
"""Characters held up to which every chunk is searched; beyond, only when the text has grown by an eighth.

So a match of any length, one character a chunk, costs linear time; what is held for it leaves an eighth later.
"""

SLICE = 16_384
"""A longer chunk is looked at in pieces of so many characters: a search has its time for a piece, not for a book."""

SHORT = 64
"""Characters of candidates that are tried from each character."""

FURTHEST = 65_536
"""The most that waits, and the most that is kept of what was released, in characters."""


class HeldTooLong(InterlockError):
    """More text waits for a verdict than may: a rule cannot make up its mind (spec R4.6).

    Args:
        rules: the rules that hold it.
        held: characters that wait.
        cap: characters that may.
    """

    def __init__(self, rules: Sequence[str], held: int, cap: int) -> None:
        super().__init__(f"{held} characters wait for {', '.join(map(repr, rules))}; at most {cap} may")
        self.rules = list(rules)
        self.held = held
        self.cap = cap

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.rules, self.held, self.cap))


class FunctionFailed(InterlockError):
    """A function that was given for a rule raised, or returned something else than it may.

    It tells of the exception's kind only: what the exception says may be the text.

    Args:
        rule: the rule.
        what: what went wrong.
    """

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"rule {rule!r}: {what}")
        self.rule = rule
        self.what = what

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.rule, self.what))


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

    def accepts(self, text: str) -> bool:
        """Whether a candidate passes the check.

        Raises:
            FunctionFailed: the check raised.
        """
        if self.accept is None:
            return True
        try:
            return self.accept(text)
        except Exception as problem:
            cause = type(problem).__name__
        # out here, the exception is not the context of what is raised: it may hold the text
        raise FunctionFailed(self.name, f"its check raised {cause}")


class Scanner(Protocol):
    """What looks for spans in one growing text; a RuleScanner, or anything of this shape.

    Attributes:
        safe: everything in front of this place is decided.
        spans: what it found, in order; the TextScanner takes out what it has handed on.
    """

    safe: int
    spans: list[Span]

    def scan(self, text: str, *, final: bool) -> None:
        """Look at the text as it stands now; ``final``: no more will come."""
        ...

    def forget(self, count: int) -> None:
        """The text's first characters are gone: every place moves back by as many."""
        ...


class RuleScanner:
    """One rule over one growing text.

    After a match the search goes on where it ended; after an empty match, which redacts nothing, one character further.
    So it does after a candidate that the rule's check refuses, since a match may begin inside it, unless candidates can
    be so long that trying them from each character would take forever.

    Attributes:
        safe: everything in front of this place is decided.
        spans: what it found, in order.
        busy: where its last candidate ends.
    """

    __slots__ = ("_next", "_rule", "busy", "safe", "spans")

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._next: int = 0
        self.busy: int = 0
        self.safe = 0
        self.spans: list[Span] = []

    @property
    def name(self) -> str:
        """The rule's name."""
        return self._rule.name

    @property
    def looks_back(self) -> int | None:
        """How many decided characters its verdicts may depend on; None: there is no limit."""
        return self._rule.pattern.looks_back

    def scan(self, text: str, *, final: bool) -> None:
        """Look at the text as it stands now; ``final``: no more will come."""
        while True:
            undecided = len(text) + 1 if final else self._rule.pattern.first_undecided(text, self._next)
            self._take_until(text, undecided)
            if self._next <= undecided or final:
                break
        if not final:
            self._next = undecided
        self.safe = len(text) if final else undecided

    def _take_until(self, text: str, undecided: int) -> None:
        """Take the matches that begin in front of the first undecided place."""
        while self._next < undecided and (found := self._rule.pattern.search(text, self._next)) is not None:
            # \K in a look-behind begins a match in front of where it was searched for: it counts from there only
            start, end = max(found.start(), self._next), found.end()
            if start >= undecided:
                return
            if end <= start:
                self._next = self.busy = max(end, self._next) + 1
            elif self._rule.accepts(text[start:end]):
                self.spans.append(Span(rule=self._rule.name, start=start, end=end))
                self._next = self.busy = end
            elif self._rule.pattern.width <= SHORT:
                self._next = start + 1
            else:
                self._next = self.busy = end

    def catch_up(self, place: int) -> None:
        """Everything in front of a place was decided elsewhere; nothing was found there."""
        self._next = max(self._next, place)
        self.safe = max(self.safe, place)

    def forget(self, count: int) -> None:
        """The text's first characters are gone."""
        self._next -= count
        self.busy -= count
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
        context: characters of released text to keep for what looks behind. A rule that looks back further has what it
            needs; one without a limit has ``FURTHEST`` characters, and does not see what is further back.
        cap: characters that may wait.
        glance: looks for these rules; made here unless given (it is the same for every text).
    """

    def __init__(
        self, rules: Sequence[Rule], context: int = 64, cap: int = FURTHEST, glance: Glance | None = None
    ) -> None:
        rule_scanners = [RuleScanner(rule) for rule in rules]
        back = [scanner.looks_back for scanner in rule_scanners]
        needed = [FURTHEST if each is None else min(each, FURTHEST) for each in back]
        self._glance = glance or Glance([rule.pattern for rule in rules])
        self._rule_scanners = rule_scanners
        self._set_up(rule_scanners, max(1, context, *needed), cap, self._glance.reach)

    @classmethod
    def of(cls, scanners: Sequence[Scanner], context: int = 4096, cap: int = FURTHEST) -> Self:
        """A TextScanner over scanners of any kind (a keyword scanner, say).

        ``context`` has to be enough for them.
        """
        made = cls(())
        made._set_up(scanners, max(1, context), cap, 0)
        return made

    def _set_up(self, scanners: Sequence[Scanner], context: int, cap: int, reach: int) -> None:
        self._scanners = list(scanners)
        self._context = context
        self._trim_from = 2 * context
        self._cap = cap
        self._reach = min(reach, cap)
        self._calm = self._reach > 0
        self._text = ""
        self._taken = 0
        self._waiting: list[str] = []
        self._held = 0
        self._due = 0
        self.left = ""

    @property
    def held(self) -> int:
        """How many characters wait."""
        return self._held

    def feed(self, text: str, *, final: bool = False) -> tuple[str, Sequence[Span]]:
        """More text.

        Args:
            text: what came.
            final: the text is complete with it.

        Returns:
            The text that is decided now, and the spans in it (merged, offsets within it).

        Raises:
            SearchTimeout: a rule's search took too long. All that was not returned is in ``left``.
            HeldTooLong: more text waits than may. All that was not returned is in ``left``.
            FunctionFailed: a rule's check raised. All that was not returned is in ``left``.
        """
        if self._calm and not final:
            whole = self._text + text
            start = self._taken
            if len(whole) - start <= self._reach:
                safe = self._glance.first_undecided(whole, start)
                if safe >= 0:
                    self._text = whole
                    self._taken = safe
                    self._held = len(whole) - safe
                    if safe > self._trim_from:
                        self._trim()
                    return whole[start:safe], ()
        if self._calm:
            self._calm = False
            for scanner in self._rule_scanners:
                scanner.catch_up(self._taken)
        self._waiting.append(text)
        self._held += len(text)
        if not final and self._held < self._due and self._held <= self._cap:
            return "", ()
        return self._scan("".join(self._waiting), final=final)

    def _scan(self, text: str, *, final: bool) -> tuple[str, Sequence[Span]]:
        """Look properly: each rule for itself."""
        self._waiting.clear()
        undecided = self._text[self._taken :] + text
        try:
            decided, spans = self._scan_slices(text, final=final)
            if self._held > self._cap:
                raise HeldTooLong(self._holding(), self._held, self._cap)
        except InterlockError:
            self.left = undecided
            raise
        self._calm = (
            self._held < self._reach
            and not any(scanner.spans for scanner in self._scanners)
            and all(scanner.busy <= self._taken for scanner in self._rule_scanners)
        )
        return decided, spans

    def _scan_slices(self, text: str, *, final: bool) -> tuple[str, Sequence[Span]]:
        ready: list[str] = []
        spans: list[Span] = []
        length = 0
        for start in range(0, max(len(text), 1), SLICE):
            self._text += text[start : start + SLICE]
            last = start + SLICE >= len(text)
            if not last and len(self._text) - self._taken < self._due:
                continue
            for scanner in self._scanners:
                scanner.scan(self._text, final=final and last)
            decided, found = self._take_ready()
            ready.append(decided)
            spans.extend(span.replace(start=span.start + length, end=span.end + length) for span in found)
            length += len(decided)
        return "".join(ready), spans

    def _take_ready(self) -> tuple[str, list[Span]]:
        safe = min((scanner.safe for scanner in self._scanners), default=len(self._text))
        spans = merged([span for scanner in self._scanners for span in scanner.spans])
        for span in spans:
            if span.start < safe < span.end:
                safe = span.start
        for scanner in self._scanners:
            scanner.spans = [span for span in scanner.spans if span.end > safe]
        start, self._taken = self._taken, safe
        self._held = len(self._text) - safe
        self._due = self._held + self._held // 8 if self._held > EAGER else 0
        decided = self._text[start:safe]
        placed = [
            span.replace(start=span.start - start, end=span.end - start) for span in spans if span.end <= safe
        ]
        if safe > self._trim_from:
            self._trim()
        return decided, placed

    def _holding(self) -> list[str]:
        """The rules that hold more than may wait, or else the one that holds most."""
        held = [(len(self._text) - scanner.safe, _name(scanner)) for scanner in self._scanners]
        return [name for count, name in held if count > self._cap] or [max(held)[1]]

    def _trim(self) -> None:
        """Let go of released text that nothing looks back at."""
        excess = self._taken - self._context
        self._text = self._text[excess:]
        self._taken -= excess
        for scanner in self._scanners:
            scanner.forget(excess)


def _name(scanner: Scanner) -> str:
    return str(getattr(scanner, "name", type(scanner).__name__))
