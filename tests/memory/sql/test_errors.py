"""A database that fails says what to do, and the answer that was given is not lost (R8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from interlock import Agent, StorageError
from interlock.memory import Memory
from interlock.memory.sql import Database, SqlStore
from interlock.testing import ScriptedModel
from interlock.testing import text as says

pytestmark = pytest.mark.anyio
THREAD: Any = {"thread": "t", "resource": "r"}


def agent_of(memory: Memory) -> Agent:
    return Agent(id="a", model=ScriptedModel([says("the answer")], repeat_last=True), memory=memory)


async def run_sql(url: str, *statements: str) -> None:
    """As somebody else, without the checks of the tables."""
    engine = Database(url)._engine()
    async with engine.begin() as connection:
        for statement in statements:
            await connection.execute(text(statement))
    await engine.dispose()


async def refused(memory: Memory, match: str) -> None:
    """A turn streams its answer; then the error says this, and has the answer."""
    heard: list[str] = []

    async def listen() -> None:
        async with agent_of(memory).stream("hi", memory=THREAD) as stream:
            async for piece in stream.text_stream:
                heard.append(piece)

    with pytest.raises(StorageError, match=match) as caught:
        await listen()
    assert "".join(heard) == "the answer"
    assert caught.value.result.text == "the answer"
    assert "hi" not in str(caught.value).split(), "what was said is not in the error"


def on_connect(memory: Memory, pragma: str) -> None:
    """Set something on each of the memory's connections."""
    store = memory.store
    assert isinstance(store, SqlStore)
    made = store.database._engine

    def engine() -> Any:
        new = made()

        def listen(connection: Any, record: Any) -> None:
            cursor = connection.cursor()
            cursor.execute(pragma)
            cursor.close()

        event.listen(new.sync_engine, "connect", listen)
        return new

    store.database._engine = engine  # type: ignore[method-assign]


async def test_a_full_disk_in_sqlite(tmp_path: Path) -> None:
    """SQLite's own error for it, from a file that may not grow; once there is room, the next turn is saved."""
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    async with Memory(url) as memory:
        await agent_of(memory).generate("x" * 10_000, memory=THREAD)
    async with Memory(url) as memory:
        on_connect(memory, "PRAGMA max_page_count=1")  # SQLite makes it the present size
        with pytest.raises(StorageError, match="disk is full"):
            await agent_of(memory).generate("y" * 100_000, memory=THREAD)
        await memory.close()
    async with Memory(url) as memory:
        assert len(await memory.messages("t", resource="r")) == 2
        await agent_of(memory).generate("again", memory=THREAD)
        assert len(await memory.messages("t", resource="r")) == 4


async def test_a_full_disk_in_postgres(postgres_url: str) -> None:
    """The server's code for it, from the server."""
    async with Memory(postgres_url) as memory:
        await memory.messages("t", resource="r")
        await run_sql(
            postgres_url,
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$",
            "CREATE TRIGGER full_disk BEFORE INSERT ON mastra_messages EXECUTE FUNCTION full_disk()",
        )
        await refused(memory, "disk is full")
        await run_sql(postgres_url, "DROP TRIGGER full_disk ON mastra_messages")
        assert await memory.threads.get("t", resource="r") is None, "the thread was not begun either"
        await agent_of(memory).generate("hi", memory=THREAD)


async def test_no_permission_in_sqlite(tmp_path: Path) -> None:
    """SQLite's own error for a connection that may only read."""
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    async with Memory(url) as memory:
        await memory.messages("t", resource="r")
    async with Memory(url) as memory:
        on_connect(memory, "PRAGMA query_only=ON")
        await refused(memory, "permission denied")


async def test_no_permission_in_postgres(postgres_url: str) -> None:
    """A user who may read but not write."""
    async with Memory(postgres_url) as memory:
        await memory.messages("t", resource="r")
    name = postgres_url.partition("@/")[2].partition("?")[0]
    await run_sql(postgres_url, f"CREATE ROLE reader_{name} LOGIN",
                  f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader_{name}")  # fmt: skip
    try:
        async with Memory(postgres_url.replace("postgres@", f"reader_{name}@")) as memory:
            await refused(memory, "permission denied.*grant this user")
    finally:
        await run_sql(postgres_url, f"DROP OWNED BY reader_{name}", f"DROP ROLE reader_{name}")


async def test_a_database_that_is_away(tmp_path: Path) -> None:
    """Before the model is asked: no server, or no folder. The password is not in the error."""
    for url, match in (
        (f"sqlite:///{tmp_path / 'no' / 'agent.db'}", "does its folder exist"),
        ("postgresql://me:secret@127.0.0.1:1/db", "is the server running"),
        (f"postgresql://me:secret@/db?host={tmp_path}", "is the server running"),
    ):
        async with Memory(url) as memory:
            agent = agent_of(memory)
            with pytest.raises(StorageError, match=match) as caught:
                await agent.generate("hi", memory=THREAD)
            assert "secret" not in str(caught.value)


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """It is not overwritten."""
    (tmp_path / "agent.db").write_text("dear diary, " * 500)
    async with Memory(f"sqlite:///{tmp_path / 'agent.db'}") as memory:
        with pytest.raises(StorageError, match="no SQLite database"):
            await memory.messages("t", resource="r")
    assert (tmp_path / "agent.db").read_text() == "dear diary, " * 500


async def test_a_missing_database_and_a_missing_table(postgres_url: str) -> None:
    """Each says what to create."""
    async with Memory(postgres_url.replace("@/", "@/not_")) as memory:
        with pytest.raises(StorageError, match="no such database"):
            await memory.messages("t", resource="r")
    async with Memory(postgres_url) as memory:
        await memory.messages("t", resource="r")
        await run_sql(postgres_url, "DROP TABLE mastra_messages")
        with pytest.raises(StorageError, match="a table is missing"):
            await memory.messages("t", resource="r")


async def test_a_corrupt_row_can_be_deleted(database_url: str) -> None:
    """R8: the row is named; deleting it, as the error says, makes the thread readable again."""
    async with Memory(database_url) as memory:
        agent = agent_of(memory)
        await agent.generate("hi", memory=THREAD)
        broken = (await memory.messages("t", resource="r"))[0].id
        await run_sql(database_url, f"UPDATE mastra_messages SET content = '{{' WHERE id = '{broken}'")
        with pytest.raises(StorageError, match=f"'{broken}' of thread 't' is corrupt"):
            await agent.generate("again", memory=THREAD)
        assert await memory.delete_messages([broken], resource="r") == 1
        await agent.generate("again", memory=THREAD)
        assert [m.text for m in await memory.messages("t", resource="r")] == [
            "the answer",
            "again",
            "the answer",
        ]


async def test_lost_connections_are_made_again(postgres_url: str) -> None:
    """A server that dropped its connections between turns costs no turn."""
    async with Memory(postgres_url) as memory:
        agent = agent_of(memory)
        await agent.generate("one", memory=THREAD)
        await run_sql(
            postgres_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        await agent.generate("two", memory=THREAD)
        assert len(await memory.messages("t", resource="r")) == 4


@pytest.mark.parametrize("odd", ["secret-a\0b", "secret-\ud800"])
async def test_a_value_that_cannot_be_stored_is_not_in_the_error(database_url: str, odd: str) -> None:
    """A title, an id or metadata: what the database cannot hold is told as such, without the value."""
    async with Memory(database_url) as memory:
        tried = [
            lambda: memory.threads.create("a", resource="r", title=odd),
            lambda: memory.threads.create(odd, resource="r"),
            lambda: memory.threads.create("b", resource="r", metadata={"key": odd}),
            lambda: memory.messages(odd, resource="r"),
            lambda: agent_of(memory).generate("hi", memory={"thread": "c", "resource": odd}),
        ]
        failed: list[str] = []
        for call in tried:
            try:
                await call()
            except StorageError as problem:
                failed.append(str(problem))
        assert all("cannot be stored" in each and "secret" not in each for each in failed)
        assert failed or "\0" in odd
        await agent_of(memory).generate("hi", memory=THREAD)
