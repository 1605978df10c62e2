"""From the events of a streamed chat completion to chunks. No I/O: events go in as text, chunks come out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias
from uuid import uuid4

import msgspec
from msgspec import Struct

from interlock.core.chunks import (
    Chunk,
    Finish,
    Metadata,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    Source,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Usage,
)
from interlock.core.errors import ModelError
from interlock.core.shapes import is_dict
from interlock.models.openai_errors import excerpt, stream_error
from interlock.models.openai_messages import DETAILS, EXTRA

Json: TypeAlias = dict[str, Any]

FINISH_REASONS = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
    "error": "error",
}


class _Function(Struct):
    name: str | None = None
    arguments: str | Json | None = None


class _ToolDelta(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: Any = None


class _Delta(Struct):
    content: str | list[Json] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: Any = None
    reasoning_details: list[Json] | None = None
    tool_calls: list[_ToolDelta] | None = None
    annotations: list[Json] | None = None


class _Details(Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None  # DeepSeek's name


class _Choice(Struct):
    index: int = 0
    delta: _Delta | None = None
    finish_reason: str | None = None
    logprobs: Json | None = None
    usage: _Usage | None = None  # Moonshot's place for it


class _Event(Struct):
    id: str | None = None
    model: str | None = None
    created: float | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    object: str | None = None
    message: Any = None


class _Call:
    """A tool call whose arguments are arriving."""

    __slots__ = ("arguments", "extra", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments = ""
        self.extra: Any = None


class AnswerReader:
    """Turns the events of one answer into chunks.

    Args:
        provider: under whose name provider metadata is filed.
        request: the request's body, for the StepStart.
        warnings: likewise.

    Attributes:
        headers: of the response, for the ResponseMetadata.
        done: set once the provider's end mark ``[DONE]`` came.
        finish_reason: the provider's, once it came.
    """

    def __init__(
        self,
        *,
        provider: str,
        request: Json | None = None,
        warnings: list[Json] | None = None,
    ) -> None:
        self.headers: dict[str, str] | None = None
        self.done = False
        self.finish_reason: str | None = None
        self._provider = provider
        self._opening = StepStart(request=request, warnings=list(warnings or ()))
        self._last = ""
        self._block: Literal["text", "reasoning"] | None = None
        self._blocks = 0
        self._calls: list[_Call] = []
        self._by_index: dict[int | None, _Call] = {}
        self._called = False
        self._usage = Usage()
        self._logprobs: list[Any] = []
        self._details: list[Json] = []
        self._cited: list[str] = []
        self._refused = False

    def read(self, data: str, *, is_error: bool = False) -> Iterator[Chunk]:
        """The chunks of one event.

        Args:
            data: the event's data, JSON text.
            is_error: the event is of type ``error``.

        Raises:
            ModelError: the event reports an error, or cannot be read.
        """
        event = _decode(data, is_error)
        if not self._last:
            yield self._opening
            yield self._metadata(event)
        self._last = data
        if event.usage is not None:
            self._usage = _usage(event.usage)
        for choice in event.choices or ():
            if choice.index == 0:
                yield from self._read_choice(choice)

    def end(self) -> Iterator[Chunk]:
        """The last chunks, once the stream has ended.

        Raises:
            ModelError: it ended too early.
        """
        if self.finish_reason is None and not self.done:
            came = f"the last event was {excerpt(self._last)}" if self._last else "no event came at all"
            raise ModelError(
                f"the stream was cut off, without a finish reason or [DONE]; {came}",
                retryable=True,
                body=self._last or None,
            )
        if not self._last:
            yield self._opening
        yield from self._complete()
        yield Finish(
            finish_reason=self._final_reason(), usage=self._usage, provider_metadata=self._provider_metadata()
        )

    def _metadata(self, event: _Event) -> ResponseMetadata:
        return ResponseMetadata(
            id=event.id or None,
            model_id=event.model or None,
            timestamp=datetime.fromtimestamp(event.created, UTC) if event.created else None,
            headers=self.headers,
        )

    def _read_choice(self, choice: _Choice) -> Iterator[Chunk]:
        if choice.delta is not None:
            yield from self._read_delta(choice.delta)
        if choice.logprobs:
            self._logprobs.extend(choice.logprobs.get("content") or choice.logprobs.get("refusal") or ())
        if choice.usage is not None:
            self._usage = _usage(choice.usage)
        if choice.finish_reason:
            self.finish_reason = choice.finish_reason
            yield from self._complete()

    def _read_delta(self, delta: _Delta) -> Iterator[Chunk]:
        text, reasoning = _texts(delta)
        if reasoning or delta.reasoning_details:
            yield from self._enter("reasoning")
            _join_details(self._details, delta.reasoning_details or ())
        if reasoning:
            yield ReasoningDelta(text=reasoning, id=self._block_id())
        if delta.refusal:
            self._refused = True
        if text:
            yield from self._enter("text")
            yield TextDelta(text=text, id=self._block_id())
        for annotation in delta.annotations or ():
            yield from self._cite(annotation)
        for piece in delta.tool_calls or ():
            yield from self._leave()
            yield from self._read_call(piece)

    def _cite(self, annotation: Json) -> Iterator[Chunk]:
        cited = annotation.get("url_citation")
        fields: Json = cited if is_dict(cited) else {}
        url = fields.get("url")
        if isinstance(url, str) and url not in self._cited:
            self._cited.append(url)
            yield Source(id=f"source-{len(self._cited)}", url=url, title=fields.get("title"))

    # ---------------------------------------------------------------------------------------- text, reasoning

    def _block_id(self) -> str:
        return f"{self._block}-{self._blocks}"

    def _enter(self, kind: Literal["text", "reasoning"]) -> Iterator[Chunk]:
        if self._block == kind:
            return
        yield from self._leave()
        self._block = kind
        yield TextStart(id=self._block_id()) if kind == "text" else ReasoningStart(id=self._block_id())

    def _leave(self) -> Iterator[Chunk]:
        if self._block is None:
            return
        if self._block == "text":
            yield TextEnd(id=self._block_id())
        else:
            details, self._details = self._details, []
            metadata = {self._provider: {DETAILS: details}} if details else None
            yield ReasoningEnd(id=self._block_id(), provider_metadata=metadata)
        self._block = None
        self._blocks += 1

    # -------------------------------------------------------------------------------------------------- tools

    def _read_call(self, piece: _ToolDelta) -> Iterator[Chunk]:
        function = piece.function or _Function()
        call = self._call_of(piece, function)
        call.id = call.id or piece.id or ""
        call.extra = piece.extra_content or call.extra
        if not call.name and function.name:
            call.name = function.name
            call.id = call.id or f"call_{uuid4().hex}"
            yield ToolInputStart(tool_call_id=call.id, tool_name=call.name)
            if call.arguments:
                yield ToolInputDelta(tool_call_id=call.id, args_text=call.arguments, tool_name=call.name)
        text = _arguments(function)
        call.arguments += text
        if text and call.name:
            yield ToolInputDelta(tool_call_id=call.id, args_text=text, tool_name=call.name)

    def _call_of(self, piece: _ToolDelta, function: _Function) -> _Call:
        """The call this piece belongs to. Some providers leave the index out, or number every call 0."""
        known = next((call for call in self._calls if piece.id and call.id == piece.id), None)
        known = known or self._by_index.get(piece.index)
        begins = bool(known and piece.id and function.name and known.id and piece.id != known.id)
        if known is None or begins:
            known = _Call()
            self._calls.append(known)
        self._by_index[piece.index] = known
        return known

    def _complete(self) -> Iterator[Chunk]:
        """Close what is open: the text block, then the calls in the order they began."""
        yield from self._leave()
        calls, self._calls, self._by_index = self._calls, [], {}
        for call in calls:
            if not call.name:
                raise ModelError("the model called a tool without naming it", retryable=True, body=self._last)
            self._called = True
            yield ToolInputEnd(tool_call_id=call.id)
            args, invalid = self._parsed(call.arguments)
            yield ToolCall(
                tool_call_id=call.id,
                tool_name=call.name,
                args=args,
                invalid=invalid,
                provider_metadata={self._provider: {EXTRA: call.extra}} if call.extra else None,
            )

    def _parsed(self, arguments: str) -> tuple[Any, str | None]:
        if not arguments.strip():
            return {}, None
        try:
            return msgspec.json.decode(arguments), None
        except (msgspec.DecodeError, UnicodeEncodeError) as problem:
            why = "cut off at the token limit" if self.finish_reason == "length" else "not valid JSON"
            return None, f"the arguments are {why} ({problem}): {excerpt(arguments)}"

    # ---------------------------------------------------------------------------------------------------- end

    def _final_reason(self) -> str:
        if self.finish_reason is None:
            return "unknown"
        reason = FINISH_REASONS.get(self.finish_reason, "other")
        if self._refused and reason == "stop":
            return "content-filter"  # OpenAI itself says stop
        # a call forced by tool_choice ends with "stop" at OpenAI, any call at some gateways
        return "tool-calls" if self._called and reason == "stop" else reason

    def _provider_metadata(self) -> Metadata | None:
        kept: Json = {"logprobs": self._logprobs} if self._logprobs else {}
        if self._refused:
            kept["refused"] = True
        return {self._provider: kept} if kept else None


def _join_details(joined: list[Json], pieces: Iterable[Json]) -> None:
    """OpenRouter's reasoning details arrive in pieces; those of one kind and index belong together."""
    for piece in pieces:
        last = joined[-1] if joined else {}
        if (piece.get("type"), piece.get("index")) != (last.get("type"), last.get("index")):
            joined.append(dict(piece))
            continue
        for name, value in piece.items():
            longer = name in ("text", "summary", "data") and isinstance(last.get(name), str)
            if longer and isinstance(value, str):
                last[name] += value
            elif value is not None:
                last[name] = value


_decoder = msgspec.json.Decoder(_Event)


def _decode(data: str, is_error: bool) -> _Event:
    try:
        event = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeEncodeError) as problem:
        if is_error:
            raise stream_error(data, data) from None
        raise ModelError(
            f"the stream holds an event that cannot be read ({problem}): {excerpt(data)}", body=data
        ) from None
    if event.error is not None:
        raise stream_error(event.error, data)
    if is_error or event.object == "error":
        raise stream_error(msgspec.json.decode(data), data)
    return event


def _texts(delta: _Delta) -> tuple[str, str]:
    """Text and reasoning of a delta. Providers that send several names of the reasoning send it twice."""
    reasoning = delta.reasoning_content or (delta.reasoning if isinstance(delta.reasoning, str) else "")
    if not reasoning and delta.reasoning_details:
        told = (detail.get("text") or detail.get("summary") for detail in delta.reasoning_details)
        reasoning = "".join(text for text in told if isinstance(text, str))
    content = delta.content or delta.refusal or ""
    if isinstance(content, str):
        return content, reasoning
    text = "".join(_part_text(part) for part in content if part.get("type") != "thinking")
    thought = "".join(
        _part_text(inner)
        for part in content
        if part.get("type") == "thinking"
        for inner in part.get("thinking") or ()
    )
    return text, reasoning or thought


def _part_text(part: Json) -> str:
    text = part.get("text")
    return text if isinstance(text, str) else ""


def _arguments(function: _Function) -> str:
    if isinstance(function.arguments, dict):
        return msgspec.json.encode(function.arguments).decode()
    return function.arguments or ""


def _usage(given: _Usage) -> Usage:
    tokens_in, tokens_out = given.prompt_tokens or 0, given.completion_tokens or 0
    return Usage(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        total_tokens=given.total_tokens or tokens_in + tokens_out,
        cached_input_tokens=(given.prompt_tokens_details or _Details()).cached_tokens
        or given.prompt_cache_hit_tokens
        or 0,
        reasoning_tokens=(given.completion_tokens_details or _Details()).reasoning_tokens or 0,
    )
