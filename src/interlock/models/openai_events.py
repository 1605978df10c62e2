"""The events of a streamed chat completion as providers send them, with the fields the vendors differ in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from interlock.core.chunks import Usage
from interlock.core.errors import ModelError
from interlock.models.openai_errors import excerpt, stream_error

Json: TypeAlias = dict[str, Any]


class Function(Struct):
    """The function a call names, and its arguments: a piece of JSON text, or (some gateways) an object."""

    name: str | None = None
    arguments: str | Json | None = None


class ToolDelta(Struct):
    """A piece of a tool call."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None
    extra_content: Any = None


class Delta(Struct):
    """What an event adds to the answer; each vendor uses some of these fields."""

    content: str | list[Json] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: Any = None
    reasoning_details: list[Json] | None = None
    tool_calls: list[ToolDelta] | None = None
    annotations: list[Json] | None = None


class TokenDetails(Struct):
    """What kinds the tokens are of."""

    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class Tokens(Struct):
    """The usage, in OpenAI's and DeepSeek's names."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None
    prompt_cache_hit_tokens: int | None = None  # DeepSeek's name


class Choice(Struct):
    """One of the answers; only the first is asked for."""

    index: int = 0
    delta: Delta | None = None
    finish_reason: str | None = None
    logprobs: Json | None = None
    usage: Tokens | None = None  # Moonshot's place for it


class Event(Struct):
    """One event of the stream."""

    id: str | None = None
    model: str | None = None
    created: float | None = None
    choices: list[Choice] | None = None
    usage: Tokens | None = None
    error: Any = None
    object: str | None = None
    message: Any = None


_decoder = msgspec.json.Decoder(Event)


def read_event(data: str, *, is_error: bool) -> Event:
    """The event in an event's data.

    Args:
        data: JSON text.
        is_error: the event is of type ``error``.

    Raises:
        ModelError: it reports an error, or cannot be read.
    """
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


def texts_of(delta: Delta) -> tuple[str, str]:
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


def arguments_of(function: Function) -> str:
    """The arguments as JSON text."""
    if isinstance(function.arguments, dict):
        return msgspec.json.encode(function.arguments).decode()
    return function.arguments or ""


def usage_of(given: Tokens) -> Usage:
    """The usage in our names; what is not told is 0."""
    tokens_in, tokens_out = given.prompt_tokens or 0, given.completion_tokens or 0
    return Usage(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        total_tokens=given.total_tokens or tokens_in + tokens_out,
        cached_input_tokens=(given.prompt_tokens_details or TokenDetails()).cached_tokens
        or given.prompt_cache_hit_tokens
        or 0,
        reasoning_tokens=(given.completion_tokens_details or TokenDetails()).reasoning_tokens or 0,
    )


def join_details(joined: list[Json], pieces: Iterable[Json]) -> None:
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
