"""The store in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from interlock.core.chunks import Usage
from interlock.core.errors import UsageError
from interlock.core.messages import Message
from interlock.core.result import Turn
from interlock.memory.in_memory import another_resource
from interlock.memory.sql.database import Database
from interlock.memory.sql.reading import AROUND, NOBODY, Reading, whose
from interlock.memory.sql.rows import message_of, metadata_of, thread_of
from interlock.memory.sql.tables import USAGE_COLUMNS, make_tables
from interlock.memory.sql.turns import Turns, together
from interlock.memory.sql.writing import Writing
from interlock.memory.store import MessagePage, Thread, ThreadPage, TurnUsage
from interlock.memory.vectors import VectorIndex


class SqlStore:
    """Conversations in a database, in the reference's tables (a :class:`interlock.memory.ConversationStore`).

    Args:
        url: ``sqlite:///agent.db`` or ``postgresql://user:password@host/database``.
        pool_size: how many connections at most, in each event loop that uses it.

    Raises:
        UsageError: an address of something else.
    """

    def __init__(self, url: Any, *, pool_size: int = 10) -> None:
        self.database = Database(url, pool_size=pool_size)
        self._pg = not self.database.is_sqlite
        self._tables = make_tables("postgresql" if self._pg else "sqlite")
        self._reading = Reading(self._tables, pg=self._pg)
        self._writing = Writing(self._tables, pg=self._pg)
        self._turns = Turns(self._reading, self._writing)

    def __repr__(self) -> str:
        return f"<SqlStore {self.database.url.render_as_string(hide_password=True)}>"

    def vector_index(self) -> VectorIndex:
        """Where semantic recall keeps its vectors: beside the messages, searched with numpy or by pgvector.

        Raises:
            UsageError: numpy is missing, in SQLite.
        """
        if self._pg:
            from interlock.memory.sql.pgvector import PgVectors

            return PgVectors(self.database)
        from interlock.memory.sql.vectors import SqliteVectors

        return SqliteVectors(self.database)

    async def close(self) -> None:
        """Close the connections of this event loop; they are opened again when they are needed."""
        await self.database.close()

    # ----------------------------------------------------------------------------------------------- what a run needs

    async def messages(
        self, thread_id: str, *, resource_id: str | None, last: int | None = None
    ) -> list[Message]:
        """See :meth:`interlock.memory.Store.messages`."""

        async def work(connection: AsyncConnection) -> list[Any]:
            await self._owner(connection, thread_id, resource_id)
            found = await connection.execute(*self._reading.last(thread_id, resource_id, last))
            return list(found.mappings())

        rows = await self.database.read(work)
        return [message_of(row) for row in reversed(rows)]

    async def save_turn(self, turn: Turn) -> None:
        """See :meth:`interlock.memory.Store.save_turn`."""
        times = await self.database.write(lambda connection: self._turns.save(connection, turn))
        for message, time in zip(turn.messages, times, strict=True):
            message.created_at = time

    # -------------------------------------------------------------------------------------------------------- threads

    async def create_thread(self, thread: Thread) -> Thread:
        """See :meth:`interlock.memory.ConversationStore.create_thread`."""
        now = datetime.now(UTC)
        made = thread.replace(
            created_at=thread.created_at or now, updated_at=thread.updated_at or thread.created_at or now
        )

        async def work(connection: AsyncConnection) -> bool:
            return bool(list(await connection.execute(*self._writing.made(made))))

        if not await self.database.write(work):
            raise UsageError(f"there is a thread {thread.id!r} already")
        return made

    async def thread(self, thread_id: str, *, resource_id: str | None) -> Thread | None:
        """See :meth:`interlock.memory.ConversationStore.thread`."""
        row = await self.database.read(lambda connection: self._owner(connection, thread_id, resource_id))
        return None if row is None else thread_of(row)

    async def threads(self, *, resource_id: str | None, page: int = 0, per_page: int = 100) -> ThreadPage:
        """See :meth:`interlock.memory.ConversationStore.threads`."""
        count, shown = self._reading.threads(resource_id, page, per_page)

        async def work(connection: AsyncConnection) -> tuple[int, list[Any]]:
            total = await connection.scalar(count)
            return total or 0, list((await connection.execute(shown)).mappings())

        total, rows = await self.database.read(work)
        return ThreadPage(threads=[thread_of(row) for row in rows], total=total, page=page, per_page=per_page)

    async def update_thread(
        self,
        thread_id: str,
        *,
        resource_id: str | None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Thread:
        """See :meth:`interlock.memory.ConversationStore.update_thread`."""
        table = self._tables.threads

        async def work(connection: AsyncConnection) -> Thread:
            row = await self._owner(connection, thread_id, resource_id, lock=True)
            if row is None:
                raise UsageError(f"there is no thread {thread_id!r}")
            now = datetime.now(UTC)
            values: dict[str, Any] = self._writing.with_zones({"updatedAt": now}, "updatedAt")
            if title is not None:
                values["title"] = title
            if metadata is not None:
                merged = {**metadata_of(row), **metadata}
                values["metadata"] = self._writing.json({k: v for k, v in merged.items() if v is not None})
            await connection.execute(update(table).where(table.c["id"] == thread_id), values)
            return thread_of({**row, **values})

        return await self.database.write(work)

    async def delete_thread(self, thread_id: str, *, resource_id: str | None) -> bool:
        """See :meth:`interlock.memory.ConversationStore.delete_thread`."""
        threads, messages, usage = self._tables.threads, self._tables.messages, self._tables.usage

        async def work(connection: AsyncConnection) -> bool:
            if await self._owner(connection, thread_id, resource_id, lock=True) is None:
                return False
            await connection.execute(delete(messages).where(messages.c["thread_id"] == thread_id))
            await connection.execute(delete(usage).where(usage.c["thread_id"] == thread_id))
            await connection.execute(delete(threads).where(threads.c["id"] == thread_id))
            return True

        return await self.database.write(work)

    # ------------------------------------------------------------------------------------------------------- messages

    async def message_page(
        self, thread_id: str, *, resource_id: str | None, page: int = 0, per_page: int = 40
    ) -> MessagePage:
        """See :meth:`interlock.memory.ConversationStore.message_page`."""

        async def work(connection: AsyncConnection) -> tuple[int, list[Any]]:
            await self._owner(connection, thread_id, resource_id)
            total = await connection.scalar(*self._reading.count(thread_id, resource_id))
            shown = self._reading.page(thread_id, resource_id, page, per_page)
            return total or 0, list((await connection.execute(*shown)).mappings())

        total, rows = await self.database.read(work)
        return MessagePage(
            messages=[message_of(row) for row in rows], total=total, page=page, per_page=per_page
        )

    async def messages_around(
        self, message_ids: Sequence[str], *, resource_id: str | None, before: int = 0, after: int = 0
    ) -> list[Message]:
        """See :meth:`interlock.memory.ConversationStore.messages_around`."""
        ids = list(dict.fromkeys(message_ids))

        async def work(connection: AsyncConnection) -> list[Any]:
            rows: list[Any] = []
            for some in together(ids, AROUND):
                around = self._reading.around(some, resource_id, before, after)
                rows += (await connection.execute(*around)).mappings()
            return rows

        rows = {row["id"]: (row["place"], message_of(row)) for row in await self.database.read(work)}
        threads = dict.fromkeys(rows[id][1].thread_id for id in ids if id in rows)
        order = {thread_id: n for n, thread_id in enumerate(threads)}
        found = sorted(rows.values(), key=lambda row: (order[row[1].thread_id], row[1].created_at, row[0]))
        return [message for _, message in found]

    async def delete_messages(self, message_ids: Sequence[str], *, resource_id: str | None) -> int:
        """See :meth:`interlock.memory.ConversationStore.delete_messages`."""
        table = self._tables.messages
        own = delete(table).where(self._reading.owned(resource_id is None)).returning(table.c["id"])

        async def work(connection: AsyncConnection) -> int:
            gone = 0
            for some in together(list(dict.fromkeys(message_ids))):
                gone += len(
                    list(await connection.execute(own.where(table.c["id"].in_(some)), whose(resource_id)))
                )
            return gone

        return await self.database.write(work)

    async def search_messages(
        self, text: str, *, resource_id: str | None, thread_id: str | None = None, limit: int = 20
    ) -> list[Message]:
        """See :meth:`interlock.memory.ConversationStore.search_messages`."""

        async def work(connection: AsyncConnection) -> list[Message]:
            if thread_id is not None:
                await self._owner(connection, thread_id, resource_id)
            found: list[Message] = []
            statement = self._reading.candidates(text, resource_id, thread_id)
            async with connection.stream(statement) as rows:
                async for row in rows.mappings():
                    message = message_of(dict(row))
                    if text.lower() in message.text.lower():
                        found.append(message)
                    if len(found) >= limit:
                        break
            return found

        return await self.database.read(work)

    # ------------------------------------------------------------------------------------- working memory, and usage

    async def resource_memory(self, resource_id: str) -> str | None:
        """See :meth:`interlock.memory.ConversationStore.resource_memory`."""
        table = self._tables.resources
        statement = select(table.c["workingMemory"]).where(table.c["id"] == resource_id)
        return await self.database.read(lambda connection: connection.scalar(statement))

    async def set_resource_memory(self, resource_id: str, text: str | None) -> None:
        """See :meth:`interlock.memory.ConversationStore.set_resource_memory`."""
        put = self._writing.resource(resource_id, text, ("workingMemory", "updatedAt"))

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(*put)

        await self.database.write(work)

    async def usage(self, thread_id: str, *, resource_id: str | None) -> list[TurnUsage]:
        """See :meth:`interlock.memory.ConversationStore.usage`."""
        table = self._tables.usage
        statement = (
            select(table)
            .where(table.c["thread_id"] == thread_id)
            .order_by(table.c["created_at"], table.c["run_id"])
        )

        async def work(connection: AsyncConnection) -> list[Any]:
            await self._owner(connection, thread_id, resource_id)
            return list((await connection.execute(statement)).mappings())

        return [
            TurnUsage(
                run_id=row["run_id"],
                thread_id=row["thread_id"],
                usage=Usage(**{name: row[name] for name in USAGE_COLUMNS}),
                created_at=row["created_at"],
            )
            for row in await self.database.read(work)
        ]

    # ------------------------------------------------------------------------------------------------------ statements

    async def _owner(
        self, connection: AsyncConnection, thread_id: str, resource_id: str | None, *, lock: bool = False
    ) -> Any:
        """The thread's row, if there is one; refused if it is another's."""
        found = await connection.execute(*self._reading.thread(thread_id, lock=lock))
        row = found.mappings().first()
        if row is not None and row["resourceId"] != (resource_id or NOBODY):
            raise another_resource(thread_id, resource_id)
        return row
