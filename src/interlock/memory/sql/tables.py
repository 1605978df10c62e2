"""The tables: the reference's, column by column, and our own.

The reference keeps a time as ISO text in SQLite and in two columns in PostgreSQL, with and without a zone. It sorts by
the one and returns the other, so both are always written.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    TIMESTAMP,
    Column,
    Dialect,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    func,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator, TypeEngine


class Moment(TypeDecorator[Any]):
    """A time in UTC, in whole milliseconds: ``2026-01-02T03:04:05.678Z`` in SQLite, a timestamp in PostgreSQL.

    Text that is no time comes back as it is; who reads the row can then say which row that was.
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The column's type."""
        return dialect.type_descriptor(TIMESTAMP() if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """A time as the column holds it."""
        if value is None:
            return None
        time = value.astimezone(UTC).replace(tzinfo=None)
        time = time.replace(microsecond=time.microsecond // 1000 * 1000)
        return time if dialect.name == "postgresql" else f"{time.isoformat(timespec='milliseconds')}Z"

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """A column's value as a time."""
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                return value
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return value


@dataclass(frozen=True)
class Tables:
    """The tables of one kind of database."""

    metadata: MetaData
    threads: Table
    messages: Table
    resources: Table
    usage: Table


def make_tables(dialect: str) -> Tables:
    """The tables as the reference makes them in ``sqlite`` or ``postgresql``, and ours (``interlock_...``)."""
    pg = dialect == "postgresql"
    metadata = MetaData()

    def zoned(*names: str) -> list[Column[Any]]:
        kind = TIMESTAMP(timezone=True)
        return [Column(f"{name}Z", kind, server_default=func.now()) for name in names] if pg else []

    def described() -> Column[Any]:
        return Column("metadata", JSONB() if pg else Text())

    threads = Table(
        "mastra_threads",
        metadata,
        Column("id", Text, primary_key=True, nullable=False),
        Column("resourceId", Text, nullable=False),
        Column("title", Text, nullable=False),
        described(),
        Column("createdAt", Moment, nullable=False),
        Column("updatedAt", Moment, nullable=False),
        *zoned("createdAt", "updatedAt"),
    )
    messages = Table(
        "mastra_messages",
        metadata,
        Column("id", Text, primary_key=True, nullable=False),
        Column("thread_id", Text, nullable=False),
        Column("content", Text, nullable=False),
        Column("role", Text, nullable=False),
        Column("type", Text, nullable=False),
        Column("createdAt", Moment, nullable=False),
        Column("resourceId", Text),
        *zoned("createdAt"),
    )
    resources = Table(
        "mastra_resources",
        metadata,
        Column("id", Text, primary_key=True, nullable=False),
        Column("workingMemory", Text),
        described(),
        Column("createdAt", Moment, nullable=False),
        Column("updatedAt", Moment, nullable=False),
        *zoned("createdAt", "updatedAt"),
    )
    usage = Table(
        "interlock_usage",
        metadata,
        Column("run_id", Text, primary_key=True, nullable=False),
        Column("thread_id", Text, nullable=False),
        *(Column(name, Integer, nullable=False) for name in USAGE_COLUMNS),
        Column("created_at", Moment, nullable=False),
    )
    _indexes(pg, threads, messages, usage)
    return Tables(metadata, threads, messages, resources, usage)


USAGE_COLUMNS = ("input_tokens", "output_tokens", "total_tokens", "reasoning_tokens", "cached_input_tokens")


def _indexes(pg: bool, threads: Table, messages: Table, usage: Table) -> None:
    """The reference's indexes under their names, and ours: for lists of threads, and for a thread's usage."""
    time = messages.c["createdAt"]
    if pg:
        Index(
            "mastra_threads_resourceid_createdat_idx", threads.c["resourceId"], threads.c["createdAt"].desc()
        )
        Index("mastra_messages_thread_id_createdat_idx", messages.c["thread_id"], time.desc())
    else:
        Index("idx_messages_thread_created_at", messages.c["thread_id"], time)
        Index(
            "idx_messages_thread_resource_created_at", messages.c["thread_id"], messages.c["resourceId"], time
        )
    Index("interlock_threads_resource_updated", threads.c["resourceId"], threads.c["updatedAt"])
    Index("interlock_messages_resource", messages.c["resourceId"], time)
    Index("interlock_usage_thread", usage.c["thread_id"], usage.c["created_at"])
