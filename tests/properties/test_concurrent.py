"""Runs at the same time share nothing (R6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from interlock import Agent, ModelRequest, Processor, ToolContext, tool
from interlock.chunks import Chunk, Finish, TextDelta, TextEnd, TextStart, ToolCall, Usage
from interlock.core.prompt import prompt_text
from interlock.memory import Memory

pytestmark = pytest.mark.anyio
RUNS = 1_000


class Echo:
    """Calls a tool with the number it was given, then says the number in several pieces, with pauses."""

    provider = "test"
    model_id = "echo"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Answer."""
        number = prompt_text(request.prompt).split()[0]
        usage = Usage(input_tokens=int(number), output_tokens=1, total_tokens=int(number) + 1)
        await asyncio.sleep(0)
        if request.prompt[-1].role == "user":
            yield ToolCall(tool_call_id="c1", tool_name="look", args={"n": number})
            yield Finish(finish_reason="tool-calls", usage=usage)
            return
        yield TextStart(id="t")
        for piece in (number, " ", number, " "):
            await asyncio.sleep(0)
            yield TextDelta(id="t", text=piece)
        yield TextEnd(id="t")
        yield Finish(finish_reason="stop", usage=usage)


class Collect(Processor):
    """Keeps what it sees in its state, in every hook, and finds only its own run there."""

    id = "collect"

    def note(self, value: str, ctx: Any) -> None:
        """Keep a value in the state; all must be of this run."""
        seen = ctx.state.setdefault("seen", [])
        seen.append(value)
        assert set(seen) == {ctx.request_context.get("number")}, seen

    def process_input(self, messages: Any, ctx: Any) -> None:
        """Note the number."""
        assert ctx.state == {}
        self.note(messages[-1].text.strip(), ctx)

    async def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
        """Note the number in the text."""
        if isinstance(chunk, TextDelta) and chunk.text.strip():
            self.note(chunk.text, ctx)
            await asyncio.sleep(0)
        return chunk

    async def process_tool_result(self, result: Any, ctx: Any) -> None:
        """Note the number in the result; stop every tenth run."""
        self.note(result.result, ctx)
        if int(result.result) % 10 == 3:
            ctx.abort(result.result)

    def process_output_result(self, result: Any, ctx: Any) -> None:
        """The state has everything the run said."""
        self.note(result.text.split()[0], ctx)
        assert len(ctx.state["seen"]) == 5


@tool
async def look(n: str, ctx: ToolContext) -> str:
    """Look."""
    assert ctx.request_context.get("number") == n
    await asyncio.sleep(0)
    return n


async def test_a_thousand_runs_at_once_share_nothing() -> None:
    """One agent, one set of processors, 1,000 runs: state, text, usage, tripwire and storage are each run's
    own.

    R6, R5.3.
    """
    memory = Memory()
    both = Collect()
    agent = Agent(
        id="many",
        model=Echo(),
        tools=[look],
        memory=memory,
        input_processors=[both],
        output_processors=[both],
    )

    async def one(number: int) -> None:
        options: dict[str, Any] = {
            "request_context": {"number": str(number)},
            "memory": {"thread": f"t{number}", "resource": "r"},
        }
        if number % 2:
            result = await agent.generate(f"{number} ", **options)
        else:
            async with agent.stream(f"{number} ", **options) as stream:
                shown = "".join([piece async for piece in stream.text_stream])
                result = await stream.result()
            assert shown == result.text
        stored = await memory.messages(f"t{number}", resource="r")
        assert all(str(number) in repr(message.content) for message in stored)
        if number % 10 == 3:
            assert result.tripwire is not None
            assert result.tripwire.reason == str(number)
            assert result.usage.input_tokens == number
            assert stored == []
        else:
            assert result.text.split() == [str(number)] * 2
            assert result.usage.input_tokens == 2 * number
            assert len(stored) == 2

    await asyncio.gather(*(one(number) for number in range(RUNS)))
    after = await agent.generate("7 ", request_context={"number": "7"})
    assert after.text == "7 7 ", "no state of earlier runs in a later one"
