"""When a failed request is worth another one, and how long to wait for it. The trying itself is tenacity's."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

from interlock.core.errors import ModelError

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")

FIRST_WAIT = 0.5
"""Seconds before the first retry, doubled for each further one, and spread by as much again."""
LONGEST_WAIT = 8.0
LONGEST_RETRY_AFTER = 60.0
"""Seconds; a provider that asks for more gets no retry, the caller is told instead."""


async def retried(attempt: Callable[[], Awaitable[T]], *, retries: int, deadline: float | None = None) -> T:
    """What the attempt returns, tried again where the same request may succeed soon enough.

    The wait is the provider's (``Retry-After``), else it doubles; both are spread, so that clients do not come back
    all at once.

    Args:
        attempt: makes one request, and raises ModelError.
        retries: how often at most to try again.
        deadline: the event loop's time after which no retry may begin.

    Raises:
        ModelError: the last attempt's.
    """
    if retries <= 0:
        return await attempt()
    # imported when first needed: 10 ms beside httpx, and most calls need none
    from tenacity import AsyncRetrying, retry_if_exception, wait_exponential_jitter

    def wait(state: RetryCallState) -> float:
        asked = _retry_after_of(state)
        return backoff(state) if asked is None else asked * random.uniform(1.0, 1.1)

    def stop(state: RetryCallState) -> bool:
        if deadline is not None and asyncio.get_running_loop().time() + state.upcoming_sleep >= deadline:
            return True
        return state.attempt_number > retries

    backoff = wait_exponential_jitter(initial=FIRST_WAIT, max=LONGEST_WAIT, jitter=FIRST_WAIT)
    trying = AsyncRetrying(
        sleep=asyncio.sleep,
        wait=wait,
        stop=stop,
        retry=retry_if_exception(_is_worth_it),
        reraise=True,
    )
    return await trying(attempt)


def is_retryable(status: int | None) -> bool:
    """Whether a request answered with this HTTP status may succeed later."""
    return status is not None and (status in (408, 409, 429) or 500 <= status <= 599)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the provider asks to wait, from ``retry-after-ms`` or ``retry-after`` (seconds or a date)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    seconds = _number(given)
    if seconds is not None or given is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
    except ValueError:
        return None


def _is_worth_it(problem: BaseException) -> bool:
    if not isinstance(problem, ModelError):
        return False
    return problem.retryable and (problem.retry_after or 0) <= LONGEST_RETRY_AFTER


def _retry_after_of(state: RetryCallState) -> float | None:
    problem = state.outcome.exception() if state.outcome else None
    return problem.retry_after if isinstance(problem, ModelError) else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
