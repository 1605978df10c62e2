"""Titles of threads: in the background, never in a run's way, off by default (R8)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Agent, UsageError
from interlock.memory import Memory
from interlock.testing import ScriptedModel, error, text

pytestmark = pytest.mark.anyio
THREAD: Any = {"thread": "t", "resource": "r"}


async def title(memory: Memory) -> str:
    thread = await memory.threads.get("t", resource="r")
    assert thread is not None
    return thread.title


def agent_of(memory: Memory, *answers: str) -> Agent:
    return Agent(id="a", model=ScriptedModel(*([text(answer)] for answer in answers)), memory=memory)


async def test_a_thread_gets_its_title_after_the_first_turn(tmp_path: Any) -> None:
    """Made from the turn as it was saved, once; closing waits for it."""
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    writer = ScriptedModel([text('"Trip to\n', 'Rome"')])
    async with Memory(url, generate_title={"model": writer}) as memory:
        agent = agent_of(memory, "By train.", "Yes.")
        await agent.generate("How to Rome?", memory=THREAD)
        await agent.generate("Sure?", memory=THREAD)
    async with Memory(url) as memory:
        assert await title(memory) == "Trip to Rome"
    (call,) = writer.calls
    assert "user: How to Rome?" in call.prompt_text
    assert "assistant: By train." in call.prompt_text


async def test_a_title_is_what_every_database_takes(tmp_path: Any) -> None:
    """NUL and half of a surrogate pair, which models can write, do not cost the title (R8)."""
    writer = ScriptedModel([text("Trip\0 to \ud83d", "Rome")])
    async with Memory(f"sqlite:///{tmp_path / 'agent.db'}", generate_title={"model": writer}) as memory:
        await agent_of(memory, "By train.").generate("How to Rome?", memory=THREAD)
        assert memory.titles is not None
        await memory.titles.finish()
        assert await title(memory) == "Trip to ?Rome"


async def test_the_agents_model_writes_it_by_default() -> None:
    """``generate_title=True``."""
    memory = Memory(generate_title=True)
    await agent_of(memory, "By train.", "Rome").generate("How?", memory=THREAD)
    await memory.close()
    assert await title(memory) == "Rome"


async def test_it_is_off_by_default_and_for_read_only() -> None:
    """Nothing is asked that was not asked for."""
    memory = Memory()
    await agent_of(memory, "ok").generate("hi", memory=THREAD)
    assert await title(memory) == ""
    reading = Memory(memory.store, generate_title=True, read_only=True)
    await agent_of(reading, "ok").generate("hi", memory=THREAD)
    await reading.close()
    assert await title(memory) == ""


async def test_a_title_that_is_there_stays() -> None:
    """The user's own title is not replaced."""
    writer = ScriptedModel()
    memory = Memory(generate_title={"model": writer})
    await memory.threads.create("t", resource="r", title="Mine")
    await agent_of(memory, "ok").generate("hi", memory=THREAD)
    await memory.close()
    assert await title(memory) == "Mine"
    assert writer.calls == []


async def test_a_failure_fails_nothing() -> None:
    """The run has ended by then; the next turn tries again."""
    writer = ScriptedModel([error(500, "down")], [text("Second")])
    memory = Memory(generate_title={"model": writer})
    agent = agent_of(memory, "one", "two")
    assert (await agent.generate("hi", memory=THREAD)).text == "one"
    await memory.close()
    assert await title(memory) == ""
    await agent.generate("hi", memory=THREAD)
    await memory.close()
    assert await title(memory) == "Second"


async def test_no_run_waits_for_it() -> None:
    """The run ends while the title's model has not even answered."""
    gate = asyncio.Event()

    class Slow:
        provider = "slow"
        model_id = "slow"

        async def stream(self, request: Any) -> Any:
            await gate.wait()
            async for chunk in ScriptedModel([text("Late")]).stream(request):
                yield chunk

    memory = Memory(generate_title={"model": Slow()})
    await agent_of(memory, "ok").generate("hi", memory=THREAD)
    assert await title(memory) == ""
    gate.set()
    await memory.close()
    assert await title(memory) == "Late"


@pytest.mark.parametrize("given", [1, "yes", {"temperature": 1}])
def test_wrong_options_are_refused(given: Any) -> None:
    """Mistakes are told at set-up."""
    with pytest.raises(UsageError, match="generate_title"):
        Memory(generate_title=given)
