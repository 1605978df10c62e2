"""A model request as the JSON body of OpenAI's chat completions.

What the protocol cannot say is left out and named in the warnings: reasoning of earlier answers (but for what
a provider wants back, such as OpenRouter's ``reasoning_details``), files a model made, calls a provider ran
itself, unknown settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from interlock.core.errors import UsageError
from interlock.core.model import (
    ModelRequest,
    Prompt,
    PromptFile,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptText,
    PromptToolCall,
    PromptToolResult,
    ToolSpec,
)
from interlock.models.tool_ids import tool_id_for

Json: TypeAlias = dict[str, Any]

SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_output_tokens": "max_tokens",
    "stop_sequences": "stop",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
"""Our settings and their names on the wire."""

DETAILS = "reasoningDetails"
EXTRA = "extraContent"
"""Where provider metadata keeps what has to go back as it came: OpenRouter's signed reasoning, and Google's
signatures of calls."""

DIALECTS: dict[str, dict[str, str | None]] = {
    # its newer models refuse max_tokens, the older ones take both
    "openai": {"max_tokens": "max_completion_tokens"},
    # it refuses fields it does not know, and sends usage unasked
    "mistral": {"seed": "random_seed", "stream_options": None},
}
"""Providers that name a field otherwise, or (None) refuse it."""

CLIENT_SETTINGS = {"max_retries", "timeout"}
"""Settings that are the client's own, not sent."""

OTHER_NAMES = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "stop": "stop_sequences",
}
FILE_ID = re.compile(r"file-[\w-]+")
"""The ids OpenAI gives to uploaded files; base64 has no dash."""
IMAGE_BEGINNINGS = {"iVBORw0KGgo": "png", "/9j/": "jpeg", "R0lGOD": "gif", "UklGR": "webp"}
"""How images begin in base64, for those whose exact type nobody told."""
AUDIO_FORMATS = {
    "audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3",
}  # fmt: skip


def build_body(request: ModelRequest, *, model_id: str, provider: str) -> tuple[Json, list[Json]]:
    """The request's JSON body.

    Args:
        request: what the model is asked.
        model_id: the model's name on the wire.
        provider: whose ``provider_options`` apply; they override everything but ``stream``.

    Returns:
        The body, and one warning for each thing it could not express.

    Raises:
        UsageError: a tool_choice this protocol has no word for.
    """
    warnings: list[Json] = []
    body: Json = {"model": model_id, "messages": build_messages(request.prompt, provider, warnings)}
    body.update(_settings(request.settings, warnings))
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
        body.update(_tool_choice(request.tool_choice))
    if request.structured_output is not None:
        body["response_format"] = _response_format(request.structured_output)
    body["stream_options"] = {"include_usage": True}
    body = _in_dialect(body, DIALECTS.get(provider, {}))
    body.update(_own(request.provider_options, provider))
    body = {name: value for name, value in body.items() if value is not None}
    return {**body, "stream": True}, warnings


def _own(options: Mapping[str, Any] | None, provider: str) -> Json:
    return dict((options or {}).get(provider) or {})


def _in_dialect(body: Json, names: Mapping[str, str | None]) -> Json:
    renamed = {names.get(name, name): value for name, value in body.items()}
    return {name: value for name, value in renamed.items() if name is not None}


def _settings(settings: Mapping[str, Any], warnings: list[Json]) -> Json:
    sent: Json = {}
    for name, value in settings.items():
        if value is None or name in CLIENT_SETTINGS:
            continue
        if name in SETTINGS:
            sent[SETTINGS[name]] = value
        else:
            warnings.append({"type": "unsupported-setting", "setting": name, "details": _not_sent(name)})
    return sent


def _not_sent(name: str) -> str:
    plain = re.sub("([A-Z])", lambda found: f"_{found[1].lower()}", name)
    meant = plain if plain in {*SETTINGS, *CLIENT_SETTINGS} else OTHER_NAMES.get(plain)
    if meant:
        return f"not sent: write {meant}"
    known = ", ".join([*SETTINGS, *sorted(CLIENT_SETTINGS)])
    return f"not sent: the settings are {known}; what only one provider knows goes into provider_options"


def _tool(spec: ToolSpec) -> Json:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


def _tool_choice(choice: Any) -> Json:
    match choice:
        case None | "auto":
            return {}
        case "required" | "none":
            return {"tool_choice": choice}
        case {"type": "tool", "toolName": str(name)}:
            return {"tool_choice": {"type": "function", "function": {"name": name}}}
        case _:
            raise UsageError(
                f"tool_choice {choice!r}: write 'auto', 'required', 'none' "
                "or {'type': 'tool', 'toolName': name}"
            )


def _response_format(schema: Json) -> Json:
    name = re.sub(r"[^\w-]", "_", str(schema.get("title") or "answer"), flags=re.ASCII)[:64]
    described = {"name": name, "schema": schema, "strict": _is_strict(schema)}
    return {"type": "json_schema", "json_schema": described}


def _is_strict(schema: Any) -> bool:
    """Whether OpenAI takes the schema as strict: every object closed, every property required."""
    if isinstance(schema, list):
        return all(_is_strict(item) for item in schema)  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(schema, dict):
        return True
    fields: Json = schema  # pyright: ignore[reportUnknownVariableType]
    properties: Json = fields.get("properties") or {}
    if fields.get("type") == "object" or properties:
        closed = fields.get("additionalProperties") is False
        if not closed or set(properties) != set(fields.get("required") or ()):
            return False
    return all(_is_strict(value) for value in fields.values())


# --------------------------------------------------------------------------------------------------- messages


def build_messages(prompt: Prompt, provider: str, warnings: list[Json]) -> list[Json]:
    """The prompt as chat messages.

    Args:
        prompt: the messages.
        provider: whose ``provider_options`` of parts apply.
        warnings: gets one entry for each part left out.
    """
    built: list[Json] = []
    for message in prompt:
        if isinstance(message.content, str):
            built.append({"role": message.role, "content": message.content})
        elif message.role == "tool":
            built.extend(_tool_results(message.content, provider))
        elif message.role == "assistant":
            built.extend(_assistant(message.content, provider, warnings))
        else:
            built.append({"role": message.role, "content": _content(message, provider, warnings)})
    return built


def _tool_results(parts: Iterable[PromptPart], provider: str) -> list[Json]:
    return [
        {
            "role": "tool",
            "tool_call_id": tool_id_for(provider, part.tool_call_id),
            "content": _result_text(part),
        }
        for part in parts
        if isinstance(part, PromptToolResult)
    ]


def _result_text(part: PromptToolResult) -> str:
    if part.kind == "json" or not isinstance(part.value, str):
        return encode(part.value).decode()
    return part.value


def _assistant(parts: tuple[PromptPart, ...], provider: str, warnings: list[Json]) -> list[Json]:
    text, calls, details = "", list[Json](), list[Any]()
    for part in parts:
        if isinstance(part, PromptText):
            text += part.text
        elif isinstance(part, PromptToolCall) and not part.provider_executed:
            calls.append(_call(part, provider))
        elif isinstance(part, PromptReasoning) and _own(part.provider_options, provider).get(DETAILS):
            details += _own(part.provider_options, provider)[DETAILS]
        else:
            _leave_out(part, "assistant", warnings)
    if not text and not calls:
        return []
    message: Json = {"role": "assistant", "content": text or None}
    if details:
        message["reasoning_details"] = details
    return [{**message, "tool_calls": calls} if calls else message]


def _call(part: PromptToolCall, provider: str) -> Json:
    arguments = encode({} if part.input is None else part.input).decode()
    function = {"name": part.tool_name, "arguments": arguments}
    call: Json = {"id": tool_id_for(provider, part.tool_call_id), "type": "function", "function": function}
    extra = _own(part.provider_options, provider).get(EXTRA)
    return {**call, "extra_content": extra} if extra else call


def _leave_out(part: PromptPart, role: str, warnings: list[Json]) -> None:
    warning = {"type": "unsupported-part", "part": type(part).__name__, "role": role}
    if warning not in warnings:
        warnings.append(warning)


def _content(message: PromptMessage, provider: str, warnings: list[Json]) -> str | list[Json]:
    parts: list[Json] = []
    for part in message.content:
        if isinstance(part, PromptText):
            parts.append({"type": "text", "text": part.text, **_own(part.provider_options, provider)})
        elif isinstance(part, PromptFile):
            parts.append(_with_options(_file(part), _own(part.provider_options, provider)))
        elif not isinstance(part, str):
            _leave_out(part, message.role, warnings)
    # a string is what the simpler servers understand
    if len(parts) == 1 and set(parts[0]) == {"type", "text"} and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def _with_options(made: Json, options: Json) -> Json:
    if "image_url" in made and "detail" in options:  # the one option whose place is further in
        detail = options.pop("detail")
        made["image_url"]["detail"] = detail
    return {**made, **options}


def _file(part: PromptFile) -> Json:
    if FILE_ID.fullmatch(part.data):
        return {"type": "file", "file": {"file_id": part.data}}
    is_url = re.match(r"https?://|data:", part.data, re.IGNORECASE) is not None
    url = part.data if is_url else f"data:{_media_type(part)};base64,{part.data}"
    if part.media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    if part.media_type in AUDIO_FORMATS and not url.startswith("http"):
        audio = {"data": url.partition(",")[2], "format": AUDIO_FORMATS[part.media_type]}
        return {"type": "input_audio", "input_audio": audio}
    named = {"filename": part.filename or "file", "file_data": url}
    return {"type": "file", "file": named}


def _media_type(part: PromptFile) -> str:
    if part.media_type != "image/*":
        return part.media_type
    known = (kind for beginning, kind in IMAGE_BEGINNINGS.items() if part.data.startswith(beginning))
    return f"image/{next(known, 'png')}"


def encode(value: Any) -> bytes:
    """The value as JSON; what JSON has no form for becomes its text."""
    return msgspec.json.encode(value, enc_hook=str)
