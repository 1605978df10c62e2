"""The tests' own PostgreSQL: one server a run, a database a test, nothing left behind."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import asyncpg

from memory import postgres as module
from memory.postgres import Postgres

HOLDER = """
import pathlib, sys, time
sys.path.insert(0, sys.argv[1])
from memory.postgres import Postgres
with Postgres(pathlib.Path(sys.argv[2])) as server:
    print(server.url(), flush=True)
    time.sleep(600)
"""


def _hold(folder: Path) -> subprocess.Popen[str]:
    tests = Path(module.__file__).parent.parent
    command = [sys.executable, "-c", HOLDER, str(tests), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _wait_until_gone(home: Path) -> None:
    """The folder goes last, after the server."""
    patience = time.monotonic() + 60
    while home.exists():
        assert time.monotonic() < patience
        time.sleep(0.02)


def test_a_database_is_there_with_vectors_and_is_fresh(postgres_url: str) -> None:
    """Each test has a database of its own, reached by its address alone, with pgvector in it."""

    async def look() -> tuple[int, str]:
        connection = await asyncpg.connect(postgres_url)
        try:
            tables = await connection.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
            return tables, await connection.fetchval("SELECT '[1,2]'::vector <-> '[1,3]'")
        finally:
            await connection.close()

    assert asyncio.run(look()) == (0, 1.0)


def test_the_server_is_shared_and_goes_with_its_last_holder_however_that_ends(tmp_path: Path) -> None:
    """Two processes get the same server; both killed, neither it nor its folder is left."""
    first = _hold(tmp_path)
    url = _first_line(first)
    second = _hold(tmp_path)
    assert url.startswith("postgresql://")
    assert _first_line(second) == url
    home = Path(json.loads((tmp_path / "postgres.json").read_text())["home"])
    server = int((home / "data" / "postmaster.pid").read_text().split()[0])
    for process in (first, second):
        assert Path(f"/proc/{server}").exists()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    _wait_until_gone(home)
    assert not Path(f"/proc/{server}").exists()


def test_after_it_went_the_next_holder_gets_a_new_one(tmp_path: Path) -> None:
    """A worker that comes when all others are done does not find a dead server."""
    with Postgres(tmp_path) as server:
        gone = server.home
    _wait_until_gone(gone)
    with Postgres(tmp_path) as server:
        assert server.sql("SELECT 1") == "1"
        assert server.home != gone
