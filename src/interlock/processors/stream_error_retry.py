"""StreamErrorRetry: failures that may be over in a moment are tried again."""

from __future__ import annotations

import asyncio
import inspect
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from interlock.core.context import HookContext
from interlock.core.errors import ModelError, UsageError
from interlock.core.processor import ErrorProcessor
from interlock.core.record import FrozenRecord
from interlock.core.shapes import described, is_sequence
from interlock.core.step import Retry
from interlock.processors.error_texts import causes

Matcher: TypeAlias = Callable[[BaseException], bool]
DelayMs: TypeAlias = float | Callable[[Exception, HookContext], float | Awaitable[float]]

MAX_RETRY_AFTER_MS = 30_000.0
_TRANSIENT = re.compile(
    r"server_error|internal_error|overloaded|rate_limit|timeout|unavailable", re.IGNORECASE
)
_GUIDANCE = re.compile(r"you can retry your request", re.IGNORECASE)
_AUTHORIZATION = re.compile(
    r"invalid_api_key|permission|authentication|unauthorized|forbidden", re.IGNORECASE
)


def is_retryable_stream_error(error: BaseException) -> bool:
    """Whether an error came inside a stream, without a status, and is one that passes.

    Args:
        error: one error; its causes are not looked at.
    """
    if not isinstance(error, ModelError) or error.status is not None:
        return False
    return bool(_TRANSIENT.search(error.code or "") or _GUIDANCE.search(error.message))


def is_bad_request(error: BaseException) -> bool:
    """Whether it is an HTTP 400; providers in trouble answer so now and then. Retry it once at the most."""
    return isinstance(error, ModelError) and error.status == 400


class StreamErrorMatcher(FrozenRecord, frozen=True, kw_only=True):
    """A matcher with a policy of its own; what it does not set is the processor's.

    Attributes:
        match: gets the error, then each of its causes.
        max_retries: retries of a step after such an error.
        delay_ms: milliseconds to wait before one.
        on_retry: told of each: the error, ctx and the milliseconds that are waited.
    """

    match: Matcher
    max_retries: int | None = None
    delay_ms: DelayMs | None = None
    on_retry: Callable[[Exception, HookContext, float], Awaitable[object] | object] | None = None


class StreamErrorRetry(ErrorProcessor):
    """Tries a step again after a failure that may be over in a moment.

    Such a failure is one the provider marked retryable, an error inside the stream that is known to pass, or whatever a
    matcher says; the error and its causes are looked at. Matchers come first, with their policies.

    Args:
        max_retries: retries of a step that this processor asks for; ``max_processor_retries`` limits them too.
        matchers: functions of an exception, or StreamErrorMatcher.
        retry_unknown_errors: try again after any error but one of authorization (401, 403, a refused key).
        delay_ms: milliseconds to wait before a retry, or a (sync or async) function of (error, ctx). What is negative
            or not finite counts as 0.
        max_retry_after_ms: the longest wait a provider's Retry-After leads to; a longer ``delay_ms`` stays.

    Raises:
        UsageError: an option that cannot work.
    """

    id = "stream-error-retry-processor"
    name = "Stream Error Retry Processor"

    def __init__(
        self,
        *,
        max_retries: int = 1,
        matchers: Sequence[Matcher | StreamErrorMatcher] = (),
        retry_unknown_errors: bool = False,
        delay_ms: DelayMs = 0,
        max_retry_after_ms: float = MAX_RETRY_AFTER_MS,
    ) -> None:
        self.max_retries = _checked_count(max_retries)
        self.delay_ms = _checked_delay(delay_ms)
        self.retry_unknown_errors = retry_unknown_errors
        self.max_retry_after_ms = _milliseconds(max_retry_after_ms)
        if not is_sequence(matchers):
            raise UsageError(f"StreamErrorRetry: matchers must be a list, not {described(matchers)}")
        self.matchers = [_policy(each) for each in matchers]

    async def process_api_error(self, error: Exception, ctx: HookContext) -> Retry | None:
        """Wait as long as policy and provider ask for, then try again, if that may help (spec R4.5)."""
        policy = self._policy_for(error)
        if policy is None:
            return None
        limit = self.max_retries if policy.max_retries is None else policy.max_retries
        if ctx.retry_count >= limit:
            return None
        wait = max(await self._delay(policy, error, ctx), self._asked_for(error))
        if policy.on_retry is not None:
            told = policy.on_retry(error, ctx, wait)
            if inspect.isawaitable(told):
                await told
        if wait > 0:
            await asyncio.sleep(wait / 1000)
        return Retry()

    def _policy_for(self, error: Exception) -> StreamErrorMatcher | None:
        chain = list(causes(error))
        for policy in self.matchers:
            if any(policy.match(each) for each in chain):
                return policy
        retryable = any(isinstance(each, ModelError) and each.retryable for each in chain)
        if retryable or any(is_retryable_stream_error(each) for each in chain):
            return _PLAIN
        if self.retry_unknown_errors and not any(_is_authorization(each) for each in chain):
            return _PLAIN
        return None

    async def _delay(self, policy: StreamErrorMatcher, error: Exception, ctx: HookContext) -> float:
        delay: Any = self.delay_ms if policy.delay_ms is None else policy.delay_ms
        if callable(delay):
            delay = delay(error, ctx)
            if inspect.isawaitable(delay):
                delay = await delay
        return _milliseconds(delay)

    def _asked_for(self, error: Exception) -> float:
        for each in causes(error):
            if isinstance(each, ModelError) and each.retry_after is not None:
                return min(_milliseconds(each.retry_after * 1000), self.max_retry_after_ms)
        return 0.0


def _never(_: BaseException) -> bool:
    return False


_PLAIN = StreamErrorMatcher(match=_never)
"""The policy where no matcher has one: the processor's."""


def _is_authorization(error: BaseException) -> bool:
    if not isinstance(error, ModelError):
        return False
    return error.status in (401, 403) or bool(_AUTHORIZATION.search(error.code or ""))


def _milliseconds(given: Any) -> float:
    if not isinstance(given, int | float) or isinstance(given, bool):
        raise UsageError(f"StreamErrorRetry: a delay is a number of milliseconds, not {described(given)}")
    return float(given) if given > 0 and math.isfinite(given) else 0.0


def _checked_delay(given: Any) -> DelayMs:
    if not callable(given):
        return _milliseconds(given)
    function: Any = given
    return function


def _checked_count(given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise UsageError(f"StreamErrorRetry: max_retries must be a whole number from 0, not {given!r}")
    return given


def _policy(given: Any) -> StreamErrorMatcher:
    if isinstance(given, StreamErrorMatcher):
        if given.max_retries is not None:
            _checked_count(given.max_retries)
        if given.delay_ms is not None:
            _checked_delay(given.delay_ms)
    elif callable(given):
        function: Any = given
        given = StreamErrorMatcher(match=function)
    if not isinstance(given, StreamErrorMatcher) or not callable(given.match):
        raise UsageError(
            f"StreamErrorRetry: a matcher is a function of an exception or a StreamErrorMatcher, not {described(given)}"
        )
    return given
