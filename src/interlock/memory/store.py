"""What a store has to do: what a run needs (Store), and what looks after conversations (ConversationStore)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from interlock.core.chunks import Usage
from interlock.core.errors import UsageError
from interlock.core.messages import Message
from interlock.core.record import Record
from interlock.core.result import Turn


class Thread(Record, kw_only=True):
    """A conversation. Its messages are asked for apart.

    Attributes:
        id: the thread's id, unique in the store.
        resource_id: the resource (user) it belongs to; None when it was made without one.
        title: a line for lists; empty when there is none.
        metadata: the user's own, and under ``workingMemory`` what the thread's working memory holds.
        created_at: when it began.
        updated_at: when a turn was last saved in it, or its title or metadata changed.
    """

    id: str
    resource_id: str | None = None
    title: str = ""
    metadata: dict[str, Any] = {}
    created_at: datetime | None = None
    updated_at: datetime | None = None


class ThreadPage(Record, kw_only=True):
    """One page of threads. ``page`` counts from 0."""

    threads: list[Thread]
    total: int
    page: int
    per_page: int

    @property
    def has_more(self) -> bool:
        """Whether there is another page after this one."""
        return (self.page + 1) * self.per_page < self.total


class MessagePage(Record, kw_only=True):
    """One page of a thread's messages, oldest first. ``page`` counts from 0."""

    messages: list[Message]
    total: int
    page: int
    per_page: int

    @property
    def has_more(self) -> bool:
        """Whether there is another page after this one."""
        return (self.page + 1) * self.per_page < self.total


class TurnUsage(Record, kw_only=True):
    """What one turn cost."""

    run_id: str
    thread_id: str
    usage: Usage
    created_at: datetime


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
        """Save a turn's messages in one transaction, behind all that the thread has: all or none.

        A thread that is not there yet begins with it. A message that is there already (the same id) is replaced
        and keeps its place and time. New messages are given times later than the thread's newest where the clocks
        disagree; ``created_at`` of the turn's messages is then what was stored.

        Raises:
            StorageError: the store failed.
            UsageError: the thread, or a message with such an id, belongs to another resource or thread.
        """
        ...


@runtime_checkable
class ConversationStore(Store, Protocol):
    """A store that also looks after its threads. :class:`interlock.memory.Memory` says what the methods are for.

    A thread of another resource is refused with a UsageError wherever a method names one thread; where a method
    names messages, those of another resource are as if they were not there.
    """

    async def create_thread(self, thread: Thread) -> Thread:
        """Make a thread; times that are None are now.

        Raises:
            UsageError: the id is taken.
        """
        ...

    async def thread(self, thread_id: str, *, resource_id: str | None) -> Thread | None:
        """The thread, or None when there is no such thread."""
        ...

    async def threads(self, *, resource_id: str | None, page: int = 0, per_page: int = 100) -> ThreadPage:
        """The resource's threads, the last updated first."""
        ...

    async def update_thread(
        self,
        thread_id: str,
        *,
        resource_id: str | None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Thread:
        """Give a thread another title; add to its metadata (a key given as None goes), in one transaction.

        Raises:
            UsageError: there is no such thread.
        """
        ...

    async def delete_thread(self, thread_id: str, *, resource_id: str | None) -> bool:
        """Delete a thread with its messages and usage. Returns whether it was there."""
        ...

    async def message_page(
        self, thread_id: str, *, resource_id: str | None, page: int = 0, per_page: int = 40
    ) -> MessagePage:
        """A page of the thread's messages, oldest first."""
        ...

    async def messages_around(
        self, message_ids: Sequence[str], *, resource_id: str | None, before: int = 0, after: int = 0
    ) -> list[Message]:
        """These messages, each with so many before and after it in its thread.

        Returns:
            Each message once, thread by thread, oldest first in each. Ids that are not there are passed over.
        """
        ...

    async def delete_messages(self, message_ids: Sequence[str], *, resource_id: str | None) -> int:
        """Delete messages by id. Returns how many were there."""
        ...

    async def search_messages(
        self, text: str, *, resource_id: str | None, thread_id: str | None = None, limit: int = 20
    ) -> list[Message]:
        """The newest messages whose text has this text in it, whatever the case, newest first."""
        ...

    async def resource_memory(self, resource_id: str) -> str | None:
        """The resource's working memory."""
        ...

    async def set_resource_memory(self, resource_id: str, text: str | None) -> None:
        """Replace the resource's working memory; None empties it."""
        ...

    async def usage(self, thread_id: str, *, resource_id: str | None) -> list[TurnUsage]:
        """What the thread's turns cost, oldest first."""
        ...


def whose(resource: str | None) -> str | None:
    """The resource somebody names, refused when it is an empty string: storage has that for threads of nobody.

    Raises:
        UsageError: an empty string, or no string at all.
    """
    if resource is not None and not (isinstance(resource, str) and resource):
        raise UsageError(f"resource must be a string that is not empty, or None for none, not {resource!r}")
    return resource
