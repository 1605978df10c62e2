"""Case 20: a tripwire from each hook reaches the caller."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from notation import Bench, both_modes, counted

from interlock import Chain, ErrorProcessor, Processor, Retry, When
from interlock.testing import error, text, tool_call

pytestmark = pytest.mark.anyio
INPUT = ["process_input", "process_input_step", "process_llm_request", "process_llm_response"]
OUTPUT = ["process_output_stream", "process_output_step", "process_tool_result", "process_output_result"]


class Guard(Processor):
    """Blocks in one hook, in the first run."""

    id = "guard"

    def __init__(self, hook: str) -> None:
        self.used = False
        setattr(self, hook, self.block)

    def block(self, subject: Any, ctx: Any) -> Any:
        if not self.used:
            self.used = True
            ctx.abort("why", metadata={"cat": 1})
        return subject if hasattr(subject, "type") else None


def check(ran: Any) -> None:
    """The tripwire is on the result and is the stream's last chunk, once."""
    result = ran.result
    assert (result.tripwire.reason, result.tripwire.processor_id) == ("why", "guard")
    assert result.tripwire.metadata == {"cat": 1}
    assert result.finish_reason == "other"
    if ran.mode == "stream":
        (tripwire,) = ran.of_type("tripwire")
        assert ran.chunks[-1] is tripwire
        assert (tripwire.reason, tripwire.processor_id, tripwire.metadata) == ("why", "guard", {"cat": 1})
        assert not ran.of_type("finish", "error", "abort")


@both_modes
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("hook", INPUT + OUTPUT)
async def test_exactly_one_tripwire_from_every_hook(
    hook: str, wrapped: bool, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One tripwire chunk, last; the processor's own id, not a wrapper's; no log of a failure; the next call
    is answered.

    R5.2, R10.3, case 20.
    """
    caplog.set_level(logging.WARNING)
    look, runs = counted("look", 1)
    guard: Any = Chain(When(lambda ctx: True, Guard(hook))) if wrapped else Guard(hook)
    lane = "input_processors" if hook in INPUT else "output_processors"
    lists: dict[str, Any] = {lane: [guard]}
    bench = Bench([tool_call("look", {}, id="c1")], [text("text")], tools=[look], **lists)
    ran = await bench.run(mode, "bad", max_processor_retries=3)
    check(ran)
    if hook in INPUT[:3]:
        assert bench.model.calls == []
    assert len(bench.model.calls) <= 2, "a tripwire is not retried"
    assert len(runs) == (hook in OUTPUT[2:])
    assert caplog.records == []
    second = await bench.run(mode, "harmless")
    assert second.result.tripwire is None
    assert second.result.text == "text"


class Refuse(ErrorProcessor):
    id = "guard"

    def process_api_error(self, error: Any, ctx: Any) -> Retry | None:
        ctx.abort("why", metadata={"cat": 1})


@both_modes
async def test_a_tripwire_from_the_error_hook(mode: str) -> None:
    """process_api_error may block like any other hook; the error does not surface as well. R5.2, case 20."""
    bench = Bench([error(400, "no")], error_processors=[Refuse()])
    check(await bench.run(mode))
