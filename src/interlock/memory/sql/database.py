"""Connections and transactions: one writer at a time in SQLite, a pool in PostgreSQL, an engine for each event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from interlock.core.errors import InterlockError
from interlock.memory.sql.address import checked_address
from interlock.memory.sql.errors import is_locked, sqlstate, storage_error
from interlock.memory.sql.schema import is_ready, load_migrations, make_ready
from interlock.memory.to_the_end import cancelled_once

log = logging.getLogger("interlock")

T = TypeVar("T")
Work = Callable[[AsyncConnection], Awaitable[T]]

PATIENCE = 60.0
"""Seconds to wait for SQLite's lock, or for a free connection of the pool."""

ATTEMPTS = 4
"""How often a transaction is begun that another one, or a lost connection, undid."""

_AGAIN = ("40001", "40P01", "55P03", "57P01")
"""SQLSTATEs of transactions that may succeed when done again: serialization, deadlock, lock, server going down."""


class Database:
    """A database: work is done in transactions, which end whole or not at all.

    Args:
        url: ``sqlite:///path`` or ``postgresql://...``; see :func:`checked_address`.
        pool_size: how many connections at most, in each event loop that uses it.

    Raises:
        UsageError: an address of something else.
    """

    def __init__(self, url: Any, *, pool_size: int = 10) -> None:
        self.url = checked_address(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._pool_size = pool_size
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, _Opened] = WeakKeyDictionary()

    async def read(self, work: Work[T]) -> T:
        """Do work that only reads, in a transaction.

        Args:
            work: gets the connection; may be called again if the connection was lost.

        Raises:
            StorageError: the database failed; the text says what to do.
        """
        return await cancelled_once(self._done(work, writes=False))

    async def write(self, work: Work[T]) -> T:
        """Do work in a transaction that is committed when the work returns and undone when it raises.

        Args:
            work: gets the connection; may be called again, so what it does twice must come to the same.

        Raises:
            StorageError: the database failed; the text says what to do.
        """
        return await cancelled_once(self._done(work, writes=True))

    async def close(self) -> None:
        """Close the connections of this event loop. They are opened again when they are needed."""
        opened = self._opened.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.engine.dispose()

    async def _done(self, work: Work[T], *, writes: bool) -> T:
        opened = self._for_this_loop()
        for left in reversed(range(ATTEMPTS)):
            try:
                await self._make_ready(opened)
                async with self._transaction(opened, writes=writes) as connection:
                    return await work(connection)
            except (SQLAlchemyError, OSError, UnicodeError) as problem:
                if not left or not _may_succeed_again(problem):
                    raise storage_error(problem, self.url) from problem
                log.warning("a transaction is done again: %s", type(problem).__name__)
        raise AssertionError("unreachable")

    def _for_this_loop(self) -> _Opened:
        """What belongs to this event loop: connections cannot change loops."""
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        if opened is None:
            opened = self._opened[loop] = _Opened(self._engine())
        return opened

    def _engine(self) -> AsyncEngine:
        timeout = {"timeout": PATIENCE} if self.is_sqlite else {}
        engine = create_async_engine(
            self.url,
            pool_size=self._pool_size,
            max_overflow=0,
            pool_timeout=PATIENCE,
            hide_parameters=True,  # what people say to an agent does not belong in errors
            connect_args=timeout,
        )
        if self.is_sqlite:
            event.listen(engine.sync_engine, "connect", _on_sqlite_connect)
            event.listen(engine.sync_engine, "begin", _on_sqlite_begin)
        return engine

    async def _make_ready(self, opened: _Opened) -> None:
        if opened.ready:
            return
        async with opened.opening:
            if opened.ready:
                return
            async with self._transaction(opened, writes=False) as connection:
                ready = await connection.run_sync(is_ready)
            if not ready:
                await asyncio.to_thread(load_migrations)  # a large import: the loop goes on meanwhile
                async with self._transaction(opened, writes=True) as connection:
                    await connection.run_sync(make_ready)
            opened.ready = True

    @asynccontextmanager
    async def _transaction(self, opened: _Opened, *, writes: bool) -> AsyncGenerator[AsyncConnection]:
        if not (writes and self.is_sqlite):
            async with opened.engine.begin() as connection:
                yield connection
            return
        async with opened.writing, opened.engine.connect() as connection:
            await connection.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
            async with connection.begin():
                yield connection


class _Opened:
    """The engine of one event loop, and whose turn it is."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.opening = asyncio.Lock()
        self.writing = asyncio.Lock()
        self.ready = False


_BEGIN = "interlock_begin"


def _on_sqlite_connect(connection: Any, record: Any) -> None:
    """Readers do not wait for the writer (WAL, a property of the file); we begin transactions, not the driver."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()


def _on_sqlite_begin(connection: Any) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))


def _may_succeed_again(problem: BaseException) -> bool:
    if isinstance(problem, InterlockError):
        return False
    lost = isinstance(problem, DBAPIError) and problem.connection_invalidated
    return lost or sqlstate(problem) in _AGAIN or is_locked(problem)
