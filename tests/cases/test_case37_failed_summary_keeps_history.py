"""Case 37: the summary model fails, or nothing is left to summarise."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, both_modes, conversation, lines

from interlock import Agent, InputChange, Processor
from interlock.testing import ScriptedModel, error, text

pytestmark = pytest.mark.anyio
OLD = [f"{'user' if i % 2 == 0 else 'assistant'}: old {i}" for i in range(30)]


class Summary(Processor):
    """Puts a summary in the place of all but the last messages: only once it has one."""

    id = "sum"

    def __init__(self, model: ScriptedModel) -> None:
        self.summarizer = Agent(id="summarizer", model=model)

    async def process_input(self, messages: Any, ctx: Any) -> Any:
        old = messages[:-5]
        said = "\n".join(message.text for message in old if message.text)
        if not said:
            return None
        try:
            result = await self.summarizer.generate(f"Summarize:\n{said}")
        except Exception as problem:
            ctx.violation("no summary", {"cause": type(problem).__name__})
            return None
        if not result.text:
            ctx.violation("no summary", {"cause": "empty"})
            return None
        return InputChange(messages=messages[-5:], system_messages=[f"Summary: {result.text}"])


@both_modes
@pytest.mark.parametrize("script", [[error(500, "away")], [text("")]], ids=["fails", "empty"])
async def test_a_failed_summary_changes_nothing(script: list[Any], mode: str) -> None:
    """The prompt has all 30 messages and the new one, storage too; the failure is on the result; the next
    turn tries again.

    R2.6, R3.5, case 37.
    """
    summarizer = ScriptedModel(script, repeat_last=True)
    bench = Bench([text("ok")], input_processors=[Summary(summarizer)])
    await bench.seed(conversation(*OLD))
    ran = await bench.run(mode, "next")
    assert bench.receives(1) == [*OLD, "user: next"]
    assert await bench.stored() == [*OLD, "user: next", "assistant: ok"]
    assert [(each.processor_id, each.message) for each in ran.result.violations] == [("sum", "no summary")]
    await bench.run(mode, "more")
    assert len(summarizer.calls) == 2


async def test_a_summary_replaces_for_this_run_only() -> None:
    """With a summary the prompt is short; storage keeps what it has. R3.3, R3.5, case 37."""
    bench = Bench([text("ok")], input_processors=[Summary(ScriptedModel([text("so far")]))])
    await bench.seed(conversation(*OLD))
    await bench.run("generate", "next")
    # the four old messages that are left begin with the user's
    assert bench.receives(1, system=True) == ["system: Summary: so far", *OLD[-4:], "user: next"]
    assert await bench.stored() == [*OLD, "user: next", "assistant: ok"]


async def test_a_stretch_of_tool_steps_only_is_not_summarized() -> None:
    """Nothing readable in the old part: no call of the summary model, nothing lost. R3.8, case 37."""
    steps = [line for i in range(8) for line in (f"assistant: call look c{i}", f"tool: c{i} → {i}")]
    summarizer = ScriptedModel([text("never")])
    bench = Bench([text("ok")], input_processors=[Summary(summarizer)])
    await bench.seed(conversation(*steps))
    before = lines(await bench.rows())
    await bench.run("generate", "next")
    assert summarizer.calls == []
    assert len([line for line in bench.receives(1) if line.startswith("tool:")]) == 8
    assert await bench.stored() == [*before, "user: next", "assistant: ok"]
