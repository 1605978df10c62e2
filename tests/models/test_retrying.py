"""Trying again: how often, after what, and how long after."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.errors import ModelError
from interlock.models import retrying
from interlock.models.retrying import LONGEST_RETRY_AFTER, is_retryable, retried, retry_after

pytestmark = pytest.mark.anyio


class Attempts:
    """Attempts that fail with these errors, one after the other, and then succeed."""

    def __init__(self, *problems: BaseException) -> None:
        self.problems = list(problems)
        self.made = 0

    async def __call__(self) -> str:
        self.made += 1
        if self.problems:
            raise self.problems.pop(0)
        return "done"


def busy(retry_after: float | None = 0.0) -> ModelError:
    """An error after which the same request may succeed."""
    return ModelError("busy", status=503, retryable=True, retry_after=retry_after)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds slept, without sleeping them."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return slept


@pytest.mark.parametrize("failures", [0, 1, 2, 3])
async def test_as_often_as_asked(failures: int) -> None:
    """So many retries and no more; then the last error itself is raised."""
    problems = [busy() for _ in range(failures)]
    attempts = Attempts(*problems)
    if failures <= 2:
        assert await retried(attempts, retries=2) == "done"
        assert attempts.made == failures + 1
        return
    with pytest.raises(ModelError) as caught:
        await retried(attempts, retries=2)
    assert caught.value is problems[-1]
    assert attempts.made == 3


@pytest.mark.parametrize(
    "problem",
    [
        ModelError("no", status=400),
        busy(LONGEST_RETRY_AFTER + 1),
        ValueError("a mistake"),
        asyncio.CancelledError(),
        KeyboardInterrupt(),
    ],
    ids=["refused", "too long", "a mistake", "cancelled", "interrupted"],
)
async def test_what_is_not_tried_again(problem: BaseException) -> None:
    """A refusal, a wait of minutes, whatever is no ModelError; a cancellation above all: it goes through as it is."""
    attempts = Attempts(problem)
    with pytest.raises(type(problem)) as caught:
        await retried(attempts, retries=5)
    assert caught.value is problem
    assert attempts.made == 1


@pytest.mark.parametrize("retries", [0, 1])
async def test_cancelling_reaches_the_attempt(retries: int) -> None:
    """A cancellation while an attempt waits ends the attempt, which can then hang up."""
    started, ended = asyncio.Event(), asyncio.Event()

    async def attempt() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.ensure_future(retried(attempt, retries=retries))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_waits_grow_and_are_spread(waits: list[float]) -> None:
    """Without a word of the provider the wait doubles, up to a limit, never the same for two clients."""
    for _ in range(2):
        with pytest.raises(ModelError):
            await retried(Attempts(*[busy(None)] * 8), retries=7)
    first, second = waits[:7], waits[7:]
    for number, waited in enumerate(first):
        least = min(retrying.FIRST_WAIT * 2**number, retrying.LONGEST_WAIT)
        assert least <= waited <= min(least + retrying.FIRST_WAIT, retrying.LONGEST_WAIT)
    assert first[:3] != second[:3]


async def test_the_provider_says_how_long(waits: list[float]) -> None:
    """Retry-After is waited for, and a little more; it counts for the retry after it only."""
    await retried(Attempts(busy(20.0), busy(None)), retries=2)
    assert 20 <= waits[0] <= 22
    assert waits[1] <= retrying.LONGEST_WAIT


async def test_no_retry_that_would_come_too_late(waits: list[float]) -> None:
    """A retry that could only begin after the deadline is not waited for: the error comes at once."""
    attempts = Attempts(busy(20.0))
    with pytest.raises(ModelError, match="busy"):
        await retried(attempts, retries=3, deadline=asyncio.get_running_loop().time() + 5)
    assert (attempts.made, waits) == (1, [])


@given(st.integers(100, 599))
def test_statuses_worth_a_retry(status: int) -> None:
    """408, 409, 429 and the server's own failures; no status tells nothing."""
    assert is_retryable(status) == (status in (408, 409, 429) or status >= 500)
    assert not is_retryable(None)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "7", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Mon, 01 Jan 2024 00:00:00 GMT"}, 0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds, seconds and dates are understood, a date gone by is 0, nonsense is nothing."""
    assert retry_after(headers) == seconds


def test_a_date_to_come() -> None:
    """A date is turned into the seconds until then."""
    in_a_minute = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 60))
    assert retry_after({"retry-after": in_a_minute}) == pytest.approx(60, abs=2)
