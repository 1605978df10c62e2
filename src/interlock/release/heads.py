"""What a match can begin with, as a small pattern that the standard library searches fast.

Characters beyond ASCII are taken for possible everywhere: what that lets through is looked at properly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

Head: TypeAlias = tuple[str, ...]
"""Patterns of one character: the first ones of a match. Shorter than ``DEPTH``, it is a whole match."""

DEPTH = 3
MOST = 48
"""More heads than this say little and cost much."""
ANY_HEAD: tuple[Head, ...] = ((),)

_ASCII = [chr(code) for code in range(128)]
_ORDINARY = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ,.'\n")
_ENGLISH = (
    "The quick brown fox jumps over the lazy dog, and then, while my box with five dozen liquor jugs is packed, "
    "seventeen engineers discuss the weather. What they have decided can't be undone by anybody else here.\n"
)
_BEYOND = "\x80-\U0010ffff"
_RARE = 0.12
"""The most places in ordinary text where something rare may begin."""


def followed_by(heads: Iterable[Head], rest: Iterable[Head]) -> tuple[Head, ...]:
    """The heads of one thing and then another."""
    rest = tuple(rest)
    return few(
        head if len(head) >= DEPTH else (head + after)[:DEPTH]
        for head in heads
        for after in (((),) if len(head) >= DEPTH else rest)
    )


def repeated(heads: tuple[Head, ...], low: int, high: float) -> tuple[Head, ...]:
    """The heads of something that comes so often."""
    made: list[Head] = []
    rounds: tuple[Head, ...] = ((),)
    for count in range(int(min(high, DEPTH)) + 1):
        if count >= min(low, DEPTH):
            made += rounds
        rounds = followed_by(rounds, heads)
    return few(made)


def few(heads: Iterable[Head]) -> tuple[Head, ...]:
    """The heads, or shorter ones if there are too many."""
    distinct = tuple(dict.fromkeys(heads))
    if len(distinct) > MOST:
        distinct = tuple(dict.fromkeys(head[:1] for head in distinct))
    return distinct if len(distinct) <= MOST else ANY_HEAD


Start: TypeAlias = tuple[frozenset[str], ...]
"""ASCII characters: the first, the second and the third one of a match."""


def rare_starts(heads: Iterable[Head], flags: int) -> tuple[Start, ...] | None:
    """How a match can begin, if it can begin in few places of ordinary text.

    Args:
        heads: the heads of the match.
        flags: the flags of the ``regex`` pattern they are of.

    Returns:
        The beginnings; a single set where that alone is rare. None: nothing rare.
    """
    heads = tuple(heads)
    if any(not head for head in heads):
        return None
    starts = tuple(dict.fromkeys(_start(tuple(ascii_of(each, flags) for each in head)) for head in heads))
    begins = sum(found.end() < len(_ENGLISH) for found in re.finditer(f"(?={any_start(starts)})", _ENGLISH))
    return starts if begins <= _RARE * len(_ENGLISH) else None


def any_start(starts: Iterable[Start]) -> str:
    """A pattern for ``re`` of all these beginnings.

    It also matches where the end of the text comes before that of a beginning, and at whatever is beyond ASCII.
    """
    tree: dict[frozenset[str], dict[frozenset[str], frozenset[str] | None]] = {}
    alone: frozenset[str] = frozenset()
    for first, *rest in starts:
        if not rest:
            alone |= first
            continue
        second = tree.setdefault(first, {})
        third = rest[1] if len(rest) > 1 else None
        known = second.get(rest[0], frozenset())
        second[rest[0]] = None if third is None or known is None else known | third
    branches = [f"[{_escaped(alone)}{_BEYOND}]"]
    for first, seconds in tree.items():
        rests = [
            _class(second) if third is None else rf"{_class(second)}(?:{_class(third)}|\Z)"
            for second, third in seconds.items()
        ]
        branches.append(rf"[{_escaped(first)}](?:{'|'.join(rests)}|\Z)")
    return "|".join(branches)


def _start(sets: Start) -> Start:
    """Only the first character if that alone is unusual."""
    return sets if sets[0] & _ORDINARY else sets[:1]


@cache
def ascii_of(source: str, flags: int) -> frozenset[str]:
    """The ASCII characters that a pattern of one character matches."""
    import regex

    matches = regex.compile(f"(?:{source})", flags).fullmatch
    return frozenset(char for char in _ASCII if matches(char))


def _class(chars: frozenset[str]) -> str:
    return f"[{_escaped(chars)}{_BEYOND}]"


def _escaped(chars: frozenset[str]) -> str:
    return "".join(map(re.escape, sorted(chars)))
