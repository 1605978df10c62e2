"""Transactions: whole or not at all, one writer at a time in SQLite, in any event loop (R8.1)."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from interlock import Agent
from interlock.core.messages import Content, Message
from interlock.core.result import Turn
from interlock.memory import Memory
from interlock.memory.sql import Database, SqlStore
from interlock.testing import ScriptedModel
from interlock.testing import text as says

INSERT = text("INSERT INTO mastra_resources VALUES (:id, 'x', NULL, '2026', '2026')")


@pytest.mark.anyio
async def test_work_that_raises_leaves_nothing(tmp_path: Path) -> None:
    """An exception or a cancellation undoes all of it, and the next one can write."""
    database = Database(f"sqlite:///{tmp_path / 'agent.db'}")
    begun = asyncio.Event()

    async def breaks(connection: AsyncConnection) -> None:
        await connection.execute(INSERT, {"id": "a"})
        raise KeyError("no")

    async def waits(connection: AsyncConnection) -> None:
        await connection.execute(INSERT, {"id": "b"})
        begun.set()
        await asyncio.Event().wait()

    with pytest.raises(KeyError):
        await database.write(breaks)
    task = asyncio.create_task(database.write(waits))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    async def counts(connection: AsyncConnection) -> Any:
        await connection.execute(INSERT, {"id": "c"})
        return (await connection.execute(text("SELECT id FROM mastra_resources"))).scalars().all()

    assert await database.write(counts) == ["c"]
    await database.close()


@pytest.mark.anyio
async def test_readers_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    """What is not committed is not seen."""
    database = Database(f"sqlite:///{tmp_path / 'agent.db'}")

    async def counts(connection: AsyncConnection) -> Any:
        return await connection.scalar(text("SELECT count(*) FROM mastra_resources"))

    async def writes(connection: AsyncConnection) -> Any:
        await connection.execute(INSERT, {"id": "a"})
        return await database.read(counts)

    assert await database.write(writes) == 0
    assert await database.read(counts) == 1
    await database.close()


@pytest.mark.anyio
async def test_another_programs_lock_is_waited_for(tmp_path: Path) -> None:
    """No ``database is locked`` reaches the user while another process writes."""
    path = tmp_path / "agent.db"
    async with Memory(f"sqlite:///{path}") as memory:
        agent = Agent(id="a", model=ScriptedModel([says("ok")]), memory=memory)
        await memory.messages("t", resource="r")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        run = asyncio.create_task(agent.generate("hi", memory={"thread": "t", "resource": "r"}))
        await asyncio.sleep(0.2)
        assert not run.done()
        other.execute("COMMIT")
        other.close()
        assert (await run).text == "ok"
        assert len(await memory.messages("t", resource="r")) == 2


def test_one_memory_in_many_event_loops(database_url: str) -> None:
    """R10.4: generate_sync makes a loop for each call; connections do not outlive their loop."""
    memory = Memory(database_url)
    agent = Agent(id="a", model=ScriptedModel([says("ok")], repeat_last=True), memory=memory)
    for n in range(3):
        agent.generate_sync(str(n), memory={"thread": "t", "resource": "r"})

    async def look() -> list[str]:
        async with memory:
            return [message.text for message in await memory.messages("t", resource="r")]

    assert asyncio.run(look()) == ["0", "ok", "1", "ok", "2", "ok"]


@pytest.mark.anyio
@pytest.mark.parametrize("scope", ["asyncio", "anyio"])
async def test_a_cancellation_anywhere_leaves_no_connection_open(database_url: str, scope: str) -> None:
    """R5.5: read and save are cancelled after 0, 1, 2, ... turns of the loop, once or (as anyio does) again and again:
    no connection is checked out then, and what was being saved is there whole or not at all.
    """
    async with Memory(database_url) as memory:
        assert isinstance(memory.store, SqlStore)
        await memory.messages("t", resource="r")
        pool: Any = memory.store.database._for_this_loop().engine.pool

        async def cancelled_after(turns: int, work: Awaitable[Any]) -> bool:
            task = asyncio.ensure_future(work)
            for _ in range(turns):
                await asyncio.sleep(0)
            while not task.done():
                task.cancel()
                await (asyncio.sleep(0) if scope == "anyio" else asyncio.wait([task]))
            assert pool.checkedout() == 0
            return task.cancelled()

        saved: list[str] = []
        for turns in itertools.count():
            message = Message(id=f"m{turns}", role="user", content=Content())
            turn = Turn(thread_id="t", resource_id="r", messages=[message])
            reading = await cancelled_after(turns, memory.messages("t", resource="r"))
            writing = await cancelled_after(turns, memory.save_turn(turn))
            if turns:  # before its first turn a task has not begun
                saved.append(message.id)
            stored = [each.id for each in await memory.messages("t", resource="r")]
            assert stored == saved
            if (not reading and not writing) or turns > 60:
                break
