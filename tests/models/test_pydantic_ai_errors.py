"""pydantic-ai's errors as ours."""

from __future__ import annotations

import pytest
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UnexpectedModelBehavior,
    UserError,
)

from interlock.core.errors import ModelError, UsageError
from interlock.models.pydantic_ai_errors import as_interlock_error, cut_off


def translated(problem: Exception) -> ModelError:
    """The error, which must be one of the model."""
    made = as_interlock_error(problem, where="here")
    assert isinstance(made, ModelError)
    assert str(made).startswith("here") or "here" in str(made)
    return made


def test_an_http_error_keeps_status_code_wait_and_body() -> None:
    """What the provider said is the text; nested forms are read."""
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "too   busy"}}
    error = translated(
        ModelHTTPError(529, "m", body, headers={"Retry-After": "3"}, provider_error_type="overloaded_error")
    )
    assert (error.status, error.code, error.retryable, error.retry_after) == (
        529,
        "overloaded_error",
        True,
        3.0,
    )
    assert "too busy" in str(error)
    assert error.body is not None
    assert "overloaded_error" in error.body


def test_the_provider_knows_best_whether_to_try_again() -> None:
    """``x-should-retry`` overrides what the status says."""
    assert not translated(ModelHTTPError(500, "m", None, headers={"x-should-retry": "false"})).retryable
    assert translated(ModelHTTPError(400, "m", None, headers={"x-should-retry": "true"})).retryable


@pytest.mark.parametrize(
    ("problem", "words", "retryable"),
    [
        (ModelConnectionError("m", "refused", phase="connect"), "cannot connect", True),
        (ModelConnectionError("m", "gone", phase="read"), "broke off: gone", True),
        (ModelTimeoutError("m", "t", phase="connect"), "in time", True),
        (ModelTimeoutError("m", "t", phase="read"), "silent", True),
        (ModelRequestTimeout("m", 2.5), "more than 2.5 s", True),
        (ModelRateLimitError("m", "x", in_stream=True), "the stream reported an error: x", True),
        (ModelAPIError("m", "no JSON"), "no JSON", False),
        (UnexpectedModelBehavior("odd", "body"), "odd", False),
        (AssertionError("part"), "AssertionError: part", False),
    ],
)
def test_other_failures(problem: Exception, words: str, retryable: bool) -> None:
    """Each says in words what happened, and whether it may go well another time."""
    error = translated(problem)
    assert words in str(error)
    assert error.retryable is retryable


def test_a_wrong_use_is_the_callers() -> None:
    """pydantic-ai's UserError is our UsageError; our own errors stay as they are."""
    assert isinstance(as_interlock_error(UserError("no such tool"), where="here"), UsageError)
    own = ModelError("x")
    assert as_interlock_error(own, where="here") is own


def test_a_cut_off_stream_shows_its_end() -> None:
    """The end of what came says more than that something is missing."""
    error = cut_off("here", "a" * 1000 + "the end")
    assert "the end" in str(error)
    assert len(str(error)) < 700
