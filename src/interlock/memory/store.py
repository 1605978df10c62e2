"""What a store has to do."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from interlock.core.messages import Message
from interlock.core.result import Turn


@runtime_checkable
class Store(Protocol):
    """Keeps threads of messages. Every access names the resource (the user): one never sees another's."""

    async def messages(
        self, thread_id: str, *, resource_id: str | None, last: int | None = None
    ) -> list[Message]:
        """The thread's messages, oldest first: all, or the last so many.

        Returns:
            Messages of the caller's own; changing them changes nothing stored.

        Raises:
            StorageError: the store failed.
            UsageError: the thread belongs to another resource.
        """
        ...

    async def save_turn(self, turn: Turn) -> None:
        """Save a turn's messages in one transaction: all or none.

        Raises:
            StorageError: the store failed.
            UsageError: the thread belongs to another resource.
        """
        ...
