"""What hooks, models and clients got, in the forms of EXPECTED.md."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

from interlock import Message, ModelRequest, RunResult, StepRecord
from interlock.chunks import TripWireInfo, Usage
from interlock.wire import to_wire
from interpreter.names import camel_keys

Form: TypeAlias = dict[str, Any]


def snapshot(value: Any) -> Any:
    """A copy as plain JSON, so that later changes of the value do not show in the trace."""
    return json.loads(json.dumps(value, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(value)
    return f"<{type(value).__name__}> {value}"


def _set(form: Form) -> Form:
    """A form without its keys that are None, empty or False."""
    return {key: value for key, value in form.items() if value not in (None, [], {}) and value is not False}


# ----------------------------------------------------------------------------------------------------------- messages


def messages(given: Iterable[Message], *, step_starts: bool = False) -> list[Form]:
    """Messages; step-start parts only where they are wanted."""
    return [_message(each, step_starts) for each in given]


def _message(message: Message, step_starts: bool) -> Form:
    parts = [part(each) for each in message.content.parts if step_starts or each.type != "step-start"]
    if not message.content.parts and message.content.content:
        parts = [{"type": "text", "text": message.content.content}]
    form = {"role": message.role, "parts": parts}
    return {**form, "metadata": message.content.metadata} if message.content.metadata else form


def part(given: Any) -> Form:
    """A message part; of a type that is not known, only the type."""
    kind: str = given.type
    if kind in ("text", "reasoning") and hasattr(given, "text"):
        return {"type": kind, "text": given.text}
    if kind == "tool-invocation" and hasattr(given, "tool_call_id"):
        return _invocation(given)
    if kind == "file" and hasattr(given, "mime_type"):
        return {"type": kind, "mimeType": given.mime_type, "data": given.data}
    if kind == "source" and hasattr(given, "source"):
        return {"type": kind, "source": given.source}
    if kind.startswith("data-"):
        return {"type": kind, "data": getattr(given, "data", None)}
    return {"type": kind}


def _invocation(given: Any) -> Form:
    form = {
        "type": "tool-invocation",
        "state": given.state,
        "tool": given.tool_name,
        "call_id": given.tool_call_id,
        "args": given.args,
    }
    if given.state == "result":
        form["result"] = given.result
    if given.state == "output-error":
        form["errorText"] = given.error_text
    if given.provider_executed:
        form["provider_executed"] = True
    return form


# ------------------------------------------------------------------------------------------------------------ prompts


def prompt(given: Iterable[Any]) -> list[Form]:
    """A prompt."""
    return [
        {
            "role": message.role,
            "content": message.content
            if isinstance(message.content, str)
            else [_prompt_part(each) for each in message.content],
        }
        for message in given
    ]


def _prompt_part(given: Any) -> Form:
    match type(given).__name__:
        case "PromptText":
            return {"type": "text", "text": given.text}
        case "PromptReasoning":
            return {"type": "reasoning", "text": given.text}
        case "PromptFile":
            return {"type": "file", "mediaType": given.media_type, "data": given.data}
        case "PromptToolCall":
            form = {"type": "tool-call", "toolCallId": given.tool_call_id, "toolName": given.tool_name}
            form["input"] = given.input
            return {**form, "providerExecuted": True} if given.provider_executed else form
        case _:
            output = {"type": given.kind, "value": given.value}
            form = {"type": "tool-result", "toolCallId": given.tool_call_id, "toolName": given.tool_name}
            return {**form, "output": output}


def provider_prompt(model: str, index: int, request: ModelRequest) -> Form:
    """What a model received."""
    form: Form = {
        "model": model,
        "index": index,
        "prompt": prompt(request.prompt),
        "tools": [tool.name for tool in request.tools],
    }
    if request.tool_choice not in (None, "auto"):
        form["tool_choice"] = request.tool_choice
    form["settings"] = settings(request.settings)
    form["provider_options"] = dict(request.provider_options)
    return _set(form)


def settings(given: Any) -> Form:
    """Model settings without the retries, in the scenarios' names."""
    return {key: value for key, value in camel_keys(given or {}).items() if key != "maxRetries"}


# ------------------------------------------------------------------------------------------------------------ results


def usage(given: Usage) -> Form:
    """Tokens, in snake_case."""
    form = {
        "input_tokens": given.input_tokens,
        "output_tokens": given.output_tokens,
        "total_tokens": given.total_tokens,
    }
    return {**form, "reasoning_tokens": given.reasoning_tokens} if given.reasoning_tokens else form


def tripwire(given: TripWireInfo | None) -> Form | None:
    """Why a run or step was blocked."""
    if given is None:
        return None
    form = {"reason": given.reason, "retry": given.retry, "metadata": given.metadata}
    return {**_set(form), "reason": given.reason, "processor_id": given.processor_id}


def tool_calls(given: Iterable[Any]) -> list[Form]:
    """Tool calls of a step or result."""
    return [{"tool": call.tool_name, "call_id": call.tool_call_id, "args": call.args} for call in given]


def tool_results(given: Iterable[Any]) -> list[Form]:
    """Tool results of a step or result."""
    return [{"tool": each.tool_name, "call_id": each.tool_call_id, "result": each.result} for each in given]


def step(given: StepRecord) -> Form:
    """A step of a result."""
    more = {
        "tool_calls": tool_calls(given.tool_calls),
        "tool_results": tool_results(given.tool_results),
        "reasoning": given.reasoning or None,
        "tripwire": tripwire(given.tripwire),
    }
    return {"text": given.text, "finish_reason": given.finish_reason, **_set(more)}


def result(given: RunResult) -> Form:
    """The result of a call."""
    more = {
        "reasoning": given.reasoning or None,
        "sources": [_set({"id": s.id, "url": s.url, "title": s.title}) for s in given.sources],
        "files": [{"mimeType": file.mime_type} for file in given.files],
    }
    return {
        "text": given.text,
        "finish_reason": given.finish_reason,
        "tripwire": tripwire(given.tripwire),
        "usage": usage(given.usage),
        "steps": [step(each) for each in given.steps],
        "tool_calls": tool_calls(given.tool_calls),
        "tool_results": tool_results(given.tool_results),
        "messages": messages(given.all_messages, step_starts=True),
        **_set(more),
    }


def violation(given: Any) -> Form:
    """A violation."""
    return {"processor_id": given.processor_id, "message": given.message, "detail": given.detail}


def error(given: BaseException) -> str:
    """An exception's message and notes."""
    return "\n".join([str(given), *getattr(given, "__notes__", ())])


def chunk(given: Any) -> Form:
    """A chunk as on the wire."""
    return to_wire(given)


__all__ = [
    "chunk", "error", "messages", "prompt", "provider_prompt", "result", "settings", "snapshot", "step",
    "tool_calls", "tool_results", "tripwire", "usage", "violation",
]  # fmt: skip
