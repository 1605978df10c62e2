"""StreamErrorRetry: failures that may be over in a moment."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from interlock import Agent, ModelError, UsageError
from interlock.chunks import ErrorChunk
from interlock.processors import (
    StreamErrorMatcher,
    StreamErrorRetry,
    is_bad_request,
    is_retryable_stream_error,
)
from interlock.processors import stream_error_retry as module
from interlock.testing import ScriptedModel, error, text

pytestmark = pytest.mark.anyio


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits in milliseconds, which are not waited."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(round(seconds * 1000))

    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    return waited


async def calls_after(processor: StreamErrorRetry, *errors: Any, cap: int | None = None) -> int:
    """How often the model was called, with these errors in front of an answer."""
    model = ScriptedModel(*([each] for each in errors), [text("ok")])
    agent = Agent(id="a", model=model, error_processors=[processor], max_processor_retries=cap)
    with contextlib.suppress(ModelError):
        assert (await agent.generate("hi")).text == "ok"
    return len(model.calls)


def caused(cause: Exception) -> ModelError:
    """An error that came from another."""
    outer = ModelError("failed")
    outer.__cause__ = cause
    return outer


@pytest.mark.parametrize(
    "failure",
    [
        error(503, "down"),
        error(429, "slow down"),
        ModelError("broke off", retryable=True),
        caused(ModelError("broke off", retryable=True)),
        ErrorChunk(ModelError("x", code="server_error")),
        ErrorChunk(ModelError("x", code="rate_limit_exceeded")),
        ErrorChunk(ModelError("x", code="overloaded_error")),
        ErrorChunk(ModelError("x", code="vector_store_timeout")),
        ErrorChunk(ModelError("An error occurred. You can retry your request, or contact us.")),
        caused(ModelError("x", code="service_unavailable")),
    ],
)
async def test_what_may_pass_is_tried_again_once(failure: Any) -> None:
    """R4.5: marked by the provider, or an error inside the stream that is known to pass; one retry by default."""
    assert await calls_after(StreamErrorRetry(), failure) == 2
    assert await calls_after(StreamErrorRetry(), failure, failure) == 2
    assert await calls_after(StreamErrorRetry(max_retries=0), failure) == 1
    assert await calls_after(StreamErrorRetry(max_retries=3), *[failure] * 3) == 4


@pytest.mark.parametrize(
    "failure",
    [
        error(400, "bad"),
        error(401, "key"),
        error(404, "unknown model"),
        ModelError("x", status=500, code="server_error"),
        ErrorChunk(ModelError("x", code="invalid_prompt")),
        ErrorChunk(ModelError("please try again")),
        ErrorChunk(ModelError("x", code="insufficient_quota")),
    ],
)
async def test_what_will_not_pass_is_not_tried(failure: Any) -> None:
    """A rejection surfaces at once (R5.4), but where unknown errors are to be retried and it is none of access."""
    assert await calls_after(StreamErrorRetry(), failure) == 1
    refused = isinstance(failure, ModelError) and failure.status == 401
    assert await calls_after(StreamErrorRetry(retry_unknown_errors=True), failure) == (1 if refused else 2)


@pytest.mark.parametrize(
    "failure",
    [
        error(401, "x"),
        error(403, "x"),
        ModelError("x", code="invalid_api_key"),
        ModelError("x", code="permission_denied"),
        caused(error(401, "x")),
    ],
)
async def test_a_refused_key_is_no_unknown_error(failure: ModelError) -> None:
    """Trying again cannot help; a matcher may say otherwise."""
    assert await calls_after(StreamErrorRetry(retry_unknown_errors=True), failure) == 1
    assert await calls_after(StreamErrorRetry(matchers=[lambda _: True]), failure) == 2


async def test_matchers_have_policies_of_their_own(waits: list[float]) -> None:
    """The first that matches decides, also over the provider's mark; what it leaves open is the processor's."""
    told: list[Any] = []
    processor = StreamErrorRetry(
        max_retries=1,
        delay_ms=70,
        matchers=[
            StreamErrorMatcher(match=lambda e: "reset" in str(e), max_retries=2, delay_ms=20),
            StreamErrorMatcher(
                match=is_bad_request, on_retry=lambda e, ctx, ms: told.append((str(e), ctx.retry_count, ms))
            ),
            lambda e: isinstance(e, ConnectionResetError),
        ],
    )
    reset = ModelError("connection reset", retryable=True)
    assert await calls_after(processor, reset, reset, reset) == 3
    assert waits == [20, 20]
    assert await calls_after(processor, error(400, "odd"), error(400, "odd")) == 2
    assert told == [("odd (400)", 0, 70.0)]
    assert await calls_after(processor, caused(ConnectionResetError())) == 2


async def test_an_awaited_on_retry() -> None:
    """It may be async."""
    told: list[float] = []

    async def tell(error: Exception, ctx: Any, delay_ms: float) -> None:
        await asyncio.sleep(0)
        told.append(delay_ms)

    matcher = StreamErrorMatcher(match=is_bad_request, on_retry=tell)
    assert await calls_after(StreamErrorRetry(matchers=[matcher]), error(400, "odd")) == 2
    assert told == [0.0]


def asks(seconds: float) -> ModelError:
    """A provider that asks to wait."""
    return ModelError("later", status=429, retryable=True, retry_after=seconds)


@pytest.mark.parametrize(
    ("options", "failure", "waited"),
    [
        ({}, error(503, "x"), []),
        ({"delay_ms": 50}, error(503, "x"), [50]),
        ({"delay_ms": -5}, error(503, "x"), []),
        ({"delay_ms": float("inf")}, error(503, "x"), []),
        ({"delay_ms": lambda e, ctx: 10 * (ctx.retry_count + 1)}, error(503, "x"), [10]),
        ({}, asks(2), [2_000]),
        ({}, asks(120), [30_000]),
        ({}, asks(-1), []),
        ({}, caused(asks(2)), [2_000]),
        ({"max_retry_after_ms": 500}, asks(2), [500]),
        ({"max_retry_after_ms": 0}, asks(2), []),
        ({"max_retry_after_ms": 500, "delay_ms": 900}, asks(2), [900]),
        ({"delay_ms": 900}, asks(2), [2_000]),
    ],
)
async def test_the_wait_is_the_longer_of_both(
    options: Any, failure: ModelError, waited: list[float], waits: list[float]
) -> None:
    """``delay_ms`` and the provider's Retry-After, of which only the latter is capped."""
    assert await calls_after(StreamErrorRetry(**options), failure) == 2
    assert waits == waited


async def test_an_async_delay_grows_with_the_count(waits: list[float]) -> None:
    """It gets the error and ctx, whose count is that of this step's error retries (R4.5)."""

    async def delay(error: Exception, ctx: Any) -> float:
        return 100 * 2**ctx.retry_count

    assert await calls_after(StreamErrorRetry(delay_ms=delay, max_retries=3), *[error(503, "x")] * 3) == 4
    assert waits == [100, 200, 400]


async def test_the_runs_cap_holds_too() -> None:
    """R7.1: whichever count is smaller."""
    assert await calls_after(StreamErrorRetry(max_retries=9), *[error(503, "x")] * 9, cap=2) == 3


async def test_cancelling_ends_the_wait() -> None:
    """R5.5: nobody waits for a run that was left."""
    waiting = asyncio.Event()

    def delay(error: Exception, ctx: Any) -> float:
        waiting.set()
        return 3_600_000

    model = ScriptedModel([error(503, "x")], repeat_last=True)
    agent = Agent(id="a", model=model, error_processors=[StreamErrorRetry(delay_ms=delay)])
    async with agent.stream("hi") as stream:
        await waiting.wait()
        await stream.cancel()
        assert (await stream.result()).finish_reason == "aborted"
    assert len(model.calls) == 1


def test_the_matchers_that_are_there() -> None:
    """Facts about single errors, for rules of one's own."""
    assert is_bad_request(error(400, "x"))
    assert not is_bad_request(error(422, "x"))
    assert not is_bad_request(ValueError())
    assert is_retryable_stream_error(ModelError("x", code="SERVER_ERROR"))
    assert not is_retryable_stream_error(error(503, "x", code="server_error"))
    assert not is_retryable_stream_error(ValueError("server_error"))


@pytest.mark.parametrize(
    "options",
    [
        {"max_retries": -1},
        {"max_retries": 1.5},
        {"max_retries": True},
        {"delay_ms": "1s"},
        {"max_retry_after_ms": None},
        {"matchers": is_bad_request},
        {"matchers": ["reset"]},
        {"matchers": [StreamErrorMatcher(match="reset")]},  # type: ignore[arg-type]
        {"matchers": [StreamErrorMatcher(match=is_bad_request, max_retries=-1)]},
        {"matchers": [StreamErrorMatcher(match=is_bad_request, delay_ms="1s")]},  # type: ignore[arg-type]
    ],
)
def test_options_that_cannot_work_are_refused(options: Any) -> None:
    """At set-up."""
    with pytest.raises(UsageError, match="StreamErrorRetry"):
        StreamErrorRetry(**options)
