"""The store's contract, as Memory and the processors use it."""

from __future__ import annotations

import pytest

from interlock import Agent, StorageError, UsageError
from interlock.core.messages import Message
from interlock.memory import InMemoryStore, Memory, Store, Turn
from interlock.testing import ScriptedModel, text


class Minimal:
    """A store of a user: nothing but the two methods."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.asked: list[tuple[str, str | None, int | None]] = []

    async def messages(
        self, thread_id: str, *, resource_id: str | None, last: int | None = None
    ) -> list[Message]:
        self.asked.append((thread_id, resource_id, last))
        return []

    async def save_turn(self, turn: Turn) -> None:
        self.turns.append(turn)


def test_two_methods_make_a_store() -> None:
    """The contract is structural: no base class is needed."""
    assert isinstance(Minimal(), Store)
    assert not isinstance(object(), Store)


@pytest.mark.anyio
async def test_every_access_names_the_resource() -> None:
    """R6, R8: thread and resource of the call are what the store is asked for, and what the turn says."""
    store = Minimal()
    agent = Agent(id="a", model=ScriptedModel([text("ok")]), memory=Memory(store, last_messages=7))
    await agent.generate("hi", memory={"thread": "t", "resource": "r"})
    assert store.asked == [("t", "r", 7)]
    (turn,) = store.turns
    assert (turn.thread_id, turn.resource_id, turn.unfinished) == ("t", "r", False)
    assert [m.text for m in turn.messages] == ["hi", "ok"]
    assert all(m.thread_id == "t" and m.resource_id == "r" and m.created_at for m in turn.messages)


@pytest.mark.anyio
async def test_one_turn_one_transaction() -> None:
    """R8.1: the whole turn, several steps too, is one call of save_turn."""
    from interlock import tool
    from interlock.testing import tool_call

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    store = Minimal()
    model = ScriptedModel([text("a"), tool_call("look")], [text("b")])
    await Agent(id="a", model=model, tools=[look], memory=Memory(store)).generate(
        "hi", memory={"thread": "t"}
    )
    assert len(store.turns) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("problem", [RuntimeError("disk full"), StorageError("disk full")])
async def test_a_store_that_fails_is_a_storage_error(problem: Exception) -> None:
    """R8, R5.4: what the store raises surfaces as StorageError; the answer that was produced is on it."""

    class Broken(Minimal):
        async def save_turn(self, turn: Turn) -> None:
            raise problem

    agent = Agent(id="a", model=ScriptedModel([text("ok")]), memory=Memory(Broken()))
    with pytest.raises(StorageError, match="disk full") as caught:
        await agent.generate("hi", memory={"thread": "t"})
    assert caught.value.result is not None
    assert caught.value.result.text == "ok"


@pytest.mark.anyio
async def test_another_resources_thread_is_refused() -> None:
    """R6: a call that names another's thread fails before any model is called."""
    memory = Memory(InMemoryStore())
    model = ScriptedModel([text("ok")], repeat_last=True)
    agent = Agent(id="a", model=model, memory=memory)
    await agent.generate("hi", memory={"thread": "t", "resource": "r"})
    with pytest.raises(UsageError, match="another resource"):
        await agent.generate("hi", memory={"thread": "t", "resource": "other"})
    assert len(model.calls) == 1


def test_what_is_no_store_is_refused() -> None:
    """Mistakes are told at set-up."""
    with pytest.raises(UsageError, match="store"):
        Memory(object())  # type: ignore[arg-type]
