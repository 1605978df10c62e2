"""The provider-neutral prompt as pydantic-ai's message history.

What came from another provider keeps its name, so that pydantic-ai sends it in the form for foreign answers:
signatures and calls a provider ran itself go back only to their own. Ids of a provider's stored items are kept
only where it does not answer with its own copy of the text: a guard may have changed ours.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Any, TypeAlias, cast

import msgspec
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    CachePoint,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
    VideoUrl,
)

from interlock.core.errors import UsageError
from interlock.core.model import (
    Prompt,
    PromptFile,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptText,
    PromptToolCall,
    PromptToolResult,
)
from interlock.core.shapes import is_dict
from interlock.models.pydantic_ai_metadata import Origin, origin_of
from interlock.models.tool_ids import tool_id

Json: TypeAlias = dict[str, Any]

URLS = {"image": ImageUrl, "audio": AudioUrl, "video": VideoUrl}


def build_history(prompt: Prompt, provider: str, warnings: list[Json]) -> list[ModelMessage]:
    """The prompt as message history.

    Args:
        prompt: the messages.
        provider: pydantic-ai's name of the provider that is asked; of parts with metadata from several, its
            own counts.
        warnings: gets one entry for each kind of part left out.

    Raises:
        UsageError: a file whose data is neither a URL nor base64.
    """
    history: list[ModelMessage] = []
    pending: list[ModelRequestPart] = []
    for message in prompt:
        if message.role != "assistant" or isinstance(message.content, str):
            pending.extend(_request_parts(message, warnings))
            continue
        response = _response(message.content, provider, warnings)
        if response is not None:
            if pending:
                history.append(ModelRequest(parts=pending))
                pending = []
            history.append(response)
    if pending:
        history.append(ModelRequest(parts=pending))
    return history


# -------------------------------------------------------------------------------------------------- to the model


def _request_parts(message: PromptMessage, warnings: list[Json]) -> Iterable[ModelRequestPart]:
    if message.role == "system" and isinstance(message.content, str):
        return [SystemPromptPart(message.content)]
    if isinstance(message.content, str):
        return [UserPromptPart(message.content)]
    if message.role == "tool":
        return [_tool_return(part) for part in message.content if isinstance(part, PromptToolResult)]
    content = [item for part in message.content for item in _user_content(part, warnings)]
    if len(content) == 1 and isinstance(content[0], str):
        return [UserPromptPart(content[0])]
    return [UserPromptPart(content)] if content else []


def _tool_return(part: PromptToolResult) -> ToolReturnPart:
    return ToolReturnPart(
        tool_name=part.tool_name,
        content=part.value,
        tool_call_id=tool_id(part.tool_call_id),
        outcome="failed" if part.kind == "error-text" else "success",
    )


def _user_content(part: PromptPart, warnings: list[Json]) -> list[UserContent]:
    if isinstance(part, PromptText):
        return [part.text, *_cache_point(part)]
    if isinstance(part, PromptFile):
        return [_file(part), *_cache_point(part)]
    _leave_out(part, "user", warnings)
    return []


def _cache_point(part: PromptText | PromptFile) -> list[UserContent]:
    """``{"anthropic": {"cacheControl": {...}}}`` on a part: what comes before may be cached."""
    for options in (part.provider_options or {}).values():
        given = options.get("cacheControl") or options.get("cache_control") if is_dict(options) else None
        if given:
            return [CachePoint(ttl="1h" if is_dict(given) and given.get("ttl") == "1h" else "5m")]
    return []


def _file(part: PromptFile) -> UserContent:
    if re.match(r"https?://", part.data, re.IGNORECASE):
        kind = URLS.get(part.media_type.partition("/")[0], DocumentUrl)
        return kind(url=part.data, media_type=part.media_type)
    return _binary(part)


def _binary(part: PromptFile) -> BinaryContent:
    media_type, data = part.media_type, part.data
    if data.startswith("data:"):
        head, _, data = data.partition(",")
        media_type = media_type or head.removeprefix("data:").partition(";")[0]
    try:
        return BinaryContent(base64.b64decode(data, validate=True), media_type=media_type)
    except (binascii.Error, ValueError):
        raise UsageError(
            f"a file of type {media_type!r} has data that is neither an http(s) URL, a data URL nor base64"
        ) from None


# ------------------------------------------------------------------------------------------------ from the model


def _response(parts: Iterable[PromptPart], provider: str, warnings: list[Json]) -> ModelResponse | None:
    built: list[ModelResponsePart] = []
    origins: list[Origin] = []
    calls: dict[str, Origin | None] = {}
    for part in parts:
        text = part.text if isinstance(part, PromptText | PromptReasoning) else None
        origin = origin_of(part.provider_options, text=text, prefer=provider)
        if isinstance(part, PromptToolCall):
            calls[part.tool_call_id] = origin
        elif isinstance(part, PromptToolResult):
            origin = calls.get(part.tool_call_id)
        made = _response_part(part, origin, warnings)
        if made is not None:
            built.append(made)
            origins += [origin] if origin else []
    if not built:
        return None
    first = next((origin for origin in origins if origin.provider == provider), None)
    first = first or next(iter(origins), None)
    system = next((o.system for o in origins if first and o.provider == first.provider and o.system), None)
    return ModelResponse(
        parts=built, provider_name=first.provider if first else None, canonical_system=system
    )


def _response_part(part: PromptPart, origin: Origin | None, warnings: list[Json]) -> ModelResponsePart | None:
    name = origin.provider if origin else None
    details = origin.details if origin else None
    match part:
        case PromptText():
            # without its id: OpenAI would take its own copy of the text
            return TextPart(part.text, provider_name=name, provider_details=details)
        case PromptReasoning():
            return _thinking(part, origin)
        case PromptToolCall(provider_executed=True):
            return NativeToolCallPart(
                part.tool_name,
                _arguments(part.input),
                part.tool_call_id,
                id=origin.id if origin else None,
                provider_name=name,
                provider_details=details,
                tool_kind=origin.kind if origin else None,
            )
        case PromptToolCall():
            return ToolCallPart(
                part.tool_name,
                _arguments(part.input),
                tool_id(part.tool_call_id),
                provider_name=name,
                provider_details=details,
            )
        case PromptToolResult():
            return NativeToolReturnPart(
                part.tool_name,
                part.value,
                part.tool_call_id,
                provider_name=name,
                provider_details=origin.result_details if origin else None,
                tool_kind=origin.kind if origin else None,
                outcome="failed" if part.kind == "error-text" else "success",
            )
        case PromptFile():
            if re.match(r"https?://", part.data, re.IGNORECASE):
                _leave_out(part, "assistant", warnings)
                return None
            return FilePart(_binary(part), provider_name=name, provider_details=details)


def _thinking(part: PromptReasoning, origin: Origin | None) -> ThinkingPart | None:
    if origin is None:
        return ThinkingPart(part.text) if part.text else None
    if not part.text and not origin.signature and not origin.details:
        return None
    return ThinkingPart(
        part.text,
        id=origin.id,
        signature=origin.signature,
        provider_name=origin.provider,
        provider_details=origin.details,
    )


def _arguments(value: Any) -> str | dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()


def _leave_out(part: PromptPart, role: str, warnings: list[Json]) -> None:
    warning = {"type": "unsupported-part", "part": type(part).__name__, "role": role}
    if warning not in warnings:
        warnings.append(warning)
