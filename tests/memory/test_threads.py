"""Threads looked after by hand, over every store (R8)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock import Agent, UsageError
from interlock.memory import InMemoryStore, Memory, Turn
from interlock.testing import ScriptedModel, text

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def address(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    """A process's own store, or a database's address."""
    return None if request.param == "memory" else f"sqlite:///{tmp_path / 'agent.db'}"


async def talked(memory: Memory, *questions: str, thread: str = "t") -> None:
    agent = Agent(id="a", model=ScriptedModel([text("ok")], repeat_last=True), memory=memory)
    for question in questions:
        await agent.generate(question, memory={"thread": thread, "resource": "r"})


async def test_a_threads_life(address: Any) -> None:
    """Create, get, list, rename, search, delete."""
    async with Memory(address) as memory:
        made = await memory.threads.create("t", resource="r", metadata={"a": (1, 2)})
        fresh = await memory.threads.create(resource="r", title="other")
        await talked(memory, "Where is Rome?")
        assert (await memory.threads.list(resource="r")).threads[0].id == made.id
        renamed = await memory.threads.update("t", resource="r", title="Rome", metadata={"b": 1})
        assert (renamed.title, renamed.metadata) == ("Rome", {"a": [1, 2], "b": 1})
        (found,) = await memory.search("rome", resource="r")
        assert found.text == "Where is Rome?"
        page = await memory.message_page("t", resource="r", per_page=1)
        assert (len(page.messages), page.total, page.has_more) == (1, 2, True)
        assert len(await memory.usage("t", resource="r")) == 1
        assert await memory.delete_messages([found.id], resource="r") == 1
        assert await memory.threads.delete("t", resource="r")
        assert await memory.threads.get("t", resource="r") is None
        assert [t.id for t in (await memory.threads.list(resource="r")).threads] == [fresh.id]


async def test_export_and_import(address: Any) -> None:
    """An exported thread goes through JSON and comes back the same, here or elsewhere; beside itself with new ids."""
    async with Memory(address) as memory:
        await memory.threads.create("t", resource="r", title="T", metadata={"a": 1})
        await talked(memory, "one", "two")
        exported = json.loads(json.dumps(await memory.threads.export("t", resource="r")))
        async with Memory() as other:
            await other.threads.import_(exported, resource="r2")
            again = await other.threads.export("t", resource="r2")
            assert again["messages"] == [{**m, "resourceId": "r2"} for m in exported["messages"]]
            assert again["thread"]["title"] == "T"
            assert again["thread"]["metadata"] == {"a": 1}
            assert again["thread"]["createdAt"] == exported["thread"]["createdAt"]
        with pytest.raises(UsageError, match="already"):
            await memory.threads.import_(exported, resource="r")
        await memory.threads.import_(exported, resource="r", thread="copy")
        copied = await memory.messages("copy", resource="r")
        assert [m.text for m in copied] == ["one", "ok", "two", "ok"]
        assert not {m.id for m in copied} & {m["id"] for m in exported["messages"]}


async def test_an_import_that_fails_leaves_nothing(address: Any) -> None:
    """A message id that is taken: no thread is made."""
    async with Memory(address) as memory:
        await talked(memory, "one")
        exported = await memory.threads.export("t", resource="r")
        exported["thread"]["id"] = "t2"
        with pytest.raises(UsageError, match="taken"):
            await memory.threads.import_(exported, resource="r")
        assert await memory.threads.get("t2", resource="r") is None


@pytest.mark.parametrize(
    "given", [{}, None, {"version": 1}, {"version": 1, "thread": {"id": "t"}, "messages": 3}]
)
async def test_what_is_no_exported_thread_is_refused(given: Any) -> None:
    """The error says what it must be."""
    with pytest.raises(UsageError, match="exported thread"):
        await Memory().threads.import_(given)


async def test_pages_that_cannot_be_are_refused() -> None:
    """Mistakes are told before the store is asked."""
    memory = Memory()
    with pytest.raises(UsageError, match="per_page"):
        await memory.threads.list(per_page=0)
    with pytest.raises(UsageError, match="page=-1"):
        await memory.message_page("t", page=-1)
    with pytest.raises(UsageError, match="list of ids"):
        await memory.delete_messages("abc")


async def test_a_store_of_turns_only_says_so() -> None:
    """The two-method store runs an agent; it has no threads to look after."""

    class Turns:
        async def messages(self, thread_id: str, *, resource_id: Any, last: Any = None) -> list[Any]:
            return []

        async def save_turn(self, turn: Turn) -> None:
            return None

    with pytest.raises(UsageError, match="Turns keeps turns only"):
        _ = Memory(Turns()).threads


async def test_options_for_one_call() -> None:
    """memory={"options"}: other values for this call, over the same store."""
    store = InMemoryStore()
    memory = Memory(store)
    model = ScriptedModel([text("ok")], repeat_last=True)
    agent = Agent(id="a", model=model, memory=memory)
    thread = {"thread": "t", "resource": "r"}
    await agent.generate("one", memory=thread)
    await agent.generate("two", memory={**thread, "options": {"last_messages": 0, "read_only": True}})
    assert model.calls[-1].prompt_text == "two"
    await agent.generate("three", memory=thread)
    assert model.calls[-1].prompt_text.split("\n") == ["one", "ok", "three"]
    with pytest.raises(UsageError, match="no lastMessages"):
        await agent.generate("four", memory={**thread, "options": {"lastMessages": 0}})
