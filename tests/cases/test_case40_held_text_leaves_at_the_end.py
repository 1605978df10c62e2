"""Case 40: text still held when the stream ends."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, HoldBack, counted

from interlock import ModelError, Processor
from interlock.chunks import Finish, TextDelta, TextStart, ToolInputStart
from interlock.processors import KeywordFilter, RegexFilter, Unit, UnitGuard, Verdict
from interlock.testing import error, text, tool_call

pytestmark = pytest.mark.anyio
OPEN = [TextStart(id="t"), TextDelta(id="t", text="last wor"), TextDelta(id="t", text="d")]


class Up(Processor):
    id = "up"

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        return chunk.replace(text=chunk.text.upper()) if isinstance(chunk, TextDelta) else chunk


class TripAtFinish(Processor):
    id = "trip"

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, TextDelta) and "d" in chunk.text:
            ctx.abort("no")
        return chunk


class TripAtCall(Processor):
    id = "trip"

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        if chunk.type == "tool-call-input-streaming-start":
            ctx.abort("no")
        return chunk


def hold() -> HoldBack:
    """Holds everything back until the block ends."""
    return HoldBack("hold", str, border=r"\Z(?!)")  # never before the block ends


@pytest.mark.parametrize("mode", ["stream", "result", "generate"])
@pytest.mark.parametrize("ending", [[], [Finish(finish_reason="stop")]], ids=["no finish", "finish"])
async def test_held_text_leaves_through_the_rest_of_the_chain(ending: list[Any], mode: str) -> None:
    """A block the model left open is closed before the chain: held text is let out, upper-cased, before
    text-end and finish.

    R4.6, case 40.
    """
    bench = Bench([*OPEN, *ending], output_processors=[hold(), Up()])
    ran = await bench.run(mode)
    assert ran.result.text == "LAST WORD"
    assert await bench.stored() == ["user: x", "assistant: LAST WORD"]
    if mode == "stream":
        assert ran.order() == ["text-start", "text-delta LAST WORD", "text-end", "step-finish", "finish"]


async def test_held_text_leaves_when_max_steps_is_reached() -> None:
    """The loop ends right after a tool result: what was held is out. R1.2h, R4.6, case 40."""
    look, _ = counted("look", 7)
    bench = Bench(
        [text("last wor", "d"), tool_call("look", {})], tools=[look], output_processors=[hold(), Up()]
    )
    ran = await bench.run("stream", max_steps=1)
    assert ran.text_concat == ran.result.text == "LAST WORD"
    assert ran.result.finish_reason == "tool-calls"


async def test_held_text_is_dropped_on_a_providers_error() -> None:
    """The stream breaks: held text is not sent nor saved, what had left is saved as unfinished, the error
    surfaces.

    R5.4, R8.2, case 40.
    """
    broken = [
        TextStart(id="s"),
        TextDelta(id="s", text="sent "),
        TextDelta(id="s", text="held"),
        error(500, "broke"),
    ]
    bench = Bench(broken, output_processors=[HoldBack("hold", str), Up()])
    chunks: list[Any] = []

    async def read() -> None:
        async with bench.agent.stream("x", memory={"thread": "t", "resource": "r"}) as stream:
            async for chunk in stream:
                chunks.append(chunk)

    with pytest.raises(ModelError, match="broke"):
        await read()
    assert chunks[-1].type == "error"
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)) == "SENT "
    assert await bench.stored() == ["user: x", "assistant: SENT "]


async def test_held_text_is_not_sent_on_a_tripwire() -> None:
    """A block while text is held: it is not sent. R5.2, case 40."""
    bench = Bench(
        [text("first ", "held wor", "d")], output_processors=[HoldBack("hold", str), TripAtFinish()]
    )
    ran = await bench.run("stream")
    assert ran.text_concat == "first "
    assert ran.types[-1] == "tripwire"
    ran.never_contains("held", "word")


class Fine(UnitGuard):
    """Has nothing to object to."""

    def judge(self, unit: Unit, ctx: Any) -> Verdict:
        return Verdict.allow()


HOLDING = {
    "pattern": lambda: RegexFilter({"words": r"(?:held|last) \w+!"}),
    "words": lambda: KeywordFilter(["last word of all", "held word of all"]),
    "sentence": lambda: Fine(id="fine"),
}


@pytest.mark.parametrize("mode", ["stream", "result", "generate"])
@pytest.mark.parametrize("ending", [[], [Finish(finish_reason="stop")]], ids=["no finish", "finish"])
@pytest.mark.parametrize("guard", HOLDING)
async def test_what_a_guard_holds_leaves_through_the_rest_of_the_chain(
    guard: str, ending: list[Any], mode: str
) -> None:
    """At the end of the step, in front of text-end where the model closed its block. R0.2, R4.6, case 40."""
    bench = Bench([*OPEN, *ending], output_processors=[HOLDING[guard](), Up()])
    ran = await bench.run(mode)
    assert ran.result.text == "LAST WORD"
    assert await bench.stored() == ["user: x", "assistant: LAST WORD"]
    if mode == "stream":
        assert ran.order() == ["text-start", "text-delta LAST WORD", "text-end", "step-finish", "finish"]


@pytest.mark.parametrize("mode", ["stream", "generate"])
@pytest.mark.parametrize("guard", HOLDING)
async def test_what_a_guard_holds_leaves_when_max_steps_is_reached(guard: str, mode: str) -> None:
    """The loop ends right after a tool result: what was held is out. R1.2h, R4.6, case 40."""
    look, _ = counted("look", 7)
    bench = Bench(
        [text("last wor", "d"), tool_call("look", {})],
        tools=[look],
        output_processors=[HOLDING[guard](), Up()],
    )
    ran = await bench.run(mode, max_steps=1)
    assert ran.result.text == "LAST WORD"
    assert ran.result.finish_reason == "tool-calls"
    assert mode == "generate" or ran.text_concat == "LAST WORD"


@pytest.mark.parametrize("guard", HOLDING)
async def test_what_a_guard_holds_is_dropped_on_a_providers_error_and_on_a_tripwire(guard: str) -> None:
    """It is neither sent nor saved; what had left is saved as unfinished after the error. R5.2, R5.4, case 40."""
    broken = [TextStart(id="s"), TextDelta(id="s", text="Sent. "), TextDelta(id="s", text="held wor")]
    bench = Bench([*broken, error(500, "broke")], output_processors=[HOLDING[guard](), Up()])
    chunks: list[Any] = []

    async def read() -> None:
        async with bench.agent.stream("x", memory={"thread": "t", "resource": "r"}) as stream:
            async for chunk in stream:
                chunks.append(chunk)

    with pytest.raises(ModelError, match="broke"):
        await read()
    assert chunks[-1].type == "error"
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)) == "SENT. "
    assert await bench.stored() == ["user: x", "assistant: SENT. "]

    stopped = Bench(
        [*broken, ToolInputStart(tool_call_id="c", tool_name="look")],
        output_processors=[TripAtCall(), HOLDING[guard]()],
    )
    ran = await stopped.run("stream")
    assert ran.types[-1] == "tripwire"
    ran.never_contains("held")
    assert await stopped.stored() == []
