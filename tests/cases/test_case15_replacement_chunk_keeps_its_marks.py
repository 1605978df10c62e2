"""Case 15: a hook rebuilds each delta and forgets the marks."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench

from interlock import Processor
from interlock.chunks import TextDelta
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
