"""Held chunks as the messages now have them (spec R7.5).

A part edited since goes out as one delta of its final text, an added one as a block of its own, a removed one not at
all; where nothing was edited, the chunks go out as they came. If hooks changed the order of the parts, each part's
chunks go out together in the new order, since text has to reach the client in the order in which it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

from msgspec import json

from interlock.core.chunks import (
    Chunk,
    DataChunk,
    File,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    StepFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolError,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)
from interlock.core.messages import (
    DataPart,
    FilePart,
    Mark,
    Part,
    ReasoningPart,
    SourcePart,
    TextPart,
    ToolInvocationPart,
)

Held: TypeAlias = tuple[Chunk, Mark | None, int]
"""A chunk, the mark of the part it belongs to, if any, and the step it was held in."""
_Marked: TypeAlias = tuple[Chunk, Mark | None]
_TOOL_INPUT = (ToolInputStart, ToolInputDelta, ToolInputEnd)


def as_they_stand(held: list[Held], parts: Iterable[Part], sent: set[Mark]) -> Iterator[Chunk]:
    """The held chunks, rewritten to what the parts now are.

    Args:
        held: the chunks as they were held.
        parts: the response's parts, in order.
        sent: marks of parts the client has already.
    """
    segments = {step: [(c, m) for c, m, _ in items] for step, items in groupby(held, key=itemgetter(2))}
    segments = {step: _with_tool_inputs(items) for step, items in segments.items()}
    places = _places([part for part in parts if part.mark is not None and part.mark not in sent])
    pool: dict[Mark, list[Chunk]] = {}
    for items in segments.values():
        for chunk, mark in items:
            if mark is not None:
                pool.setdefault(mark, []).append(chunk)
    for step in sorted({*segments, *places}):
        yield from _Segment(segments.get(step, []), places.get(step, []), pool).chunks()


def _places(parts: list[Part]) -> dict[int, list[Part]]:
    """The parts by the step they leave with: their own, or an earlier one that has parts behind them."""
    places: dict[int, list[Part]] = {}
    step: int | None = None
    for part in reversed(parts):
        assert part.mark is not None
        step = part.mark.step if step is None else min(step, part.mark.step)
        places.setdefault(step, []).append(part)
    return {step: own[::-1] for step, own in places.items()}


class _Segment:
    """The held chunks of one step beside the parts that leave with it."""

    def __init__(self, held: list[_Marked], parts: list[Part], pool: dict[Mark, list[Chunk]]) -> None:
        self._held = held
        self._parts = {part.mark: part for part in parts if part.mark is not None}
        self._pool = pool
        self._said: dict[Mark, str] = {}
        self._rewritten: set[Any] = set()

    def chunks(self) -> Iterator[Chunk]:
        """The step's chunks, rewritten."""
        before = list(dict.fromkeys(mark for _, mark in self._held if mark in self._parts))
        now = [mark for mark in self._parts if mark in self._pool]
        return self._as_they_came() if before == now else self._reordered()

    def _as_they_came(self) -> Iterator[Chunk]:
        added = self._added()
        last_use = {mark: index for index, (_, mark) in enumerate(self._held)}
        front = added.pop(None, [])
        for index, (chunk, mark) in enumerate(self._held):
            if front and (mark is not None or isinstance(chunk, StepFinish)):
                yield from _new_blocks(front)
                front = []
            yield from self._rewrite(chunk, mark)
            if mark is not None and last_use[mark] == index:
                yield from _new_blocks(added.pop(mark, []))
        yield from _new_blocks(front)

    def _reordered(self) -> Iterator[Chunk]:
        edges = [chunk for chunk, mark in self._held if mark is None]
        yield from (chunk for chunk in edges if not isinstance(chunk, StepFinish))
        results: list[tuple[Chunk, Mark]] = []
        for mark, part in self._parts.items():
            if mark not in self._pool:
                yield from _new_block(part)
            for chunk in self._pool.get(mark, ()):
                if isinstance(chunk, ToolResult | ToolError):
                    results.append((chunk, mark))
                else:
                    yield from self._rewrite(chunk, mark)
        for chunk, mark in results:
            yield from self._rewrite(chunk, mark)
        yield from (chunk for chunk in edges if isinstance(chunk, StepFinish))

    def _added(self) -> dict[Mark | None, list[Part]]:
        """Parts that hooks added, under the mark of the held part they stand behind."""
        added: dict[Mark | None, list[Part]] = {}
        behind: Mark | None = None
        for mark, part in self._parts.items():
            if mark in self._pool:
                behind = mark
            else:
                added.setdefault(behind, []).append(part)
        return added

    def _rewrite(self, chunk: Chunk, mark: Mark | None) -> Iterator[Chunk]:
        if mark is None:
            yield chunk
        elif (part := self._parts.get(mark)) is not None:
            if mark not in self._said:
                self._said[mark] = _said(self._pool[mark])
            yield from _part_chunk(chunk, part, self._said[mark], self._rewritten)


def _with_tool_inputs(held: list[_Marked]) -> list[_Marked]:
    """The chunks with streamed arguments marked as parts of the call they lead to, or left out if there is none."""
    calls = {chunk.tool_call_id: mark for chunk, mark in held if isinstance(chunk, ToolCall)}
    marked: list[_Marked] = []
    for chunk, mark in held:
        if not isinstance(chunk, _TOOL_INPUT):
            marked.append((chunk, mark))
        elif chunk.tool_call_id in calls:
            marked.append((chunk, calls[chunk.tool_call_id]))
    return marked


def _said(chunks: list[Chunk]) -> str:
    """What a part's deltas say: its text, or a call's streamed arguments."""
    pieces: list[str] = []
    for chunk in chunks:
        if isinstance(chunk, TextDelta | ReasoningDelta):
            pieces.append(chunk.text)
        elif isinstance(chunk, ToolInputDelta):
            pieces.append(chunk.args_text)
    return "".join(pieces)


def _part_chunk(chunk: Chunk, part: Part, original: str, rewritten: set[Any]) -> Iterator[Chunk]:
    match chunk, part:
        case ((TextDelta() | ReasoningDelta()), (TextPart() | ReasoningPart())):
            if part.text == original:
                yield chunk
            elif part.mark not in rewritten:
                rewritten.add(part.mark)
                yield chunk.replace(text=part.text)
        case ((TextStart() | ReasoningStart()), (TextPart() | ReasoningPart())):
            yield chunk
        case ((TextEnd() | ReasoningEnd()), (TextPart() | ReasoningPart())):
            if not original and part.text and part.mark not in rewritten:
                rewritten.add(part.mark)
                delta = TextDelta if isinstance(chunk, TextEnd) else ReasoningDelta
                yield delta(id=chunk.id, text=part.text)
            yield chunk
        case ((ToolInputStart() | ToolInputDelta() | ToolInputEnd()), ToolInvocationPart()):
            yield from _tool_input(chunk, part, original, rewritten)
        case ToolCall(), ToolInvocationPart():
            yield chunk if chunk.args == part.args else chunk.replace(args=part.args)
        case ToolResult(), ToolInvocationPart():
            yield (
                chunk if chunk.result == part.result or chunk.is_error else chunk.replace(result=part.result)
            )
        case ToolError(), ToolInvocationPart():
            yield chunk if chunk.error == part.error_text else chunk.replace(error=part.error_text or "")
        case _:
            yield from _new_block(part)


def _tool_input(
    chunk: Chunk, part: ToolInvocationPart, streamed: str, rewritten: set[Any]
) -> Iterator[Chunk]:
    """Streamed arguments; of changed ones nothing goes out but one delta of the final arguments."""
    if not isinstance(chunk, ToolInputDelta) or _same_json(streamed, part.args):
        yield chunk
    elif part.mark not in rewritten:
        rewritten.add(part.mark)
        yield chunk.replace(args_text=json.encode(part.args).decode())


def _same_json(text: str, value: Any) -> bool:
    try:
        return json.decode(text or "{}") == value
    except ValueError:
        return value is None


def _new_blocks(parts: Iterable[Part]) -> Iterator[Chunk]:
    for part in parts:
        yield from _new_block(part)


def _new_block(part: Part) -> Iterator[Chunk]:
    """The chunks that bring a part to the client whole."""
    serial = part.mark.serial if part.mark else 0
    match part:
        case TextPart(type="text"):
            block = part.id or f"added-{serial}"
            yield TextStart(id=block)
            yield TextDelta(id=block, text=part.text)
            yield TextEnd(id=block)
        case ReasoningPart(type="reasoning"):
            block = part.id or f"added-{serial}"
            yield ReasoningStart(id=block)
            yield ReasoningDelta(id=block, text=part.text)
            yield ReasoningEnd(id=block)
        case ToolInvocationPart():
            yield ToolCall(
                tool_call_id=part.tool_call_id,
                tool_name=part.tool_name,
                args=part.args,
                provider_executed=part.provider_executed,
            )
        case SourcePart():
            yield source_chunk(part)
        case FilePart():
            yield File(mime_type=part.mime_type, data=part.data, provider_metadata=part.provider_metadata)
        case DataPart():
            yield DataChunk(type=part.type, data=part.data, id=part.id)
        case _:
            return


def source_chunk(part: SourcePart) -> Source:
    """A source part as a chunk."""
    fields = part.source
    return Source(
        id=str(fields.get("id") or ""),
        source_type=str(fields.get("sourceType") or "url"),
        url=fields.get("url"),
        title=fields.get("title"),
        media_type=fields.get("mimeType"),
        filename=fields.get("filename"),
        provider_metadata=part.provider_metadata,
    )
