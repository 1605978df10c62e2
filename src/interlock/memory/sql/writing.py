"""What is written: INSERTs, built once for all calls, and the values of rows."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import bindparam, update
from sqlalchemy.dialects import postgresql, sqlite

from interlock.core.result import Turn
from interlock.memory.sql.reading import NOBODY, Query
from interlock.memory.sql.rows import encoded, message_values
from interlock.memory.sql.tables import USAGE_COLUMNS, Tables
from interlock.memory.store import Thread


class Writing:
    """Builds INSERTs for the tables of SQLite or PostgreSQL."""

    def __init__(self, tables: Tables, *, pg: bool) -> None:
        self._tables = tables
        self._pg = pg
        self._resource = cache(self._build_resource)
        self._made, self._begun = self._build_threads()
        self._messages = self._build_messages()
        self._usage = self._insert(tables.usage).on_conflict_do_nothing(index_elements=["run_id"])
        threads, resources = tables.threads, tables.resources
        self._metadata = update(threads).where(threads.c["id"] == bindparam("thread"))
        self._working = update(resources).where(resources.c["id"] == bindparam("resource"))

    def made(self, thread: Thread) -> Query:
        """A new thread; returns its id, or nothing when there is one of that id."""
        return self._made, self._thread_values(thread)

    def begun(self, turn: Turn) -> Query:
        """A new thread, or an own one's time of change; returns its id and metadata, or nothing for another's."""
        now = datetime.now(UTC)
        thread = Thread(id=turn.thread_id, resource_id=turn.resource_id, created_at=now, updated_at=now)
        return self._begun, self._thread_values(thread)

    def messages(self, turn: Turn, times: list[datetime]) -> tuple[Any, list[dict[str, Any]]]:
        """A turn's messages; returns the ids of those that are no other thread's."""
        rows = [
            self.with_zones(message_values(message, turn.thread_id, turn.resource_id, time), "createdAt")
            for message, time in zip(turn.messages, times, strict=True)
        ]
        return self._messages, rows

    def usage(self, turn: Turn) -> Query:
        """What a turn cost, once for a run."""
        spent = {name: getattr(turn.usage, name) for name in USAGE_COLUMNS}
        row = {"run_id": turn.run_id, "thread_id": turn.thread_id, "created_at": datetime.now(UTC)}
        return self._usage, row | spent

    def resource(self, resource_id: str, text: str | None, changed: tuple[str, ...]) -> Query:
        """A resource that changes these columns where it is there already; returns the working memory it then has."""
        now = datetime.now(UTC)
        row: dict[str, Any] = {"id": resource_id, "createdAt": now, "updatedAt": now}
        row = self.with_zones(row, "createdAt", "updatedAt")
        return self._resource(changed), row | {"workingMemory": text, "metadata": self.json({})}

    def thread_metadata(self, thread_id: str, metadata: dict[str, Any]) -> Query:
        """Another metadata of a thread."""
        return self._metadata, {"thread": thread_id, "metadata": self.json(metadata)}

    def working_memory(self, resource_id: str, text: str) -> Query:
        """Another working memory of a resource that is there."""
        return self._working, {"resource": resource_id, "workingMemory": text}

    def json(self, value: Any) -> Any:
        """A value for a column of JSON."""
        return value if self._pg else encoded(value)

    def with_zones(self, values: dict[str, Any], *names: str) -> dict[str, Any]:
        """The values, with times written into the columns that have a zone too."""
        for name in names if self._pg else ():
            time: datetime = values[name]
            values[f"{name}Z"] = time.replace(microsecond=time.microsecond // 1000 * 1000)
        return values

    def _build_threads(self) -> tuple[Any, Any]:
        table = self._tables.threads
        insert = self._insert(table)
        made = insert.on_conflict_do_nothing(index_elements=["id"]).returning(table.c["id"])
        names = ["updatedAt", "updatedAtZ"] if self._pg else ["updatedAt"]
        begun = insert.on_conflict_do_update(
            index_elements=["id"],
            set_={name: insert.excluded[name] for name in names},
            where=table.c["resourceId"] == insert.excluded["resourceId"],
        )
        return made, begun.returning(table.c["id"], table.c["metadata"])

    def _build_messages(self) -> Any:
        table = self._tables.messages
        insert = self._insert(table)
        put = insert.on_conflict_do_update(
            index_elements=["id"],
            set_={name: insert.excluded[name] for name in ("content", "role", "type")},
            where=table.c["thread_id"] == insert.excluded["thread_id"],
        )
        return put.returning(table.c["id"])

    def _build_resource(self, changed: tuple[str, ...]) -> Any:
        table = self._tables.resources
        insert = self._insert(table)
        names = [column.name for column in table.c if column.name.removesuffix("Z") in changed]
        insert = insert.on_conflict_do_update(
            index_elements=["id"], set_={name: insert.excluded[name] for name in names}
        )
        return insert.returning(table.c["workingMemory"])

    def _insert(self, table: Any) -> Any:
        return postgresql.insert(table) if self._pg else sqlite.insert(table)

    def _thread_values(self, thread: Thread) -> dict[str, Any]:
        values: dict[str, Any] = {
            "id": thread.id,
            "resourceId": thread.resource_id or NOBODY,
            "title": thread.title,
            "metadata": self.json(thread.metadata),
            "createdAt": thread.created_at,
            "updatedAt": thread.updated_at,
        }
        return self.with_zones(values, "createdAt", "updatedAt")
