"""Bytes in, lines out: an event stream's lines with their ends, wherever the bytes were cut."""

from __future__ import annotations

import re
from collections.abc import Iterator

BOM = b"\xef\xbb\xbf"
"""A byte order mark, which may stand in front of the first line."""

LINE_END = re.compile(rb"\r\n|\n|\r")


class LineReader:
    """Cuts bytes into lines. Joined, the lines are the bytes, to the last one."""

    __slots__ = ("_begun", "_buffer", "_searched")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0  # up to here there is no line's end
        self._begun = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The lines that are complete with this piece. Read them all before the next one."""
        self._buffer += piece
        return self._lines(final=False)

    def end(self) -> Iterator[bytes]:
        """The stream has ended: what is left, perhaps a line without an end."""
        return self._lines(final=True)

    def _lines(self, *, final: bool) -> Iterator[bytes]:
        buffer = self._buffer
        if not self._begun:
            if not final and len(buffer) < len(BOM) and BOM.startswith(buffer):
                return
            self._begun = True
            if buffer.startswith(BOM):
                del buffer[: len(BOM)]
                yield BOM
        if not final and buffer.find(b"\n", self._searched) < 0 and buffer.find(b"\r", self._searched) < 0:
            self._searched = len(buffer)
            return
        text, at, start = bytes(buffer), self._searched, 0
        while (found := LINE_END.search(text, at)) is not None:
            if found[0] == b"\r" and found.end() == len(text) and not final:
                break  # an LF may follow
            yield text[start : found.end()]
            start = at = found.end()
        if final and start < len(text):
            yield text[start:]
            start = len(text)
        del buffer[:start]
        self._searched = len(buffer) - buffer.endswith(b"\r")
