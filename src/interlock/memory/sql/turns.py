"""A turn is saved: the steps of its transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from interlock.core.errors import UsageError
from interlock.core.result import Turn
from interlock.memory.in_memory import another_resource
from interlock.memory.order import dated
from interlock.memory.sql.reading import Reading
from interlock.memory.sql.rows import metadata_of
from interlock.memory.sql.writing import Writing
from interlock.memory.working_text import changed

TOGETHER = 10_000
"""Ids in one query: databases count their values, and take some 32,000."""


class Turns:
    """Saves turns.

    The thread's row is written first. It is locked from then on, so that a thread's turns come one by one, and each
    knows the time of the newest message before it: that is what a thread's order is made of.
    """

    def __init__(self, reading: Reading, writing: Writing) -> None:
        self._reading = reading
        self._writing = writing

    async def save(self, connection: AsyncConnection, turn: Turn) -> list[datetime]:
        """Save a turn in the transaction that the connection is in.

        Returns:
            The times its messages have in storage.

        Raises:
            UsageError: the thread belongs to another resource; a message's id is taken by one of another thread.
        """
        thread = (await connection.execute(*self._writing.begun(turn))).mappings().first()
        if thread is None:
            raise another_resource(turn.thread_id, turn.resource_id)
        await self._change_working_memory(connection, turn, thread)
        known, newest = await self._known(connection, turn)
        times = dated(turn.messages, known, newest)
        await self._put(connection, turn, times)
        if turn.run_id:
            await connection.execute(*self._writing.usage(turn))
        return times

    async def _change_working_memory(self, connection: AsyncConnection, turn: Turn, thread: Any) -> None:
        """What the turn changed in working memory: in the thread's metadata, or in the resource's row."""
        in_thread = [change for change in turn.memory_changes if change.scope == "thread"]
        if in_thread:
            metadata = metadata_of(thread)
            metadata["workingMemory"] = changed(metadata.get("workingMemory"), in_thread)
            await connection.execute(*self._writing.thread_metadata(turn.thread_id, metadata))
        in_resource = [change for change in turn.memory_changes if change.scope == "resource"]
        if in_resource and turn.resource_id is not None:
            # written first, so that the row is locked when it is read
            touched = self._writing.resource(turn.resource_id, None, ("updatedAt",))
            current = (await connection.execute(*touched)).scalar_one()
            text = changed(current, in_resource) or ""
            await connection.execute(*self._writing.working_memory(turn.resource_id, text))

    async def _known(
        self, connection: AsyncConnection, turn: Turn
    ) -> tuple[dict[str, datetime], datetime | None]:
        """The times of those that are stored already, and the thread's newest."""
        known: dict[str, datetime] = {}
        newest = None
        for ids in together([message.id for message in turn.messages]):
            found = await connection.execute(*self._reading.known(turn.thread_id, ids))
            for row in found.mappings():
                if row["id"] is None:
                    newest = row["createdAt"]
                elif row["thread_id"] != turn.thread_id:
                    raise _taken(row["id"])
                else:
                    known[row["id"]] = row["createdAt"]
        return known, newest

    async def _put(self, connection: AsyncConnection, turn: Turn, times: list[datetime]) -> None:
        if not turn.messages:
            return
        statement, rows = self._writing.messages(turn, times)
        stored = {row.id for row in await connection.execute(statement, rows)}
        for row in rows:
            if row["id"] not in stored:  # another thread took the id meanwhile
                raise _taken(row["id"])


def together(ids: Sequence[str], size: int = TOGETHER) -> Iterator[list[str]]:
    """Ids in lists that one query takes.

    >>> list(together(["a", "b", "c"], 2))
    [['a', 'b'], ['c']]
    """
    for start in range(0, len(ids), size):
        yield list(ids[start : start + size])


def _taken(message_id: str) -> UsageError:
    return UsageError(f"the message id {message_id!r} is taken by a message of another thread")
