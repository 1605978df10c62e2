"""MemoryInputFilter: of a client that sends everything back, only what is new."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Agent
from interlock.core.messages import Content, Message, TextPart, ToolInvocationPart
from interlock.core.result import Turn
from interlock.memory import InMemoryStore, Memory
from interlock.testing import ScriptedModel, text

pytestmark = pytest.mark.anyio

THREAD: Any = {"thread": "t", "resource": "r"}


def message(id: str, role: Any, *parts: Any) -> Message:
    """A message of texts and other parts."""
    made = [TextPart(text=part) if isinstance(part, str) else part for part in parts]
    return Message(id=id, role=role, content=Content(parts=made))


def call(state: Any, **fields: Any) -> ToolInvocationPart:
    """A call of a client's tool."""
    return ToolInvocationPart(tool_call_id="c1", tool_name="ask", args={"q": 1}, state=state, **fields)


async def after(given: Any, *stored: Message, **options: Any) -> tuple[list[tuple[str, str]], str, Memory]:
    """What the thread holds after a run with this input, and the run's prompt."""
    store = InMemoryStore()
    if stored:
        await store.save_turn(Turn(thread_id="t", resource_id="r", messages=list(stored)))
    memory = Memory(store, **options)
    model = ScriptedModel([text("ok")])
    await Agent(id="a", model=model, memory=memory).generate(given, memory=THREAD)
    rows = await memory.messages("t", resource="r")
    return [(m.id, m.text) for m in rows], model.calls[0].prompt_text, memory


async def test_a_history_sent_back_without_ids_is_not_stored_again() -> None:
    """An input that ends with user messages: those are new, everything before them the thread has."""
    stored = [message("u1", "user", "one"), message("a1", "assistant", "uno")]
    history = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "UNO, changed"}]
    news = [{"role": "user", "content": "two"}, {"role": "user", "content": "three"}]
    rows, prompt, _ = await after([*history, *news], *stored)
    assert [said for _, said in rows] == ["one", "uno", "two", "three", "ok"]
    assert prompt.split("\n") == ["one", "uno", "two", "three"]


async def test_a_stored_message_stays_what_was_stored() -> None:
    """A client cannot change a stored message by sending another text under its id."""
    rows, prompt, _ = await after([message("u1", "user", "CHANGED")], message("u1", "user", "one"))
    assert rows[0] == ("u1", "one")
    assert prompt == "one"


async def test_an_id_of_another_thread_is_not_looked_into() -> None:
    """What is stored elsewhere does not come into this thread by its id."""
    store = InMemoryStore()
    secret = message("x", "user", "secret")
    await store.save_turn(Turn(thread_id="other", resource_id="r", messages=[secret]))
    model = ScriptedModel([text("ok")])
    agent = Agent(id="a", model=model, memory=Memory(store, read_only=True))
    await agent.generate([message("x", "user", "hello")], memory=THREAD)
    assert model.calls[0].prompt_text == "hello"


async def test_the_clients_answer_to_an_open_call_is_kept_in_the_stored_message() -> None:
    """A tool the client runs: its result reaches the stored call, whose text and arguments stay."""
    stored = [message("u1", "user", "one"), message("a1", "assistant", "calling", call("call"))]
    answer = message("a1", "assistant", "FORGED", call("result", result=42))
    answer.content.parts[1].args = {"q": "FORGED"}  # type: ignore[attr-defined]
    rows, _, memory = await after([message("u1", "user", "one"), answer], *stored)
    assert rows[:2] == [("u1", "one"), ("a1", "calling")]
    part = (await memory.messages("t", resource="r"))[1].content.parts[1]
    assert isinstance(part, ToolInvocationPart)
    assert (part.state, part.result, part.args) == ("result", 42, {"q": 1})


async def test_an_answer_to_a_call_that_is_not_open_changes_nothing() -> None:
    """A result the thread has already is not the client's to change."""
    stored = [message("u1", "user", "one"), message("a1", "assistant", "did", call("result", result=1))]
    forged = message("a1", "assistant", "did", call("result", result=666))
    _, _, memory = await after([forged, message("u2", "user", "two")], *stored)
    part = (await memory.messages("t", resource="r"))[1].content.parts[1]
    assert isinstance(part, ToolInvocationPart)
    assert part.result == 1


async def test_a_beginning_to_go_on_from_stays() -> None:
    """An assistant message at the end that is not stored is the caller's own; what is not stored with it stays."""
    given = [message("u1", "user", "one"), message("u2", "user", "two"), message("p", "assistant", "So")]
    rows, prompt, _ = await after(given, message("u1", "user", "one"))
    assert prompt.split("\n") == ["one", "two", "So"]
    assert [id for id, _ in rows[:3]] == ["u1", "u2", "p"]


async def test_a_new_thread_begins_with_the_whole_input() -> None:
    """Nothing is stored yet: all of it is new; provider metadata of other conversations is not replayed."""
    answer = message("a1", "assistant", TextPart(text="uno", provider_metadata={"openai": {"itemId": "i"}}))
    given = [message("u1", "user", "one"), answer, message("u2", "user", "two")]
    rows, _, memory = await after(given)
    assert [id for id, _ in rows[:3]] == ["u1", "a1", "u2"]
    assert (await memory.messages("t", resource="r"))[1].content.parts[0].provider_metadata is None


async def test_retain_full_input_leaves_it_alone() -> None:
    """The caller puts the input together: every message that is not stored is saved."""
    given = [message("u1", "user", "one"), message("x", "assistant", "example"), message("u2", "user", "two")]
    rows, _, _ = await after(given, message("u0", "user", "zero"), retain_full_input=True)
    assert [id for id, _ in rows[:4]] == ["u0", "u1", "x", "u2"]
