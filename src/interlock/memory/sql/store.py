"""The store in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from interlock.core.chunks import Usage
from interlock.core.errors import UsageError
from interlock.core.messages import Message
from interlock.core.result import Turn
from interlock.memory.in_memory import another_resource
from interlock.memory.order import dated
from interlock.memory.sql.database import Database
from interlock.memory.sql.reading import Reading
from interlock.memory.sql.rows import encoded, message_of, message_values, metadata_of, thread_of
from interlock.memory.sql.tables import USAGE_COLUMNS, make_tables
from interlock.memory.store import MessagePage, Thread, ThreadPage, TurnUsage

NOBODY = ""
"""The ``resourceId`` of threads without a resource: the reference's column cannot be NULL."""


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

    def __repr__(self) -> str:
        return f"<SqlStore {self.database.url.render_as_string(hide_password=True)}>"

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
            found = await connection.execute(self._reading.last(thread_id, resource_id, last))
            return list(found.mappings())

        rows = await self.database.read(work)
        return [message_of(row) for row in reversed(rows)]

    async def save_turn(self, turn: Turn) -> None:
        """See :meth:`interlock.memory.Store.save_turn`."""
        times = await self.database.write(lambda connection: self._save(connection, turn))
        for message, time in zip(turn.messages, times, strict=True):
            message.created_at = time

    async def _save(self, connection: AsyncConnection, turn: Turn) -> list[datetime]:
        await self._touch(connection, turn)
        known, newest = await self._known(connection, turn)
        times = dated(turn.messages, known, newest)
        await self._put(connection, turn, times)
        if turn.run_id:
            values = {name: getattr(turn.usage, name) for name in USAGE_COLUMNS}
            insert = self._insert(self._tables.usage).on_conflict_do_nothing(index_elements=["run_id"])
            spent = {"run_id": turn.run_id, "thread_id": turn.thread_id, "created_at": datetime.now(UTC)}
            await connection.execute(insert, [values | spent])
        return times

    async def _touch(self, connection: AsyncConnection, turn: Turn) -> None:
        """Begin the thread or mark it updated; its row is locked from here on, so its turns come one by one."""
        table, now = self._tables.threads, datetime.now(UTC)
        owner = turn.resource_id or NOBODY
        thread = Thread(id=turn.thread_id, resource_id=turn.resource_id, created_at=now, updated_at=now)
        insert = self._insert(table)
        changed = {name: insert.excluded[name] for name in self._zoned("updatedAt")}
        insert = insert.on_conflict_do_update(
            index_elements=["id"], set_=changed, where=table.c["resourceId"] == owner
        ).returning(table.c["id"])
        if not list(await connection.execute(insert, [self._thread_values(thread)])):
            raise another_resource(turn.thread_id, turn.resource_id)

    async def _known(
        self, connection: AsyncConnection, turn: Turn
    ) -> tuple[dict[str, datetime], datetime | None]:
        """The times of those that are stored already, and the thread's newest."""
        known: dict[str, datetime] = {}
        newest = None
        ids = [message.id for message in turn.messages]
        for row in (await connection.execute(self._reading.known(turn.thread_id, ids))).mappings():
            if row["id"] is None:
                newest = row["createdAt"]
            elif row["thread_id"] != turn.thread_id:
                raise _taken(row["id"])
            else:
                known[row["id"]] = row["createdAt"]
        return known, newest

    async def _put(self, connection: AsyncConnection, turn: Turn, times: Sequence[datetime]) -> None:
        table = self._tables.messages
        rows = [
            self._with_zones(message_values(message, turn.thread_id, turn.resource_id, time), "createdAt")
            for message, time in zip(turn.messages, times, strict=True)
        ]
        if not rows:
            return
        insert = self._insert(table)
        insert = insert.on_conflict_do_update(
            index_elements=["id"],
            set_={name: insert.excluded[name] for name in ("content", "role", "type")},
            where=table.c["thread_id"] == insert.excluded["thread_id"],
        ).returning(table.c["id"])
        stored = {row.id for row in await connection.execute(insert, rows)}
        for row in rows:
            if row["id"] not in stored:  # another thread took the id meanwhile
                raise _taken(row["id"])

    # -------------------------------------------------------------------------------------------------------- threads

    async def create_thread(self, thread: Thread) -> Thread:
        """See :meth:`interlock.memory.ConversationStore.create_thread`."""
        now = datetime.now(UTC)
        made = thread.replace(
            created_at=thread.created_at or now, updated_at=thread.updated_at or thread.created_at or now
        )
        table = self._tables.threads
        insert = self._insert(table).on_conflict_do_nothing(index_elements=["id"]).returning(table.c["id"])

        async def work(connection: AsyncConnection) -> bool:
            return bool(list(await connection.execute(insert, [self._thread_values(made)])))

        if not await self.database.write(work):
            raise UsageError(f"there is a thread {thread.id!r} already")
        return made

    async def thread(self, thread_id: str, *, resource_id: str | None) -> Thread | None:
        """See :meth:`interlock.memory.ConversationStore.thread`."""
        row = await self.database.read(lambda connection: self._owner(connection, thread_id, resource_id))
        return None if row is None else thread_of(row)

    async def threads(self, *, resource_id: str | None, page: int = 0, per_page: int = 100) -> ThreadPage:
        """See :meth:`interlock.memory.ConversationStore.threads`."""
        table = self._tables.threads
        own = table.c["resourceId"] == (resource_id or NOBODY)
        order = (table.c["updatedAt"].desc(), table.c["id"].desc())
        shown = select(table).where(own).order_by(*order).limit(per_page).offset(page * per_page)

        async def work(connection: AsyncConnection) -> tuple[int, list[Any]]:
            total = await connection.scalar(select(func.count()).select_from(table).where(own))
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
            values: dict[str, Any] = self._with_zones({"updatedAt": now}, "updatedAt")
            if title is not None:
                values["title"] = title
            if metadata is not None:
                merged = {**metadata_of(row), **metadata}
                values["metadata"] = self._json({k: v for k, v in merged.items() if v is not None})
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
            total = await connection.scalar(self._reading.count(thread_id, resource_id))
            shown = self._reading.page(thread_id, resource_id, page, per_page)
            return total or 0, list((await connection.execute(shown)).mappings())

        total, rows = await self.database.read(work)
        return MessagePage(
            messages=[message_of(row) for row in rows], total=total, page=page, per_page=per_page
        )

    async def messages_around(
        self, message_ids: Sequence[str], *, resource_id: str | None, before: int = 0, after: int = 0
    ) -> list[Message]:
        """See :meth:`interlock.memory.ConversationStore.messages_around`."""
        if not message_ids:
            return []

        async def work(connection: AsyncConnection) -> list[Any]:
            around = self._reading.around(message_ids, resource_id, before, after)
            return list((await connection.execute(around)).mappings())

        rows = await self.database.read(work)
        threads = {row["id"]: row["thread_id"] for row in rows}
        order = list(dict.fromkeys(threads[id] for id in message_ids if id in threads))
        messages = {row["id"]: message_of(row) for row in rows}
        return sorted(messages.values(), key=lambda m: order.index(m.thread_id or ""))

    async def delete_messages(self, message_ids: Sequence[str], *, resource_id: str | None) -> int:
        """See :meth:`interlock.memory.ConversationStore.delete_messages`."""
        if not message_ids:
            return 0
        table = self._tables.messages
        statement = (
            delete(table)
            .where(table.c["id"].in_(list(message_ids)), self._reading.owned(resource_id))
            .returning(table.c["id"])
        )

        async def work(connection: AsyncConnection) -> int:
            return len(list(await connection.execute(statement)))

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
                    message = message_of(row)
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
        now = datetime.now(UTC)
        row = self._with_zones(
            {"id": resource_id, "createdAt": now, "updatedAt": now}, "createdAt", "updatedAt"
        )
        row |= {"workingMemory": text, "metadata": self._json({})}
        insert = self._insert(self._tables.resources)
        changed = ("workingMemory", *self._zoned("updatedAt"))
        insert = insert.on_conflict_do_update(
            index_elements=["id"], set_={name: insert.excluded[name] for name in changed}
        )

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(insert, [row])

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
        table = self._tables.threads
        statement = select(table).where(table.c["id"] == thread_id)
        if lock:
            statement = statement.with_for_update()  # SQLite has no such thing: there, one writes at a time
        row = (await connection.execute(statement)).mappings().first()
        if row is not None and row["resourceId"] != (resource_id or NOBODY):
            raise another_resource(thread_id, resource_id)
        return row

    def _insert(self, table: Any) -> Any:
        return postgresql.insert(table) if self._pg else sqlite.insert(table)

    def _json(self, value: Any) -> Any:
        return value if self._pg else encoded(value)

    def _zoned(self, *names: str) -> list[str]:
        """The columns that hold these times."""
        return [*names, *(f"{name}Z" for name in names if self._pg)]

    def _with_zones(self, values: dict[str, Any], *names: str) -> dict[str, Any]:
        for name in names if self._pg else ():
            time: datetime = values[name]
            values[f"{name}Z"] = time.replace(microsecond=time.microsecond // 1000 * 1000)
        return values

    def _thread_values(self, thread: Thread) -> dict[str, Any]:
        values: dict[str, Any] = {
            "id": thread.id,
            "resourceId": thread.resource_id or NOBODY,
            "title": thread.title,
            "metadata": self._json(thread.metadata),
            "createdAt": thread.created_at,
            "updatedAt": thread.updated_at,
        }
        return self._with_zones(values, "createdAt", "updatedAt")


def _taken(message_id: str) -> UsageError:
    return UsageError(f"the message id {message_id!r} is taken by a message of another thread")
