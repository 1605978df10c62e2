"""Ways to cut a text into the pieces in which a stream may bring it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from random import Random
from typing import Literal, TypeAlias

from interlock.core.errors import UsageError

By: TypeAlias = Literal["characters", "graphemes"]

LONGEST = 20
"""Characters of a text that ``all_cuts`` cuts in every way: half a million ways."""


def all_cuts(text: str, *, max_cuts: int | None = None) -> Iterator[list[str]]:
    """Every way to cut a text, the ways with fewest cuts first.

    Args:
        text: the text.
        max_cuts: only ways with at most so many cuts; None for all 2^(n-1).

    Returns:
        An iterator of lists of pieces, none of them empty; of an empty text there is one, ``[""]``.

    Raises:
        UsageError: a text too long to be cut in every way, or a negative number.

    >>> list(all_cuts("abc"))
    [['abc'], ['a', 'bc'], ['ab', 'c'], ['a', 'b', 'c']]
    >>> sum(1 for _ in all_cuts("hello world", max_cuts=2))
    56
    """
    most = max(len(text) - 1, 0)
    if max_cuts is None:
        if len(text) > LONGEST:
            raise UsageError(
                f"all_cuts: a text of {len(text)} characters can be cut in 2^{most} ways; give max_cuts=2, a text of "
                f"at most {LONGEST} characters, or take random_cuts"
            )
        max_cuts = most
    elif max_cuts < 0:
        raise UsageError(f"all_cuts: max_cuts is a number from 0, not {max_cuts}")
    return (
        cut_at(text, places)
        for count in range(min(max_cuts, most) + 1)
        for places in combinations(range(1, len(text)), count)
    )


def cut_at(text: str, places: Sequence[int]) -> list[str]:
    """The pieces of a text that is cut at these places, in order."""
    return [text[start:end] for start, end in pairwise((0, *places, len(text)))]


def random_cuts(
    text: str, *, count: int = 1, seed: int = 0, by: By = "characters", empty_chunks: bool = True
) -> Iterator[list[str]]:
    """Random ways to cut a text: some with few cuts, some with nearly all. The same seed gives the same ways.

    Args:
        text: the text.
        count: how many ways.
        seed: another number gives others.
        by: ``characters`` (code points, as models cut), or ``graphemes``: never inside what a reader sees as one.
        empty_chunks: put empty pieces in some of them, as providers do.

    Returns:
        An iterator of lists of pieces.

    Raises:
        UsageError: a negative count, or an unknown unit.

    >>> [pieces] = random_cuts("hello world")
    >>> "".join(pieces)
    'hello world'
    """
    if count < 0:
        raise UsageError(f"random_cuts: count is a number from 0, not {count}")
    if by not in ("characters", "graphemes"):
        raise UsageError(f"random_cuts: by is 'characters' or 'graphemes', not {by!r}")
    borders = range(1, len(text)) if by == "characters" else _grapheme_borders(text)
    return _drawn(text, borders, count, Random(seed), empty_chunks)


def _grapheme_borders(text: str) -> Sequence[int]:
    import regex

    return [found.start() for found in regex.finditer(r"\X", text) if found.start()]


def _drawn(
    text: str, borders: Sequence[int], count: int, random: Random, empty_chunks: bool
) -> Iterator[list[str]]:
    for _ in range(count):
        density = random.random() ** 2  # most streams have pieces of several characters
        pieces = cut_at(text, [border for border in borders if random.random() < density])
        if empty_chunks and random.random() < 0.3:
            pieces = [
                each for piece in pieces for each in (("", piece) if random.random() < 0.3 else (piece,))
            ]
            if random.random() < 0.5:
                pieces.append("")
        yield pieces
