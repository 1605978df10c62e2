"""Public cases that are about providers, at each of them over real HTTP (see tests/cases)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fault_server import FaultServer, whole
from wired import each_wire, model_at

from cases.notation import Cap
from interlock import Agent, ModelError
from interlock.processors import PrefillErrorHandler
from interlock.processors.prefill_error_handler import REMINDER
from wires import Called, Said, Turn

pytestmark = pytest.mark.anyio

DONE = Turn((Said(("done",)),))
REFUSALS = [
    "This model does not support assistant message prefill.",
    "Assistant response prefill is incompatible with enable_thinking.",
    "Requests ending with a model turn are not supported.",
]


def look() -> int:
    """Look."""
    raise AssertionError("it must not run")


@each_wire(own=True)
async def test_case33_one_answer_per_call(wire: Any, own: bool) -> None:
    """Each call has exactly one result in what the provider is sent: the first answer, and the unknown tool's error."""
    calls = Turn((Called("c1", "look", ("{}",)), Called("c2", "nosuch", ("{}",))), "tool-calls")
    caps = [Cap("cap", "limit reached"), Cap("cap2", "limit reached (2)")]
    async with (
        FaultServer([whole(wire.body(calls))], [whole(wire.body(DONE))]) as server,
        model_at(server, wire, own=own) as model,
    ):
        result = await Agent(id="a", model=model, tools=[look], output_processors=caps).generate("x")
    assert result.text == "done"
    sent = json.dumps(server.requests[1].body)
    assert sent.count("limit reached") == 1
    assert "limit reached (2)" not in sent
    for name in ("c1", "c2"):
        assert sent.count(f'"{name}"') in (
            0,
            2,
        )  # once in the call, once in its result; Gemini need not have ids
    answers = (
        sent.count("functionResponse") or sent.count("tool_result") or sent.count("function_call_output")
    )
    assert (answers or sent.count('"role": "tool"')) == 2


@each_wire(own=True)
@pytest.mark.parametrize("refusal", REFUSALS)
async def test_case57_a_refused_prefill(wire: Any, own: bool, refusal: str) -> None:
    """A prompt that ends with the assistant and is refused is sent again with the reminder at its end."""
    refused = whole(wire.error(400, refusal), 400, "application/json")
    given = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "partial"}]
    async with (
        FaultServer([refused], [whole(wire.body(DONE))]) as server,
        model_at(server, wire, own=own) as model,
    ):
        result = await Agent(id="a", model=model, error_processors=[PrefillErrorHandler()]).generate(given)
    assert result.text == "done"
    first, second = (json.dumps(request.body) for request in server.requests)
    assert REMINDER not in first
    assert second.index("partial") < second.index(REMINDER)


@each_wire(own=True)
async def test_case57_another_refusal_is_not_touched(wire: Any, own: bool) -> None:
    """Another 400 surfaces as it is, after one call."""
    refused = whole(wire.error(400, "context length exceeded"), 400, "application/json")
    async with FaultServer([refused]) as server, model_at(server, wire, own=own) as model:
        with pytest.raises(ModelError, match="context length exceeded"):
            await Agent(id="a", model=model, error_processors=[PrefillErrorHandler()]).generate("hi")
    assert len(server.requests) == 1
