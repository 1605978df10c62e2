"""Rows of the reference's tables as messages and threads, and back; what cannot be read is told with its id."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from interlock.core.errors import StorageError, UsageError
from interlock.core.jsonable import jsonable
from interlock.core.messages import Message
from interlock.core.shapes import is_list, is_mapping
from interlock.core.stored import message_from_row, message_to_row
from interlock.memory import jsonb
from interlock.memory.store import Thread

FORMAT = "v2"
"""The ``type`` of rows whose content is an object with parts; other rows are older."""


def message_values(
    message: Message, thread_id: str, resource_id: str | None, time: datetime
) -> dict[str, Any]:
    """A message as the columns of ``mastra_messages``."""
    return {
        "id": message.id,
        "thread_id": thread_id,
        "content": encoded(message_to_row(message)["content"]),
        "role": message.role,
        "type": FORMAT,
        "createdAt": time,
        "resourceId": resource_id,
    }


def message_of(row: Mapping[str, Any]) -> Message:
    """A row of ``mastra_messages`` as a message.

    Raises:
        StorageError: the row is corrupt; the text says which one.
    """
    try:
        if not isinstance(row["createdAt"], datetime):
            raise UsageError(f"createdAt is no time but {row['createdAt']!r}")
        return message_from_row(
            {
                "id": row["id"],
                "role": row["role"],
                "createdAt": row["createdAt"],
                "threadId": row["thread_id"],
                "resourceId": row["resourceId"],
                "content": _content(row["content"], row["type"]),
            }
        )
    except (UsageError, ValueError, TypeError, AttributeError) as problem:
        raise StorageError(
            f"message {row['id']!r} of thread {row['thread_id']!r} is corrupt ({problem}): repair its row in "
            "mastra_messages, or delete it with delete_messages"
        ) from None


def _content(stored: str, kind: str) -> Any:
    """The content; that of old rows is a text, or a list of parts."""
    try:
        content = decoded(stored)
    except ValueError:
        if kind == FORMAT:
            raise ValueError("its content is no JSON") from None
        content = stored
    if is_mapping(content):
        return content
    if is_list(content):
        return {"format": 2, "parts": content}
    if kind == FORMAT:
        raise ValueError("its content is no object")
    return {"format": 2, "parts": [{"type": "text", "text": stored}]}


def thread_of(row: Mapping[str, Any]) -> Thread:
    """A row of ``mastra_threads`` as a thread.

    Raises:
        StorageError: the row is corrupt; the text says which one.
    """
    return Thread(
        id=row["id"],
        resource_id=row["resourceId"] or None,
        title=row["title"],
        metadata=metadata_of(row),
        created_at=_time(row, "createdAt"),
        updated_at=_time(row, "updatedAt"),
    )


def metadata_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """A thread's metadata, from JSON as text, as SQLite's binary form, or already read (also as JSON in JSON)."""
    stored = row["metadata"]
    try:
        if isinstance(stored, bytes):
            stored = jsonb.decode(stored)
        if isinstance(stored, str):
            stored = decoded(stored)
    except ValueError:
        stored = False
    if stored is not None and not is_mapping(stored):
        raise StorageError(
            f"the metadata of thread {row['id']!r} is corrupt: repair its row in mastra_threads, or delete the thread"
        )
    return dict(stored or {})


def _time(row: Mapping[str, Any], name: str) -> datetime:
    time = row[name]
    if isinstance(time, datetime):
        return time
    raise StorageError(f"the {name} of thread {row['id']!r} is no time: repair its row in mastra_threads")


def encoded(value: Any) -> str:
    """A value as JSON text. Half of a surrogate pair, and numbers beyond 64 bits, are kept too."""
    plain = jsonable(value)
    try:
        return msgspec.json.encode(plain).decode()
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(plain)


def decoded(text: str) -> Any:
    """JSON text as a value.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return json.loads(text)
