"""Scripted models: a scenario's model steps as models of the library."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from interlock import ModelError, ModelRequest
from interlock.chunks import (
    Chunk,
    ErrorChunk,
    File,
    Finish,
    OtherChunk,
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
    ToolResult,
    Usage,
)
from interpreter import forms

if TYPE_CHECKING:
    from interpreter.world import World

Part = Mapping[str, Any]


class ScenarioModel:
    """Follows a script: an entry for each provider call, the last one again and again when it has run out."""

    provider = "mock"

    def __init__(self, key: str, script: list[dict[str, Any]], world: World) -> None:
        self.model_id = key
        self._script = script
        self._world = world
        self._calls = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """One call, with the model's own retries of retryable rejections."""
        retries = int(request.settings.get("max_retries") or 0)
        step = await self._called(request)
        while "error" in step:
            problem = failure(step["error"])
            if not (retries and isinstance(problem, ModelError) and problem.retryable):
                raise problem
            retries -= 1
            step = await self._called(request)
        for part in step.get("parts", ()):
            await self._world.call.give_way()
            if part["type"] == "$await_abort":
                await asyncio.Event().wait()
            if part["type"] == "$stream_error":
                raise failure(part["error"])
            yield chunk_of(part)

    async def _called(self, request: ModelRequest) -> dict[str, Any]:
        index, self._calls = self._calls, self._calls + 1
        call = self._world.call
        await call.give_way()
        call.in_step = True
        call.event(f"provider:{self.model_id}#{index}")
        call.add("provider_prompts", forms.provider_prompt(self.model_id, index, request))
        return self._script[min(index, len(self._script) - 1)]


def failure(error: Any) -> Exception:
    """The exception that a scenario's error stands for."""
    if not isinstance(error, Mapping):
        return RuntimeError(str(error))
    message = str(error.get("message") or "")
    if error.get("plain") or not ("statusCode" in error or "isRetryable" in error):
        return RuntimeError(message)
    return ModelError(message, status=error.get("statusCode"), retryable=bool(error.get("isRetryable")))


def chunk_of(part: Part) -> Chunk:
    """An AI SDK (LanguageModelV2) stream part as a chunk."""
    kind: str = part["type"]
    metadata = part.get("providerMetadata")
    if kind in _BLOCKS:
        block = _BLOCKS[kind]
        text = {"text": part.get("delta", "")} if kind.endswith("-delta") else {}
        return block(id=part["id"], provider_metadata=metadata, **text)
    if kind in _OTHERS:
        return _OTHERS[kind](part)
    return OtherChunk(type=kind, payload={key: value for key, value in part.items() if key != "type"})


_BLOCKS: dict[str, Any] = {
    "text-start": TextStart,
    "text-delta": TextDelta,
    "text-end": TextEnd,
    "reasoning-start": ReasoningStart,
    "reasoning-delta": ReasoningDelta,
    "reasoning-end": ReasoningEnd,
}


def _tool_call(part: Part) -> ToolCall:
    given, args, invalid = part.get("input"), None, None
    try:
        args = json.loads(given or "{}") if given is None or isinstance(given, str) else given
    except ValueError as problem:
        invalid = str(problem)
    return ToolCall(
        tool_call_id=part["toolCallId"],
        tool_name=part["toolName"],
        args=args,
        invalid=invalid,
        provider_executed=part.get("providerExecuted"),
        provider_metadata=part.get("providerMetadata"),
    )


def _tool_result(part: Part) -> ToolResult:
    return ToolResult(
        tool_call_id=part["toolCallId"],
        tool_name=part["toolName"],
        result=part.get("result"),
        is_error=part.get("isError"),
        provider_executed=part.get("providerExecuted"),
        provider_metadata=part.get("providerMetadata"),
    )


def _source(part: Part) -> Source:
    return Source(
        id=part.get("id", ""),
        source_type=part.get("sourceType", "url"),
        url=part.get("url"),
        title=part.get("title"),
        media_type=part.get("mediaType"),
        filename=part.get("filename"),
        provider_metadata=part.get("providerMetadata"),
    )


def _finish(part: Part) -> Finish:
    given = part.get("usage") or {}
    usage = Usage(
        input_tokens=given.get("inputTokens") or 0,
        output_tokens=given.get("outputTokens") or 0,
        total_tokens=given.get("totalTokens") or 0,
        reasoning_tokens=given.get("reasoningTokens") or 0,
        cached_input_tokens=given.get("cachedInputTokens") or 0,
    )
    reason = part.get("finishReason") or "unknown"
    return Finish(finish_reason=reason, usage=usage, provider_metadata=part.get("providerMetadata"))


_OTHERS: dict[str, Any] = {
    "stream-start": lambda part: StepStart(warnings=list(part.get("warnings") or ())),
    "response-metadata": lambda part: ResponseMetadata(
        id=part.get("id"), model_id=part.get("modelId"), timestamp=part.get("timestamp")
    ),
    "tool-input-start": lambda part: ToolInputStart(
        tool_call_id=part["id"],
        tool_name=part.get("toolName", ""),
        provider_executed=part.get("providerExecuted"),
    ),
    "tool-input-delta": lambda part: ToolInputDelta(tool_call_id=part["id"], args_text=part.get("delta", "")),
    "tool-input-end": lambda part: ToolInputEnd(tool_call_id=part["id"]),
    "tool-call": _tool_call,
    "tool-result": _tool_result,
    "source": _source,
    "file": lambda part: File(
        mime_type=part.get("mediaType", ""),
        data=part.get("data", ""),
        provider_metadata=part.get("providerMetadata"),
    ),
    "finish": _finish,
    "error": lambda part: ErrorChunk(failure(part.get("error"))),
}
