"""From the events of a streamed chat completion to chunks. No I/O: events go in as text, chunks come out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

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
    Usage,
)
from interlock.core.errors import ModelError
from interlock.core.shapes import is_dict
from interlock.models.openai_calls import CallReader
from interlock.models.openai_errors import excerpt
from interlock.models.openai_events import Choice, Delta, Event, join_details, read_event, texts_of, usage_of
from interlock.models.openai_messages import DETAILS

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
        self._calls = CallReader(provider=provider)
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
        event = read_event(data, is_error=is_error)
        if not self._last:
            yield self._opening
            yield self._metadata(event)
        self._last = data
        if event.usage is not None:
            self._usage = usage_of(event.usage)
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

    def _metadata(self, event: Event) -> ResponseMetadata:
        return ResponseMetadata(
            id=event.id or None,
            model_id=event.model or None,
            timestamp=datetime.fromtimestamp(event.created, UTC) if event.created else None,
            headers=self.headers,
        )

    def _read_choice(self, choice: Choice) -> Iterator[Chunk]:
        if choice.delta is not None:
            yield from self._read_delta(choice.delta)
        if choice.logprobs:
            self._logprobs.extend(choice.logprobs.get("content") or choice.logprobs.get("refusal") or ())
        if choice.usage is not None:
            self._usage = usage_of(choice.usage)
        if choice.finish_reason:
            self.finish_reason = choice.finish_reason
            yield from self._complete()

    def _read_delta(self, delta: Delta) -> Iterator[Chunk]:
        text, reasoning = texts_of(delta)
        if reasoning or delta.reasoning_details:
            yield from self._enter("reasoning")
            join_details(self._details, delta.reasoning_details or ())
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
            yield from self._calls.read(piece)

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

    # ---------------------------------------------------------------------------------------------------- end

    def _complete(self) -> Iterator[Chunk]:
        """Close what is open: the text block, then the calls."""
        yield from self._leave()
        yield from self._calls.end(cut_off=self.finish_reason == "length")

    def _final_reason(self) -> str:
        if self.finish_reason is None:
            return "unknown"
        reason = FINISH_REASONS.get(self.finish_reason, "other")
        if self._refused and reason == "stop":
            return "content-filter"  # OpenAI itself says stop
        # a call forced by tool_choice ends with "stop" at OpenAI, any call at some gateways
        return "tool-calls" if self._calls.any_made and reason == "stop" else reason

    def _provider_metadata(self) -> Metadata | None:
        kept: Json = {"logprobs": self._logprobs} if self._logprobs else {}
        if self._refused:
            kept["refused"] = True
        return {self._provider: kept} if kept else None
