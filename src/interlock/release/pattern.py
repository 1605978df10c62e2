"""When is a pattern's verdict final? A pattern, and its twin that tells what future text could still change.

For a pattern P the twin K runs P from each start exactly as a search for P would, but never matches: where P has its
match, K gives the start up (``(*PRUNE)(*FAIL)``). Searched for *partially* (the ``regex`` package's: "a truncated
text could still match") K stops at the first start from which P reads beyond the end of the text before it is done.
The one thing that does not count as reading, an assertion about what comes next (``\\b``, ``\\B``, ``$``,
``\\Z``), is opened in K to a path that reads it. So

1. what P does from every start before K's partial match is the same whatever text follows: no path from there touched
   the end, and
2. nothing is undecided that P would not have to read on for: ``a.*?b`` is decided with its b.

K can only be written for what can be read (see ``reading``). For anything else - recursion, fuzzy matching,
``\\X``, verbose patterns and so on - a verdict is final when the text is complete: ``needs_whole_text``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, cast

from interlock.core.errors import InterlockError, UsageError
from interlock.release.heads import ascii_of, rare_starts
from interlock.release.read import WINDOWS, Read
from interlock.release.reading import read_pattern

_DONE = "(*PRUNE)(*FAIL)"
_STEPS = 2e7
"""Steps that a search may take untimed: a fraction of a second. Looking at the clock costs more than a small search."""


class SearchTimeout(InterlockError):
    """A search took longer than it may, or more memory than there is: nothing is known of the text (spec R4.6).

    Args:
        rule: the rule whose pattern it is.
        seconds: how long a search may take.
    """

    def __init__(self, rule: str, seconds: float) -> None:
        super().__init__(
            f"rule {rule!r}: the search was not done after {seconds:g} s, or with all memory: it backtracks too much"
        )
        self.rule = rule
        self.seconds = seconds

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.rule, self.seconds))


class Found(Protocol):
    """A match object, as far as it is used here."""

    def start(self) -> int:
        """Where it begins."""
        ...

    def end(self) -> int:
        """Where it ends."""
        ...


class AsciiGate(NamedTuple):
    """A character that every match has.

    Attributes:
        literal: the character.
        before: the ASCII characters that may stand in front of it.
        wide: in a text without it, a match can begin anywhere in a run of those at the end, and nowhere else.
    """

    literal: str
    before: str
    wide: bool


class ExactPattern:
    """A pattern that can be searched in a text of which more may come.

    Args:
        name: the rule's name, for errors.
        source: the pattern, in the syntax of the ``regex`` package (a superset of ``re``).
        flags: ``regex`` flags.
        timeout: seconds one search may take; a pattern that takes longer fails closed.
        linear: the pattern is known to have one way to read a text, so that its searches in short texts need no clock.

    Attributes:
        needs_whole_text: the pattern has things in it this engine cannot follow; it is judged at the end of the text.
        looks_back: how many characters in front of a match its look-behinds may read; None: there is no limit.
        looks_ahead: how many characters its look-aheads may read; None: there is no limit, and what they have not seen
            is waited for until the text ends.
        width: the most characters a match can have.
        untimed: characters that are searched without looking at the clock: there are few ways to read them.
        look: finds the first place where there is a match, or where one could become one, in one ordinary search; a
            match sets ``lastindex``. None where one search cannot tell. In texts of up to ``untimed`` characters only.
        gate: what every match has to pass; None if there is no such character.
        starts: how a match can begin; None if that can be nearly anywhere.

    Raises:
        UsageError: a pattern that does not compile, or searches backwards.
    """

    def __init__(
        self, name: str, source: str, flags: int = 0, timeout: float = 1.0, *, linear: bool = False
    ) -> None:
        import regex

        self.name = name
        self.source = source
        self._timeout = timeout
        try:
            self._pattern: Any = regex.compile(source, flags)
        except regex.error as problem:
            raise UsageError(f"rule {name!r}: the pattern does not compile: {problem}") from None
        if self._pattern.flags & regex.REVERSE:
            raise UsageError(f"rule {name!r}: a text is searched from its beginning; leave out (?r)")
        followed = (
            regex.VERSION0 | regex.IGNORECASE | regex.MULTILINE | regex.DOTALL | regex.ASCII | regex.UNICODE
        )
        read = None if self._pattern.flags & ~followed else read_pattern(source, self._pattern.flags)
        self._twin: Any = None
        if read is not None:
            try:
                self._twin = regex.compile(f"(?:{read.opened}){_DONE}", self._pattern.flags)
            except regex.error:  # pragma: no cover - a pattern that was read wrong: better late than wrong
                read = None
        self.needs_whole_text = read is None
        self.looks_back = int(read.back) if read is not None and read.back < math.inf else None
        self.looks_ahead = int(read.far) if read is not None and read.far < math.inf else None
        self.width = math.inf if read is None else read.width
        self.untimed = WINDOWS[-1] if linear else _untimed(read)
        self.look = _look(read, self._pattern.flags)
        self.gate = _gate(read, self._pattern.flags)
        self.starts = None if read is None else rare_starts(read.heads, self._pattern.flags)

    def search(self, text: str, start: int) -> Found | None:
        """The first match from ``start`` on, as the text stands.

        Raises:
            SearchTimeout: the search took too long, or all memory.
        """
        try:
            if len(text) - start <= self.untimed:
                return cast("Found | None", self._pattern.search(text, start))
            return cast("Found | None", self._pattern.search(text, start, timeout=self._timeout))
        except (TimeoutError, MemoryError):
            raise SearchTimeout(self.name, self._timeout) from None

    def first_undecided(self, text: str, start: int) -> int:
        """The first place from ``start`` on from which future text could make, extend or revoke a match.

        Raises:
            SearchTimeout: the search took too long, or all memory.
        """
        if self._twin is None:
            return start
        try:
            if len(text) - start <= self.untimed:
                found = self._twin.search(text, start, partial=True)
            else:
                found = self._twin.search(text, start, partial=True, timeout=self._timeout)
        except (TimeoutError, MemoryError):
            raise SearchTimeout(self.name, self._timeout) from None
        return len(text) if found is None else found.start()


def _untimed(read: Read | None) -> int:
    """The longest text that a search is through with in few steps, whatever it is."""
    if read is None:
        return 0
    return max(
        (window for window, ways in zip(WINDOWS, read.ways, strict=True) if window * ways <= _STEPS),
        default=0,
    )


def _look(read: Read | None, flags: int) -> Callable[[str, int], Any] | None:
    import regex

    if read is None or read.look is None:
        return None
    # to begin at the end of the text is to begin nowhere
    source = read.look.replace(r"(?:\Z|", "(?:", 1) if read.look.startswith(r"(?:\Z|") else read.look
    try:
        return regex.compile(source, flags).search
    except regex.error:  # pragma: no cover - read wrong: the twin is there
        return None


def _gate(read: Read | None, flags: int) -> AsciiGate | None:
    import regex

    if read is None or read.gate is None or flags & regex.IGNORECASE:
        return None
    before = frozenset(char for each in read.gate.before for char in ascii_of(each, flags))
    return AsciiGate(read.gate.literal, "".join(sorted(before)), read.gate.wide)
