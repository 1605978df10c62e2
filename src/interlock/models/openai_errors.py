"""What an OpenAI-compatible provider says when it fails, as a ModelError. The forms differ by provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from interlock.core.errors import ModelError
from interlock.models.retrying import is_retryable, retry_after

Json: TypeAlias = dict[str, Any]

EXCERPT = 500
"""Characters of a body quoted in an error's text; the whole of it is on ``error.body``."""

TRANSIENT = {"server_error", "overloaded_error", "rate_limit_error", "rate_limit_exceeded", "timeout"}
"""Error codes inside a stream, where no status tells, after which the same request may succeed."""


def status_error(status: int, headers: Mapping[str, str], body: str, *, where: str) -> ModelError:
    """The error of an answer that is no success.

    Args:
        status: HTTP status.
        headers: of the response, names in lower case.
        body: as it came.
        where: the address asked, without anything secret.
    """
    said, code = _details(_json(body))
    said = said or excerpt(body) or "an empty body"
    return ModelError(
        f"{where}: {said}",
        status=status,
        code=code,
        retryable=is_retryable(status),
        retry_after=retry_after(headers),
        body=body,
    )


def unreadable_error(status: int, content_type: str, body: str, *, where: str) -> ModelError:
    """The error of a success that is no event stream: a web page, plain JSON, nothing."""
    said, code = _details(_json(body))
    if not body.strip():
        text = f"{where} answered {status} with an empty body"
    elif said:
        text = f"{where} answered {status}, but with an error: {said}"
    else:
        kind = content_type or "no content type"
        text = f"{where} answered {status} with {kind} instead of an event stream: {excerpt(body)}"
    return ModelError(text, status=status, code=code, retryable=not body.strip(), body=body)


def stream_error(error: Any, data: str) -> ModelError:
    """The error a provider reports inside the stream.

    Args:
        error: the error object, or its text.
        data: the event as it came.
    """
    said, code = _details(error)
    number: Any = error.get("code") if isinstance(error, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    status = number if isinstance(number, int) and 100 <= number <= 599 else None
    return ModelError(
        f"the stream reported an error: {said or excerpt(data)}",
        status=status,
        code=code,
        retryable=is_retryable(status) or code in TRANSIENT,
        body=data,
    )


def excerpt(text: str) -> str:
    """The text on one line, cut after EXCERPT characters."""
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else f"{line[:EXCERPT]}..."


def _json(body: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _details(value: Any) -> tuple[str | None, str | None]:
    """Message and code, out of ``{"error": ...}``, ``{"message": ...}``, ``{"detail": ...}`` or a text."""
    if isinstance(value, list) and value:
        return _details(value[0])
    if isinstance(value, str):
        return excerpt(value) or None, None
    if not isinstance(value, dict):
        return None, None
    fields: Json = value  # pyright: ignore[reportUnknownVariableType]
    if fields.get("error"):
        return _details(fields["error"])
    said = fields.get("message") or fields.get("detail")
    text = said if isinstance(said, str) or not said else msgspec.json.encode(said).decode()
    return (excerpt(text) if text else None), _code(fields)


def _code(fields: Json) -> str | None:
    """The most telling of ``code``, ``type`` and ``status``: a word before a number."""
    given = [fields[name] for name in ("code", "type", "status") if fields.get(name) is not None]
    words = [value for value in given if isinstance(value, str)]
    return words[0] if words else next((str(value) for value in given), None)
