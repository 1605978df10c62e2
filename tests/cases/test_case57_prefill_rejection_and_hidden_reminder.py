"""Case 57: the provider refuses a prompt that ends with an assistant message."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, both_modes

from interlock import ErrorProcessor, HookContext, ModelError, Retry
from interlock.processors import PrefillErrorHandler
from interlock.processors.prefill_error_handler import REMINDER
from interlock.testing import error, text

pytestmark = pytest.mark.anyio
INPUT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "partial"}]
REFUSALS = [
    "model does not support assistant message prefill",
    "prefill is incompatible with enable_thinking",
]


class Prefill(PrefillErrorHandler):
    """The built-in handler; notes what count it is asked with."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def process_api_error(self, error: Exception, ctx: HookContext) -> Retry | None:
        self.counts.append(ctx.retry_count)
        return super().process_api_error(error, ctx)


@both_modes
@pytest.mark.parametrize("message", REFUSALS)
async def test_the_reminder_recovers_the_run(message: str, mode: str) -> None:
    """Two calls, the second with the reminder; no error chunk; the reminder is not stored.

    R4.5, R7.2, R10.5, case 57.
    """
    prefill = Prefill()
    bench = Bench([error(400, message)], [text("recovered")], error_processors=[prefill])
    ran = await bench.run(mode, INPUT)
    assert len(bench.model.calls) == 2
    assert bench.receives(2) == ["user: hi", "assistant: partial", f"user: {REMINDER}"]
    assert ran.result.text == "recovered"
    assert ran.result.tripwire is None
    assert prefill.counts == [0]
    if mode == "stream":
        assert "error" not in ran.types
        assert ran.text_concat == "recovered"
    assert await bench.stored() == ["user: hi", "assistant: partial", "assistant: recovered"]


@both_modes
async def test_the_error_comes_again(mode: str) -> None:
    """The hook's own counter says that it has had its try: the original error surfaces after two calls.

    R4.5, R5.4, case 57.
    """
    prefill = Prefill()
    bench = Bench([error(400, REFUSALS[0])], error_processors=[prefill])
    with pytest.raises(ModelError, match="prefill"):
        await bench.run(mode, INPUT)
    assert len(bench.model.calls) == 2
    assert prefill.counts == [0, 1]


@both_modes
async def test_another_error_is_not_touched(mode: str) -> None:
    """Another 400 surfaces as it is, after one call. R4.5, case 57."""
    bench = Bench([error(400, "context length exceeded")], error_processors=[Prefill()])
    with pytest.raises(ModelError, match="context length exceeded") as raised:
        await bench.run(mode, INPUT)
    assert raised.value.status == 400
    assert len(bench.model.calls) == 1


@both_modes
async def test_no_error_hook(mode: str) -> None:
    """Without an error hook the provider's error surfaces. R5.4, case 57."""
    bench = Bench([error(400, REFUSALS[0])])
    with pytest.raises(ModelError, match="prefill"):
        await bench.run(mode, INPUT)
    assert len(bench.model.calls) == 1


class Always(ErrorProcessor):
    id = "always"

    def process_api_error(self, error: Any, ctx: Any) -> Retry:
        return Retry()


@pytest.mark.parametrize(("cap", "calls"), [(None, 11), (2, 3), (0, 1)])
async def test_the_retries_of_an_error_hook_are_bounded(cap: int | None, calls: int) -> None:
    """A hook that always asks is granted the cap: 10 where none is set. R4.5, R7.2, case 57."""
    bench = Bench([error(400, "no")], error_processors=[Always()], max_processor_retries=cap)
    with pytest.raises(ModelError):
        await bench.run("generate")
    assert len(bench.model.calls) == calls
