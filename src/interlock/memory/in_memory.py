"""A store in this process: for tests, demos and programs that need not remember after they end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from interlock.core.errors import UsageError
from interlock.core.jsonable import jsonable
from interlock.core.messages import Message
from interlock.core.result import Turn
from interlock.core.stored import message_from_row, message_to_row
from interlock.memory.order import dated
from interlock.memory.store import MessagePage, Thread, ThreadPage, TurnUsage


class InMemoryStore:
    """Threads as encoded rows, as a database would have them: nothing is shared with running code.

    A :class:`interlock.memory.ConversationStore`. No method lets go of the event loop, so each is one transaction.

    >>> store = InMemoryStore()
    """

    def __init__(self) -> None:
        self._threads: dict[str, Thread] = {}
        self._rows: dict[str, dict[str, bytes]] = {}
        self._home: dict[str, str] = {}
        self._times: dict[str, datetime] = {}
        self._usage: dict[str, list[TurnUsage]] = {}
        self._resources: dict[str, str] = {}

    # ----------------------------------------------------------------------------------------------- what a run needs

    async def messages(
        self, thread_id: str, *, resource_id: str | None, last: int | None = None
    ) -> list[Message]:
        """See :meth:`interlock.memory.Store.messages`."""
        self._owned(thread_id, resource_id)
        rows = list(self._rows.get(thread_id, {}).values())
        return list(_decoded(rows if last is None else rows[-last:] if last else []))

    async def save_turn(self, turn: Turn) -> None:
        """See :meth:`interlock.memory.Store.save_turn`."""
        self._owned(turn.thread_id, turn.resource_id)
        here = self._rows.get(turn.thread_id, {})
        for message in turn.messages:
            if self._home.get(message.id, turn.thread_id) != turn.thread_id:
                raise UsageError(f"the message id {message.id!r} is taken by a message of another thread")
        known = {message.id: self._times[message.id] for message in turn.messages if message.id in here}
        newest = max((self._times[id] for id in here), default=None)
        times = dated(turn.messages, known, newest)
        encoded = {
            message.id: _encoded(message, turn, time)
            for message, time in zip(turn.messages, times, strict=True)
        }
        # from here on nothing can fail: all of it, or nothing
        now = datetime.now(UTC)
        thread = self._threads.setdefault(
            turn.thread_id, Thread(id=turn.thread_id, resource_id=turn.resource_id, created_at=now)
        )
        thread.updated_at = now
        self._rows.setdefault(turn.thread_id, {}).update(encoded)
        for message, time in zip(turn.messages, times, strict=True):
            message.created_at = time
            self._home[message.id] = turn.thread_id
            self._times[message.id] = time
        if turn.run_id:
            spent = TurnUsage(run_id=turn.run_id, thread_id=turn.thread_id, usage=turn.usage, created_at=now)
            self._usage.setdefault(turn.thread_id, []).append(spent)

    # -------------------------------------------------------------------------------------------------------- threads

    async def create_thread(self, thread: Thread) -> Thread:
        """See :meth:`interlock.memory.ConversationStore.create_thread`."""
        if thread.id in self._threads:
            raise UsageError(f"there is a thread {thread.id!r} already")
        now = datetime.now(UTC)
        made = thread.replace(
            created_at=thread.created_at or now,
            updated_at=thread.updated_at or now,
            metadata=_copied(thread.metadata),
        )
        self._threads[thread.id] = made
        return _own(made)

    async def thread(self, thread_id: str, *, resource_id: str | None) -> Thread | None:
        """See :meth:`interlock.memory.ConversationStore.thread`."""
        thread = self._owned(thread_id, resource_id)
        return None if thread is None else _own(thread)

    async def threads(self, *, resource_id: str | None, page: int = 0, per_page: int = 100) -> ThreadPage:
        """See :meth:`interlock.memory.ConversationStore.threads`."""
        own = [thread for thread in self._threads.values() if thread.resource_id == resource_id]
        own.sort(key=lambda thread: (thread.updated_at or datetime.min.replace(tzinfo=UTC), thread.id))
        own.reverse()
        shown = own[page * per_page : (page + 1) * per_page]
        return ThreadPage(threads=[_own(t) for t in shown], total=len(own), page=page, per_page=per_page)

    async def update_thread(
        self,
        thread_id: str,
        *,
        resource_id: str | None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Thread:
        """See :meth:`interlock.memory.ConversationStore.update_thread`."""
        thread = self._owned(thread_id, resource_id)
        if thread is None:
            raise UsageError(f"there is no thread {thread_id!r}")
        if title is not None:
            thread.title = title
        if metadata is not None:
            merged = {**thread.metadata, **_copied(metadata)}
            thread.metadata = {key: value for key, value in merged.items() if value is not None}
        thread.updated_at = datetime.now(UTC)
        return _own(thread)

    async def delete_thread(self, thread_id: str, *, resource_id: str | None) -> bool:
        """See :meth:`interlock.memory.ConversationStore.delete_thread`."""
        if self._owned(thread_id, resource_id) is None:
            return False
        for message_id in self._rows.pop(thread_id, {}):
            del self._home[message_id], self._times[message_id]
        self._usage.pop(thread_id, None)
        del self._threads[thread_id]
        return True

    # ------------------------------------------------------------------------------------------------------- messages

    async def message_page(
        self, thread_id: str, *, resource_id: str | None, page: int = 0, per_page: int = 40
    ) -> MessagePage:
        """See :meth:`interlock.memory.ConversationStore.message_page`."""
        self._owned(thread_id, resource_id)
        rows = list(self._rows.get(thread_id, {}).values())
        shown = list(_decoded(rows[page * per_page : (page + 1) * per_page]))
        return MessagePage(messages=shown, total=len(rows), page=page, per_page=per_page)

    async def messages_around(
        self, message_ids: Sequence[str], *, resource_id: str | None, before: int = 0, after: int = 0
    ) -> list[Message]:
        """See :meth:`interlock.memory.ConversationStore.messages_around`."""
        places: dict[str, set[int]] = {}
        for message_id in message_ids:
            thread_id = self._home.get(message_id)
            if thread_id is None or self._threads[thread_id].resource_id != resource_id:
                continue
            at = list(self._rows[thread_id]).index(message_id)
            around = range(max(at - before, 0), min(at + after + 1, len(self._rows[thread_id])))
            places.setdefault(thread_id, set()).update(around)
        return [
            message
            for thread_id, wanted in places.items()
            for message in _decoded(
                row for at, row in enumerate(self._rows[thread_id].values()) if at in wanted
            )
        ]

    async def delete_messages(self, message_ids: Sequence[str], *, resource_id: str | None) -> int:
        """See :meth:`interlock.memory.ConversationStore.delete_messages`."""
        gone = 0
        for message_id in message_ids:
            thread_id = self._home.get(message_id)
            if thread_id is None or self._threads[thread_id].resource_id != resource_id:
                continue
            del self._rows[thread_id][message_id], self._home[message_id], self._times[message_id]
            gone += 1
        return gone

    async def search_messages(
        self, text: str, *, resource_id: str | None, thread_id: str | None = None, limit: int = 20
    ) -> list[Message]:
        """See :meth:`interlock.memory.ConversationStore.search_messages`."""
        if thread_id is not None:
            self._owned(thread_id, resource_id)
        rows = [
            (self._times[message_id], row)
            for thread in self._threads.values()
            if thread.resource_id == resource_id and thread_id in (None, thread.id)
            for message_id, row in self._rows.get(thread.id, {}).items()
        ]
        rows.sort(key=lambda row: row[0], reverse=True)
        found = (m for m in _decoded(row for _, row in rows) if text.casefold() in m.text.casefold())
        return [message for message, _ in zip(found, range(limit), strict=False)]

    # ------------------------------------------------------------------------------------- working memory, and usage

    async def resource_memory(self, resource_id: str) -> str | None:
        """See :meth:`interlock.memory.ConversationStore.resource_memory`."""
        return self._resources.get(resource_id)

    async def set_resource_memory(self, resource_id: str, text: str | None) -> None:
        """See :meth:`interlock.memory.ConversationStore.set_resource_memory`."""
        if text is None:
            self._resources.pop(resource_id, None)
        else:
            self._resources[resource_id] = text

    async def usage(self, thread_id: str, *, resource_id: str | None) -> list[TurnUsage]:
        """See :meth:`interlock.memory.ConversationStore.usage`."""
        self._owned(thread_id, resource_id)
        return list(self._usage.get(thread_id, []))

    def _owned(self, thread_id: str, resource_id: str | None) -> Thread | None:
        """The thread, if there is one; refused if it is another's."""
        thread = self._threads.get(thread_id)
        if thread is not None and thread.resource_id != resource_id:
            raise another_resource(thread_id, resource_id)
        return thread


def another_resource(thread_id: str, resource_id: str | None) -> UsageError:
    """What to say when a thread is another resource's; whose, is not said."""
    given = "none was given" if resource_id is None else f"not {resource_id!r}"
    return UsageError(f"thread {thread_id!r} belongs to another resource ({given}); give its resource=...")


def _encoded(message: Message, turn: Turn, time: datetime) -> bytes:
    row: dict[str, Any] = message_to_row(message)
    row |= {"createdAt": time, "threadId": turn.thread_id, "resourceId": turn.resource_id}
    return msgspec.json.encode(jsonable(row))


def _decoded(rows: Iterable[bytes]) -> Iterator[Message]:
    return (message_from_row(msgspec.json.decode(row)) for row in rows)


def _copied(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return jsonable(metadata)


def _own(thread: Thread) -> Thread:
    return thread.replace(metadata=_copied(thread.metadata))
