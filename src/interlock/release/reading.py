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
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from interlock.release.heads import ANY_HEAD, DEPTH, Head, few, followed_by, repeated

_OPENED = {each: rf"(?:(?s:.)(?!)|\{each})" for each in "bBZz"}
_DOLLAR = r"(?:\n?(?s:.)(?!)|$)"
_NEXT = r"(?:(?s:.)(?!)|)"
_END = r"\Z"
_NEVER = "(?!)"

WINDOWS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Lengths of text for which the ways to read it are counted."""
_ONE_WAY = (1.0,) * len(WINDOWS)
_MOST_WAYS = 1e30

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


class Run(NamedTuple):
    """A repeat of one character: ``[a-z]{2,5}`` (greedy)."""

    source: str
    low: int
    high: float


class Gate(NamedTuple):
    """A character that every match has.

    Attributes:
        before: patterns of one character: only these stand in front of it.
        literal: the character.
        wide: any number of those may stand there, and nothing else is asked of them.
    """

    before: tuple[str, ...]
    literal: str
    wide: bool = False


class Read(NamedTuple):
    """A pattern, or a piece of one, as it was read.

    Attributes:
        opened: the piece for the twin: what looks at the next character has a path that reads it.
        plain: the piece without capturing groups.
        tail: a pattern that matches where the piece could be read up to the end of the text and beyond; None if that
            cannot be said without knowing what a group had.
        look: the piece, or its tail, whichever comes first in the order in which the piece would be tried; a complete
            piece sets group 1. None where there is no tail.
        least: the fewest characters it can match.
        width: the most characters it can match.
        back: the most characters in front of its match it may look at.
        heads: what a match can begin with.
        ways: for each of ``WINDOWS``, at most how many ways there are to read so many characters.
        early: when tried, it reads its next character before what follows it is tried.
        ahead: it looks ahead, and has to see this.
        far: the most characters that look-aheads in it may read.
        run: it is a greedy repeat of one character.
        literal: it begins with this character.
        only: patterns of one character: it reads no others. None: it may.
        sure: there is one way only to read a given text to its end.
        parted: it begins with a character that it does not read again.
        gate: what every match has to pass.
    """

    opened: str
    plain: str
    tail: str | None = _END
    look: str | None = None
    least: float = 1
    width: float = 1
    back: float = 1
    heads: tuple[Head, ...] = ANY_HEAD
    ways: tuple[float, ...] = _ONE_WAY
    early: bool = False
    ahead: str | None = None
    far: float = 0
    run: Run | None = None
    literal: str | None = None
    only: tuple[str, ...] | None = None
    sure: bool = False
    parted: bool = False
    gate: Gate | None = None


_EMPTY = Read("", "", _NEVER, "()", 0, 0, only=(), sure=True)
_REFERENCE_HEADS = tuple(("(?s:.)",) * count for count in range(DEPTH + 1))


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
        return _either([reduce(self._then, reversed(items), _EMPTY) for items in branches])

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
        return _repeated(atom, opened + counted[0], counted[0], low, high)

    def _atom(self, behind: bool) -> Read:
        source, char = self._source, self._source[self.at]
        if char == "(":
            return self._group(behind)
        if char == "[":
            return _character(self._must(_CLASS)[0])
        if char == "\\":
            return self._escape(behind)
        if char in "*+?" or (char == "{" and not re.match(r"\{[^\w\s,<{}]", source[self.at :])):
            raise _BeyondUsError  # a brace that may be fuzzy matching
        self.at += 1
        if char == "$":
            return self._ahead(Read(_DOLLAR, "$", rf"\n?{_END}", None, 0, 0, early=True), behind)
        return _nothing_wide(char) if char == "^" else _character(char)

    def _escape(self, behind: bool) -> Read:
        escape = self._must(_ESCAPE)
        if escape["reference"]:
            return _reference(escape[0])
        if not escape["zero"]:
            return _character(escape[0])
        if escape["zero"] == "A":
            return _nothing_wide(r"\A")
        return self._ahead(
            Read(_OPENED[escape["zero"]], escape[0], _END, None, 0, 0, early=True, only=()), behind
        )

    def _group(self, behind: bool) -> Read:
        if self._take(_COMMENT) is not None:
            return _EMPTY
        reference = self._take(_NAMED_REFERENCE)
        if reference is not None:
            return _reference(reference[0])
        opening = self._must(_GROUP)
        inner = self.alternatives(behind=behind or opening["behind"] is not None)
        self.at += 1  # the pattern compiles, so it is closed
        captures = opening["name"] is not None or opening["bare"] is not None
        opened = f"{opening[0]}{inner.opened})"
        plain = f"{'(?:' if captures else opening[0]}{inner.plain})"
        # read to its end, an atomic group is not done with; flags go on to count
        tail = inner.tail and f"{'(?:' if captures or opening['atomic'] else opening[0]}{inner.tail})"
        if opening["behind"]:
            return Read(opened, plain, _NEVER, None, 0, 0, inner.width + inner.back, ways=inner.ways, only=())
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

    def _then(self, rest: Read, item: Read) -> Read:
        """An item, and what follows it. (Folded from the right: tails nest that way.)"""
        return Read(
            item.opened + rest.opened,
            item.plain + rest.plain,
            _tail_of_two(item, rest),
            self._look_of_two(item, rest),
            item.least + rest.least,
            item.width + rest.width,
            max(item.back, rest.back),
            followed_by(item.heads, rest.heads),
            tuple(min(_MOST_WAYS, a * b) for a, b in zip(item.ways, rest.ways, strict=True)),
            far=max(item.far, rest.far),
            literal=item.literal,
            only=_both(item.only, rest.only),
            sure=item.sure and rest.sure and (item.least == item.width or rest.plain == ""),
            parted=item.width == item.least == 1 and self._parted(rest.only, item.literal),
            gate=_gate_of_two(item, rest),
        )

    def _look_of_two(self, item: Read, rest: Read) -> str | None:
        if item.tail is None or rest.look is None:
            return None
        if item.run is not None and item.run.low <= 1 and self._parted((item.run.source,), rest.literal):
            # all of the run, or nothing: there is no need to try less of it
            through = f"{item.plain}+{rest.look}"
            return through if item.run.low == 0 else f"(?:{_END}|{through})"
        through = item.plain + rest.look
        if item.tail == _NEVER:
            return through
        if item.ahead is not None:  # what it has seen, it has seen
            return f"(?:{through}|(?!{item.ahead}){item.tail})"
        return f"(?:{item.tail}|{through})" if item.early else f"(?:{through}|{item.tail})"

    def _parted(self, only: tuple[str, ...] | None, literal: str | None) -> bool:
        """Whether a character is none of those."""
        import regex

        if only is None or literal is None:
            return False
        return not any(regex.fullmatch(f"(?:{each})", literal, self._flags) for each in only)

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


def _character(source: str) -> Read:
    literal = source if len(source) == 1 and source != "." else source[1] if _is_quoted(source) else None
    return Read(source, source, heads=((source,),), early=True, literal=literal, only=(source,), sure=True)


def _is_quoted(source: str) -> bool:
    return len(source) == 2 and source[0] == "\\" and not source[1].isalnum()


def _nothing_wide(source: str) -> Read:
    return Read(source, source, _NEVER, None, 0, 0, only=(), sure=True)


def _reference(source: str) -> Read:
    return Read(source, source, None, None, 0, math.inf, heads=_REFERENCE_HEADS)


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


def _repeated(atom: Read, opened: str, quantifier: str, low: int, high: float) -> Read:
    single = atom.width == atom.least == 1 and atom.early
    sure = atom.sure and (single or atom.parted)
    lazy = quantifier[-1] == "?" and len(quantifier) > 1
    greedy = quantifier[-1] not in "?+" or len(quantifier) == 1
    return Read(
        opened,
        atom.plain + quantifier,
        _tail_of_repeat(atom, high, single=single),
        None,
        atom.least * low,
        atom.width * high if atom.width and high else 0,
        atom.back,
        repeated(atom.heads, low, high),
        tuple(
            window + 1.0 if sure and high > 1 else _rounds(ways, low, high, window)
            for ways, window in zip(atom.ways, WINDOWS, strict=True)
        ),
        early=single and not lazy,
        run=Run(atom.plain, low, high) if single and greedy and high else None,
        far=atom.far,
        only=atom.only,
        sure=sure,
    )


def _tail_of_repeat(atom: Read, high: float, *, single: bool) -> str | None:
    """One more round would be read up to the end, after as many as there may be before it."""
    if atom.tail is None or atom.tail == _NEVER or high == 1:
        return atom.tail
    if high == 0:
        return _NEVER
    again = "*" if high == math.inf else f"{{0,{int(high) - 1}}}"
    return f"{atom.plain}{again}{'+' if single else ''}{atom.tail}"


def _rounds(ways: float, low: int, high: float, window: int) -> float:
    """In how many ways a repeat can be read."""
    most = min(high, window)
    choices = max(1.0, most - low + 1)
    if most * math.log(ways) > math.log(_MOST_WAYS):
        return _MOST_WAYS
    return min(_MOST_WAYS, choices * ways**most)


def _tail_of_two(item: Read, rest: Read) -> str | None:
    """Where one thing and then another is read up to the end: in the first, or else in the second."""
    if item.tail is None or rest.tail is None:
        return None
    if rest.tail == _NEVER:
        return item.tail
    through = item.plain + rest.tail
    return through if item.tail == _NEVER else f"(?:{item.tail}|{through})"


def _both(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if one is None or other is None else tuple(dict.fromkeys(one + other))


def _gate_of_two(item: Read, rest: Read) -> Gate | None:
    if item.literal is not None and item.least and item.run is None:
        return Gate((), item.literal)
    if item.only is None or rest.gate is None:
        return None
    wide = item.run is not None and item.run.low <= 1 and item.run.high == math.inf and not rest.gate.before
    return Gate(item.only + rest.gate.before, rest.gate.literal, wide)


def _either(branches: Sequence[Read]) -> Read:
    if len(branches) == 1:
        return branches[0]
    tails = [branch.tail for branch in branches]
    known = [tail for tail in tails if tail is not None and tail != _NEVER]
    looks = [branch.look for branch in branches if branch.look is not None]
    return Read(
        "|".join(branch.opened for branch in branches),
        "|".join(branch.plain for branch in branches),
        None if None in tails else f"(?:{'|'.join(known)})" if known else _NEVER,
        f"(?:{'|'.join(looks)})" if len(looks) == len(branches) else None,
        min(branch.least for branch in branches),
        max(branch.width for branch in branches),
        max(branch.back for branch in branches),
        few(head for branch in branches for head in branch.heads),
        tuple(min(_MOST_WAYS, sum(ways)) for ways in zip(*(branch.ways for branch in branches), strict=True)),
        far=max(branch.far for branch in branches),
        only=reduce(_both, (branch.only for branch in branches)),
    )
