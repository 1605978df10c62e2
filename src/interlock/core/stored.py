"""Messages as rows: the camelCase form that is stored and sent, exactly the reference's format 2.

A part of a type we do not know, or one given another type in place, keeps its fields both ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from interlock.core.errors import UsageError
from interlock.core.messages import (
    Content,
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
from interlock.core.shapes import described, is_mapping

Row: TypeAlias = dict[str, Any]

_CONTENT_FIELDS = ("format", "parts", "content", "metadata")
_FLATTENED_FIELDS = ("toolInvocations", "reasoning")


def message_to_row(message: Message) -> Row:
    """A message as its stored row. ``createdAt`` is a datetime, or None while it has not been saved."""
    content: Row = {**(message.content.extra or {}), "format": message.content.format}
    content["parts"] = [part_to_row(part) for part in message.content.parts]
    if message.content.content is not None:
        content["content"] = message.content.content
    if message.content.metadata:
        content["metadata"] = message.content.metadata
    row: Row = {"id": message.id, "role": message.role, "createdAt": message.created_at, "content": content}
    if message.thread_id is not None:
        row["threadId"] = message.thread_id
    if message.resource_id is not None:
        row["resourceId"] = message.resource_id
    return row


def message_from_row(row: Mapping[str, Any]) -> Message:
    """A stored row as a message.

    Raises:
        UsageError: a content that is no object, or a role we do not know.
    """
    content: Any = row.get("content")
    if not is_mapping(content):
        raise UsageError(
            f"a stored message's content must be an object with parts, not {type(content).__name__}"
        )
    rows: list[Any] = content.get("parts") or []
    parts = [part_from_row(part) for part in rows]
    extra = {str(key): value for key, value in content.items() if key not in _CONTENT_FIELDS}
    fallback = content.get("content")
    if parts:
        # copies of what the parts say: one that a guard does not see must not outlive its edit
        extra = {key: value for key, value in extra.items() if key not in _FLATTENED_FIELDS}
        fallback = None
    elif fallback is not None and not isinstance(fallback, str):
        extra["content"], fallback = fallback, None  # no text: kept, but nobody's words
    return Message(
        id=str(row.get("id") or ""),
        role=row.get("role", "user"),
        content=Content(
            parts=parts,
            content=fallback,
            metadata=dict(content["metadata"]) if content.get("metadata") else None,
            extra=extra or None,
        ),
        created_at=_moment(row.get("createdAt")),
        thread_id=row.get("threadId"),
        resource_id=row.get("resourceId"),
    )


def part_to_row(part: Part) -> Row:
    """A part in its stored form."""
    row = _fields_to_row(part)
    if part.extra:
        row = _with_extra(row, part.extra)
    if part.provider_metadata is not None:
        row["providerMetadata"] = part.provider_metadata
    return row


def _with_extra(row: Row, extra: Row) -> Row:
    """The row with the fields that were not read; those of a tool invocation belong inside it."""
    inner: Any = extra.get("toolInvocation")
    merged = {**{key: value for key, value in extra.items() if key != "toolInvocation"}, **row}
    if inner and is_mapping(row.get("toolInvocation")):
        merged["toolInvocation"] = {**inner, **row["toolInvocation"]}
    return merged


def _fields_to_row(part: Part) -> Row:
    match part:
        case TextPart():
            return {"type": part.type, "text": part.text}
        case ReasoningPart():
            return _reasoning_row(part)
        case ToolInvocationPart():
            return _invocation_row(part)
        case FilePart():
            row = {"type": part.type, "mimeType": part.mime_type, "data": part.data}
            return row if part.filename is None else {**row, "filename": part.filename}
        case SourcePart():
            return {"type": part.type, "source": part.source}
        case DataPart():
            row = {"type": part.type, "data": part.data}
            return row if part.id is None else {"type": part.type, "id": part.id, "data": part.data}
        case OtherPart():
            return {"type": part.type, **part.fields}
        case _:
            return {"type": part.type}


def _reasoning_row(part: ReasoningPart) -> Row:
    details: list[Row] = [{"type": "text", "text": part.text}] if part.text else []
    if part.redacted is not None:
        details.append({"type": "redacted", "data": part.redacted})
    return {"type": part.type, "reasoning": part.text, "details": details or [{"type": "text", "text": ""}]}


def _invocation_row(part: ToolInvocationPart) -> Row:
    invocation: Row = {
        "state": part.state,
        "toolCallId": part.tool_call_id,
        "toolName": part.tool_name,
        "args": part.args,
    }
    if part.state == "result":
        invocation["result"] = part.result
    if part.state == "output-error":
        invocation["errorText"] = part.error_text
    row: Row = {"type": part.type, "toolInvocation": invocation}
    if part.provider_executed is not None:
        row["providerExecuted"] = part.provider_executed
    return row


def part_from_row(row: Any) -> Part:
    """A stored part.

    Raises:
        UsageError: something that is no object with a type.
    """
    if not is_mapping(row) or not isinstance(row.get("type"), str):
        raise UsageError(f"a message part must be an object with a type, not {described(row)}")
    part, read = _known_part(row["type"], row)
    part.provider_metadata = row.get("providerMetadata")
    rest = {
        key: value
        for key, value in row.items()
        if key not in read and key not in ("type", "providerMetadata")
    }
    if isinstance(part, OtherPart):
        part.fields = rest
    elif rest:
        part.extra = {**(part.extra or {}), **rest}
    return part


def _known_part(kind: str, row: Mapping[str, Any]) -> tuple[Part, tuple[str, ...]]:
    """The part, and which of the row's fields it has read."""
    if kind == "text" and isinstance(row.get("text"), str):
        return TextPart(text=row["text"]), ("text",)
    if kind == "reasoning":
        return _reasoning_from(row), ("reasoning", "details", "text")
    if kind == "tool-invocation" and is_mapping(row.get("toolInvocation")):
        return _invocation_from(row), ("toolInvocation", "providerExecuted")
    if kind == "file" and isinstance(row.get("data"), str):
        mime_type = row.get("mimeType") or row.get("mediaType") or "application/octet-stream"
        part = FilePart(mime_type=mime_type, data=row["data"], filename=row.get("filename"))
        return part, ("mimeType", "mediaType", "data", "filename")
    if kind == "source" and is_mapping(row.get("source")):
        return SourcePart(source=dict(row["source"])), ("source",)
    if kind == "step-start":
        return StepStartPart(), ()
    if kind.startswith("data-") and "data" in row:
        return DataPart(type=kind, data=row["data"], id=row.get("id")), ("data", "id")
    return OtherPart(type=kind), ()


def _reasoning_from(row: Mapping[str, Any]) -> ReasoningPart:
    given: list[Any] = row.get("details") or []
    details = [detail for detail in given if is_mapping(detail)]
    text = "".join(str(detail.get("text") or "") for detail in details if detail.get("type") == "text")
    redacted = next((str(d.get("data")) for d in details if d.get("type") == "redacted"), None)
    return ReasoningPart(text=text or str(row.get("reasoning") or row.get("text") or ""), redacted=redacted)


_INVOCATION_FIELDS = ("state", "toolCallId", "toolName", "args", "result", "errorText")


def _invocation_from(row: Mapping[str, Any]) -> ToolInvocationPart:
    invocation: Mapping[str, Any] = row["toolInvocation"]
    rest = {key: value for key, value in invocation.items() if key not in _INVOCATION_FIELDS}
    return ToolInvocationPart(
        tool_call_id=str(invocation.get("toolCallId") or ""),
        tool_name=str(invocation.get("toolName") or ""),
        args=invocation.get("args"),
        state=invocation.get("state") or "call",
        result=invocation.get("result"),
        error_text=invocation.get("errorText"),
        provider_executed=row.get("providerExecuted"),
        extra={"toolInvocation": rest} if rest else None,
    )


def _moment(value: Any) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000, UTC)
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        raise UsageError(f"createdAt must be a date, not {value!r}") from None
