"""Vectors in PostgreSQL, searched by pgvector.

A search is exact: it looks at every vector of its scope, which an index of the table finds. An approximate index over
all resources would find a resource's few messages among everybody's by luck.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from interlock.core.errors import StorageError
from interlock.memory.sql.database import Database
from interlock.memory.sql.errors import sqlstate
from interlock.memory.vectors import Match, MessageVectors, Scope

if TYPE_CHECKING:
    from interlock.embeddings.cache import Vector

NOBODY = ""
"""The resource of threads without one."""

FIRST = 64
"""Pieces that a search asks for at first, beside four for each message; grouping them in SQL takes longer than this."""

_LOCK = 0x1_17E_210D
_NO_EXTENSION = ("0A000", "58P01", "42501")
"""SQLSTATEs of CREATE EXTENSION where the server does not have it, or this user may not."""

_TABLE = """
CREATE TABLE IF NOT EXISTS interlock_vectors (
    model text NOT NULL, resource_id text NOT NULL, thread_id text NOT NULL, message_id text NOT NULL,
    piece integer NOT NULL, embedding vector NOT NULL,
    PRIMARY KEY (model, resource_id, thread_id, message_id, piece)
)"""


class PgVectors:
    """The vectors beside the messages of a PostgreSQL database (a :class:`interlock.memory.VectorIndex`).

    Args:
        database: where they are; extension and table are made when they are missing.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._opened: WeakSet[asyncio.AbstractEventLoop] = WeakSet()

    async def upsert(self, model_id: str, messages: Sequence[MessageVectors]) -> None:
        """Put the vectors of these messages in the place of what they had. See :class:`VectorIndex`."""
        values = [
            {
                "model": model_id,
                "resource": message.resource_id or NOBODY,
                "thread": message.thread_id,
                "message": message.message_id,
                "piece": piece,
                "vector": _written(vector),
            }
            for message in messages
            for piece, vector in enumerate(message.vectors)
        ]
        old = [
            {
                "model": model_id,
                "resource": message.resource_id or NOBODY,
                "thread": message.thread_id,
                "message": message.message_id,
            }
            for message in messages
        ]

        async def work(connection: AsyncConnection) -> None:
            if old:
                await connection.execute(
                    text(
                        "DELETE FROM interlock_vectors WHERE model = :model AND resource_id = :resource "
                        "AND thread_id = :thread AND message_id = :message"
                    ),
                    old,
                )
            if values:
                await connection.execute(
                    text(
                        "INSERT INTO interlock_vectors (model, resource_id, thread_id, message_id, piece, embedding) "
                        "VALUES (:model, :resource, :thread, :message, :piece, CAST(CAST(:vector AS text) AS vector)) "
                        "ON CONFLICT (model, resource_id, thread_id, message_id, piece) "
                        "DO UPDATE SET embedding = excluded.embedding"
                    ),
                    values,
                )

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
        inside, named = _within(scope)
        # the vector stands in a query of its own: else a prepared statement would read its text for every row
        statement = text(
            "SELECT message_id, thread_id, "
            "-(embedding <#> (SELECT CAST(CAST(:vector AS text) AS vector))) AS score FROM interlock_vectors "
            f"WHERE model = :model AND {inside} AND message_id <> ALL(CAST(:exclude AS text[])) "
            "ORDER BY score DESC LIMIT :pieces"
        )
        named |= {"model": model_id, "vector": _written(vector), "exclude": list(exclude)}

        async def work(connection: AsyncConnection) -> list[Any]:
            pieces = FIRST + 4 * top_k
            while True:
                rows = list(await connection.execute(statement, named | {"pieces": pieces}))
                if len(rows) < pieces or len({row[0] for row in rows}) >= top_k:
                    return rows
                pieces *= 8  # many pieces of the same messages stood in front

        await self._ready()
        best: dict[str, Match] = {}
        for message_id, thread_id, score in await self._database.read(work):
            if message_id not in best and (threshold is None or score >= threshold):
                best[message_id] = Match(message_id=message_id, thread_id=thread_id, score=float(score))
        return list(best.values())[:top_k]

    async def known(self, model_id: str, message_ids: Collection[str], *, scope: Scope) -> set[str]:
        """Which of these messages of the scope have vectors. See :class:`VectorIndex`."""
        inside, named = _within(scope)
        statement = text(
            f"SELECT DISTINCT message_id FROM interlock_vectors WHERE model = :model AND {inside} "
            "AND message_id = ANY(CAST(:ids AS text[]))"
        )
        named |= {"model": model_id, "ids": list(message_ids)}

        async def work(connection: AsyncConnection) -> set[str]:
            return set((await connection.execute(statement, named)).scalars())

        await self._ready()
        return await self._database.read(work)

    async def delete(self, *, scope: Scope, message_ids: Collection[str] | None = None) -> None:
        """Forget these messages of the scope, or all of it. See :class:`VectorIndex`."""
        inside, named = _within(scope)
        statement = f"DELETE FROM interlock_vectors WHERE {inside}"
        if message_ids is not None:
            statement += " AND message_id = ANY(CAST(:ids AS text[]))"
            named["ids"] = list(message_ids)

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(text(statement), named)

        await self._ready()
        await self._database.write(work)

    async def _ready(self) -> None:
        loop = asyncio.get_running_loop()
        if loop in self._opened:
            return
        try:
            await self._database.write(_make)
        except StorageError as problem:
            if sqlstate(problem) in _NO_EXTENSION:
                raise StorageError(
                    f"{problem}. Semantic recall on PostgreSQL needs the extension pgvector: install it and let an "
                    "administrator run CREATE EXTENSION vector, or keep vectors elsewhere: "
                    "Memory(vector_index=NumpyIndex())"
                ) from problem
            raise
        self._opened.add(loop)


async def _make(connection: AsyncConnection) -> None:
    await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    if await connection.scalar(text("SELECT to_regclass('interlock_vectors')")) is not None:
        return
    if await connection.scalar(text("SELECT 1 FROM pg_extension WHERE extname = 'vector'")) is None:
        await connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
    await connection.execute(text(_TABLE))
    await connection.execute(text("CREATE INDEX ON interlock_vectors (resource_id, thread_id, message_id)"))


def _written(vector: Any) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(map(repr, vector.tolist()))}]"


def _within(scope: Scope) -> tuple[str, dict[str, Any]]:
    named: dict[str, Any] = {"resource": scope.resource_id or NOBODY}
    if scope.thread_id is None:
        return "resource_id = :resource", named
    return "resource_id = :resource AND thread_id = :thread", named | {"thread": scope.thread_id}
