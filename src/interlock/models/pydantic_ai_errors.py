"""pydantic-ai's errors as ours."""

from __future__ import annotations

import msgspec
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelOverloadedError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
    UserError,
)

from interlock.core.errors import InterlockError, ModelError, UsageError
from interlock.core.shapes import is_dict, is_list
from interlock.models.openai_errors import excerpt
from interlock.models.retrying import is_retryable

TRANSIENT = (
    ModelConnectionError,
    ModelOverloadedError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
)
"""After these the same request may succeed."""


def as_interlock_error(problem: Exception, *, where: str) -> InterlockError:
    """A failure of a call as ours. The original is not chained: it refers to the request, and that to the key.

    Args:
        problem: what was raised.
        where: the provider and, if known, its address.
    """
    match problem:
        case InterlockError():
            return problem
        case UserError():
            return UsageError(f"{where}: {problem}")
        case ModelHTTPError():
            return _http_error(problem, where)
        case ModelAPIError():
            return _api_error(problem, where)
        case UnexpectedModelBehavior():
            return ModelError(f"{where}: {excerpt(problem.message)}", body=problem.body)
        case _:
            said = excerpt(str(problem))
            return ModelError(
                f"{where} sent something that cannot be read ({type(problem).__name__}: {said})"
            )


def cut_off(where: str, raw: str | None) -> ModelError:
    """The error of a stream that ended before its end."""
    tail = f"; it ended with {excerpt(raw[-500:])}" if raw else ""
    text = f"{where}: the stream was cut off, without a finish reason{tail}"
    return ModelError(text, retryable=True, body=raw)


def _http_error(problem: ModelHTTPError, where: str) -> ModelError:
    said = _said(problem.body) or "no explanation"
    if problem.in_stream:
        said = f"the stream reported an error: {said}"
    if problem.suggested_model_id:
        said += f" (did you mean {problem.suggested_model_id!r}?)"
    hint = problem.provider_retry_hint
    return ModelError(
        f"{where}: {said}",
        status=problem.status_code,
        code=_code(problem),
        retryable=is_retryable(problem.status_code) if hint is None else hint,
        retry_after=problem.retry_after,
        body=_text(problem.body),
    )


def _api_error(problem: ModelAPIError, where: str) -> ModelError:
    match problem:
        case ModelRequestTimeout():
            text = f"{where} took more than {problem.timeout:g} s ({problem.setting})"
        case ModelTimeoutError(phase="connect" | "pool"):
            text = f"no connection to {where} in time"
        case ModelTimeoutError():
            text = f"{where} was silent for too long"
        case ModelConnectionError(phase="connect"):
            text = f"cannot connect to {where}: {excerpt(problem.message)}"
        case ModelConnectionError():
            text = f"{where} broke off: {excerpt(problem.message)}"
        case _:
            said = _said(problem.body) or excerpt(problem.message)
            text = (
                f"{where}: the stream reported an error: {said}" if problem.in_stream else f"{where}: {said}"
            )
    return ModelError(
        text,
        code=_code(problem),
        retryable=isinstance(problem, TRANSIENT),
        retry_after=problem.retry_after,
        body=_text(problem.body),
    )


def _code(problem: ModelAPIError) -> str | None:
    return problem.provider_error_code or problem.provider_error_type


def _said(body: object | None) -> str | None:
    """The message in ``{"error": {"message": ...}}``, ``{"message": ...}``, a list of these, or a text."""
    value = body
    if is_list(value) and value:
        value = value[0]
    if isinstance(value, str):
        return excerpt(value) or None
    if not is_dict(value):
        return None
    if value.get("error"):
        return _said(value["error"])
    said = value.get("message") or value.get("detail")
    return excerpt(said) if isinstance(said, str) else None


def _text(body: object | None) -> str | None:
    if body is None or isinstance(body, str):
        return body
    return msgspec.json.encode(body, enc_hook=str).decode()
