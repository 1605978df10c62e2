"""Ways to cut a text: all of them, or random ones that come again."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from math import comb
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from interlock import UsageError
from interlock.testing import all_cuts, random_cuts

FAMILY = "👨\u200d👩\u200d👧"


@pytest.mark.parametrize("length", range(1, 11))
def test_every_way_once(length: int) -> None:
    """All 2^(n-1) ways, each once, each the text again, no piece empty."""
    text = "abcdefghij"[:length]
    ways = list(all_cuts(text))
    assert len({tuple(way) for way in ways}) == len(ways) == 2 ** (length - 1)
    assert all("".join(way) == text for way in ways)
    assert all(piece for way in ways for piece in way)


@pytest.mark.parametrize("max_cuts", [0, 1, 2, 3])
def test_at_most_so_many_cuts(max_cuts: int) -> None:
    """max_cuts bounds the cuts; a long text is no problem then."""
    text = "x" * 40
    ways = list(all_cuts(text, max_cuts=max_cuts))
    assert len(ways) == sum(comb(39, cuts) for cuts in range(max_cuts + 1))
    assert max(len(way) for way in ways) == max_cuts + 1
    assert ways[0] == [text]


def test_more_cuts_than_places_are_all_cuts() -> None:
    """A bound beyond the text's length is no error."""
    assert list(all_cuts("ab", max_cuts=9)) == [["ab"], ["a", "b"]]


def test_an_empty_text_has_one_way() -> None:
    """There is nothing to cut: one empty piece."""
    assert list(all_cuts("")) == [[""]]
    assert list(random_cuts("", empty_chunks=False)) == [[""]]


def test_a_long_text_is_refused_at_once() -> None:
    """Told when asked, before anything is iterated, with what to write instead."""
    with pytest.raises(UsageError, match=r"2\^20 ways; give max_cuts=2"):
        all_cuts("x" * 21)
    assert next(all_cuts("x" * 20)) == ["x" * 20]


@pytest.mark.parametrize("options", [{"count": -1}, {"by": "words"}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    """A negative count, an unknown unit."""
    with pytest.raises(UsageError, match="random_cuts"):
        random_cuts("abc", **options)
    with pytest.raises(UsageError, match="max_cuts"):
        all_cuts("abc", max_cuts=-1)


@given(
    st.text(max_size=60), st.integers(0, 1000), st.sampled_from(["characters", "graphemes"]), st.booleans()
)
def test_random_pieces_are_the_text(text: str, seed: int, by: Any, empty_chunks: bool) -> None:
    """Joined, the pieces are the text; empty ones only when they are wanted; the same seed gives the same."""
    ways = list(random_cuts(text, count=5, seed=seed, by=by, empty_chunks=empty_chunks))
    assert len(ways) == 5
    assert all("".join(way) == text for way in ways)
    assert empty_chunks or not text or all(piece for way in ways for piece in way)
    assert ways == list(random_cuts(text, count=5, seed=seed, by=by, empty_chunks=empty_chunks))


def test_graphemes_stay_whole() -> None:
    """By graphemes no cut falls inside what a reader sees as one character; by characters some do."""
    text = f"a{FAMILY}e\u0301\r\n" * 5
    borders = {found.start() for found in regex.finditer(r"\X", text)} | {len(text)}

    def inside(by: Any) -> bool:
        ways = random_cuts(text, count=50, by=by)
        ends = [sum(map(len, way[:at])) for way in ways for at in range(len(way) + 1)]
        return any(end not in borders for end in ends)

    assert not inside("graphemes")
    assert inside("characters")


def test_random_ways_vary() -> None:
    """Few pieces, many pieces, empty pieces: all come up; other seeds give other ways."""
    ways = list(random_cuts("x" * 50, count=300))
    assert min(map(len, ways)) <= 3
    assert max(len([piece for piece in way if piece]) for way in ways) >= 45
    assert any("" in way for way in ways)
    assert any("" not in way for way in ways)
    seeds = [next(random_cuts("x" * 50, seed=seed)) for seed in range(10)]
    assert all(a != b for a, b in pairwise(seeds))


def test_another_process_gets_the_same() -> None:
    """A failure can be repeated by its seed: nothing depends on the process's hash seed."""
    program = (
        "from interlock.testing import random_cuts; print(list(random_cuts('hello world', count=3, seed=7)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == repr(list(random_cuts("hello world", count=3, seed=7)))
