"""The store in SQL: whole turns whatever happens, few statements, no scans. The contract: ``../test_store.py``."""

from __future__ import annotations

import asyncio
import collections
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from interlock import Agent
from interlock.core.chunks import Usage
from interlock.core.messages import Content, Message, TextPart
from interlock.core.result import MemoryChange, Turn
from interlock.memory import Memory
from interlock.memory.sql import SqlStore
from interlock.testing import ScriptedModel
from interlock.testing import text as says

CRASH = Path(__file__).parent.parent / "crash.py"
RUNS = int(os.environ.get("INTERLOCK_CRASHES", "20"))
"""How many writers are killed, per database."""


def said(id: str) -> Message:
    return Message(id=id, role="user", content=Content(parts=[TextPart(text="hi")]))


@pytest.mark.anyio
@pytest.mark.timeout(600)
async def test_a_killed_writer_leaves_whole_turns(database_url: str) -> None:
    """R8.1: killed at any moment, each thread is a prefix of whole turns, usage included, and the next turn works."""
    command = [sys.executable, CRASH, database_url, str(RUNS), "7"]
    process = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    saved = 0
    async with Memory(database_url) as memory:
        agent = Agent(id="a", model=ScriptedModel([says("after")], repeat_last=True), memory=memory)
        for run, half in itertools.product(range(RUNS), "ab"):
            thread = f"{run}-{half}"
            texts = [message.text for message in await memory.messages(thread, resource="r")]
            turns = len(await memory.usage(thread, resource="r"))
            whole = [[*(f"{n}-{k}" for k in range(5)), "answer"] for n in range(turns)]
            assert texts == list(itertools.chain(*whole))
            saved += turns
            await agent.generate("next", memory={"thread": thread, "resource": "r"})
            texts = [message.text for message in await memory.messages(thread, resource="r", last=2)]
            assert texts == ["next", "after"]
    assert saved > RUNS, "they did write before they were killed"
    print(f"{database_url.partition(':')[0]}: {RUNS} writers killed, {saved} turns, all whole")


@pytest.mark.anyio
async def test_a_turn_is_one_transaction_and_few_statements(database_url: str) -> None:
    """Ten messages, usage and working memory: one transaction, at most two statements a table."""
    store = SqlStore(database_url)
    await store.messages("t", resource_id="r")
    seen: list[str] = []
    engine = store.database._for_this_loop().engine.sync_engine

    def look(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        seen.append(statement)

    event.listen(engine, "before_cursor_execute", look)
    commits: list[Any] = []
    event.listen(engine, "commit", commits.append)
    changes = [MemoryChange(scope=scope, value="# me") for scope in ("thread", "resource")]
    turn = Turn(
        thread_id="t",
        resource_id="r",
        messages=[said(str(n)) for n in range(10)],
        run_id="run",
        usage=Usage(input_tokens=1),
        memory_changes=changes,
    )
    await store.save_turn(turn)
    tables = collections.Counter(
        re.findall(r"(?:FROM|INTO|UPDATE) (\w+)", statement)[0]
        for statement in seen
        if not statement.startswith("BEGIN")
    )
    assert dict(tables) == {
        "mastra_threads": 2,
        "mastra_resources": 2,
        "mastra_messages": 2,
        "interlock_usage": 1,
    }
    assert len(commits) == 1
    thread = await store.thread("t", resource_id="r")
    assert thread is not None
    assert thread.metadata == {"workingMemory": "# me"}
    assert await store.resource_memory("r") == "# me"
    assert len(await store.messages("t", resource_id="r")) == 10
    await store.close()


@pytest.mark.anyio
async def test_the_last_messages_walk_an_index(database_url: str) -> None:
    """The last 20 of a long thread neither scan it nor sort it."""
    store = SqlStore(database_url)
    pg = not store.database.is_sqlite
    await store.messages("t", resource_id="r")
    when = (
        "timestamp '2026-01-01' + n * interval '1 ms'"
        if pg
        else "strftime('%Y-%m-%dT%H:%M:%fZ', n / 86400.0)"
    )
    series = (
        "generate_series(1, 20000) AS n"
        if pg
        else "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 20000) SELECT n FROM s)"
    )
    number = "n::text" if pg else "n"

    async def fill(connection: Any) -> None:
        await connection.execute(
            text(
                'INSERT INTO mastra_messages (id, thread_id, content, role, type, "createdAt", "resourceId") '
                f"SELECT {number}, 't' || (n % 2), '{{}}', 'user', 'v2', {when}, 'r' FROM {series}"
            )
        )
        await connection.execute(text("ANALYZE"))

    await store.database.write(fill)
    explain = "EXPLAIN " if pg else "EXPLAIN QUERY PLAN "

    async def plan(connection: Any) -> str:
        query, values = store._reading.last("t1", "r", 20)
        statement = query.params(values).compile(
            dialect=connection.dialect, compile_kwargs={"literal_binds": True}
        )
        rows = await connection.execute(text(explain + str(statement).replace(":", r"\:")))
        return "\n".join(str(row[-1]) for row in rows)

    found = await store.database.read(plan)
    if pg:
        assert "mastra_messages_thread_id_createdat_idx" in found
        assert "Seq Scan on mastra_messages" not in found
        assert not re.search(r"(?<!Incremental )Sort  ", found), found
    else:
        assert "SCAN" not in found
        assert re.search(r"SEARCH mastra_messages USING INDEX \w+", found)
        assert "TEMP B-TREE" not in found
    await store.close()


@pytest.mark.anyio
async def test_messages_without_a_thread_are_their_resources_only(database_url: str) -> None:
    """R8: the reference can store messages of a thread that is not there; another resource does not see them."""
    store = SqlStore(database_url)
    await store.save_turn(Turn(thread_id="t", resource_id="r", messages=[said("a")]))

    async def orphan(connection: Any) -> None:
        await connection.execute(text("DELETE FROM mastra_threads"))

    await store.database.write(orphan)
    assert [m.id for m in await store.messages("t", resource_id="r")] == ["a"]
    for other in ("r2", None):
        assert await store.messages("t", resource_id=other) == []
        assert await store.search_messages("hi", resource_id=other) == []
        assert await store.messages_around(["a"], resource_id=other) == []
        assert await store.delete_messages(["a"], resource_id=other) == 0
    await store.close()


@pytest.mark.anyio
async def test_writers_in_several_processes_lose_nothing(database_url: str, tmp_path: Path) -> None:
    """R8.1: processes that write to one thread wait for one another; a turn's messages stay together."""
    script = tmp_path / "writer.py"
    script.write_text(
        "import asyncio, sys\n"
        "from interlock.memory import SqlStore, Turn\n"
        "from interlock.core.messages import Content, Message\n"
        "async def main(url, name):\n"
        "    store = SqlStore(url)\n"
        "    for n in range(25):\n"
        "        ids = [f'{name}-{n}-{k}' for k in range(3)]\n"
        "        messages = [Message(id=id, role='user', content=Content()) for id in ids]\n"
        "        await store.save_turn(Turn(thread_id='t', resource_id='r', messages=messages))\n"
        "    await store.close()\n"
        "asyncio.run(main(*sys.argv[1:]))\n"
    )
    writers = [
        await asyncio.create_subprocess_exec(
            sys.executable, script, database_url, str(n), stderr=subprocess.PIPE
        )
        for n in range(3)
    ]
    for writer in writers:
        _, error = await writer.communicate()
        assert writer.returncode == 0, error
    store = SqlStore(database_url)
    stored = [message.id for message in await store.messages("t", resource_id="r")]
    turns = [id.rpartition("-")[0] for id in stored[::3]]
    assert stored == [f"{turn}-{k}" for turn in turns for k in range(3)]
    assert sorted(turns) == sorted(f"{writer}-{n}" for writer in range(3) for n in range(25))
    await store.close()
