"""Chunks: what flows from the model through the processors to the client, flat and typed.

Match on the class or on ``chunk.type``::

    match chunk:
        case TextDelta(text=text): ...

A chunk's ``type`` is its name on the wire; the envelope ``{type, runId, from, payload}`` exists only there
(:mod:`interlock.wire`). Chunks are mutable and cheap; ``chunk.replace(text=...)`` gives a changed copy.
"""

from __future__ import annotations

from typing import Any, ClassVar

from interlock.core.messages import Message
from interlock.core.record import FrozenRecord, Metadata, Record


class Usage(FrozenRecord, kw_only=True, frozen=True):
    """Tokens of one model call, or of a run. Always numbers (spec R5.3)."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    reasoning_tokens: int = 0
    cached_input_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
        )


class TripWireInfo(Record, kw_only=True):
    """A tripwire as results, steps and step-finish chunks carry it (spec R5.2)."""

    reason: str
    processor_id: str
    retry: bool = False
    metadata: Any = None


class Chunk(Record):
    """Base of all chunks."""

    type: ClassVar[str] = ""


# ---------------------------------------------------------------------------------------------- the frame of a run


class Start(Chunk):
    """The run has begun: every process_input has passed (spec R1.4)."""

    type: ClassVar[str] = "start"
    message_id: str | None = None


class StepStart(Chunk, kw_only=True):
    """The model's stream has opened. A model may yield one first, to hand in its warnings and request body."""

    type: ClassVar[str] = "step-start"
    request: Any = None
    warnings: list[Any] = []
    message_id: str | None = None


class ResponseMetadata(Chunk, kw_only=True):
    """Id and model of the provider's response; processors and clients do not see it (spec R4.6)."""

    type: ClassVar[str] = "response-metadata"
    id: str | None = None
    model_id: str | None = None
    timestamp: Any = None
    headers: dict[str, str] | None = None
    raw: Any = None


class ErrorChunk(Chunk):
    """The run failed, or (from a model) the stream broke. Always the last chunk (spec R5.4)."""

    type: ClassVar[str] = "error"
    error: Any = None


class TripWireChunk(Chunk, kw_only=True):
    """A processor blocked the run. Always the last chunk (spec R5.2)."""

    type: ClassVar[str] = "tripwire"
    reason: str
    processor_id: str
    retry: bool = False
    metadata: Any = None


class Abort(Chunk):
    """The run was cancelled. Always the last chunk (spec R5.5)."""

    type: ClassVar[str] = "abort"


# ---------------------------------------------------------------------------------------------------- text, reasoning
# The many small ones are not tracked by the garbage collector: they cannot be part of a cycle.


class TextStart(Chunk, gc=False):
    """A text block opens."""

    type: ClassVar[str] = "text-start"
    id: str = ""
    provider_metadata: Metadata | None = None


class TextDelta(Chunk, gc=False):
    """A piece of text. A replacement made without an id inherits that of its block (spec R4.6)."""

    type: ClassVar[str] = "text-delta"
    text: str = ""
    id: str = ""
    provider_metadata: Metadata | None = None


class TextEnd(Chunk, gc=False):
    """A text block is complete."""

    type: ClassVar[str] = "text-end"
    id: str = ""
    provider_metadata: Metadata | None = None


class ReasoningStart(Chunk, gc=False):
    """A reasoning block opens."""

    type: ClassVar[str] = "reasoning-start"
    id: str = ""
    provider_metadata: Metadata | None = None


class ReasoningDelta(Chunk, gc=False):
    """A piece of reasoning."""

    type: ClassVar[str] = "reasoning-delta"
    text: str = ""
    id: str = ""
    provider_metadata: Metadata | None = None


class ReasoningEnd(Chunk, gc=False):
    """A reasoning block is complete."""

    type: ClassVar[str] = "reasoning-end"
    id: str = ""
    provider_metadata: Metadata | None = None


# --------------------------------------------------------------------------------------------------------------- tools


class ToolInputStart(Chunk, kw_only=True, gc=False):
    """The model begins to write a tool call's arguments."""

    type: ClassVar[str] = "tool-call-input-streaming-start"
    tool_call_id: str = ""
    tool_name: str = ""
    provider_executed: bool | None = None


class ToolInputDelta(Chunk, kw_only=True, gc=False):
    """A piece of a tool call's arguments, as JSON text."""

    type: ClassVar[str] = "tool-call-delta"
    tool_call_id: str = ""
    args_text: str = ""
    tool_name: str | None = None


class ToolInputEnd(Chunk, kw_only=True, gc=False):
    """The arguments are complete."""

    type: ClassVar[str] = "tool-call-input-streaming-end"
    tool_call_id: str = ""


class ToolCall(Chunk, kw_only=True):
    """The model calls a tool. ``invalid`` says why the arguments could not be read; ``args`` is then None."""

    type: ClassVar[str] = "tool-call"
    tool_call_id: str
    tool_name: str
    args: Any = None
    provider_executed: bool | None = None
    invalid: str | None = None
    provider_metadata: Metadata | None = None


class ToolResult(Chunk, kw_only=True):
    """What a tool returned. Also the subject of ``process_tool_result`` (spec R4.8).

    Attributes:
        is_error: the call failed and ``result`` is the error's text (hooks with ``process_tool_errors`` only).
    """

    type: ClassVar[str] = "tool-result"
    tool_call_id: str
    tool_name: str
    args: Any = None
    result: Any = None
    provider_executed: bool | None = None
    is_error: bool | None = None
    provider_metadata: Metadata | None = None


class ToolError(Chunk, kw_only=True):
    """A tool call failed: it raised, the tool is unknown, or the arguments were bad."""

    type: ClassVar[str] = "tool-error"
    tool_call_id: str
    tool_name: str
    args: Any = None
    error: str = ""
    provider_executed: bool | None = None
    provider_metadata: Metadata | None = None


# --------------------------------------------------------------------------------------------------------------- other


class Source(Chunk, kw_only=True):
    """Something the answer cites."""

    type: ClassVar[str] = "source"
    id: str = ""
    source_type: str = "url"
    url: str | None = None
    title: str | None = None
    media_type: str | None = None
    filename: str | None = None
    provider_metadata: Metadata | None = None


class File(Chunk, kw_only=True):
    """A file the model made. ``data`` is base64 text or a URL."""

    type: ClassVar[str] = "file"
    mime_type: str
    data: str
    provider_metadata: Metadata | None = None


class PartialObject(Chunk):
    """What the answer's text says so far, as far as it can be read: plain JSON values (structured output)."""

    type: ClassVar[str] = "object"
    object: Any = None


class ObjectResult(Chunk):
    """The validated object: of the schema's type. The one before the run's finish (structured output)."""

    type: ClassVar[str] = "object-result"
    object: Any = None


class StepRecord(Record, kw_only=True):
    """One step as results and ``ctx.steps`` show it: what the message list holds of it now (spec R4, R5.3).

    Attributes:
        finish_reason: the model's; ``tripwire`` for a blocked step, ``retry`` for a rejected attempt.
        tripwire: set on blocked and rejected ones, which have no text.
    """

    step_number: int = 0
    text: str = ""
    reasoning: str = ""
    tool_calls: list[ToolCall] = []
    tool_results: list[ToolResult] = []
    sources: list[Source] = []
    files: list[File] = []
    usage: Usage = Usage()
    finish_reason: str = "unknown"
    request: Any = None
    response: Any = None
    warnings: list[Any] = []
    provider_metadata: Metadata | None = None
    tripwire: TripWireInfo | None = None


class StepFinish(Chunk, kw_only=True):
    """A step is accepted, or, with finish_reason ``retry``, withdrawn (spec R1.4, R7.3)."""

    type: ClassVar[str] = "step-finish"
    finish_reason: str
    usage: Usage
    is_continued: bool = False
    text: str = ""
    steps: list[StepRecord] = []
    processor_retry_count: int = 0
    processor_retry_feedback: str | None = None
    tripwire: TripWireInfo | None = None
    warnings: list[Any] = []
    provider_metadata: Metadata | None = None


class Finish(Chunk, kw_only=True):
    """The end of a model's response or, as a client's last chunk, of the run.

    The run's own carries the final steps and messages; processors see only the model's (spec R4.6).
    """

    type: ClassVar[str] = "finish"
    finish_reason: str = "unknown"
    usage: Usage | None = None
    provider_metadata: Metadata | None = None
    steps: list[StepRecord] | None = None
    messages: list[Message] | None = None
    processor_retry_count: int = 0


class DataChunk(Chunk, kw_only=True):
    """A custom ``data-*`` chunk (spec R9). ``transient`` ones are not stored.

    ``message_id`` names the message it is stored with, where that is not the answer under way; it is not sent.
    """

    type: str  # pyright: ignore[reportIncompatibleVariableOverride]  # the one chunk whose type is free
    data: Any = None
    transient: bool = False
    id: str | None = None
    message_id: str | None = None


class OtherChunk(Chunk, kw_only=True):
    """A chunk of a type this version does not know; it passes untouched."""

    type: str  # pyright: ignore[reportIncompatibleVariableOverride]
    payload: Any = None
