"""Case 35: a token limiter and a large tool result of the running turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from notation import Bench, both_modes, conversation, counted

from interlock import Message, Processor
from interlock.chunks import Chunk
from interlock.testing import ScriptedModel, text, tool_call

pytestmark = pytest.mark.anyio
OLD = ("user: " + "old " * 100, "assistant: " + "older " * 100)


class Limiter(Processor):
    """Keeps the newest messages within a budget of words; the running turn is never dropped."""

    id = "limit"

    def __init__(self, budget: int) -> None:
        self.budget = budget

    def process_input_step(self, step: Any, ctx: Any) -> Any:
        running = {m.id for m in (*ctx.message_list.get.input.db(), *ctx.message_list.get.response.db())}
        size = sum(words(message) for message in step.messages if message.id in running)
        if size > self.budget:
            ctx.abort(f"the running turn exceeds the budget of {self.budget}")
        kept = set(running)
        for message in reversed(step.messages):
            if message.id not in running:
                size += words(message)
                if size > self.budget:
                    break
                kept.add(message.id)
        return [message for message in step.messages if message.id in kept]


def words(message: Message) -> int:
    """The size of a message."""
    return sum(
        len(str(getattr(part, "text", "")).split()) + len(str(getattr(part, "result", "") or "").split())
        for part in message.content.parts
    )


class LooksUntilItSees:
    """Answers once the prompt has the result, else calls look again."""

    provider = "test"
    model_id = "looks"

    def __init__(self) -> None:
        self.inner = ScriptedModel([])
        self.calls = self.inner.calls

    async def stream(self, request: Any) -> AsyncGenerator[Chunk, None]:
        sees = any(message.role == "tool" for message in request.prompt)
        script = [text("final")] if sees else [tool_call("look", {}, id="c1")]
        self.inner = ScriptedModel(script)
        async for chunk in self.inner.stream(request):
            yield chunk
        self.calls += self.inner.calls


async def bench_with(result: str) -> tuple[Bench, list[Any]]:
    """A bench with an old turn and a tool with this result."""
    look, runs = counted("look", result)
    bench = Bench(model=LooksUntilItSees(), tools=[look], input_processors=[Limiter(300)], max_steps=4)
    await bench.seed(conversation(*OLD))
    return bench, runs


@both_modes
async def test_old_goes_first(mode: str) -> None:
    """The call and its result stay in the prompt, the old turn goes; the tool runs once; storage is
    complete.

    R3.2, R3.5, case 35.
    """
    bench, runs = await bench_with("res " * 250)
    ran = await bench.run(mode, "hi")
    assert len(runs) == 1
    assert [line.split()[0] + line.split()[1][:4] for line in bench.receives(2)] == [
        "user:hi",
        "assistant:call",
        "tool:res",
    ]
    assert ran.result.text == "final"
    stored = await bench.stored()
    assert [line[:9] for line in stored] == ["user: old", "assistant", "user: hi", "assistant"]
    assert stored[-1].endswith(" | final")


@both_modes
async def test_a_turn_over_the_budget_is_told(mode: str) -> None:
    """A result larger than the whole budget: a tripwire that says so, never a silent loop.

    R4.2, R5.2, case 35.
    """
    bench, runs = await bench_with("res " * 400)
    ran = await bench.run(mode, "hi")
    assert ran.result.tripwire is not None
    assert "the running turn exceeds the budget" in ran.result.tripwire.reason
    assert len(runs) == len(bench.model.calls) == 1
