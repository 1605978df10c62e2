"""Runs under observation: a model that knows whether it was closed, a record of a run, and what must always
hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from interlock import Agent, ModelRequest, RunOutcome, RunResult
from interlock.chunks import (
    Chunk,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from interlock.messages import DataPart, Message, ReasoningPart, TextPart, ToolInvocationPart
from interlock.testing import ScriptedModel

THREAD = {"thread": "t", "resource": "r"}
LAST = frozenset({"finish", "tripwire", "error", "abort"})


class WatchedModel:
    """A scripted model that counts open streams and the tokens that were paid for.

    Args:
        calls: scripts, one a call; the last one repeats.
        no_finish: the calls (by number) whose stream ends without a finish chunk.
        pauses: whether the event loop gets a turn before each chunk.
    """

    provider = "scripted"
    model_id = "watched"

    def __init__(self, calls: Sequence[Any], *, no_finish: Iterable[int] = (), pauses: bool = False) -> None:
        self.inner = ScriptedModel(*calls, repeat_last=True)
        self.no_finish = frozenset(no_finish)
        self.pauses = pauses
        self.open = 0
        self.input_tokens = 0

    @property
    def calls(self) -> list[Any]:
        """The calls received."""
        return self.inner.calls

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Follow the script."""
        number = len(self.inner.calls)
        self.open += 1
        try:
            async with aclosing(self.inner.stream(request)) as chunks:
                async for chunk in chunks:
                    if self.pauses:
                        await asyncio.sleep(0)
                    if isinstance(chunk, Finish):
                        if number in self.no_finish:
                            continue
                        self.input_tokens += chunk.usage.input_tokens if chunk.usage else 0
                    yield chunk
        finally:
            self.open -= 1


@dataclass
class Journal:
    """What happened in one run, seen from inside."""

    hooks: int = 0
    ends: dict[str, list[RunOutcome]] = field(default_factory=dict[str, list[RunOutcome]])
    tools: list[str] = field(default_factory=list[str])


@dataclass
class Seen:
    """What a run left, seen from outside."""

    chunks: list[Chunk] = field(default_factory=list[Chunk])
    result: RunResult | None = None
    error: BaseException | None = None
    hooks_after_cancel: int = 0
    cancelled: bool = False

    @property
    def client_text(self) -> str:
        """The text of all deltas, joined."""
        return "".join(chunk.text for chunk in self.chunks if isinstance(chunk, TextDelta))

    @property
    def kind(self) -> str:
        """How the stream ended."""
        return self.chunks[-1].type if self.chunks else "nothing"


async def generate(agent: Agent, given: Any = "hi", **options: Any) -> Seen:
    """Run with generate."""
    seen = Seen()
    try:
        seen.result = await agent.generate(given, **options)
    except Exception as problem:
        seen.error = problem
    await no_task_left()
    return seen


async def stream(agent: Agent, given: Any = "hi", **options: Any) -> Seen:
    """Run as a stream, read to its end, then ask for the result: both must agree on the error (R5.4)."""
    seen = Seen()
    async with agent.stream(given, **options) as run:
        try:
            async for chunk in run:
                seen.chunks.append(chunk)
        except Exception as problem:
            seen.error = problem
        again: Exception | None = None
        try:
            seen.result = await run.result()
        except Exception as problem:
            again = problem
        assert again is seen.error, "R5.4: iterating and result() raise the same exception"
    await no_task_left()
    return seen


async def cancelled_stream(
    agent: Agent, after: int, journal: Journal, *, leave: bool, given: Any = "hi", **options: Any
) -> Seen:
    """Read so many chunks, then cancel (or leave the ``async with``); a run that was over by then is not
    cancelled.
    """
    seen = Seen()
    async with agent.stream(given, **options) as run:
        try:
            while len(seen.chunks) < after:
                seen.chunks.append(await anext(run))
        except StopAsyncIteration:
            pass
        except Exception as problem:
            seen.error = problem
        hooks_before = journal.hooks
        if not leave:
            await run.cancel()
            seen.hooks_after_cancel = journal.hooks - hooks_before
            try:
                async for chunk in run:
                    seen.chunks.append(chunk)
                seen.result = await run.result()
            except Exception as problem:
                seen.error = problem
        hooks_before = journal.hooks
    seen.hooks_after_cancel += journal.hooks - hooks_before
    seen.cancelled = True
    await no_task_left()
    return seen


async def no_task_left() -> None:
    """R5: nothing a run started outlives it."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    # a provider's SDK closes a forgotten client in a task of its own, in whatever loop runs when it is collected
    left = {task for task in others if "google/genai" not in repr(task)}
    assert not left, f"tasks left behind: {left}"


# ------------------------------------------------------------------------------------------------------ what must hold


def check_frame(chunks: Sequence[Chunk]) -> None:
    """Exactly one end and nothing after it; one start, first; well-framed blocks (R1.4, R4.6, R5.2, R5.4,
    R5.5).
    """
    types = [chunk.type for chunk in chunks]
    assert types, "a stream that was read to its end has at least its last chunk"
    assert [i for i, kind in enumerate(types) if kind in LAST] == [len(types) - 1], (
        f"one end, at the end: {types}"
    )
    assert types.count("start") == (len(types) > 1), f"one start before anything else: {types}"
    assert len(types) == 1 or types[0] == "start", f"start comes first: {types}"
    check_blocks(chunks)


def check_blocks(chunks: Sequence[Chunk]) -> None:
    """No delta or end outside an open block, every block closed unless the run was cut short (R4.6)."""
    is_open: set[tuple[str, str]] = set()
    for index, chunk in enumerate(chunks):
        where = f"chunk {index} ({chunk.type}) of {[each.type for each in chunks]}"
        match chunk:
            case TextStart(id=block) | ReasoningStart(id=block):
                assert (kind_of(chunk), block) not in is_open, f"opened twice: {where}"
                is_open.add((kind_of(chunk), block))
            case TextDelta(id=block) | ReasoningDelta(id=block):
                assert (kind_of(chunk), block) in is_open, f"delta outside its block: {where}"
            case TextEnd(id=block) | ReasoningEnd(id=block):
                assert (kind_of(chunk), block) in is_open, f"end without a start: {where}"
                is_open.remove((kind_of(chunk), block))
            case ToolInputStart(tool_call_id=call):
                assert ("tool", call) not in is_open, f"opened twice: {where}"
                is_open.add(("tool", call))
            case ToolInputDelta(tool_call_id=call):
                assert ("tool", call) in is_open, f"delta outside its block: {where}"
            case ToolInputEnd(tool_call_id=call):
                assert ("tool", call) in is_open, f"end without a start: {where}"
                is_open.remove(("tool", call))
            case StepFinish():
                assert not is_open, f"a block is open when its step ends: {where}"
            case _:
                pass
    assert not is_open or chunks[-1].type in LAST - {"finish"}, f"never closed: {is_open}"


def kind_of(chunk: Chunk) -> str:
    """The kind of block a chunk belongs to."""
    return chunk.type.split("-")[0]


def simple_part(part: Any) -> Any:
    """A part without what lasts only as long as the run."""
    match part:
        case TextPart() | ReasoningPart():
            return part.type, part.text
        case ToolInvocationPart():
            return part.type, part.tool_name, part.args, part.state, part.result, part.error_text
        case DataPart():
            return part.type, part.data
        case _:
            return (part.type,)


def simple(messages: Iterable[Message]) -> list[Any]:
    """Messages without ids and times."""
    return [(message.role, [simple_part(part) for part in message.content.parts]) for message in messages]


def simple_result(result: RunResult) -> Any:
    """A result without ids and times."""
    return {
        "text": result.text,
        "messages": simple(result.messages),
        "all": simple(result.all_messages),
        "steps": [
            (step.text, step.reasoning, step.finish_reason, step.usage, step.tripwire, len(step.tool_calls))
            for step in result.steps
        ],
        "usage": result.usage,
        "finish_reason": result.finish_reason,
        "tripwire": result.tripwire,
        "violations": [(each.processor_id, each.message) for each in result.violations],
        "released": result.released_text,
    }


def everything(value: Any) -> str:
    """All a value shows, to look for what must not be in it."""
    return repr(value)


Check = Callable[..., None]
