"""Whole runs of an agent at each provider: what the client gets and what is stored does not tell who answered."""

from __future__ import annotations

from collections.abc import AsyncIterable
from itertools import groupby
from typing import Any

import pytest
from fault_server import RESET, Action, FaultServer, head, whole
from wired import TURN, each_wire, model_at

from interlock import Agent, RunResult
from interlock.core.chunks import Chunk
from interlock.memory import Memory
from interlock.processors import StreamErrorRetry
from wires import Said, Thought, Turn

pytestmark = pytest.mark.anyio

THREAD = {"thread": "t", "resource": "r"}
ANSWER = Turn((Thought(("So it ", "is.")), Said(("21 degrees ", "at noon."))))
NEXT = Turn((Said(("You asked ", "about Zürich.")),))
LONG = Turn((Said(("Cut ", "off")),), "length")


def weather(city: str) -> dict[str, Any]:
    """The weather of a city."""
    return {"city": city, "celsius": 21}


def clock() -> str:
    """The time."""
    return "noon"


async def run(model: Any, memory: Memory, text: str) -> tuple[list[str], RunResult]:
    """The types of the chunks a client gets, each once in a row, and the result."""
    agent = Agent(
        id="a",
        model=model,
        tools=[weather, clock],
        memory=memory,
        error_processors=[StreamErrorRetry(max_retries=1)],
    )
    async with agent.stream(text, memory=THREAD) as stream:
        types = await _types(stream)
        return types, await stream.result()


async def _types(stream: AsyncIterable[Chunk]) -> list[str]:
    return [key for key, _ in groupby([chunk.type async for chunk in stream])]


async def stored(memory: Memory) -> list[tuple[str, list[str]]]:
    """Roles of the stored messages and the kinds of their parts."""
    messages = await memory.messages("t", resource="r")
    return [(message.role, [part.type for part in message.content.parts]) for message in messages]


STREAMED = [
    "start",
    "step-start",
    *("reasoning-start", "reasoning-delta", "reasoning-end", "text-start", "text-delta", "text-end"),
    *("tool-call-input-streaming-start", "tool-call-delta") * 2,
    *("tool-call-input-streaming-end", "tool-call") * 2,
    "tool-result",
    "step-finish",
    *("step-start", "step-finish"),  # the attempt that failed is withdrawn
    "step-start",
    *("reasoning-start", "reasoning-delta", "reasoning-end", "text-start", "text-delta", "text-end"),
    "step-finish",
    "finish",
]


@each_wire(own=True)
async def test_turns_with_thinking_tools_and_errors(wire: Any, own: bool) -> None:
    """Tools, an overloaded provider and a stream that fails within: the same chunks, the same messages are stored."""
    busy = whole(wire.error(503), 503, "application/json")
    scripts: list[list[Action]] = [
        *([whole(wire.body(TURN))], [busy], [whole(wire.body(ANSWER))]),
        *([whole(wire.stream_error("come back later"))], [whole(wire.body(NEXT))]),
    ]
    memory = Memory()
    async with FaultServer(*scripts) as server, model_at(server, wire, own=own) as model:
        types, first = await run(model, memory, "Weather in Zürich?")
        _, second = await run(model, memory, "What did I ask?")
    assert len(server.requests) == 5
    assert types == STREAMED
    assert first.text == "Héllo 🌍 wörld21 degrees at noon."
    assert [call.args for call in first.tool_calls] == [{"city": "Zürich"}, {}]
    assert first.reasoning == "Let me think…So it is."
    assert (second.text, second.finish_reason) == ("You asked about Zürich.", "stop")
    assert await stored(memory) == [
        ("user", ["text"]),
        (
            "assistant",
            ["reasoning", "text", "tool-invocation", "tool-invocation", "step-start", "reasoning", "text"],
        ),
        ("user", ["text"]),
        ("assistant", ["text"]),
    ]


@each_wire(own=True)
@pytest.mark.parametrize("ends", ["broken off", "token limit"])
async def test_how_an_answer_may_end(wire: Any, own: bool, ends: str) -> None:
    """A token limit is a finish reason; a connection that breaks after the first text ends the run, and what the
    client has seen is stored as unfinished.
    """
    memory = Memory()
    if ends == "token limit":
        async with FaultServer([whole(wire.body(LONG))]) as server, model_at(server, wire, own=own) as model:
            _, result = await run(model, memory, "Hi")
        assert (result.text, result.finish_reason) == ("Cut off", "length")
        return
    body = wire.body(NEXT)
    cut = body[: body.index(b"about")]
    async with (
        FaultServer(*[[head(), cut, 0.05, RESET]] * 2) as server,
        model_at(server, wire, own=own) as model,
    ):
        with pytest.raises(Exception, match=r"broke off|cut off"):
            await run(model, memory, "Hi")
    assert len(server.requests) == 2
    [_, answer] = await memory.messages("t", resource="r")
    assert answer.text == "You asked "
    assert (answer.content.metadata or {})["unfinished"] is True
