"""The guards in front of an existing application: an OpenAI chat completion's SSE bytes in, the same form out.

Bytes become lines (``sse/lines.py``), lines the blocks of events (``sse/blocks.py``). What an event says of a choice
(``sse/choices.py``) is pieces of texts, each on its way through the guards (``sse/texts.py``), and pieces of calls,
kept to the choice's end (``sse/calls.py``, ``sse/arguments.py``). The event itself stands in a line (``sse/outbox.py``)
until all in front of it and of its own texts is decided, and leaves as it came or changed (``sse/entries.py``).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import cast

import msgspec
from msgspec import json

from interlock.core.errors import TripWireError, UsageError
from interlock.guarding import Guard, open_tracks, pieces_of
from interlock.sse.blocks import Block, BlockReader
from interlock.sse.choices import Choice
from interlock.sse.entries import Entry, added, frame_of
from interlock.sse.lines import LineReader
from interlock.sse.outbox import Outbox
from interlock.sse.shapes import Json, Unreadable, list_of, object_of, of_chat
from interlock.sse.sources import guard_sources
from interlock.sse.texts import texts_of

log = logging.getLogger("interlock")


async def guard_sse(
    stream: AsyncIterable[bytes] | Iterable[bytes], guards: Sequence[Guard]
) -> AsyncGenerator[bytes, None]:
    """The SSE bytes of a streamed OpenAI chat completion through guards, as they arrive.

    Each choice's content, reasoning and refusal is one text, whose pieces leave as soon as they are decided; the
    arguments of a tool call leave at once, before the choice's finish reason. Everything else passes as it is and in
    its order, behind the text in front of it. A guard sees what its ``channels`` name: content and refusals are
    ``text``, ``reasoning`` and ``tool-arguments`` are what they say, ``sources`` are annotations and citations.

    Log probabilities repeat the text token by token: they stay where they belong to text that passed as it came, and
    are null elsewhere. A choice's ``message``, which some providers send along with its deltas, is left out.

    A block ends the stream: an event ``{"error": {"message": ..., "type": "tripwire", "code": "<processor id>"}}``,
    then ``[DONE]``. So does what cannot be read, an event of another API too, unless all guards have the
    ``error_strategy`` ``warn``: then it is left out. It is never passed on.

    Args:
        stream: the response's bytes, sync or async, cut anywhere. An async generator is closed at the end.
        guards: guards such as ``RegexFilter``, or of your own (SpanGuard, UnitGuard), in order; see
            :func:`interlock.guard_stream`. A unit of reasoning ends where text follows it.

    Yields:
        Whole events; never an empty piece.

    Raises:
        UsageError: something that is no guard; a piece that is no bytes.

    >>> import asyncio
    >>> from interlock.processors import RegexFilter
    >>> def event(content: str) -> bytes:
    ...     return b'data: {"choices": [{"index": 0, "delta": {"content": "%s"}}]}\\n\\n' % content.encode()
    >>> async def guarded() -> None:
    ...     upstream = [event("Hi, "), event("pin 12"), event("34."), b"data: [DONE]\\n\\n"]
    ...     async for out in guard_sse(upstream, [RegexFilter({"pin": r"\\d{4}"})]):
    ...         print(out.decode().strip())
    >>> asyncio.run(guarded())
    data: {"choices": [{"index": 0, "delta": {"content": "Hi, "}}]}
    data: {"choices":[{"index":0,"delta":{"content":"pin "},"finish_reason":null}]}
    data: {"choices":[{"index":0,"delta":{"content":"[PIN]"}}]}
    data: {"choices":[{"index":0,"delta":{"content":"."}}]}
    data: [DONE]
    """
    completion = _Completion(guards)
    async with aclosing(pieces_of(stream)) as pieces:
        try:
            try:
                async for piece in pieces:
                    for line in completion.lines(piece):
                        await completion.read_line(line)
                        for out in completion.outbox.take():
                            yield out
                await completion.end()
                for out in completion.outbox.take():
                    yield out
            except TripWireError as block:
                yield completion.outbox.ending(block)
        finally:
            if isinstance(stream, AsyncGenerator):
                await cast("AsyncGenerator[bytes, None]", stream).aclose()


class _Completion:
    """A completion's bytes in; what may leave is in the outbox. No I/O."""

    def __init__(self, guards: Sequence[Guard]) -> None:
        open_tracks(guards, [])  # tells whether these are guards
        self.outbox = Outbox(guarded=bool(guards))
        self._guards = list(guards)
        self._of_sources = [guard for guard in guards if "sources" in guard.channels]
        self._lines = LineReader()
        self._blocks = BlockReader()
        self._choices: dict[int, Choice] = {}
        self._frame: Json = {}

    def lines(self, piece: bytes) -> Iterator[bytes]:
        """The lines that are complete now; to be read one by one, so that what is before a block leaves.

        Raises:
            UsageError: no bytes.
        """
        if not isinstance(piece, bytes | bytearray | memoryview):
            raise UsageError(
                "guard_sse takes the response's bytes piece by piece, as response.aiter_bytes() gives them, "
                f"not {type(piece).__name__}"
            )
        return self._lines.feed(piece)

    async def read_line(self, line: bytes) -> None:
        """One line, with its end."""
        try:
            block = self._blocks.feed(line)
        except Unreadable as problem:
            self._leave_out(problem)
            return
        if block is not None:
            await self._read_block(block)

    async def end(self) -> None:
        """The stream has ended, perhaps within an event."""
        for line in self._lines.end():
            await self.read_line(line)
        if (block := self._blocks.end()) is not None:
            await self._read_block(block)
        await self._finish_all()
        self.outbox.release()

    async def _read_block(self, block: Block) -> None:
        try:
            await self._read_data(block)
        except Unreadable as problem:
            self._leave_out(problem)
        except RecursionError:
            self._leave_out(Unreadable("an event is nested too deeply"))
        self.outbox.release()

    def _leave_out(self, problem: Unreadable) -> None:
        """What cannot be read does not pass; whether the stream goes on without it is the guards' choice (R5.4)."""
        for guard in self._guards:
            if guard.error_strategy == "strict":
                reason = f"the stream could not be read: {problem}"
                raise TripWireError(reason, processor_id=guard.id, metadata={"check_failed": True})
        log.warning("guard_sse left out what could not be read: %s", problem)

    async def _read_data(self, block: Block) -> None:
        data = block.data.strip()
        if data == b"[DONE]":
            await self._finish_all()
        if data in (b"", b"[DONE]"):
            self.outbox.add(Entry(block.lines))
        else:
            await self._read_event(Entry(block.lines, _event(block.data)))

    async def _read_event(self, entry: Entry) -> None:
        event = cast(Json, entry.event)
        if self._guards and not of_chat(event):
            raise Unreadable("an event is of another API than chat completions")
        choices = [object_of(choice, "a choice") for choice in list_of(event.get("choices"), "choices")]
        self._frame = frame_of(event) or self._frame
        entry.changed |= await guard_sources(event, self._of_sources)
        before: list[Entry] = []
        for choice in choices:
            before.extend(await self._read_choice(choice, entry))
        self.outbox.add(*before, entry)

    async def _read_choice(self, given: Json, entry: Entry) -> list[Entry]:
        """What an event says of a choice. Returns the events that go in front of it."""
        choice = self._choice_of(given)
        if self._guards and "message" in given:  # some providers repeat the whole text in it
            del given["message"]
            entry.changed = True
        texts = list(texts_of(given))
        delta: Json = given.get("delta") or {}
        slots = list(choice.calls.in_delta(delta)) if choice.guards_of("tool-arguments") else []
        for found in texts:
            entry.pieces.append((given, found.piece))
            await choice.push(found)
        for slot in slots:
            entry.changed |= choice.keep_arguments(slot)
        entry.changed |= await guard_sources(delta, self._of_sources)
        if not given.get("finish_reason"):
            return []
        await choice.finish()
        here = {id(slot.call): slot for slot in slots if slot.fits}
        before: list[Entry] = []
        for call, arguments in await choice.take_arguments():
            if (slot := here.get(id(call))) is not None:
                slot.holder[slot.key] = arguments
                entry.changed = True
            else:
                before.append(added(self._frame, choice.index, call.delta(arguments)))
        return before

    def _choice_of(self, given: Json) -> Choice:
        index = given.get("index", 0)
        if not isinstance(index, int):
            raise Unreadable("a choice's index is no number")
        if index not in self._choices:
            self._choices[index] = Choice(index, self._guards)
        return self._choices[index]

    async def _finish_all(self) -> None:
        """There is no more of any choice."""
        for choice in self._choices.values():
            await choice.finish()
            for call, arguments in await choice.take_arguments():
                self.outbox.add(added(self._frame, choice.index, call.delta(arguments)))


def _event(data: bytes) -> Json:
    try:
        return object_of(json.decode(data), "an event")
    except (msgspec.DecodeError, RecursionError):
        raise Unreadable("an event is not valid JSON") from None
