"""Case 45: usage of a blocked, retried or cancelled run."""

from __future__ import annotations

import math
from typing import Any

import pytest
from notation import Bench, both_modes, counted

from interlock import Processor, RunOutcome
from interlock.chunks import Finish, TextDelta, Usage
from interlock.testing import text, tool_call

pytestmark = pytest.mark.anyio


class Block(Processor):
    """Aborts in one hook, in step 2 where the hook belongs to a step."""

    id = "block"

    def __init__(self, hook: str, *, on: type = object, retry: bool = False) -> None:
        self.on = on
        self.retry = retry
        self.used = False
        setattr(self, hook, self.judge)

    def judge(self, subject: Any, ctx: Any) -> Any:
        unchanged = subject if hasattr(subject, "type") else None
        if self.used or not isinstance(subject, self.on):
            return unchanged
        if isinstance(subject, list) or ctx.step_number == 1:
            self.used = True
            ctx.abort("no", retry=self.retry)
        return unchanged


def bench_with(guard: Any, lane: str = "output_processors") -> Bench:
    """A bench with a tool step before the answer."""
    look, _ = counted("look", 7)
    script = [tool_call("look", {}, id="c1")], [text("bad")], [text("good")]
    lists: dict[str, Any] = {lane: [guard]}
    return Bench(*script, tools=[look], max_processor_retries=2, **lists)


def total(usage: Usage) -> int:
    """The total; every figure is a number."""
    for value in (usage.input_tokens, usage.output_tokens, usage.total_tokens):
        assert isinstance(value, int)
        assert not math.isnan(value)
    assert usage.input_tokens + usage.output_tokens == usage.total_tokens
    return usage.total_tokens


@both_modes
@pytest.mark.parametrize(
    ("guard", "lane", "expected"),
    [
        (lambda: Block("process_input"), "input_processors", 0),
        (lambda: Block("process_output_stream", on=TextDelta), "output_processors", 15),
        (lambda: Block("process_output_stream", on=Finish), "output_processors", 30),
        (lambda: Block("process_output_step"), "output_processors", 30),
        (lambda: Block("process_output_result"), "output_processors", 30),
        (lambda: Block("process_output_step", retry=True), "output_processors", 45),
        (lambda: Block("process_output_result", retry=True), "output_processors", 45),
    ],
    ids=["input", "stream", "stream, at the finish", "step", "result", "step, retried", "result, retried"],
)
async def test_blocked_work_is_counted(guard: Any, lane: str, expected: int, mode: str) -> None:
    """Usage is a number, and counts every call whose usage was told, accepted or not. R5.3, case 45."""
    ran = await bench_with(guard(), lane).run(mode)
    assert total(ran.result.usage) == expected
    if ran.types and ran.types[-1] == "finish":
        assert total(ran.chunks[-1].usage) == expected  # type: ignore[attr-defined]


class Ends(Processor):
    id = "ends"

    def __init__(self) -> None:
        self.ends: list[RunOutcome] = []

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        return chunk

    def on_run_end(self, outcome: RunOutcome, ctx: Any) -> None:
        self.ends.append(outcome)


async def test_a_cancelled_run_counts_what_is_known() -> None:
    """Cancelled in step 2: the finished step's usage, plus what is known. R5.3, R5.5, case 45."""
    ends = Ends()
    bench = bench_with(ends)
    async with bench.agent.stream("x") as stream:
        async for chunk in stream:
            if isinstance(chunk, TextDelta):
                break
    assert total(ends.ends[0].result.usage) in (15, 30)


async def test_a_failed_call_does_not_hide_the_others() -> None:
    """A call that fails after an accepted step: on_run_end has the usage of the step. R5.3, R1.5, case 45."""
    from interlock import ModelError
    from interlock.testing import error

    ends = Ends()
    look, _ = counted("look", 7)
    bench = Bench([tool_call("look", {})], [error(500, "broke")], tools=[look], output_processors=[ends])
    with pytest.raises(ModelError):
        await bench.run("generate")
    assert total(ends.ends[0].result.usage) == 15
