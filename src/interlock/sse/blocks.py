"""Lines in, blocks out: a block is the lines of one event, or a comment between events."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import json

from interlock.sse.lines import BOM
from interlock.sse.shapes import Json, Unreadable

FIELDS = frozenset({b"data", b"event", b"id", b"retry"})


class Block(NamedTuple):
    """Lines that belong together, as they came, and the data they carry."""

    lines: list[bytes]
    data: bytes


class BlockReader:
    """Puts lines together. Joined, the blocks' lines are the lines, but for those that cannot be read."""

    __slots__ = ("_begun", "_data", "_lines")

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._data: list[bytes] = []
        self._begun = False

    def feed(self, line: bytes) -> Block | None:
        """One line, with its end. Returns the block that is complete with it.

        Raises:
            Unreadable: a line that is no field: it could hold anything. It is left out.
        """
        begun, self._begun = self._begun, True
        if line == BOM and not begun:
            return Block([line], b"")
        content = line.rstrip(b"\r\n")
        if not content:
            self._lines.append(line)
            return self._complete()
        name, _, value = content.partition(b":")
        if not name and not self._lines:
            return Block([line], b"")  # a comment between events does not wait for more
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name and name not in FIELDS:
            raise Unreadable("a line that is no SSE field")
        self._lines.append(line)
        return None

    def end(self) -> Block | None:
        """The stream has ended, perhaps within an event: what there is of it."""
        return self._complete() if self._lines else None

    def _complete(self) -> Block:
        block = Block(self._lines, b"\n".join(self._data))
        self._lines, self._data = [], []
        return block


def with_data(lines: list[bytes], event: Json) -> bytes:
    """An event's lines with other data; where they do not end the event, it is ended."""
    out: list[bytes] = []
    written = False
    for line in lines:
        if not (line.startswith(b"data:") or line.rstrip(b"\r\n") == b"data"):
            out.append(line)
        elif not written:
            written = True
            out.append(b"data: " + json.encode(event) + (_end_of(line) or b"\n"))
    if lines[-1].strip(b"\r\n"):
        out.append(b"\n")  # the stream ended within the event
    return b"".join(out)


def _end_of(line: bytes) -> bytes:
    return line[len(line.rstrip(b"\r\n")) :]


def ends_block(out: bytes) -> bool:
    """Whether what follows is a block of its own; not so where the stream ended within one."""
    if out == BOM or not out.strip(b"\r\n"):
        return True
    line_ends = out[-4:].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return line_ends.endswith(b"\n\n") or (out.startswith(b":") and line_ends.endswith(b"\n"))
