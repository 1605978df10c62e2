"""Turns of any length, saved and read in pieces that a database takes."""

from __future__ import annotations

import pytest

from interlock import UsageError
from interlock.core.messages import Content, Message, TextPart
from interlock.core.result import Turn
from interlock.memory.sql import SqlStore
from interlock.memory.sql.reading import AROUND
from interlock.memory.sql.turns import TOGETHER


def said(count: int) -> list[Message]:
    content = Content(parts=[TextPart(text="hi")])
    return [Message(id=f"m{n:05}", role="user", content=content) for n in range(count)]


@pytest.mark.anyio
async def test_a_turn_of_any_length_is_saved_whole(database_url: str) -> None:
    """R8.1: more messages than a database takes values in one statement; saved again, nothing is doubled."""
    store = SqlStore(database_url)
    turn = Turn(thread_id="t", resource_id="r", messages=said(TOGETHER + 5))
    for _ in range(2):
        await store.save_turn(turn)
        stored = await store.messages("t", resource_id="r")
        assert [message.id for message in stored] == [message.id for message in turn.messages]
    ids = [message.id for message in turn.messages]
    assert len(await store.messages_around(ids[:1_000], resource_id="r")) == 1_000
    assert await store.delete_messages(ids, resource_id="r2") == 0
    assert await store.delete_messages([*ids, *ids], resource_id="r") == len(ids)
    assert await store.messages("t", resource_id="r") == []
    await store.close()


@pytest.mark.anyio
async def test_neighbours_of_many_messages_are_read_in_pieces(database_url: str) -> None:
    """More anchors than one query takes: each message once, in the thread's order."""
    store = SqlStore(database_url)
    turn = Turn(thread_id="t", resource_id="r", messages=said(300))
    await store.save_turn(turn)
    ids = [message.id for message in turn.messages]
    anchors = ids[2::4]
    assert len(anchors) > 3 * AROUND
    found = await store.messages_around(anchors[::-1], resource_id="r", before=1, after=1)
    assert [message.id for message in found] == [id for n, id in enumerate(ids) if n % 4]
    await store.close()


@pytest.mark.anyio
async def test_an_id_of_another_threads_message_is_refused_and_nothing_is_saved(database_url: str) -> None:
    """R8.1: the turn whole or not at all: its thread is not begun either."""
    store = SqlStore(database_url)
    await store.save_turn(Turn(thread_id="t", resource_id="r", messages=said(2)))
    with pytest.raises(UsageError, match="'m00000' is taken"):
        await store.save_turn(Turn(thread_id="other", resource_id="r", messages=said(1), run_id="run"))
    assert await store.thread("other", resource_id="r") is None
    assert await store.usage("other", resource_id="r") == []
    assert len(await store.messages("t", resource_id="r")) == 2
    await store.close()
