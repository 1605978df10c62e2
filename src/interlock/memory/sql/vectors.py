"""Vectors in SQLite: kept in a table of ours, searched with numpy.

A scope that was searched stays in memory as a matrix. Each search first asks the table how many rows the scope has and
which is the newest (its index knows), and reads what came since; rows never get a number twice, so a deletion shows in
the count, and then the scope is read anew. So whatever other processes write is found at once, and a search of what
has not changed costs two small queries and one product.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sqlalchemy import (
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from interlock.core.errors import StorageError
from interlock.embeddings.cache import require_numpy
from interlock.memory.matrix import Matrix
from interlock.memory.sql.database import Database
from interlock.memory.vectors import Match, MessageVectors, Scope

if TYPE_CHECKING:
    from interlock.embeddings.cache import Vector

ROOM = 256 * 1024 * 1024
"""Bytes of vectors kept in memory, in each event loop; the scopes not searched for longest go first."""

NOBODY = ""
"""The resource of threads without one."""

_metadata = MetaData()
_rows = Table(
    "interlock_vectors",
    _metadata,
    Column("seq", Integer, primary_key=True),
    Column("model", Text, nullable=False),
    Column("resource_id", Text, nullable=False),
    Column("thread_id", Text, nullable=False),
    Column("message_id", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    sqlite_autoincrement=True,  # a number is never used again: see above
)
Index("interlock_vectors_resource", _rows.c.model, _rows.c.resource_id, _rows.c.seq)
Index("interlock_vectors_thread", _rows.c.model, _rows.c.resource_id, _rows.c.thread_id, _rows.c.seq)
Index("interlock_vectors_message", _rows.c.message_id)


class SqliteVectors:
    """The vectors beside the messages of a SQLite file (a :class:`interlock.memory.VectorIndex`).

    Args:
        database: where they are; the table is made when it is missing.

    Raises:
        UsageError: numpy is missing.
    """

    def __init__(self, database: Database) -> None:
        self._numpy = require_numpy()
        self._database = database
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, OrderedDict[_Key, _Block]] = (
            WeakKeyDictionary()
        )

    async def upsert(self, model_id: str, messages: Sequence[MessageVectors]) -> None:
        """Put the vectors of these messages in the place of what they had. See :class:`VectorIndex`."""
        values = [
            {
                "model": model_id,
                "resource_id": message.resource_id or NOBODY,
                "thread_id": message.thread_id,
                "message_id": message.message_id,
                "vector": self._numpy.asarray(vector, dtype="<f4").tobytes(),
            }
            for message in messages
            for vector in message.vectors
        ]

        async def work(connection: AsyncConnection) -> None:
            for message in messages:
                scope = Scope(message.resource_id, message.thread_id)
                old = (_rows.c.model == model_id, _rows.c.message_id == message.message_id)
                await connection.execute(delete(_rows).where(*old, *_within(scope)))
            if values:
                await connection.execute(insert(_rows), values)

        await self._ready()
        await self._database.write(work)

    async def search(
        self,
        model_id: str,
        vector: Vector,
        *,
        scope: Scope,
        top_k: int,
        threshold: float | None = None,
        exclude: Collection[str] = (),
    ) -> list[Match]:
        """The messages of the scope that are nearest to a vector, best first. See :class:`VectorIndex`."""
        matrix = await self._current((model_id, scope.resource_id, scope.thread_id), scope)
        try:
            return matrix.nearest(vector, top_k=top_k, threshold=threshold, exclude=exclude)
        except ValueError:
            raise StorageError(_other_length(model_id)) from None

    async def known(self, model_id: str, message_ids: Collection[str], *, scope: Scope) -> set[str]:
        """Which of these messages of the scope have vectors. See :class:`VectorIndex`."""
        if not message_ids:
            return set()
        wanted = (_rows.c.model == model_id, _rows.c.message_id.in_(list(message_ids)))
        statement = select(_rows.c.message_id).distinct().where(*wanted, *_within(scope))

        async def work(connection: AsyncConnection) -> set[str]:
            return set((await connection.execute(statement)).scalars())

        await self._ready()
        return await self._database.read(work)

    async def delete(self, *, scope: Scope, message_ids: Collection[str] | None = None) -> None:
        """Forget these messages of the scope, or all of it. See :class:`VectorIndex`."""
        statement = delete(_rows).where(*_within(scope))
        if message_ids is not None:
            statement = statement.where(_rows.c.message_id.in_(list(message_ids)))

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(statement)

        await self._ready()
        await self._database.write(work)

    # ------------------------------------------------------------------------------------------- what is in memory

    async def _current(self, key: _Key, scope: Scope) -> Matrix:
        """The scope's matrix, as the table now has it."""
        await self._ready()
        blocks = self._opened[asyncio.get_running_loop()]
        while True:
            block = blocks.get(key) or _Block()
            version = block.version

            async def work(connection: AsyncConnection, block: _Block = block) -> list[Any] | None:
                return await _news(connection, key[0], scope, block)

            news = await self._database.read(work)
            if block.version != version:  # another search brought it up to date meanwhile
                continue
            if news is None:
                blocks.pop(key, None)
                continue
            try:
                block.take(news, self._numpy)
            except ValueError:
                raise StorageError(_other_length(key[0])) from None
            blocks[key] = block
            blocks.move_to_end(key)
            while len(blocks) > 1 and sum(each.matrix.nbytes for each in blocks.values()) > ROOM:
                blocks.popitem(last=False)
            return block.matrix

    async def _ready(self) -> None:
        loop = asyncio.get_running_loop()
        if loop in self._opened:
            return

        async def work(connection: AsyncConnection) -> None:
            await connection.run_sync(_metadata.create_all)

        await self._database.write(work)
        self._opened.setdefault(loop, OrderedDict())


_Key = tuple[str, str | None, str | None]


class _Block:
    """A scope in memory: its matrix, and the newest row in it."""

    def __init__(self) -> None:
        self.matrix = Matrix()
        self.newest = 0
        self.version = 0

    def take(self, rows: Sequence[Any], numpy: Any) -> None:
        if not rows:
            return
        self.version += 1
        for (message_id, thread_id), pieces in groupby(rows, key=lambda row: (row[1], row[2])):
            vectors = [numpy.frombuffer(piece[3], dtype="<f4") for piece in pieces]
            self.matrix.put(message_id, thread_id, vectors)
        self.newest = rows[-1][0]


async def _news(connection: AsyncConnection, model_id: str, scope: Scope, block: _Block) -> list[Any] | None:
    """The rows the block does not have; None when it has some that are gone."""
    inside = (_rows.c.model == model_id, *_within(scope))
    summary = select(func.count(), func.max(_rows.c.seq)).select_from(_rows).where(*inside)
    count, newest = (await connection.execute(summary)).one()
    rows: list[Any] = []
    if newest is not None and newest > block.newest:
        columns = (_rows.c.seq, _rows.c.message_id, _rows.c.thread_id, _rows.c.vector)
        fresh = select(*columns).where(*inside, _rows.c.seq > block.newest).order_by(_rows.c.seq)
        rows = list(await connection.execute(fresh))
    replaced = sum(block.matrix.pieces_of(message_id) for message_id in {row[1] for row in rows})
    return rows if block.matrix.pieces - replaced + len(rows) == count else None


def _within(scope: Scope) -> Iterable[Any]:
    yield _rows.c.resource_id == (scope.resource_id or NOBODY)
    if scope.thread_id is not None:
        yield _rows.c.thread_id == scope.thread_id


def _other_length(model_id: str) -> str:
    return (
        f"model {model_id!r} now makes vectors of another length than those that are stored: give it another name, "
        "or delete its rows from interlock_vectors"
    )
