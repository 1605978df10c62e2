"""Fields and their keys: how a flat record becomes a payload and back, by one table made from the classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from interlock.core.chunks import (
    Abort,
    Chunk,
    ErrorChunk,
    File,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    Source,
    Start,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolError,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
    TripWireChunk,
    TripWireInfo,
    Usage,
)
from interlock.core.errors import ModelError, UsageError
from interlock.core.jsonable import jsonable
from interlock.core.shapes import is_list, is_mapping

Json: TypeAlias = dict[str, Any]
T = TypeVar("T")

UNREADABLE = "the arguments are no readable JSON"

SIMPLE: dict[str, type[Chunk]] = {
    cls.type: cls
    for cls in (
        Start,
        StepStart,
        ResponseMetadata,
        ErrorChunk,
        TripWireChunk,
        Abort,
        TextStart,
        TextDelta,
        TextEnd,
        ReasoningStart,
        ReasoningDelta,
        ReasoningEnd,
        ToolInputStart,
        ToolInputDelta,
        ToolInputEnd,
        ToolCall,
        ToolResult,
        ToolError,
        Source,
        File,
    )
}
"""The chunks whose payload is just their fields, by type."""

_SPECIAL_KEYS = {"args_text": "argsTextDelta", "media_type": "mimeType"}
_NOT_SENT = frozenset({"invalid", "raw"})
_FLAGS = frozenset({"retry", "provider_executed", "is_error"})
_ANYTHING = frozenset({"args", "result", "metadata", "request", "warnings", "timestamp", "provider_metadata"})


def camel(name: str) -> str:
    """``tool_call_id`` as ``toolCallId``."""
    return re.sub(r"_(\w)", lambda match: match.group(1).upper(), name)


def snake(name: str) -> str:
    """``toolCallId`` as ``tool_call_id``."""
    return re.sub(r"([A-Z])", r"_\1", name).lower()


def _keys_of(cls: type[Chunk | Usage | TripWireInfo]) -> tuple[tuple[str, str], ...]:
    """A class's fields with their keys, the block's id first as the reference has it."""
    names = sorted(
        (name for name in cls.__struct_fields__ if name not in _NOT_SENT), key=lambda name: name != "id"
    )
    return tuple((name, _SPECIAL_KEYS.get(name, camel(name))) for name in names)


_KEYS: dict[type[Chunk], tuple[tuple[str, str], ...]] = {cls: _keys_of(cls) for cls in SIMPLE.values()}


# -------------------------------------------------------------------------------------------------------- to a payload


def payload_of(chunk: Chunk) -> Json:
    """The payload of one of the SIMPLE chunks."""
    payload = _set_fields(chunk)
    match chunk:
        case StepStart():
            payload["request"] = {} if chunk.request is None else {"body": jsonable(chunk.request)}
        case ToolCall() if chunk.invalid is None:
            payload.setdefault("args", None)
        case ToolResult():
            payload.setdefault("result", None)
        case File() if ":" not in chunk.data[:10]:  # no URL
            payload = {"data": chunk.data, "base64": chunk.data, **payload}
        case ErrorChunk() | ToolError():
            payload["error"] = error_form(chunk.error)
        case _:
            pass
    return payload


def _set_fields(chunk: Chunk) -> Json:
    payload: Json = {}
    for name, key in _KEYS[type(chunk)]:
        value = getattr(chunk, name)
        if value is None or (value is False and name in _FLAGS):
            continue
        payload[key] = jsonable(value) if name in _ANYTHING else value
    return payload


def error_form(error: Any) -> Json:
    """An error as the reference's JSON has it. Of a provider's failure the status goes along, never the body."""
    if is_mapping(error):
        return jsonable(error)
    if isinstance(error, ModelError):
        details = {"statusCode": error.status, "code": error.code}
        return {
            "message": error.message,
            "name": "AI_APICallError",
            **{key: value for key, value in details.items() if value is not None},
            "isRetryable": error.retryable,
        }
    if isinstance(error, BaseException):
        return {"message": str(error), "name": type(error).__name__}
    return {"message": "" if error is None else str(error), "name": "Error"}


# ------------------------------------------------------------------------------------------------------ from a payload


def built(cls: type[T], fields: Json, kind: str) -> T:
    """A record of these fields.

    Raises:
        UsageError: a field is missing or of another type.
    """
    try:
        return msgspec.convert(fields, cls)
    except msgspec.ValidationError as problem:
        raise UsageError(f"this is no {kind} chunk: {problem}") from None


def fields_of(cls: type[Chunk], payload: Mapping[str, Any]) -> Json:
    """The fields that a payload has for one of the SIMPLE chunks."""
    fields: Json = {name: payload[key] for name, key in _KEYS[cls] if payload.get(key) is not None}
    if cls is StepStart and is_mapping(fields.get("request")):
        fields["request"] = fields["request"].get("body")
    elif cls is ToolCall and "args" not in payload:
        fields["invalid"] = UNREADABLE
    elif cls is ToolError:
        fields["error"] = _error_text(payload.get("error"))
    elif cls is File:
        fields.setdefault("data", payload.get("base64"))
    if cls in (File, Source) and payload.get("mediaType") is not None:
        fields.setdefault("mime_type" if cls is File else "media_type", payload["mediaType"])
    return fields


def _error_text(error: Any) -> str:
    if not is_mapping(error):
        return "" if error is None else str(error)
    cause = error.get("cause")
    return str(error.get("message") or (cause.get("message") if is_mapping(cause) else "") or "")


def list_at(payload: Mapping[str, Any], key: str) -> list[Any] | None:
    """The list under a key, None where there is none."""
    value = payload.get(key)
    return value if is_list(value) else None


def object_at(payload: Mapping[str, Any], key: str, kind: str) -> Mapping[str, Any]:
    """The object under a key, empty where there is none.

    Raises:
        UsageError: something else is there.
    """
    value = payload.get(key)
    if value is None:
        return {}
    if not is_mapping(value):
        raise UsageError(f"a {kind} chunk's {key} must be an object, not {type(value).__name__}")
    return value


# -------------------------------------------------------------------------------------------------- usage, tripwires

_USAGE = _keys_of(Usage)
_ALWAYS_SENT = frozenset({"input_tokens", "output_tokens", "total_tokens"})
_TRIPWIRE = _keys_of(TripWireInfo)


def usage_form(usage: Usage) -> Json:
    """Tokens; those that few providers count only where there are any."""
    return {key: value for name, key in _USAGE if (value := getattr(usage, name)) or name in _ALWAYS_SENT}


def usage_from(form: Any, kind: str) -> Usage:
    """Tokens from their form."""
    if not is_mapping(form):
        raise UsageError(f"a {kind} chunk's usage must be an object, not {type(form).__name__}")
    return built(Usage, {name: form[key] for name, key in _USAGE if form.get(key) is not None}, kind)


def tripwire_form(trip: TripWireInfo) -> Json:
    """Why a step was blocked or withdrawn."""
    form: Json = {"reason": trip.reason}
    if trip.retry:
        form["retry"] = True
    if trip.metadata is not None:
        form["metadata"] = jsonable(trip.metadata)
    return {**form, "processorId": trip.processor_id}


def tripwire_from(form: Any, kind: str) -> TripWireInfo | None:
    """A tripwire from its form; None where there is none."""
    if not is_mapping(form):
        return None
    return built(
        TripWireInfo, {name: form[key] for name, key in _TRIPWIRE if form.get(key) is not None}, kind
    )
