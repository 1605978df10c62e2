"""Partial objects on their way to the client: read from the very text that goes out, chunk by chunk (spec R0).

This stands behind the release policy, where a chunk leaves for good: what a guard holds, changes or takes back is in
no partial object, under any policy.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from interlock.core.chunks import Chunk, PartialObject, StepFinish, StepStart, TextDelta
from interlock.core.delivery import Sink

GROWTH = 32
"""A text is read again when it has grown by one part in this many: a stream of any length costs linear time."""


class ObjectReader:
    """Reads an object out of a text that is still growing.

    Args:
        read: gives what a text says so far, or None.
    """

    __slots__ = ("_length", "_next", "_pieces", "_read", "said")

    def __init__(self, read: Callable[[str], Any]) -> None:
        self._read = read
        self._pieces: list[str] = []
        self._length = 0
        self._next = 0
        self.said: Any = None

    def push(self, text: str) -> bool:
        """Take more text. Returns whether ``said``, the object so far, is another one now."""
        self._pieces.append(text)
        self._length += len(text)
        if self._length < self._next:
            return False
        self._next = self._length + self._length // GROWTH
        self._pieces = ["".join(self._pieces)]
        said = self._read(self._pieces[0])
        if said is None or said == self.said:
            return False
        self.said = said
        return True


class PartialObjects:
    """Sends an ``object`` chunk behind the delta that changed what the text says.

    Args:
        sink: the way to the client.
        readers: for each step by its number, what reads its text so far; none where nothing is to be read.
    """

    def __init__(self, sink: Sink, readers: Mapping[int, Callable[[str], Any]]) -> None:
        self._sink = sink
        self._readers = readers
        self._step = 0
        self._reader: ObjectReader | None = None

    def put(self, chunk: Chunk) -> Awaitable[object] | None:
        """Pass a chunk on, and what it adds to the object."""
        pending = self._sink(chunk)
        reader = self._reader
        if type(chunk) is TextDelta:
            if reader is None or not reader.push(chunk.text):
                return pending
            return _both(pending, self._sink(PartialObject(reader.said)))
        if type(chunk) is StepStart:
            read = self._readers.get(self._step)
            self._reader = None if read is None else ObjectReader(read)
        elif type(chunk) is StepFinish:
            self._step += chunk.finish_reason != "retry"
            self._reader = None
        return pending


def _both(first: Awaitable[object] | None, second: Awaitable[object] | None) -> Awaitable[object] | None:
    if first is None or second is None:
        return first or second
    return _one_after_the_other(first, second)


async def _one_after_the_other(first: Awaitable[object], second: Awaitable[object]) -> None:
    await first
    await second
