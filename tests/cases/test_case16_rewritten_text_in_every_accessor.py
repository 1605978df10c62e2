"""Case 16: a whole-text rewrite shows in generate() and in the finished stream."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, both_modes, counted, lines

from interlock import Processor
from interlock.messages import TextPart
from interlock.testing import text, tool_call

pytestmark = pytest.mark.anyio


class Up(Processor):
    id = "up"

    def process_output_result(self, result: Any, ctx: Any) -> None:
        for message in ctx.messages:
            for part in message.content.parts:
                if isinstance(part, TextPart):
                    part.text = part.text.upper()


@both_modes
async def test_the_rewrite_is_in_every_accessor(mode: str) -> None:
    """Text, steps, messages, finish chunk and store have the rewritten text; never raw and processed
    joined.

    R0.1, R4.9, case 16.
    """
    bench = Bench([text("good ", "morning")], output_processors=[Up()])
    ran = await bench.run(mode)
    assert ran.result.text == ran.result.steps[-1].text == "GOOD MORNING"
    assert lines(ran.result.messages) == ["assistant: GOOD MORNING"]
    assert await bench.stored() == ["user: x", "assistant: GOOD MORNING"]
    assert ran.result.released_text == "good morning", "R0: under live, what had left"
    if mode == "stream":
        assert ran.text_concat == "good morning"
        assert lines(ran.chunks[-1].messages) == ["assistant: GOOD MORNING"]  # type: ignore[attr-defined]


async def test_under_release_run_the_client_gets_the_rewrite_only() -> None:
    """Under release ``run`` the deltas carry the final text. R7.5, R0.1, case 16."""
    bench = Bench([text("good ", "morning")], output_processors=[Up()])
    ran = await bench.run("stream", release="run")
    assert ran.text_concat == "GOOD MORNING"
    ran.never_contains("good")


@both_modes
async def test_the_text_of_two_steps_is_the_same_read_or_awaited(mode: str) -> None:
    """With two steps the text is both steps joined, in either mode. R4.9, R10.4, case 16."""
    look, _ = counted("look", 7)
    bench = Bench(
        [text("one "), tool_call("look", {})], [text("two")], tools=[look], output_processors=[Up()]
    )
    ran = await bench.run(mode)
    assert ran.result.text == "ONE TWO"
    assert [step.text for step in ran.result.steps] == ["ONE ", "TWO"]
