"""Errors by whose fault they are, and the tripwire, which is none (R5)."""

from __future__ import annotations

import copy
import pickle

import pytest

from interlock import (
    Agent,
    InterlockError,
    ModelError,
    Processor,
    StorageError,
    TripWire,
    TripWireError,
    UsageError,
)
from interlock.testing import ScriptedModel, text


@pytest.mark.parametrize("kind", [UsageError, ModelError, StorageError, TripWireError])
def test_one_base_class_catches_them_all(kind: type[Exception]) -> None:
    """R5.4: every error the library raises itself is an InterlockError."""
    assert issubclass(kind, InterlockError)
    assert issubclass(kind, Exception)


def test_a_usage_error_is_a_value_error() -> None:
    """R11: so that code which catches ValueError for bad input goes on working."""
    assert issubclass(UsageError, ValueError)


def test_a_tripwire_is_no_exception() -> None:
    """R5.1: a guard's broad ``except Exception`` must not swallow it."""
    trip = TripWire("no", processor_id="p", retry=True, metadata={"a": 1})
    assert isinstance(trip, BaseException)
    assert not isinstance(trip, Exception)
    assert (trip.reason, trip.processor_id, trip.retry, trip.metadata) == ("no", "p", True, {"a": 1})
    assert str(trip) == "no"
    assert TripWire("no", processor_id="p").retry is False


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ModelError("bad key", status=401), "bad key (401)"),
        (ModelError("slow down", status=429, code="rate_limit"), "slow down (429, rate_limit)"),
        (ModelError("gone"), "gone"),
        (ModelError("odd", code="x"), "odd (x)"),
        (ModelError("zero", status=0), "zero (0)"),
    ],
)
def test_a_model_error_shows_what_the_provider_said(error: ModelError, shown: str) -> None:
    """R5.4, R4.5: message, status and code."""
    assert str(error) == shown


def test_a_model_error_keeps_what_a_processor_needs() -> None:
    """R4.5: whether and when the same request may succeed, and the body as it came."""
    error = ModelError("m", status=429, code="c", retryable=True, retry_after=1.5, body="{}")
    assert (error.message, error.status, error.code) == ("m", 429, "c")
    assert (error.retryable, error.retry_after, error.body) == (True, 1.5, "{}")
    assert ModelError("m").retryable is False


@pytest.mark.parametrize(
    "error",
    [
        ModelError("m", status=429, code="c", retryable=True, retry_after=1.5, body="{}"),
        TripWireError("no", processor_id="p", metadata={"a": 1}),
        UsageError("u"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("way", ["pickle", "copy"])
def test_errors_survive_copying(error: BaseException, way: str) -> None:
    """Errors travel between processes (task queues, test runners) with all they hold."""
    again = pickle.loads(pickle.dumps(error)) if way == "pickle" else copy.copy(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.anyio
async def test_raise_for_tripwire() -> None:
    """R5.2: a blocked result as an ordinary exception; a fine one gives itself back."""

    class Block(Processor):
        id = "block"

        def process_input(self, messages: object, ctx: object) -> None:
            ctx.abort("not this", metadata={"a": 1})  # type: ignore[attr-defined]

    model = ScriptedModel([text("ok")])
    blocked = await Agent(id="a", model=model, input_processors=[Block()]).generate("hi")
    with pytest.raises(TripWireError, match=r"block.*not this") as caught:
        blocked.raise_for_tripwire()
    assert (caught.value.reason, caught.value.processor_id, caught.value.metadata) == (
        "not this",
        "block",
        {"a": 1},
    )
    fine = await Agent(id="a", model=model).generate("hi")
    assert fine.raise_for_tripwire() is fine
