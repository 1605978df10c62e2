r"""A pattern, read: what the engine has to know of it beside its matches.

The reader knows what it may pass on as it stands; anything else is beyond it, so that syntax nobody thought of is
judged late rather than wrong.

>>> read = read_pattern(r"\d{4}\b")
>>> read.least, read.width, read.back
(4, 4, 1)
>>> read.tail
'(?:\\d{0,3}+\\Z|\\d{4}\\Z)'
"""

from __future__ import annotations

import math
import re
from functools import reduce

from interlock.release.read import (
    EMPTY,
    END,
    NEVER,
    Read,
    back_reference,
    character,
    either,
    nothing_wide,
    repeated,
    then,
)

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
    r"\((?:(?P<behind>\?<[=!])|(?P<ahead>\?[=!])|(?P<name>\?P?<[^\W\d]\w*>|\?\|)|(?P<atomic>\?>)"
    r"|\?:|\?[imsau]*(?:-[ims]+)?:|(?P<bare>(?!\?|\*)))"
)
_SWITCH = re.compile(r"\(\?[imsau]+\)")
_NAMED_REFERENCE = re.compile(r"\(\?P=\w+\)")
_COMMENT = re.compile(r"\(\?#[^)]*\)")


class _BeyondUsError(Exception):
    """The pattern has something in it that cannot be followed."""


def read_pattern(source: str, flags: int = 0) -> Read | None:
    """The pattern, read; None if it has something in it that cannot be followed."""
    reader = _Reader(source, flags)
    try:
        reader.skip_switches()
        read = reader.alternatives()
    except (_BeyondUsError, RecursionError):
        return None
    return read if reader.at == len(source) else None


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags
        self.at = 0

    def skip_switches(self) -> None:
        """Flags for all of the pattern: the compiled pattern knows them. (Further in, they mean many things.)"""
        while self._take(_SWITCH) is not None:
            pass

    def alternatives(self, *, behind: bool = False) -> Read:
        """What stands up to the closing parenthesis, or the end."""
        branches: list[list[Read]] = [[]]
        while self.at < len(self._source) and self._source[self.at] != ")":
            if self._source[self.at] == "|":
                self.at += 1
                branches.append([])
            else:
                branches[-1].append(self._item(behind))
        return either([reduce(self._before, reversed(items), EMPTY) for items in branches])

    def _item(self, behind: bool) -> Read:
        """One thing, with how often it comes."""
        atom = self._atom(behind)
        while self._take(_COMMENT) is not None:
            pass
        counted = self._take(_QUANTIFIER)
        if counted is None:
            return atom
        low, high = _counts(counted)
        # where a repeat might go round again, `regex` takes the end of the text for no match, not for a partial one
        single = atom.width == 1 and not atom.opened.startswith("(")
        opened = atom.opened if single or behind else f"(?:{_NEXT}{atom.opened})"
        return repeated(atom, opened + counted[0], counted[0], low, high)

    def _atom(self, behind: bool) -> Read:
        source, char = self._source, self._source[self.at]
        if char == "(":
            return self._group(behind)
        if char == "[":
            return character(self._must(_CLASS)[0])
        if char == "\\":
            return self._escape(behind)
        if char in "*+?" or (char == "{" and not re.match(r"\{[^\w\s,<{}]", source[self.at :])):
            raise _BeyondUsError  # a brace that may be fuzzy matching
        self.at += 1
        if char == "$":
            return self._ahead(Read(_DOLLAR, "$", rf"\n?{END}", None, 0, 0, early=True), behind)
        return nothing_wide(char) if char == "^" else character(char)

    def _escape(self, behind: bool) -> Read:
        escape = self._must(_ESCAPE)
        if escape["reference"]:
            return back_reference(escape[0])
        if not escape["zero"]:
            return character(escape[0])
        if escape["zero"] == "A":
            return nothing_wide(r"\A")
        return self._ahead(
            Read(_OPENED[escape["zero"]], escape[0], END, None, 0, 0, early=True, only=()), behind
        )

    def _group(self, behind: bool) -> Read:
        if self._take(_COMMENT) is not None:
            return EMPTY
        reference = self._take(_NAMED_REFERENCE)
        if reference is not None:
            return back_reference(reference[0])
        opening = self._must(_GROUP)
        inner = self.alternatives(behind=behind or opening["behind"] is not None)
        self.at += 1  # the pattern compiles, so it is closed
        captures = opening["name"] is not None or opening["bare"] is not None
        opened = f"{opening[0]}{inner.opened})"
        plain = f"{'(?:' if captures else opening[0]}{inner.plain})"
        # read to its end, an atomic group is not done with; flags go on to count
        tail = inner.tail and f"{'(?:' if captures or opening['atomic'] else opening[0]}{inner.tail})"
        if opening["behind"]:
            return Read(opened, plain, NEVER, None, 0, 0, inner.width + inner.back, ways=inner.ways, only=())
        if opening["ahead"]:
            ahead = inner.plain if opening[0] == "(?=" else None
            read = Read(
                opened,
                plain,
                inner.tail,
                None,
                0,
                0,
                inner.back,
                ways=inner.ways,
                early=True,
                ahead=ahead,
                far=max(inner.width, inner.far),
            )
            return self._ahead(read, behind)
        group = inner._replace(opened=opened, plain=plain, tail=tail, early=False, run=None)
        if captures or opening["atomic"] or opening[0] == "(?:":
            return group
        heads = tuple(tuple(f"{opening[0]}{each})" for each in head) for head in inner.heads)
        # with other flags, what is known of characters is not true any more
        return group._replace(heads=heads, literal=None, only=None, sure=False, parted=False, gate=None)

    def _before(self, rest: Read, item: Read) -> Read:
        return then(item, rest, self._flags)

    def _ahead(self, read: Read, behind: bool) -> Read:
        if behind:
            raise _BeyondUsError  # what looks ahead from within a look-behind, which is read backwards
        return read

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


def _counts(counted: re.Match[str]) -> tuple[int, float]:
    """How often at least, and at most."""
    if counted["sign"]:
        return int(counted["sign"] == "+"), 1 if counted["sign"] == "?" else math.inf
    if not counted["low"] and not counted["high"]:
        raise _BeyondUsError  # {} and {,}: not read as a count by every version
    low = int(counted["low"] or 0)
    if not counted["comma"]:
        return low, low
    return low, int(counted["high"]) if counted["high"] else math.inf
