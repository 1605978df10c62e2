"""What memory costs: called by ``make bench``, alone by ``.venv/bin/python bench/memory.py``.

On SQLite and on PostgreSQL (a real server of the tests' kind, which needs nothing on the machine).
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import recall
from measure import Report

from interlock.memory import Memory, Turn
from interlock.messages import Content, Message, TextPart

ROWS, LONG = 1_000_000, 100_000
THREADS, TURNS, LAST = 16, 40, 20
QUESTION, ANSWER = "Which way to the harbour, please? " * 3, "Down the hill and then along the canal. " * 8
MOMENT = 1_767_225_600  # 2026-01-01, in seconds


class Database(Protocol):
    """A database: its name in the report, its address, and how SQL gets into it without us."""

    name: str
    url: str
    theirs: str
    before: tuple[str, ...]
    numbers: str
    moments: dict[str, str]

    def sql(self, *statements: str) -> None: ...


class Sqlite:
    name = "SQLite"
    before = ("PRAGMA synchronous = OFF",)
    numbers = f"""(WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {ROWS - 1})
        SELECT n FROM numbers)"""
    moments = {"": f"strftime('%Y-%m-%dT%H:%M:%fZ', {MOMENT} + n / 1000.0, 'unixepoch')"}

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url, self.theirs = f"sqlite:///{path}", f"file:{path}"

    def sql(self, *statements: str) -> None:
        connection = sqlite3.connect(self.path)
        try:
            for statement in statements:
                connection.execute(statement)
            connection.commit()
        finally:
            connection.close()


class Postgresql:
    name = "PostgreSQL"
    before = ()
    numbers = f"generate_series(0, {ROWS - 1}) AS numbers(n)"
    moments = {
        "": f"to_timestamp({MOMENT} + n / 1000.0) AT TIME ZONE 'UTC'",
        "Z": f"to_timestamp({MOMENT} + n / 1000.0)",
    }

    def __init__(self, server: Any) -> None:
        self._server, self._database = server, server.create()
        self.url = self.theirs = server.url(self._database)

    def sql(self, *statements: str) -> None:
        for statement in statements:
            self._server.sql(statement, self._database)


def of_the_tests(name: str) -> ModuleType:
    """A module of tests/memory: the server, the reference."""
    path = Path(__file__).parent.parent / "tests" / "memory" / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def databases() -> Iterator[list[Database]]:
    """One of each kind, empty."""
    with (
        tempfile.TemporaryDirectory() as folder,
        of_the_tests("postgres.py").Postgres(Path(folder)) as server,
    ):
        yield [Sqlite(Path(folder) / "bench.db"), Postgresql(server)]


# ------------------------------------------------------------------------------------------- reading a long thread


def fill(database: Database) -> None:
    """A million messages, by the database's own means.

    The long thread has every tenth row, the short one a hundred rows between them all, the rest are threads of ninety.
    """
    thread = f"""CASE WHEN n % {ROWS // LONG} = 0 THEN 'long' WHEN n % {ROWS // 100} = 1 THEN 'short'
        ELSE 'thread-' || (n / 100) END"""
    said = "message ' || n || ' of a talk about the harbour and the way down to it, along the canal"
    message = {
        "id": "'row-' || n",
        "thread_id": thread,
        "content": f"""'{{"format":2,"parts":[{{"type":"text","text":"{said}"}}]}}'""",
        "role": "CASE WHEN n % 2 = 0 THEN 'user' ELSE 'assistant' END",
        "type": "'v2'",
        '"resourceId"': "'reader'",
    }
    head = {"id": "thread_id", '"resourceId"': "'reader'", "title": "''"}
    times = {f'"createdAt{zone}"': moment for zone, moment in database.moments.items()}
    ends = {f'"{name}At{zone}"': f'{end}("createdAt{zone}")'
            for name, end in (("created", "min"), ("updated", "max")) for zone in database.moments}  # fmt: skip
    database.sql(
        *database.before,
        _insert("mastra_messages", message | times, database.numbers),
        _insert(
            "mastra_threads",
            head | ends,
            "mastra_messages WHERE \"resourceId\" = 'reader' GROUP BY thread_id",
        ),
        "ANALYZE",
    )


def _insert(table: str, columns: dict[str, str], source: str) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(columns.values())} FROM {source}"


async def long_thread(report: Report, database: Database) -> None:
    async with Memory(database.url) as memory:
        await memory.messages("nobody", resource="reader")  # the tables are there now
        started = time.perf_counter()
        fill(database)
        report.figure(f"{database.name}: {ROWS:,} messages put in", f"{time.perf_counter() - started:.1f} s")
        times: dict[str, list[float]] = {"long": [], "short": []}
        for _ in range(60):
            for thread, row in times.items():
                started = time.perf_counter()
                messages = await memory.messages(thread, resource="reader", last=LAST)
                row.append(time.perf_counter() - started)
                assert len(messages) == LAST
        long, short = (min(row) for row in times.values())
        report.ratio(
            f"{database.name}: last {LAST} of {LONG:,} against of 100, in {ROWS:,} rows",
            long / short,
            at_most=2,
        )
        report.figure(
            f"{database.name}: last {LAST}, long / short thread", f"{long * 1e3:.2f} / {short * 1e3:.2f} ms"
        )


# -------------------------------------------------------------------------------------------------------- one turn


def turn(thread: str, number: int, messages: int = 2) -> Turn:
    texts = (QUESTION, ANSWER)
    roles: tuple[Any, Any] = ("user", "assistant")
    return Turn(
        thread_id=thread,
        resource_id="bench",
        messages=[
            Message(
                id=f"{thread}-{number}-{n}",
                role=roles[n % 2],
                content=Content(parts=[TextPart(text=texts[n % 2])]),
            )
            for n in range(messages)
        ],
    )


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Counts the statements of each table, and under ``commit`` the transactions, of all engines."""
    from sqlalchemy import Engine, event

    counts: Counter[str] = Counter()

    def statement(connection: Any, cursor: Any, text: str, *rest: Any) -> None:
        counts.update(set(re.findall(r"\b(?:mastra|interlock|memory)_\w+", text.split("RETURNING")[0])))

    def commit(connection: Any) -> None:
        counts["commit"] += 1

    event.listen(Engine, "before_cursor_execute", statement)
    event.listen(Engine, "commit", commit)
    try:
        yield counts
    finally:
        event.remove(Engine, "before_cursor_execute", statement)
        event.remove(Engine, "commit", commit)


async def saving(report: Report, database: Database) -> None:
    async with Memory(database.url) as memory:
        await memory.save_turn(turn("saved", 0, 10))
        with counted() as counts:
            await memory.save_turn(turn("saved", 1, 10))
        report.ratio(f"{database.name}: transactions to save a turn of 10", counts.pop("commit"), at_most=1)
        report.ratio(
            f"{database.name}: statements a table to save it ({', '.join(sorted(counts))})",
            max(counts.values()),
            at_most=2,
        )


# ------------------------------------------------------------------------------------------------- turns per second


async def turns_per_second(report: Report, database: Database, reference: Any) -> None:
    async with Memory(database.url) as memory:

        async def talk(thread: str) -> None:
            for number in range(TURNS):
                await memory.messages(thread, resource="bench", last=LAST)
                await memory.save_turn(turn(thread, number))

        rates: list[float] = []
        theirs: list[float] = []
        for attempt in range(3):
            started = time.perf_counter()
            await asyncio.gather(*(talk(f"pace-{attempt}-{n}") for n in range(THREADS)))
            rates.append(THREADS * TURNS / (time.perf_counter() - started))
            texts = {"user": QUESTION, "assistant": ANSWER}
            seconds = reference(
                "pace", url=database.theirs, threads=THREADS, turns=TURNS, last=LAST, texts=texts
            )
            theirs.append(THREADS * TURNS / seconds)
        stored = await memory.messages("pace-0-0", resource="bench")
        assert len(stored) == 2 * TURNS
    reference("close", url=database.theirs)
    report.figure(
        f"{database.name}: turns a second on {THREADS} threads at once (read {LAST}, save 2)",
        f"{max(rates):,.0f}",
    )
    report.figure(f"{database.name}: the reference on the same turns", f"{max(theirs):,.0f}")


async def conversations(report: Report) -> None:
    """All of it."""
    with databases() as both, of_the_tests("interop/reference.py").Reference() as reference:
        for database in both:
            await turns_per_second(report, database, reference)
            await saving(report, database)
            await recall.measure(report, database.url, database.name)
            await long_thread(report, database)


async def main() -> int:
    report = Report()
    await conversations(report)
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
