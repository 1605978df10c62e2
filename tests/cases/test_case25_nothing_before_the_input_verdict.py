"""Case 25: a slow input check."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from notation import Bench, counted

from interlock import Parallel, Processor
from interlock.testing import text, tool_call

pytestmark = pytest.mark.anyio


class Pass(Processor):
    id = "a"

    def process_input(self, messages: Any, ctx: Any) -> None:
        """Pass at once."""


class Check(Processor):
    """Waits, then refuses."""

    def __init__(self, id: str, seconds: float, reason: str) -> None:
        self.id = id
        self.seconds = seconds
        self.reason = reason
        self.cancelled = False

    async def process_input(self, messages: Any, ctx: Any) -> None:
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        ctx.abort(self.reason)


def bench_with(*checks: Any) -> tuple[Bench, list[Any]]:
    """A bench with input checks, and the runs of its tool."""
    pay, runs = counted("pay", 1)
    return Bench([text("Sure."), tool_call("pay", {})], tools=[pay], input_processors=list(checks)), runs


@pytest.mark.parametrize("parallel", [False, True])
async def test_nothing_happens_before_the_verdict(parallel: bool) -> None:
    """No model call, no tool, no text and nothing stored while a check waits, and none after it refused.

    R1.1, R1.4, R5.1, case 25.
    """
    slow = Check("slow", 0.2, "bad input")
    bench, runs = bench_with(Parallel(Pass(), slow)) if parallel else bench_with(Pass(), slow)
    ran = await bench.run("stream", "bad")
    assert bench.model.calls == []
    assert runs == []
    assert [kind for kind in ran.types if kind != "start"] == ["tripwire"]
    (tripwire,) = ran.of_type("tripwire")
    assert (tripwire.reason, tripwire.processor_id) == ("bad input", "slow")
    assert await bench.stored() == []


async def test_the_first_in_list_order_is_reported() -> None:
    """Two parallel checks that fail together: the first abort in list order wins, however long it took.

    R10.3, case 25.
    """
    bench, _ = bench_with(Parallel(Check("first", 0.02, "one"), Check("second", 0, "two")))
    ran = await bench.run("stream", "bad")
    assert ran.result.tripwire is not None
    assert (ran.result.tripwire.processor_id, ran.result.tripwire.reason) == ("first", "one")


async def test_a_verdict_cancels_the_checks_after_it() -> None:
    """The winning abort cancels the checks behind it. R10.3, case 25."""
    late = Check("late", 3600, "never")
    bench, _ = bench_with(Parallel(Check("first", 0.01, "one"), late))
    await bench.run("stream", "bad")
    assert late.cancelled
