"""The order in which things leave: as they came, each behind what is not decided in front of it."""

from __future__ import annotations

from collections import deque

from msgspec import json

from interlock.core.errors import TripWireError
from interlock.sse.blocks import ends_block
from interlock.sse.entries import Entry

DONE = b"data: [DONE]\n\n"


class Outbox:
    """The line of what waits, and the bytes that may leave.

    Args:
        guarded: whether there are guards.
    """

    __slots__ = ("_guarded", "_out", "_unended", "_waiting")

    def __init__(self, *, guarded: bool) -> None:
        self._guarded = guarded
        self._waiting: deque[Entry] = deque()
        self._out: list[bytes] = []
        self._unended = False

    def add(self, *entries: Entry) -> None:
        """Behind all that waits."""
        self._waiting.extend(entries)

    def release(self) -> None:
        """Let out all in front of the first event that waits, and what is decided of that one's texts."""
        while self._waiting:
            entry = self._waiting[0]
            if not entry.decided:
                self._send(entry.take_part())
                return
            self._waiting.popleft()
            self._send(entry.rendered(guarded=self._guarded))

    def take(self) -> list[bytes]:
        """What may leave now; given once."""
        out, self._out = self._out, []
        return out

    def ending(self, block: TripWireError) -> bytes:
        """The end of a stream that is blocked; what waits does not leave."""
        error = {"message": block.reason, "type": "tripwire", "code": block.processor_id}
        return self._apart(b"data: " + json.encode({"error": error}) + b"\n\n" + DONE)

    def _send(self, out: bytes) -> None:
        if out:
            self._out.append(self._apart(out))
            self._unended = not ends_block(out)

    def _apart(self, out: bytes) -> bytes:
        """Not to be read as one event with what left last, should that lack its end."""
        return b"\n\n" + out if self._unended else out
