"""The demo's agent."""

from __future__ import annotations

import asyncio
import io

from rich.console import Console

from interlock.demo.agent import SAMPLES, answer, demo_agent
from interlock.demo.processors import INJECTION, ORDER, masked
from interlock.demo.screen import Screen
from interlock.testing import ScriptedModel, text

GOOD = text("It is a thin wire near the ground.")


def test_the_samples_show_what_they_are_for() -> None:
    """One that streams, one with personal data and an order, one to block."""
    plain, order, attack = SAMPLES
    assert (masked(plain), ORDER.search(plain), INJECTION.search(plain)) == (plain, None, None)
    assert "[CARD]" in masked(order)
    assert "[EMAIL]" in masked(order)
    assert ORDER.search(masked(order))
    assert INJECTION.search(attack)


def test_two_retries_and_then_the_answer_passes() -> None:
    """The guard's own limit and the agent's are the same: a stubborn model is never a tripwire."""
    model = ScriptedModel([text("No.")], repeat_last=True)
    result = demo_agent(model).generate_sync("q")
    assert (result.text, result.tripwire, len(model.calls)) == ("No.", None, 3)
    assert [violation.processor_id for violation in result.violations] == ["complete-answer"] * 3


def test_without_an_order_the_model_gets_no_tool() -> None:
    """Tools are offered by question, not by default."""
    model = ScriptedModel([GOOD])
    demo_agent(model).generate_sync("What is a wire?")
    assert model.calls[0].request.structured_output is None


def test_answer_gives_the_result_it_showed() -> None:
    """What is on the screen is what the result says."""
    shown = io.StringIO()
    agent = demo_agent(ScriptedModel([text("A trip", "wire and more of it.")]))
    result = asyncio.run(answer(agent, "q", Screen(Console(file=shown))))
    assert result.text == "A TripWire & more of it."
    assert f"answer    {result.text}\n" in shown.getvalue()
