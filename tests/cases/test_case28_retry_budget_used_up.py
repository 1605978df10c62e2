"""Case 28: all attempts are bad."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, both_modes

from interlock import Processor
from interlock.testing import text

pytestmark = pytest.mark.anyio
SCRIPT = [text("bad1")], [text("bad2")], [text("bad3")]


class Never(Processor):
    id = "q"

    def process_output_step(self, output: Any, ctx: Any) -> None:
        ctx.abort("nope", retry=True)


class Crash(Processor):
    id = "q"

    def process_output_step(self, output: Any, ctx: Any) -> None:
        raise LookupError("the guard is broken")


@both_modes
@pytest.mark.parametrize(("budget", "calls"), [(1, 2), (None, 1), (0, 1)])
async def test_a_used_up_budget_is_a_tripwire(budget: int | None, calls: int, mode: str) -> None:
    """So many calls, then a tripwire of the guard (retry=True), no text, usage of all calls, nothing
    stored.

    R7.1, R7.4, R5.3, case 28.
    """
    bench = Bench(*SCRIPT, output_processors=[Never()], max_processor_retries=budget)
    ran = await bench.run(mode)
    assert len(bench.model.calls) == calls
    result = ran.result
    assert result.tripwire is not None
    assert (result.tripwire.reason, result.tripwire.processor_id, result.tripwire.retry) == (
        "nope",
        "q",
        True,
    )
    assert (result.text, result.finish_reason) == ("", "other")
    assert [step.finish_reason for step in result.steps] == ["retry"] * (calls - 1) + ["tripwire"]
    assert [step.text for step in result.steps] == [""] * calls
    assert result.usage.total_tokens == 15 * calls
    if mode == "stream":
        assert ran.chunks[-1].type == "tripwire"
        ran.never_contains("bad1", "bad2")
    assert await bench.stored() == []


@both_modes
async def test_a_guard_that_crashes_is_another_matter(mode: str) -> None:
    """A crash is no refusal: it is not retried and raises as itself. R5.4, case 28."""
    bench = Bench(*SCRIPT, output_processors=[Crash()], max_processor_retries=3)
    with pytest.raises(LookupError, match="the guard is broken") as raised:
        await bench.run(mode)
    assert "process_output_step" in str(raised.value.__notes__)
    assert len(bench.model.calls) == 1
    assert await bench.stored() == []
