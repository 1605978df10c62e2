"""What leaves when: everything in its order, behind what is not decided in front of it."""

from __future__ import annotations

from typing import Any

from interlock import TripWireError
from interlock.sse.entries import Entry
from interlock.sse.outbox import DONE, Outbox
from interlock.sse.texts import Piece


def waiting(content: str) -> tuple[Entry, Piece]:
    """An event whose text is not decided, and that text."""
    choice: dict[str, Any] = {"index": 0, "delta": {"content": content}}
    entry = Entry([b"data: ...\n", b"\n"], {"choices": [choice]})
    piece = Piece(choice["delta"], "content")
    entry.pieces.append((choice, piece))
    return entry, piece


def test_order() -> None:
    """What waits holds up what is behind it, not what is in front; what is decided of it leaves."""
    outbox = Outbox(guarded=True)
    entry, piece = waiting("ab12")
    outbox.add(Entry([b": one\n"]), entry, Entry([b": two\n"]))
    outbox.release()
    assert outbox.take() == [b": one\n"]
    piece.out = "ab"
    outbox.release()
    (part,) = outbox.take()
    assert b'"content":"ab"' in part
    outbox.release()
    assert outbox.take() == []
    piece.out, piece.done = "[PIN]", True
    outbox.release()
    rest, behind = outbox.take()
    assert b'"content":"[PIN]"' in rest
    assert behind == b": two\n"


def test_a_block_ends_it() -> None:
    """An error event that says who blocked, then the end; what waits does not leave (R5.2)."""
    outbox = Outbox(guarded=True)
    entry, _ = waiting("12")
    outbox.add(entry)
    outbox.release()
    assert outbox.take() == []
    error = b'data: {"error":{"message":"why","type":"tripwire","code":"guard"}}\n\n'
    assert outbox.ending(TripWireError("why", processor_id="guard")) == error + DONE


def test_what_follows_an_event_without_an_end_is_an_event_of_its_own() -> None:
    """The stream may break off within an event; what is sent behind it is not read as a part of it."""
    outbox = Outbox(guarded=True)
    outbox.add(Entry([b"data: {}"]), Entry([b"data: [DONE]\n", b"\n"]))
    outbox.release()
    assert outbox.take() == [b"data: {}", b"\n\n" + DONE]
    outbox.add(Entry([b"event: x\n"]))
    outbox.release()
    outbox.take()
    assert outbox.ending(TripWireError("why", processor_id="guard")).startswith(b"\n\ndata: ")
