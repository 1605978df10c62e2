"""The store in this process: whole turns, nothing shared, nobody sees another's threads (R8.1, R3.5)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from interlock import UsageError
from interlock.core.messages import Content, DataPart, Message, TextPart, ToolInvocationPart
from interlock.memory import InMemoryStore, Store, Turn

AT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def message(id: str, text: str = "hi", role: Any = "user") -> Message:
    """A dated message."""
    return Message(
        id=id, role=role, content=Content(parts=[TextPart(text=text)]), created_at=AT, thread_id="t"
    )


def turn(*messages: Message, thread: str = "t", resource: str | None = "r") -> Turn:
    """A turn of these."""
    return Turn(thread_id=thread, resource_id=resource, messages=list(messages))


def test_it_is_a_store() -> None:
    """The contract is a protocol that it meets."""
    assert isinstance(InMemoryStore(), Store)


@pytest.mark.anyio
async def test_what_is_saved_comes_back_in_order() -> None:
    """R8.1: turn after turn, oldest first, with ids, times and every part."""
    store = InMemoryStore()
    rich = Message(
        id="b",
        role="assistant",
        created_at=AT,
        content=Content(
            parts=[
                TextPart(text="a", provider_metadata={"p": {"x": 1}}),
                ToolInvocationPart(tool_call_id="c", tool_name="t", args={}, state="result", result=None),
                DataPart(type="data-x", data=[1]),
            ],
            metadata={"unfinished": True},
        ),
    )
    await store.save_turn(turn(message("a"), rich))
    await store.save_turn(turn(message("c")))
    stored = await store.messages("t", resource_id="r")
    assert [m.id for m in stored] == ["a", "b", "c"]
    assert stored[1].content == rich.content
    assert stored[0].created_at == AT


@pytest.mark.anyio
@pytest.mark.parametrize(("last", "ids"), [(None, "abcd"), (2, "cd"), (0, ""), (9, "abcd"), (1, "d")])
async def test_only_the_last(last: int | None, ids: str) -> None:
    """R8: all, or the last so many, the newest."""
    store = InMemoryStore()
    await store.save_turn(turn(*(message(id) for id in "abcd")))
    assert [m.id for m in await store.messages("t", resource_id="r", last=last)] == list(ids)


@pytest.mark.anyio
async def test_an_unknown_thread_is_empty() -> None:
    """R8: a new conversation has no past."""
    assert await InMemoryStore().messages("new", resource_id="r") == []


@pytest.mark.anyio
async def test_a_known_id_is_replaced_in_its_place() -> None:
    """R8.1: saving a message again does not double it."""
    store = InMemoryStore()
    await store.save_turn(turn(message("a"), message("b")))
    await store.save_turn(turn(message("a", "again"), message("c")))
    assert [(m.id, m.text) for m in await store.messages("t", resource_id="r")] == [
        ("a", "again"),
        ("b", "hi"),
        ("c", "hi"),
    ]


@pytest.mark.anyio
async def test_nothing_is_shared_with_running_code() -> None:
    """R3.5: neither an edit of what was saved nor of what was read reaches the store."""
    store = InMemoryStore()
    saved = message("a")
    await store.save_turn(turn(saved))
    saved.content.parts[0].text = "edited"  # type: ignore[attr-defined]
    read = await store.messages("t", resource_id="r")
    read[0].content.parts.clear()
    read.clear()
    assert [m.text for m in await store.messages("t", resource_id="r")] == ["hi"]


@pytest.mark.anyio
@pytest.mark.parametrize(("owner", "other"), [("r", "s"), ("r", None), (None, "s")])
async def test_a_resource_never_sees_anothers_thread(owner: str | None, other: str | None) -> None:
    """R6: every access names the resource; another's thread is refused for reading and for writing."""
    store = InMemoryStore()
    await store.save_turn(turn(message("a"), resource=owner))
    with pytest.raises(UsageError, match="t"):
        await store.messages("t", resource_id=other)
    with pytest.raises(UsageError, match="t"):
        await store.save_turn(turn(message("b"), resource=other))
    assert [m.id for m in await store.messages("t", resource_id=owner)] == ["a"]


@pytest.mark.anyio
async def test_threads_are_apart() -> None:
    """R6: two threads of one resource, and two stores, know nothing of one another."""
    store, another = InMemoryStore(), InMemoryStore()
    await store.save_turn(turn(message("a"), thread="t1"))
    await store.save_turn(turn(message("b", "other"), thread="t2"))
    assert [m.text for m in await store.messages("t1", resource_id="r")] == ["hi"]
    assert [m.text for m in await store.messages("t2", resource_id="r")] == ["other"]
    assert await another.messages("t1", resource_id="r") == []


@pytest.mark.anyio
async def test_a_turn_is_saved_whole_or_not_at_all() -> None:
    """R8.1: one message that cannot be stored keeps the others out."""
    store = InMemoryStore()
    broken = message("b")
    broken.content.parts.append("no part")  # type: ignore[arg-type]
    with pytest.raises(Exception):  # noqa: B017, PT011
        await store.save_turn(turn(message("a"), broken))
    assert await store.messages("t", resource_id="r") == []


@pytest.mark.anyio
async def test_concurrent_turns_are_all_kept() -> None:
    """R8.1: none overwrites another."""
    store = InMemoryStore()
    await asyncio.gather(*(store.save_turn(turn(message(f"{n}a"), message(f"{n}b"))) for n in range(100)))
    stored = [m.id for m in await store.messages("t", resource_id="r")]
    assert len(stored) == 200
    for n in range(100):
        place = stored.index(f"{n}a")
        assert stored[place + 1] == f"{n}b", "a turn's messages stay together"
