"""Case 01: an e-mail address and a number cut by chunk boundaries."""

from __future__ import annotations

import asyncio
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from notation import Bench, HoldBack, both_modes

from interlock import Processor
from interlock.processors import RegexFilter
from interlock.testing import text

WHOLE = "Contact desk@acme.test now, code 900-12-3456 ok"
CLEAN = "Contact [EMAIL] now, code [CODE] ok"


def redact(text: str) -> str:
    """What the guard makes of a text."""
    return re.sub(r"\b\d{3}-\d{2}-\d{4}\b", "[CODE]", re.sub(r"[\w.]+@[\w.]+\w", "[EMAIL]", text))


def builtin() -> RegexFilter:
    """The same guard, built in."""
    return RegexFilter({"email": r"[\w.]+@[\w.]+\w", "code": r"\b\d{3}-\d{2}-\d{4}\b"})


async def check(
    pieces: list[str], release: str = "live", guard: Processor | None = None, mode: str = "stream"
) -> None:
    """One run over these pieces has the right outcome everywhere."""
    bench = Bench([text(*pieces)], output_processors=[guard or HoldBack("pii", redact)])
    ran = await bench.run(mode, "how do I reach the desk?", release=release)
    if mode == "stream":
        assert ran.text_concat == CLEAN
        ran.never_contains("desk@", "acme.test", "900-12-")
    assert ran.result.text == CLEAN
    assert await bench.stored() == ["user: how do I reach the desk?", f"assistant: {CLEAN}"]


@pytest.mark.anyio
async def test_no_fragment_of_a_match_leaks() -> None:
    """Held-back redaction is what the client, the result and the store get; no fragment leaves.

    R0.1, R0.3, R4.6, case 01.
    """
    await check(["Contact desk@", "acme.test now, code 900-12-", "3456 ok"])


@pytest.mark.anyio
async def test_one_character_a_chunk() -> None:
    """One character a chunk gives the same. R0.1, case 01."""
    await check(list(WHOLE))


@given(
    places=st.lists(st.integers(0, len(WHOLE)), max_size=5), release=st.sampled_from(["live", "step", "run"])
)
def test_every_way_of_cutting(places: list[int], release: str) -> None:
    """For every way of cutting the text, the joined client text is the redaction of the whole.

    R0.1, R7.5, case 01.
    """
    ends = [0, *sorted(places), len(WHOLE)]
    asyncio.run(check([WHOLE[a:b] for a, b in itertools.pairwise(ends)], release))


@pytest.mark.anyio
@both_modes
@pytest.mark.parametrize(
    "pieces",
    [["Contact desk@", "acme.test now, code 900-12-", "3456 ok"], list(WHOLE), [WHOLE]],
    ids=["case", "one by one", "whole"],
)
async def test_the_built_in_filter_gives_the_same(pieces: list[str], mode: str) -> None:
    """RegexFilter, read as a stream or only awaited. R0.1 to R0.3, case 01."""
    await check(pieces, guard=builtin(), mode=mode)


@given(
    places=st.lists(st.integers(0, len(WHOLE)), max_size=5), release=st.sampled_from(["live", "step", "run"])
)
def test_every_way_of_cutting_for_the_built_in_filter(places: list[int], release: str) -> None:
    """However the text is cut, RegexFilter gives the redaction of the whole. R0.2, case 01."""
    ends = [0, *sorted(places), len(WHOLE)]
    asyncio.run(check([WHOLE[a:b] for a, b in itertools.pairwise(ends)], release, builtin()))
