"""Tables are made when missing, kept as they are when the reference made them, and refused when they do not fit."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from sqlalchemy import inspect, text

from interlock import StorageError
from interlock.core.messages import Content, Message, TextPart
from interlock.core.result import Turn
from interlock.memory.sql import Database, SqlStore
from interlock.memory.sql.schema import VERSION, VERSION_TABLE, load_migrations
from interlock.memory.store import Thread

pytestmark = pytest.mark.anyio

OLD = {
    "sqlite": """CREATE TABLE mastra_messages ("id" TEXT NOT NULL PRIMARY KEY, "thread_id" TEXT NOT NULL,
        "content" TEXT NOT NULL, "role" TEXT NOT NULL, "type" TEXT NOT NULL, "createdAt" TEXT NOT NULL)""",
    "postgresql": """CREATE TABLE mastra_messages ("id" TEXT PRIMARY KEY, "thread_id" TEXT NOT NULL,
        "content" TEXT NOT NULL, "role" TEXT NOT NULL, "type" TEXT NOT NULL, "createdAt" TIMESTAMP NOT NULL)""",
}
"""As an older version of the reference made it."""


class Raw:
    """The database without the checks of its tables."""

    def __init__(self, url: str) -> None:
        self.engine = Database(url)._engine()

    async def run(self, statement: str) -> list[Any]:
        async with self.engine.begin() as connection:
            result = await connection.execute(text(statement))
            return list(result.mappings()) if result.returns_rows else []

    async def columns(self) -> dict[str, list[str]]:
        """The columns of every table."""

        def look(connection: Any) -> dict[str, list[str]]:
            there = inspect(connection)
            return {name: [c["name"] for c in there.get_columns(name)] for name in there.get_table_names()}

        async with self.engine.begin() as connection:
            return await connection.run_sync(look)


async def test_tables_are_made_by_the_first_use(database_url: str) -> None:
    """The reference's tables and columns, in its order, and ours; ten who come at once make them once."""
    stores = [SqlStore(database_url) for _ in range(10)]
    await asyncio.gather(*(store.thread("t", resource_id="r") for store in stores))
    raw = Raw(database_url)
    columns = await raw.columns()
    zoned = database_url.startswith("postgresql")
    times = ["createdAtZ", "updatedAtZ"] if zoned else []
    assert columns["mastra_threads"] == [
        "id", "resourceId", "title", "metadata", "createdAt", "updatedAt", *times,
    ]  # fmt: skip
    assert columns["mastra_messages"] == [
        "id", "thread_id", "content", "role", "type", "createdAt", "resourceId", *times[:1],
    ]  # fmt: skip
    assert columns["mastra_resources"] == [
        "id",
        "workingMemory",
        "metadata",
        "createdAt",
        "updatedAt",
        *times,
    ]
    assert [name for name in sorted(columns) if not name.startswith("mastra_")] == [
        "interlock_usage",
        VERSION_TABLE,
    ]
    assert [row["version_num"] for row in await raw.run(f"SELECT * FROM {VERSION_TABLE}")] == [VERSION]
    await raw.engine.dispose()
    for store in stores:
        await store.close()


async def test_what_makes_the_tables_is_imported_beside_the_loop(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import takes a while, and other runs go on meanwhile; a database that is ready does without."""
    threads: list[threading.Thread] = []

    def load() -> None:
        threads.append(threading.current_thread())
        load_migrations()

    monkeypatch.setattr("interlock.memory.sql.database.load_migrations", load)
    for _ in range(2):
        store = SqlStore(database_url)
        await store.thread("t", resource_id="r")
        await store.close()
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


async def test_tables_of_an_older_reference_are_completed(database_url: str) -> None:
    """Columns that came later are added; what is stored stays and can be read."""
    raw = Raw(database_url)
    await raw.run(OLD[raw.engine.dialect.name])
    when = "2026-01-02T03:04:05.678Z" if raw.engine.dialect.name == "sqlite" else "2026-01-02 03:04:05.678"
    await raw.run(f"INSERT INTO mastra_messages VALUES ('m', 't', 'old', 'user', 'text', '{when}')")
    store = SqlStore(database_url)
    await store.create_thread(Thread(id="t", resource_id="r"))
    (message,) = await store.messages("t", resource_id="r")
    assert (message.text, message.resource_id) == ("old", None)
    assert message.created_at is not None
    assert message.created_at.isoformat() == "2026-01-02T03:04:05.678000+00:00"
    await raw.engine.dispose()
    await store.close()


async def test_a_version_of_the_future_is_refused(database_url: str) -> None:
    """The error says which version is there, and what to do; nothing is changed."""
    store = SqlStore(database_url)
    await store.thread("t", resource_id="r")
    await store.close()
    raw = Raw(database_url)
    await raw.run(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    store = SqlStore(database_url)
    with pytest.raises(StorageError, match=r"version 9999.*upgrade interlock"):
        await store.thread("t", resource_id="r")
    await store.close()
    assert [row["version_num"] for row in await raw.run(f"SELECT * FROM {VERSION_TABLE}")] == ["9999"]
    await raw.engine.dispose()


async def test_a_foreign_table_of_that_name_is_refused(database_url: str) -> None:
    """The error names table and column; nothing is made beside it."""
    raw = Raw(database_url)
    await raw.run("CREATE TABLE mastra_messages (x INTEGER)")
    store = SqlStore(database_url)
    with pytest.raises(StorageError, match=r"mastra_messages has no column"):
        await store.thread("t", resource_id="r")
    await store.close()
    assert "interlock_usage" not in await raw.columns()
    await raw.engine.dispose()


async def test_times_are_in_the_references_form(database_url: str) -> None:
    """Text that sorts in SQLite; in PostgreSQL both columns, equal."""
    at = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC).astimezone(timezone(timedelta(hours=5)))
    message = Message(id="m", role="user", content=Content(parts=[TextPart(text="x")]), created_at=at)
    store = SqlStore(database_url)
    await store.save_turn(Turn(thread_id="t", resource_id="r", messages=[message]))
    raw = Raw(database_url)
    (row,) = await raw.run("SELECT * FROM mastra_messages")
    if raw.engine.dialect.name == "sqlite":
        assert row["createdAt"] == "2026-01-02T03:04:05.678Z"
    else:
        assert row["createdAt"] == datetime(2026, 1, 2, 3, 4, 5, 678_000)
        assert row["createdAtZ"] == datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    (thread,) = await raw.run("SELECT * FROM mastra_threads")
    if raw.engine.dialect.name == "postgresql":
        assert thread["updatedAt"].replace(tzinfo=UTC) == thread["updatedAtZ"]
    await raw.engine.dispose()
    await store.close()
