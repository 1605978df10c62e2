"""When is a pattern's verdict final? A pattern, and its twin that tells what future text could still change.

For a pattern P the twin K runs P from each start exactly as a search for P would, but never matches: where P has its
match, K gives the start up (``(*PRUNE)(*FAIL)``). Searched for *partially* (the ``regex`` package's: "a truncated
text could still match") K stops at the first start from which P reads beyond the end of the text before it is done.
The one thing that does not count as reading, an assertion about what comes next (``\\b``, ``\\B``, ``$``,
``\\Z``), is opened in K to a path that reads it. So

1. what P does from every start before K's partial match is the same whatever text follows: no path from there touched
   the end, and
2. nothing is undecided that P would not have to read on for: ``a.*?b`` is decided with its b.

K can only be written for what this module can read (see ``_Reader``). For anything else - recursion, fuzzy matching,
``\\X``, verbose patterns and so on - a verdict is final when the text is complete: ``needs_whole_text``.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple, Protocol, cast

from interlock.core.errors import InterlockError, UsageError

_DONE = "(*PRUNE)(*FAIL)"
_OPENED = {each: rf"(?:(?s:.)(?!)|\{each})" for each in "bBZz"}
_DOLLAR = r"(?:\n?(?s:.)(?!)|$)"
_NEXT = r"(?:(?s:.)(?!)|)"

_QUANTIFIER = re.compile(r"(?:(?P<sign>[*+?])|\{(?P<low>\d*)(?P<comma>,?)(?P<high>\d*)\})[?+]?")
_ESCAPE = re.compile(
    r"""\\(?: (?P<zero>[bBAZz])
        | (?P<reference>[1-9]\d?(?!\d)|g<\w+>)
        | [dDwWsSafnrtv] | 0[0-7]{0,2} | x[0-9a-fA-F]{2} | u[0-9a-fA-F]{4} | U[0-9a-fA-F]{8}
        | N\{[\w\ -]+\} | [pP]\{[^{}]*\} | [^\w\s] | \  )""",
    re.VERBOSE | re.ASCII,
)
_CLASS = re.compile(
    r"\[\^?\]?(?:\[:\^?\w+:\]|\\[dDwWsSafnrtvb]|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}"
    r"|\\[pP]\{[^{}]*\}|\\N\{[\w -]+\}|\\0[0-7]{0,2}|\\[^\w\s]|\\ |[^\[\]\\])*\]",
    re.ASCII,
)
_GROUP = re.compile(
    r"\((?:(?P<behind>\?<[=!])|(?P<ahead>\?[=!])|\?P?<[^\W\d]\w*>|\?[:>|]|\?[imsau]*(?:-[ims]+)?:|(?!\?|\*))"
)
_SWITCH = re.compile(r"\(\?[imsau]+\)")
_NAMED_REFERENCE = re.compile(r"\(\?P=\w+\)")
_COMMENT = re.compile(r"\(\?#[^)]*\)")


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


class ExactPattern:
    """A pattern that can be searched in a text of which more may come.

    Args:
        name: the rule's name, for errors.
        source: the pattern, in the syntax of the ``regex`` package (a superset of ``re``).
        flags: ``regex`` flags.
        timeout: seconds one search may take; a pattern that takes longer fails closed.

    Attributes:
        needs_whole_text: the pattern has things in it this engine cannot follow; it is judged at the end of the text.
        looks_back: how many characters in front of a match its look-behinds may read; None: there is no limit.

    Raises:
        UsageError: a pattern that does not compile.
    """

    def __init__(self, name: str, source: str, flags: int = 0, timeout: float = 1.0) -> None:
        import regex

        self.name = name
        self.source = source
        self._timeout = timeout
        try:
            self._pattern: Any = regex.compile(source, flags)
        except regex.error as problem:
            raise UsageError(f"rule {name!r}: the pattern does not compile: {problem}") from None
        followed = (
            regex.VERSION0 | regex.IGNORECASE | regex.MULTILINE | regex.DOTALL | regex.ASCII | regex.UNICODE
        )
        read = None if self._pattern.flags & ~followed else read_pattern(source)
        self._twin: Any = None
        if read is not None:
            try:
                self._twin = regex.compile(f"(?:{read.opened}){_DONE}", self._pattern.flags)
            except regex.error:  # pragma: no cover - a pattern that was read wrong: better late than wrong
                read = None
        self.needs_whole_text = read is None
        self.looks_back = int(read.back) if read is not None and read.back < math.inf else None

    def search(self, text: str, start: int) -> Found | None:
        """The first match from ``start`` on, as the text stands.

        Raises:
            SearchTimeout: the search took too long, or all memory.
        """
        try:
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
            found = self._twin.search(text, start, partial=True, timeout=self._timeout)
        except (TimeoutError, MemoryError):
            raise SearchTimeout(self.name, self._timeout) from None
        return len(text) if found is None else found.start()


class Read(NamedTuple):
    """A pattern, or a piece of one, as it was read.

    Attributes:
        opened: the piece for the twin: what looks at the next character has a path that reads it.
        width: the most characters it can match.
        back: the most characters in front of its match it may look at.
    """

    opened: str
    width: float
    back: float


class _BeyondUsError(Exception):
    """The pattern has something in it that the twin cannot follow."""


def read_pattern(source: str) -> Read | None:
    """The pattern, opened; None if it has something in it that the twin cannot follow."""
    reader = _Reader(source)
    try:
        reader.skip_switches()
        read = reader.alternatives()
    except (_BeyondUsError, RecursionError):
        return None
    return read if reader.at == len(source) else None


class _Reader:
    """Reads a pattern. It knows what it may pass on as it stands; all else is beyond it, so new syntax is too."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.at = 0

    def skip_switches(self) -> None:
        """Flags for all of the pattern: the compiled pattern knows them. (Further in, they mean many things.)"""
        while self._take(_SWITCH) is not None:
            pass

    def alternatives(self, *, behind: bool = False) -> Read:
        """What stands up to the closing parenthesis, or the end."""
        opened: list[str] = []
        widths: list[float] = [0]
        back = 1.0  # ^ and \b look at one character
        while self.at < len(self._source) and self._source[self.at] != ")":
            if self._source[self.at] == "|":
                self.at += 1
                opened.append("|")
                widths.append(0)
                continue
            item = self._item(behind)
            opened.append(item.opened)
            widths[-1] += item.width
            back = max(back, item.back)
        return Read("".join(opened), max(widths), back)

    def _item(self, behind: bool) -> Read:
        """One thing, with how often it comes."""
        atom = self._atom(behind)
        while self._take(_COMMENT) is not None:
            pass
        counted = self._take(_QUANTIFIER)
        if counted is None:
            return atom
        if counted["sign"]:
            most = 1 if counted["sign"] == "?" else math.inf
        elif not counted["low"] and not counted["high"]:
            raise _BeyondUsError  # {} and {,}: not read as a count by every version
        else:
            most = (
                math.inf
                if counted["comma"] and not counted["high"]
                else int(counted["high"] or counted["low"])
            )
        width = atom.width * most if atom.width else 0
        # where a repeat might go round again, `regex` takes the end of the text for no match, not for a partial one
        single = atom.width == 1 and not atom.opened.startswith("(")
        opened = atom.opened if single or behind else f"(?:{_NEXT}{atom.opened})"
        return Read(opened + counted[0], width, atom.back)

    def _atom(self, behind: bool) -> Read:
        source, char = self._source, self._source[self.at]
        if char == "(":
            return self._group(behind)
        if char == "[":
            return Read(self._must(_CLASS)[0], 1, 1)
        if char == "\\":
            return self._escape(behind)
        if char in "*+?" or (char == "{" and not re.match(r"\{[^\w\s,<{}]", source[self.at :])):
            raise _BeyondUsError  # a brace that may be fuzzy matching
        self.at += 1
        if char == "$":
            return self._ahead(_DOLLAR, behind)
        return Read(char, 0 if char == "^" else 1, 1)

    def _escape(self, behind: bool) -> Read:
        escape = self._must(_ESCAPE)
        if escape["reference"]:
            return Read(escape[0], math.inf, 1)
        if not escape["zero"]:
            return Read(escape[0], 1, 1)
        return Read(r"\A", 0, 1) if escape["zero"] == "A" else self._ahead(_OPENED[escape["zero"]], behind)

    def _group(self, behind: bool) -> Read:
        if self._take(_COMMENT) is not None:
            return Read("", 0, 1)
        reference = self._take(_NAMED_REFERENCE)
        if reference is not None:
            return Read(reference[0], math.inf, 1)
        opening = self._must(_GROUP)
        inner = self.alternatives(behind=behind or opening["behind"] is not None)
        self.at += 1  # the pattern compiles, so it is closed
        opened = f"{opening[0]}{inner.opened})"
        if opening["behind"]:
            return Read(opened, 0, inner.width + inner.back)
        if opening["ahead"]:
            return self._ahead(opened, behind, inner.back)
        return Read(opened, inner.width, inner.back)

    def _ahead(self, opened: str, behind: bool, back: float = 1) -> Read:
        if behind:
            raise _BeyondUsError  # what looks ahead from within a look-behind, which is read backwards
        return Read(opened, 0, back)

    def _take(self, token: re.Pattern[str]) -> re.Match[str] | None:
        found = token.match(self._source, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def _must(self, token: re.Pattern[str]) -> re.Match[str]:
        found = self._take(token)
        if found is None:
            raise _BeyondUsError
        return found
