"""Case 42: a hook returns nothing for one chunk."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, both_modes

from interlock import Processor
from interlock.chunks import Chunk, TextDelta
from interlock.processors import RegexFilter, Unit, UnitGuard, Verdict
from interlock.testing import text

pytestmark = pytest.mark.anyio


class One(Processor):
    id = "one"

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        return None if isinstance(chunk, TextDelta) and chunk.text == "b" else chunk


class Two(Processor):
    id = "two"

    def __init__(self) -> None:
        self.saw: list[str] = []

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, TextDelta):
            self.saw.append(chunk.text)
        return chunk


@both_modes
async def test_one_chunk_is_dropped_and_the_stream_goes_on(mode: str) -> None:
    """No later processor and no client sees the dropped chunk; the result and the store lack it; nothing
    else is lost.

    R4.6, case 42.
    """
    two = Two()
    bench = Bench([text("a", "b", "c")], output_processors=[One(), two])
    ran = await bench.run(mode)
    assert two.saw == ["a", "c"]
    assert ran.result.text == "ac"
    assert await bench.stored() == ["user: x", "assistant: ac"]
    if mode == "stream":
        assert ran.text_concat == "ac"
        assert all(isinstance(chunk, Chunk) for chunk in ran.chunks)
        assert "" not in [chunk.text for chunk in ran.of_type("text-delta")]


class NoB(UnitGuard):
    """Objects to every b."""

    def judge(self, unit: Unit, ctx: Any) -> Verdict:
        return Verdict.block() if unit.text == "b" else Verdict.allow()


@both_modes
@pytest.mark.parametrize(
    "make",
    [lambda: RegexFilter({"b": "b"}, strategy="filter"), lambda: NoB(id="no-b", unit=1, strategy="filter")],
    ids=["pattern", "unit"],
)
async def test_a_guard_filters_one_chunk_away(make: Any, mode: str) -> None:
    """Strategy ``filter`` takes a chunk away: no later processor and no client gets an empty one in its place.

    R0.2, R4.6, case 42.
    """
    two = Two()
    bench = Bench([text("a", "b", "c")], output_processors=[make(), two])
    ran = await bench.run(mode)
    assert two.saw == ["a", "c"]
    assert ran.result.text == "ac"
    assert await bench.stored() == ["user: x", "assistant: ac"]
    if mode == "stream":
        assert [chunk.text for chunk in ran.of_type("text-delta")] == ["a", "c"]
