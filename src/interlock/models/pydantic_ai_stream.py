"""From pydantic-ai's stream events to chunks. No I/O: events go in, chunks come out.

Rules kept here:

1. A text or reasoning block ends where pydantic-ai says the part ends; what comes for it later opens a block.
2. A call is complete when something else than a call begins, or at the end: providers may write several at a
   time. A call the provider runs itself is complete when its result is there.
3. What may still be replaced (a preview of an image) waits until something else comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, cast

import msgspec
from pydantic_ai.messages import (
    Citation,
    FilePart,
    ModelResponsePart,
    ModelResponseStreamEvent,
    NativeToolCallPart,
    NativeToolReturnPart,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    WebCitationSource,
)
from pydantic_ai.models import StreamedResponse

from interlock.core.chunks import (
    Chunk,
    File,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)
from interlock.models.openai_errors import excerpt
from interlock.models.pydantic_ai_metadata import native_call_metadata, part_metadata, plain

Json: TypeAlias = dict[str, Any]
AnyCall: TypeAlias = "ToolCallPart[Any] | NativeToolCallPart[Any]"


class _Call:
    """A tool call whose arguments are arriving."""

    __slots__ = ("arguments", "fields", "is_native", "part")

    def __init__(self, part: AnyCall) -> None:
        self.part = part
        self.is_native = isinstance(part, NativeToolCallPart)
        self.arguments: list[str] = []
        self.fields: Json | None = None

    def take(self, arguments: str | Json) -> str:
        """More of the arguments; returns them as text."""
        if isinstance(arguments, str):
            self.arguments.append(arguments)
            return arguments
        self.fields = {**(self.fields or {}), **arguments}
        return msgspec.json.encode(arguments, enc_hook=str).decode()


class EventReader:
    """Turns the events of one answer into chunks.

    Args:
        streamed: the answer; its provider is read from it.

    Attributes:
        called: whether a tool of ours was called.
    """

    def __init__(self, streamed: StreamedResponse) -> None:
        self.called = False
        self._streamed = streamed
        self._open: dict[int, TextStart | ReasoningStart] = {}
        self._blocks = 0
        self._calls: dict[int, _Call] = {}
        self._held: tuple[int, FilePart | NativeToolReturnPart[Any]] | None = None
        self._cited: set[str | None] = set()

    def quick(self, event: ModelResponseStreamEvent) -> TextDelta | None:
        """The chunk of an event that is more text of an open block, as nearly all are; None: ask :meth:`read`."""
        if type(event) is PartDeltaEvent:
            delta = event.delta
            start = self._open.get(event.index)
            if type(delta) is TextPartDelta and start is not None and not delta.citations_delta:
                return TextDelta(text=delta.content_delta, id=start.id) if delta.content_delta else None
        return None

    def read(self, event: ModelResponseStreamEvent) -> Iterator[Chunk]:
        """The chunks of one event."""
        if isinstance(event, PartDeltaEvent):
            delta = event.delta
            if isinstance(delta, TextPartDelta):
                if delta.content_delta:
                    start = self._open.get(event.index)
                    if start is None:
                        yield (start := self._opened(event.index, TextStart))
                    yield TextDelta(text=delta.content_delta, id=start.id)
                if delta.citations_delta:
                    yield from self._sources(delta.citations_delta)
            elif isinstance(delta, ThinkingPartDelta):
                yield from self._think(event.index, delta)
            elif isinstance(delta, ToolCallPartDelta):
                yield from self._call_delta(event.index, delta)
        elif isinstance(event, PartStartEvent):
            yield from self._start(event.index, event.part)
        elif isinstance(event, PartEndEvent):
            yield from self._end(event.index, event.part)

    def end(self) -> Iterator[Chunk]:
        """What was still open or held, once the stream has ended."""
        yield from self._release_held()
        for index in list(self._open):
            yield from self._close(index, None)
        yield from self._complete_calls(native=True)

    # ---------------------------------------------------------------------------------------- text, reasoning

    def _opened(self, index: int, kind: type[TextStart] | type[ReasoningStart]) -> TextStart | ReasoningStart:
        name = "text" if kind is TextStart else "reasoning"
        start = kind(id=f"{name}-{self._blocks}")
        self._blocks += 1
        self._open[index] = start
        return start

    def _start(self, index: int, part: ModelResponsePart) -> Iterator[Chunk]:
        if self._held is not None and self._held[0] != index:
            yield from self._release_held()
        match part:
            case TextPart() | ThinkingPart():
                yield from self._start_block(index, part)
            case ToolCallPart() | NativeToolCallPart():
                yield from self._start_call(index, cast("AnyCall", part))
            case FilePart() | NativeToolReturnPart():
                self._held = (index, part)
            case _:
                pass

    def _start_block(self, index: int, part: TextPart | ThinkingPart) -> Iterator[Chunk]:
        yield from self._complete_calls(native=False)
        if index in self._open:
            return
        if isinstance(part, TextPart):
            yield (start := self._opened(index, TextStart))
            if part.content:
                yield TextDelta(text=part.content, id=start.id)
            return
        yield (start := self._opened(index, ReasoningStart))
        if text := part.content or _raw(part.provider_details):
            yield ReasoningDelta(text=text, id=start.id)

    def _think(self, index: int, delta: ThinkingPartDelta) -> Iterator[Chunk]:
        text = delta.content_delta
        if not text and callable(delta.provider_details):
            text = _raw(delta.provider_details(None))  # open models' thoughts, which have no summary
        if not text:
            return
        start = self._open.get(index)
        if start is None:
            yield (start := self._opened(index, ReasoningStart))
        yield ReasoningDelta(text=text, id=start.id)

    def _end(self, index: int, part: ModelResponsePart) -> Iterator[Chunk]:
        if index in self._open:
            yield from self._close(index, part)
        elif index in self._calls and isinstance(part, ToolCallPart | NativeToolCallPart):
            self._calls[index].part = cast("AnyCall", part)

    def _close(self, index: int, part: ModelResponsePart | None) -> Iterator[Chunk]:
        start = self._open.pop(index)
        metadata = None
        if part is not None:
            metadata = part_metadata(part, self._streamed.provider_name, self._streamed.canonical_system)
        ended = TextEnd if isinstance(start, TextStart) else ReasoningEnd
        yield ended(id=start.id, provider_metadata=metadata)

    # -------------------------------------------------------------------------------------------------- tools

    def _start_call(self, index: int, part: AnyCall) -> Iterator[Chunk]:
        known = self._calls.get(index)
        if known is not None:  # the same call again, with its arguments in their final form
            known.part = part
            if isinstance(part.args, dict):
                known.fields, known.arguments = part.args, []
            return
        self._calls[index] = call = _Call(part)
        yield ToolInputStart(
            tool_call_id=part.tool_call_id,
            tool_name=part.tool_name,
            provider_executed=call.is_native or None,
        )
        if part.args is not None and part.args != "":
            yield from self._arguments(call, part.args)

    def _call_delta(self, index: int, delta: ToolCallPartDelta) -> Iterator[Chunk]:
        call = self._calls.get(index)
        if call is not None and delta.args_delta:
            yield from self._arguments(call, delta.args_delta)

    def _arguments(self, call: _Call, arguments: str | Json) -> Iterator[Chunk]:
        text = call.take(arguments)
        yield ToolInputDelta(
            tool_call_id=call.part.tool_call_id, args_text=text, tool_name=call.part.tool_name
        )

    def _complete_calls(self, *, native: bool) -> Iterator[Chunk]:
        for index, call in list(self._calls.items()):
            if native or not call.is_native:
                yield from self._complete(index, call)

    def _complete(
        self, index: int, call: _Call, result: NativeToolReturnPart[Any] | None = None
    ) -> Iterator[Chunk]:
        del self._calls[index]
        part = call.part
        provider, system = self._streamed.provider_name, self._streamed.canonical_system
        if isinstance(part, NativeToolCallPart):
            metadata = native_call_metadata(part, result, provider, system)
        else:
            metadata = part_metadata(part, provider, system)
            self.called = True
        args, invalid = self._parsed(call)
        yield ToolInputEnd(tool_call_id=part.tool_call_id)
        yield ToolCall(
            tool_call_id=part.tool_call_id,
            tool_name=part.tool_name,
            args=args,
            invalid=invalid,
            provider_executed=call.is_native or None,
            provider_metadata=metadata,
        )

    def _parsed(self, call: _Call) -> tuple[Any, str | None]:
        text = "".join(call.arguments)
        if not text.strip():
            return call.fields or {}, None
        try:
            return msgspec.json.decode(text), None
        except (msgspec.DecodeError, UnicodeEncodeError) as problem:
            cut = self._streamed.finish_reason == "length"
            why = "cut off at the token limit" if cut else "not valid JSON"
            return None, f"the arguments are {why} ({problem}): {excerpt(text)}"

    # ----------------------------------------------------------------------------------- results, files, sources

    def _release_held(self) -> Iterator[Chunk]:
        if self._held is None:
            return
        _, part = self._held
        self._held = None
        if isinstance(part, FilePart):
            yield File(
                mime_type=part.content.media_type,
                data=part.content.base64,
                provider_metadata=part_metadata(
                    part, self._streamed.provider_name, self._streamed.canonical_system
                ),
            )
            return
        for index, call in list(self._calls.items()):
            if call.part.tool_call_id == part.tool_call_id:
                yield from self._complete(index, call, part)
        yield ToolResult(
            tool_call_id=part.tool_call_id,
            tool_name=part.tool_name,
            result=plain(cast("object", part.content)),
            provider_executed=True,
            is_error=True if part.outcome == "failed" else None,
        )

    def _sources(self, citations: list[Citation]) -> Iterator[Chunk]:
        for citation in citations:
            for source in citation.sources:
                is_web = isinstance(source, WebCitationSource)
                key = source.url if is_web else source.document_id or source.title
                if key in self._cited:
                    continue
                self._cited.add(key)
                yield Source(
                    id=f"source-{len(self._cited) - 1}",
                    source_type="url" if is_web else "document",
                    url=source.url if is_web else None,
                    title=source.title,
                )


def _raw(details: Json | None) -> str:
    return "".join((details or {}).get("raw_content") or ())
