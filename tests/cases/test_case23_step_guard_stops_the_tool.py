"""Case 23: a step guard refuses a tool call before it runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from notation import Bench, both_modes, counted

from interlock import Processor
from interlock.chunks import ToolCall
from interlock.testing import text, tool_call

pytestmark = pytest.mark.anyio


class StepGuard(Processor):
    id = "guard"

    async def process_output_step(self, output: Any, ctx: Any) -> None:
        await asyncio.sleep(0.05)
        if output.tool_calls:
            ctx.abort("forbidden")


class StreamGuard(Processor):
    id = "guard"

    async def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        await asyncio.sleep(0)
        if isinstance(chunk, ToolCall):
            ctx.abort("forbidden")
        return chunk


class RetryGuard(Processor):
    id = "guard"

    async def process_output_step(self, output: Any, ctx: Any) -> None:
        await asyncio.sleep(0.01)
        if output.tool_calls:
            ctx.abort("forbidden", retry=True)


def bench_with(guard: Processor, **options: Any) -> tuple[Bench, list[Any]]:
    """A bench with a guard, and the runs of its tool."""
    pay, runs = counted("pay", "paid")
    script = [text("I pay now."), tool_call("pay", {"amount": 5}, id="c1")], [text("done")]
    return Bench(*script, tools=[pay], output_processors=[guard], **options), runs


@both_modes
@pytest.mark.parametrize("make", [StepGuard, StreamGuard])
async def test_a_refused_call_never_runs(make: Any, mode: str) -> None:
    """The verdict comes before the tool: no run, no second model call, no tool-result, nothing stored.

    R0.4, R1.2f, R8.2, case 23.
    """
    bench, runs = bench_with(make())
    ran = await bench.run(mode, "pay")
    assert runs == []
    assert len(bench.model.calls) == 1
    assert ran.result.tripwire is not None
    assert (ran.result.tripwire.reason, ran.result.tripwire.processor_id) == ("forbidden", "guard")
    assert ran.result.tool_calls == []
    if mode == "stream":
        assert not ran.of_type("tool-result")
        assert ran.chunks[-1].type == "tripwire"
    assert await bench.stored() == []


@both_modes
async def test_a_rejected_attempts_call_does_not_run_either(mode: str) -> None:
    """abort(retry) in the step hook: the tool of the rejected attempt does not run. R7.3, R0.4, case 23."""
    bench, runs = bench_with(RetryGuard(), max_processor_retries=1)
    ran = await bench.run(mode, "pay")
    assert runs == []
    assert ran.result.text == "done"
    assert "tool-result" not in ran.types
    assert await bench.stored() == ["user: pay", "assistant: done"]
