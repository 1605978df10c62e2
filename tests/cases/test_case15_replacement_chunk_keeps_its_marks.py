"""Case 15: a hook rebuilds each delta and forgets the marks."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, both_modes

from interlock import Processor
from interlock.chunks import TextDelta
from interlock.processors import RegexFilter
from interlock.testing import text

pytestmark = pytest.mark.anyio


class Up(Processor):
    id = "up"

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        return TextDelta(text=chunk.text.upper()) if isinstance(chunk, TextDelta) else chunk


@pytest.mark.parametrize("release", ["live", "step", "run"])
async def test_a_new_delta_inherits_the_id_of_its_block(release: str) -> None:
    """Deltas built without an id get that of the open block; one message with one text part is stored.

    R4.6, case 15.
    """
    bench = Bench([text("one ", "two ", "three", id="blk")], output_processors=[Up()])
    ran = await bench.run("stream", release=release)
    assert ran.text_concat == ran.result.text == "ONE TWO THREE"
    assert {chunk.id for chunk in ran.of_type("text-start", "text-delta", "text-end")} == {"blk"}
    assert await bench.stored() == ["user: x", "assistant: ONE TWO THREE"]
    assert len((await bench.rows())[1].content.parts) == 1


@both_modes
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("release", ["live", "step", "run"])
async def test_a_guard_before_or_behind_such_a_hook(mode: str, before: bool, release: str) -> None:
    """RegexFilter works on deltas without an id as on any, and what it replaces keeps the id of its block.

    R0.2, R4.6, case 15.
    """
    guard = RegexFilter({"two": "(?i)e t[a-z]*"})
    processors = [guard, Up()] if before else [Up(), guard]
    bench = Bench([text("one ", "two ", "three", id="blk")], output_processors=processors)
    ran = await bench.run(mode, release=release)
    assert ran.result.text == "ON[TWO] THREE"
    assert await bench.stored() == ["user: x", "assistant: ON[TWO] THREE"]
    if mode == "stream":
        assert ran.text_concat == "ON[TWO] THREE"
        assert {chunk.id for chunk in ran.of_type("text-start", "text-delta", "text-end")} == {"blk"}
