"""PrefillErrorHandler: a prompt that ends with the assistant is refused."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Agent, ModelError, tool
from interlock.processors import PrefillErrorHandler
from interlock.testing import ScriptedModel, error, text, tool_call

pytestmark = pytest.mark.anyio

INPUT: Any = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Well"}]
REFUSALS = [
    "This model does not support assistant message prefill. The conversation must end with a user message.",
    "Assistant response prefill is incompatible with enable_thinking.",
    "assistant response prefill is incompatible with `enable_thinking`",
    "Requests ending with a model turn are not supported",
]


def agent(*script: Any, **options: Any) -> tuple[Agent, ScriptedModel]:
    """An agent with the handler, and its model."""
    model = ScriptedModel(*script, repeat_last=True)
    return Agent(id="a", model=model, error_processors=[PrefillErrorHandler()], **options), model


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_known_refusals_are_answered_with_a_reminder(refusal: str) -> None:
    """R4.5: the reminder is the prompt's last message; the answer goes on with the assistant's."""
    made, model = agent([error(400, refusal)], [text("...")])
    result = await made.generate(INPUT)
    assert result.text == "..."
    assert model.calls[1].prompt[-1] == {
        "role": "user",
        "content": [{"type": "text", "text": "<system-reminder>continue</system-reminder>"}],
    }
    assert [message.text for message in result.messages] == ["..."]


async def test_the_body_may_say_it() -> None:
    """Some gateways put the provider's words there only."""
    failure = ModelError("Bad Request", status=400, body=f'{{"error": {{"message": "{REFUSALS[0]}"}}}}')
    made, model = agent([failure], [text("...")])
    assert (await made.generate(INPUT)).text == "..."
    assert len(model.calls) == 2


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("context length exceeded", 400),
        ("the conversation must end", 400),
        ("prefill", 500),
        ("overloaded", 529),
    ],
)
async def test_other_errors_are_not_its_business(message: str, status: int) -> None:
    """R5.4: they surface as they are, after one call."""
    made, model = agent([error(status, message)])
    with pytest.raises(ModelError, match=message):
        await made.generate(INPUT)
    assert len(model.calls) == 1


async def test_it_tries_once_a_step() -> None:
    """R4.5: the count of this step decides; another step has its own try."""

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    refused = [error(400, REFUSALS[0])]
    made, model = agent(refused, [tool_call("look")], refused, [text("done")], tools=[look])
    assert (await made.generate(INPUT)).text == "done"
    assert len(model.calls) == 4
    made, model = agent(refused, tools=[look])
    with pytest.raises(ModelError, match="prefill"):
        await made.generate(INPUT)
    assert len(model.calls) == 2
