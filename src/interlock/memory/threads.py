"""A memory's threads, looked after by hand: made, listed, renamed, deleted, exported and imported."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

from interlock.core.errors import UsageError
from interlock.core.jsonable import jsonable
from interlock.core.messages import Message
from interlock.core.result import Turn
from interlock.core.shapes import described, is_list, is_mapping
from interlock.core.stored import message_from_row, message_to_row
from interlock.memory.store import ConversationStore, Thread, ThreadPage, whose

EXPORT_VERSION = 1
LARGEST_PAGE = 1000


class Threads:
    """What ``memory.threads`` offers. Everything is scoped: a thread of another resource is refused.

    Args:
        store: where they are.
        forget: told which thread of which resource was deleted.
    """

    def __init__(
        self, store: ConversationStore, forget: Callable[[str, str | None], Awaitable[None]]
    ) -> None:
        self._store = store
        self._forget = forget

    async def create(
        self,
        thread: str | None = None,
        *,
        resource: str | None = None,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> Thread:
        """Make a thread; a turn in a thread that is not there makes it too.

        Args:
            thread: its id; a new one when None.
            resource: whose it is.
            title: a line for lists.
            metadata: anything that JSON can hold.

        Raises:
            UsageError: the id is taken.
            StorageError: the store failed.
        """
        made = Thread(
            id=thread or str(uuid.uuid4()),
            resource_id=whose(resource),
            title=title,
            metadata=jsonable(dict(metadata or {})),
        )
        return await self._store.create_thread(made)

    async def get(self, thread: str, *, resource: str | None = None) -> Thread | None:
        """The thread, or None when there is no such thread.

        Raises:
            UsageError: it belongs to another resource.
            StorageError: the store failed.
        """
        return await self._store.thread(thread, resource_id=whose(resource))

    async def list(self, *, resource: str | None = None, page: int = 0, per_page: int = 100) -> ThreadPage:
        """A page of the resource's threads, the last updated first.

        Args:
            resource: whose.
            page: which page, from 0.
            per_page: how many threads a page has, from 1 to 1000.

        Raises:
            UsageError: a page that cannot be.
            StorageError: the store failed.
        """
        check_page(page, per_page)
        return await self._store.threads(resource_id=whose(resource), page=page, per_page=per_page)

    async def update(
        self,
        thread: str,
        *,
        resource: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Thread:
        """Rename a thread, or add to its metadata; a key given as None goes.

        Raises:
            UsageError: there is no such thread, or it belongs to another resource.
            StorageError: the store failed.
        """
        return await self._store.update_thread(
            thread,
            resource_id=whose(resource),
            title=title,
            metadata=None if metadata is None else jsonable(dict(metadata)),
        )

    async def delete(self, thread: str, *, resource: str | None = None) -> bool:
        """Delete a thread with its messages.

        Returns:
            Whether it was there.

        Raises:
            UsageError: it belongs to another resource.
            StorageError: the store failed.
        """
        gone = await self._store.delete_thread(thread, resource_id=whose(resource))
        if gone:
            await self._forget(thread, whose(resource))
        return gone

    async def export(self, thread: str, *, resource: str | None = None) -> dict[str, Any]:
        """A thread with its messages as an object that JSON can hold, in the stored form's names.

        Raises:
            UsageError: there is no such thread, or it belongs to another resource.
            StorageError: the store failed.
        """
        found = await self._store.thread(thread, resource_id=whose(resource))
        if found is None:
            raise UsageError(f"there is no thread {thread!r}")
        messages = await self._store.messages(thread, resource_id=whose(resource))
        return {
            "version": EXPORT_VERSION,
            "thread": {
                "id": found.id,
                "resourceId": found.resource_id,
                "title": found.title,
                "metadata": jsonable(found.metadata),
                "createdAt": _text(found.created_at),
                "updatedAt": _text(found.updated_at),
            },
            "messages": [
                jsonable({**message_to_row(message), "createdAt": _text(message.created_at)})
                for message in messages
            ],
        }

    async def import_(
        self, exported: Mapping[str, Any], *, resource: str | None = None, thread: str | None = None
    ) -> Thread:
        """Make a thread of what :meth:`export` gave.

        Args:
            exported: the object.
            resource: whose it will be; whose it was does not count.
            thread: another id for it: its messages then have new ids as well, so that it can stand beside the old.

        Raises:
            UsageError: this is no exported thread, or its id, or that of a message, is taken.
            StorageError: the store failed.
        """
        head, messages = _checked(exported)
        made = Thread(
            id=thread or str(head["id"]),
            resource_id=whose(resource),
            title=str(head.get("title") or ""),
            metadata=dict(head.get("metadata") or {}),
            created_at=_time(head.get("createdAt")),
            updated_at=_time(head.get("updatedAt")),
        )
        if thread is not None:
            messages = [message.replace(id=str(uuid.uuid4())) for message in messages]
        made = await self._store.create_thread(made)
        try:
            await self._store.save_turn(
                Turn(thread_id=made.id, resource_id=whose(resource), messages=messages)
            )
        except BaseException:
            await self._store.delete_thread(made.id, resource_id=whose(resource))
            raise
        return made


def check_page(page: int, per_page: int) -> None:
    """Refuse pages that cannot be.

    Raises:
        UsageError: a page before the first, or of an impossible size.
    """
    if page < 0 or not 1 <= per_page <= LARGEST_PAGE:
        raise UsageError(
            f"page counts from 0 and per_page is from 1 to {LARGEST_PAGE}, not page={page}, per_page={per_page}"
        )


def _checked(exported: Any) -> tuple[Mapping[str, Any], list[Message]]:
    if not is_mapping(exported) or exported.get("version") != EXPORT_VERSION:
        raise UsageError(
            f"an exported thread is an object with version {EXPORT_VERSION}, thread and messages, "
            f"not {described(exported)}"
        )
    head, rows = exported.get("thread"), exported.get("messages")
    if not is_mapping(head) or not head.get("id") or not is_list(rows):
        raise UsageError("an exported thread has a thread with an id, and a list of messages")
    return head, [message_from_row(row) for row in rows]


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat(timespec="milliseconds")


def _time(given: Any) -> datetime | None:
    try:
        return None if given is None else datetime.fromisoformat(str(given))
    except ValueError:
        raise UsageError(f"an exported thread's time must be ISO text, not {given!r}") from None
