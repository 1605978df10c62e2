"""Messages in the two other forms people want: the prompt form and the chat client's form."""

from __future__ import annotations

from typing import Any, TypeAlias

from interlock.core.messages import (
    DataPart,
    FilePart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolInvocationPart,
)
from interlock.core.model import (
    PromptFile,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptText,
    PromptToolCall,
)

Form: TypeAlias = dict[str, Any]


def core_message(message: PromptMessage) -> Form:
    """A prompt message as ``{role, content}``."""
    if isinstance(message.content, str):
        return {"role": message.role, "content": message.content}
    return {"role": message.role, "content": [core_part(part) for part in message.content]}


def core_part(part: PromptPart) -> Form:
    """A prompt part as an object with a ``type``."""
    form = _core_fields(part)
    if part.provider_options is not None:
        form["providerOptions"] = part.provider_options
    return form


def _core_fields(part: PromptPart) -> Form:
    match part:
        case PromptText():
            return {"type": "text", "text": part.text}
        case PromptReasoning():
            return {"type": "reasoning", "text": part.text}
        case PromptFile():
            form = {"type": "file", "mediaType": part.media_type, "data": part.data}
            return form if part.filename is None else {**form, "filename": part.filename}
        case PromptToolCall():
            form = {
                "type": "tool-call",
                "toolCallId": part.tool_call_id,
                "toolName": part.tool_name,
                "input": part.input,
            }
            return form if not part.provider_executed else {**form, "providerExecuted": True}
        case _:
            return {
                "type": "tool-result",
                "toolCallId": part.tool_call_id,
                "toolName": part.tool_name,
                "output": {"type": part.kind, "value": part.value},
            }


def ui_message(message: Message) -> Form:
    """A message as chat clients keep it: ``{id, role, parts, metadata}``."""
    parts = message.content.parts or ([TextPart(text=message.text)] if message.text else [])
    form: Form = {"id": message.id, "role": message.role, "parts": [ui_part(part) for part in parts]}
    metadata: Form = dict(message.content.metadata or {})
    for key, value in (("threadId", message.thread_id), ("resourceId", message.resource_id)):
        if value is not None:
            metadata[key] = value
    if message.created_at is not None:
        metadata["createdAt"] = message.created_at.isoformat().replace("+00:00", "Z")
    if metadata:
        form["metadata"] = metadata
    return form


_UI_STATES = {
    "partial-call": "input-streaming",
    "call": "input-available",
    "result": "output-available",
    "output-error": "output-error",
    "output-denied": "output-available",
}


def ui_part(part: Part) -> Form:
    """A part as chat clients keep it."""
    form = _ui_fields(part)
    if part.provider_metadata is not None and not isinstance(part, ToolInvocationPart):
        form["providerMetadata"] = part.provider_metadata
    return form


def _ui_fields(part: Part) -> Form:
    match part:
        case TextPart():
            return {"type": part.type, "text": part.text}
        case ReasoningPart():
            return {"type": part.type, "text": part.text, "state": "done"}
        case ToolInvocationPart():
            return _ui_tool(part)
        case FilePart():
            url = part.data if ":" in part.data[:10] else f"data:{part.mime_type};base64,{part.data}"
            form = {"type": part.type, "mediaType": part.mime_type, "url": url}
            return form if part.filename is None else {**form, "filename": part.filename}
        case SourcePart():
            rest = {k: v for k, v in part.source.items() if k not in ("id", "sourceType")}
            return {
                "type": f"source-{part.source.get('sourceType', 'url')}",
                "sourceId": part.source.get("id"),
                **rest,
            }
        case DataPart():
            form = {"type": part.type, "data": part.data}
            return form if part.id is None else {"type": part.type, "id": part.id, "data": part.data}
        case OtherPart():
            return {"type": part.type, **part.fields}
        case StepStartPart():
            return {"type": "step-start"}
        case _:
            return {"type": part.type}


def _ui_tool(part: ToolInvocationPart) -> Form:
    form: Form = {
        "type": f"tool-{part.tool_name}",
        "toolCallId": part.tool_call_id,
        "state": _UI_STATES.get(part.state, "input-available"),
        "input": part.args,
    }
    if part.state == "result":
        form["output"] = part.result
    if part.state == "output-denied":
        form["output"] = _denial(part)
    if part.state == "output-error":
        form["errorText"] = part.error_text
    if part.provider_executed:
        form["providerExecuted"] = True
    if part.provider_metadata is not None:
        form["callProviderMetadata"] = part.provider_metadata
    return form


def _denial(part: ToolInvocationPart) -> Any:
    """Why a call of the reference was denied."""
    invocation: dict[str, Any] = (part.extra or {}).get("toolInvocation") or {}
    approval: dict[str, Any] = invocation.get("approval") or {}
    return approval.get("reason")
