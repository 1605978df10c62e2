"""What is known of a piece of a pattern, and what follows of two of them, of a choice, of a repeat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from interlock.release.heads import ANY_HEAD, DEPTH, Head, few, followed_by
from interlock.release.heads import repeated as heads_repeated

END = r"\Z"
NEVER = "(?!)"

WINDOWS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Lengths of text for which the ways to read it are counted."""
_ONE_WAY = (1.0,) * len(WINDOWS)
_MOST_WAYS = 1e30


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
    tail: str | None = END
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


EMPTY = Read("", "", NEVER, "()", 0, 0, only=(), sure=True)
_REFERENCE_HEADS = tuple(("(?s:.)",) * count for count in range(DEPTH + 1))


def character(source: str) -> Read:
    """One character."""
    literal = source if len(source) == 1 and source != "." else source[1] if _is_quoted(source) else None
    return Read(source, source, heads=((source,),), early=True, literal=literal, only=(source,), sure=True)


def _is_quoted(source: str) -> bool:
    return len(source) == 2 and source[0] == "\\" and not source[1].isalnum()


def nothing_wide(source: str) -> Read:
    """An assertion that looks at nothing that follows."""
    return Read(source, source, NEVER, None, 0, 0, only=(), sure=True)


def back_reference(source: str) -> Read:
    """What a group had, once more."""
    return Read(source, source, None, None, 0, math.inf, heads=_REFERENCE_HEADS)


def then(item: Read, rest: Read, flags: int) -> Read:
    """An item, and what follows it; ``flags``: those of the pattern. Folded from the right: tails nest that way."""
    return Read(
        item.opened + rest.opened,
        item.plain + rest.plain,
        _tail_of_two(item, rest),
        _look_of_two(item, rest, flags),
        item.least + rest.least,
        item.width + rest.width,
        max(item.back, rest.back),
        followed_by(item.heads, rest.heads),
        tuple(min(_MOST_WAYS, a * b) for a, b in zip(item.ways, rest.ways, strict=True)),
        far=max(item.far, rest.far),
        literal=item.literal,
        only=_both(item.only, rest.only),
        sure=item.sure and rest.sure and (item.least == item.width or rest.plain == ""),
        parted=item.width == item.least == 1 and _parted(rest.only, item.literal, flags),
        gate=_gate_of_two(item, rest),
    )


def _look_of_two(item: Read, rest: Read, flags: int) -> str | None:
    if item.tail is None or rest.look is None:
        return None
    if item.run is not None and item.run.low <= 1 and _parted((item.run.source,), rest.literal, flags):
        # all of the run, or nothing: there is no need to try less of it
        through = f"{item.plain}+{rest.look}"
        return through if item.run.low == 0 else f"(?:{END}|{through})"
    through = item.plain + rest.look
    if item.tail == NEVER:
        return through
    if item.ahead is not None:  # what it has seen, it has seen
        return f"(?:{through}|(?!{item.ahead}){item.tail})"
    return f"(?:{item.tail}|{through})" if item.early else f"(?:{through}|{item.tail})"


def _parted(only: tuple[str, ...] | None, literal: str | None, flags: int) -> bool:
    """Whether a character is none of those."""
    import regex

    if only is None or literal is None:
        return False
    return not any(regex.fullmatch(f"(?:{each})", literal, flags) for each in only)


def repeated(atom: Read, opened: str, quantifier: str, low: int, high: float) -> Read:
    """A repeat, ``low`` to ``high`` times; ``opened``: the repeat for the twin."""
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
        heads_repeated(atom.heads, low, high),
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
    if atom.tail is None or atom.tail == NEVER or high == 1:
        return atom.tail
    if high == 0:
        return NEVER
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
    if rest.tail == NEVER:
        return item.tail
    through = item.plain + rest.tail
    return through if item.tail == NEVER else f"(?:{item.tail}|{through})"


def _both(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if one is None or other is None else tuple(dict.fromkeys(one + other))


def _gate_of_two(item: Read, rest: Read) -> Gate | None:
    if item.literal is not None and item.least and item.run is None:
        return Gate((), item.literal)
    if item.only is None or rest.gate is None:
        return None
    wide = item.run is not None and item.run.low <= 1 and item.run.high == math.inf and not rest.gate.before
    return Gate(item.only + rest.gate.before, rest.gate.literal, wide)


def either(branches: Sequence[Read]) -> Read:
    """One of several, the first that will do."""
    if len(branches) == 1:
        return branches[0]
    tails = [branch.tail for branch in branches]
    known = [tail for tail in tails if tail is not None and tail != NEVER]
    looks = [branch.look for branch in branches if branch.look is not None]
    return Read(
        "|".join(branch.opened for branch in branches),
        "|".join(branch.plain for branch in branches),
        None if None in tails else f"(?:{'|'.join(known)})" if known else NEVER,
        f"(?:{'|'.join(looks)})" if len(looks) == len(branches) else None,
        min(branch.least for branch in branches),
        max(branch.width for branch in branches),
        max(branch.back for branch in branches),
        few(head for branch in branches for head in branch.heads),
        tuple(min(_MOST_WAYS, sum(ways)) for ways in zip(*(branch.ways for branch in branches), strict=True)),
        far=max(branch.far for branch in branches),
        only=reduce(_both, (branch.only for branch in branches)),
    )
