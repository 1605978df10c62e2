"""Case 22: the caller cancels; no processor blocked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from notation import Bench, HoldBack

from interlock import Processor, RunOutcome
from interlock.chunks import Chunk, Finish, TextDelta, TextEnd, TextStart

pytestmark = pytest.mark.anyio


class Pausing:
    """Says one part, waits until it is told to go on, says another."""

    provider = "test"
    model_id = "pausing"

    def __init__(self) -> None:
        self.pulled: list[str] = []
        self.closed = False

    async def stream(self, request: Any) -> AsyncGenerator[Chunk, None]:
        try:
            yield TextStart(id="t")
            yield TextDelta(id="t", text="part one held")
            self.pulled.append("one")
            await asyncio.sleep(3600)
            self.pulled.append("two")
            yield TextDelta(id="t", text="part two")
            yield TextEnd(id="t")
            yield Finish(finish_reason="stop")
        finally:
            self.closed = True


class Watch(Processor):
    """Passes everything and records how it ended."""

    id = "watch"

    def __init__(self) -> None:
        self.ends: list[RunOutcome] = []
        self.results = 0

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        return chunk

    def process_output_result(self, result: Any, ctx: Any) -> None:
        self.results += 1

    def on_run_end(self, outcome: RunOutcome, ctx: Any) -> None:
        self.ends.append(outcome)


@pytest.mark.parametrize("leave", [False, True])
async def test_a_cancel_is_an_end_of_its_own(leave: bool) -> None:
    """An abort chunk, no tripwire, finish_reason aborted; the provider is closed, held text is not sent, no
    hook runs.

    R5.5, R8.2, case 22.
    """
    model, watch = Pausing(), Watch()
    bench = Bench(model=model, output_processors=[HoldBack("hold", str), watch])
    chunks: list[Chunk] = []
    async with bench.agent.stream("x", memory={"thread": "t", "resource": "r"}) as stream:
        async for chunk in stream:
            chunks.append(chunk)
            if chunk.type == "text-delta" and not leave:
                await stream.cancel()
            elif chunk.type == "text-delta":
                break
    result = watch.ends[0].result if leave else await stream.result()
    assert model.closed
    assert model.pulled == ["one"], "no further chunk is pulled"
    assert [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)] == ["part one "]
    assert "tripwire" not in [chunk.type for chunk in chunks]
    if not leave:
        assert chunks[-1].type == "abort"
    assert (result.tripwire, result.finish_reason) == (None, "aborted")
    assert (result.text, result.messages, result.steps) == ("", [], []), "the step under way has no entry"
    assert [outcome.kind for outcome in watch.ends] == ["cancelled"]
    assert watch.results == 0
    assert await bench.stored() == ["user: x", "assistant: part one "]
    assert (await bench.rows())[-1].content.metadata == {"unfinished": True}
