"""Case 49: the detector itself fails (for a judge written with plain hooks; the built-in ones wait, see
README.md).
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from notation import Bench, both_modes

from interlock import Agent, Processor, ProcessorViolation, RequestContext
from interlock.testing import ScriptedModel, error, text

pytestmark = pytest.mark.anyio


class Slow:
    """Never answers."""

    provider = "test"
    model_id = "slow"

    async def stream(self, request: Any) -> Any:
        await asyncio.sleep(3600)
        yield


class Judge(Processor):
    """Asks a model for a verdict; says of a failed check that the check failed."""

    id = "judge"

    def __init__(self, model: Any, strategy: str) -> None:
        self.contexts: list[RequestContext] = []
        self.told: list[ProcessorViolation] = []
        self.strategy = strategy
        self.judge = Agent(
            id="judge", model=model, input_processors=lambda context: self.contexts.append(context) or []
        )

    def on_violation(self, violation: ProcessorViolation) -> None:
        self.told.append(violation)

    async def process_input(self, messages: Any, ctx: Any) -> None:
        try:
            call = self.judge.generate(messages[-1].text, request_context=ctx.request_context)
            verdict = (await asyncio.wait_for(call, 0.05)).text
            if verdict not in ("yes", "no"):
                raise ValueError("unreadable verdict")
        except Exception as problem:
            cause = type(problem).__name__
            if self.strategy == "strict":
                ctx.abort("the check failed", metadata={"check_failed": True, "cause": cause})
            ctx.violation("the check failed", {"check_failed": True, "cause": cause})
        else:
            if verdict == "no":
                ctx.abort("refused")


FAILURES: list[Any] = [
    pytest.param(lambda: ScriptedModel([error(500, "away")]), "ModelError", id="fails"),
    pytest.param(Slow, "TimeoutError", id="times out"),
    pytest.param(lambda: ScriptedModel([text("hm?")]), "ValueError", id="unreadable"),
]


@both_modes
@pytest.mark.parametrize(("model", "cause"), FAILURES)
async def test_strict_blocks_and_says_that_the_check_failed(model: Any, cause: str, mode: str) -> None:
    """A failed check blocks: no model call, a tripwire whose metadata says it was the check.

    R5.2, R5.4, R2.6, case 49.
    """
    judge = Judge(model(), "strict")
    bench = Bench([text("ok")], input_processors=[judge])
    ran = await bench.run(mode, "number 4000 1111", request_context={"tenant": "acme"})
    assert bench.model.calls == []
    assert ran.result.tripwire is not None
    assert ran.result.tripwire.processor_id == "judge"
    assert ran.result.tripwire.metadata == {"check_failed": True, "cause": cause}
    assert judge.told == ran.result.violations
    assert judge.told[0].detail == {"check_failed": True, "cause": cause}
    assert judge.contexts[0].get("tenant") == "acme", "the request context reaches the judge's own call"


@both_modes
@pytest.mark.parametrize(("model", "cause"), FAILURES)
async def test_warn_lets_through_and_tells(model: Any, cause: str, mode: str) -> None:
    """A failed check is passed over: one model call, and the failure with its cause is on the result.

    R2.6, case 49.
    """
    judge = Judge(model(), "warn")
    bench = Bench([text("ok")], input_processors=[judge])
    ran = await bench.run(mode, "number 4000 1111")
    assert len(bench.model.calls) == 1
    assert ran.result.text == "ok"
    assert [each.detail for each in ran.result.violations] == [{"check_failed": True, "cause": cause}]
    assert judge.told == ran.result.violations


class Broken(Processor):
    """Raises in the hook itself."""

    id = "broken"

    def process_input(self, messages: Any, ctx: Any) -> None:
        raise LookupError("4000 1111")


async def test_a_hook_that_raises_follows_on_error() -> None:
    """closed: the error surfaces and nothing runs; open: a violation tells, without the content.

    R2.7, case 49.
    """
    closed, opened = Broken(), Broken()
    opened.on_error = "open"
    bench = Bench([text("ok")], input_processors=[closed])
    with pytest.raises(LookupError):
        await bench.run("generate")
    assert bench.model.calls == []
    bench = Bench([text("ok")], input_processors=[opened])
    ran = await bench.run("generate")
    assert ran.result.text == "ok"
    (violation,) = ran.result.violations
    assert violation.processor_id == "broken"
    assert "4000" not in repr(violation)
