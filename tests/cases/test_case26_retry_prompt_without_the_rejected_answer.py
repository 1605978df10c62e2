"""Case 26: the model must not see its rejected answer."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, both_modes, lines

from interlock import Processor
from interlock.testing import text

pytestmark = pytest.mark.anyio


class Quality(Processor):
    id = "q"

    def process_output_step(self, output: Any, ctx: Any) -> None:
        if "bad" in output.text:
            ctx.abort("too short", retry=True)


@both_modes
@pytest.mark.parametrize("release", ["auto", "live", "step", "run"])
async def test_the_rejected_answer_is_gone_and_the_reason_is_told(release: str, mode: str) -> None:
    """The retry's prompt has the reason and not the answer; result, usage and store follow R7.3, R5.3; the
    next turn has no feedback.

    Case 26.
    """
    bench = Bench(
        [text("bad answer")],
        [text("good answer")],
        instructions="Be good.",
        output_processors=[Quality()],
        max_processor_retries=2,
    )
    ran = await bench.run(mode, "capital?", release=release)
    assert len(bench.model.calls) == 2
    system, feedback, user = bench.receives(2, system=True)
    assert system == "system: Be good."
    assert "too short" in feedback
    assert user == "user: capital?"
    assert "bad answer" not in bench.model.calls[1].prompt_text
    result = ran.result
    assert (result.text, result.tripwire) == ("good answer", None)
    assert lines(result.messages) == ["assistant: good answer"]
    assert [(step.text, step.finish_reason) for step in result.steps] == [
        ("", "retry"),
        ("good answer", "stop"),
    ]
    assert result.steps[0].tripwire is not None
    assert result.steps[0].tripwire.reason == "too short"
    assert result.steps[1].tripwire is None
    assert (result.usage.input_tokens, result.usage.output_tokens) == (20, 10)
    assert await bench.stored() == ["user: capital?", "assistant: good answer"]
    await bench.run(mode, "and?", release=release)
    assert "too short" not in bench.model.calls[2].prompt_text, "the feedback is not in the next turn"


async def test_a_client_that_saw_the_rejected_text_is_told() -> None:
    """Under live the step is marked: step-finish with reason retry and empty text, its block closed before.

    R7.3, R7.5, case 26.
    """
    bench = Bench(
        [text("bad answer")], [text("good answer")], output_processors=[Quality()], max_processor_retries=2
    )
    ran = await bench.run("stream", "capital?", release="live")
    assert ran.order() == [
        "text-start",
        "text-delta bad answer",
        "text-end",
        "step-finish",
        "text-start",
        "text-delta good answer",
        "text-end",
        "step-finish",
        "finish",
    ]
    rejected, accepted = ran.of_type("step-finish")
    assert (rejected.finish_reason, rejected.text) == ("retry", "")
    assert rejected.tripwire is not None
    assert (rejected.tripwire.processor_id, rejected.tripwire.reason) == ("q", "too short")
    assert (accepted.finish_reason, accepted.text) == ("stop", "good answer")


@pytest.mark.parametrize("release", ["auto", "step", "run"])
async def test_where_text_waits_the_client_never_sees_it(release: str) -> None:
    """Under auto (which is step here), step and run the rejected text is never sent. R7.5, case 26."""
    bench = Bench(
        [text("bad answer")], [text("good answer")], output_processors=[Quality()], max_processor_retries=2
    )
    ran = await bench.run("stream", "capital?", release=release)
    assert ran.text_concat == "good answer"
    ran.never_contains("bad answer")
