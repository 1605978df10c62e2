"""A store in this process: for tests, demos and programs that need not remember after they end."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.core.errors import UsageError
from interlock.core.jsonable import jsonable
from interlock.core.messages import Message
from interlock.core.result import Turn
from interlock.core.stored import message_from_row, message_to_row


class InMemoryStore:
    """Threads as encoded rows, as a database would have them: nothing is shared with running code.

    >>> store = InMemoryStore()
    """

    def __init__(self) -> None:
        self._threads: dict[str, dict[str, bytes]] = {}
        self._owners: dict[str, str | None] = {}

    async def messages(
        self, thread_id: str, *, resource_id: str | None, last: int | None = None
    ) -> list[Message]:
        """The thread's messages, oldest first: all, or the last so many. See :class:`interlock.memory.Store`."""
        self._check_owner(thread_id, resource_id)
        rows = list(self._threads.get(thread_id, {}).values())
        return [
            message_from_row(msgspec.json.decode(row))
            for row in (rows if last is None else rows[-last:] if last else [])
        ]

    async def save_turn(self, turn: Turn) -> None:
        """Save a turn; a message that is there already (the same id) is replaced. See :class:`Store`."""
        self._check_owner(turn.thread_id, turn.resource_id)
        encoded = {message.id: _encoded(message) for message in turn.messages}
        self._threads.setdefault(turn.thread_id, {}).update(
            encoded
        )  # all of it, or, if encoding failed, nothing
        self._owners.setdefault(turn.thread_id, turn.resource_id)

    def _check_owner(self, thread_id: str, resource_id: str | None) -> None:
        if thread_id in self._owners and self._owners[thread_id] != resource_id:
            given = "none was given" if resource_id is None else f"not {resource_id!r}"
            raise UsageError(
                f"thread {thread_id!r} belongs to another resource ({given}); give its resource=..."
            )


def _encoded(message: Message) -> bytes:
    row: dict[str, Any] = message_to_row(message)
    return msgspec.json.encode(jsonable(row))
