"""Case 47: a prompt-only filter."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, both_modes, conversation, lines, masked

from interlock import Processor
from interlock.messages import TextPart
from interlock.prompt import PromptToolCall, PromptToolResult
from interlock.testing import text

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("every_store")]
THREAD = ("user: one", "assistant: call look c1", "tool: c1 → pin 1234", "assistant: first")


class RequestOnly(Processor):
    """Drops calls and results and masks digits, in the request."""

    id = "req"

    def process_llm_request(self, request: Any, ctx: Any) -> Any:
        kept = [
            message
            for message in request.prompt
            if not any(isinstance(part, PromptToolCall | PromptToolResult) for part in message.content)
        ]
        return request.replace(prompt=tuple(kept)).map_text(masked)


class Durable(Processor):
    """Masks digits in the message itself."""

    id = "durable"

    def process_input(self, messages: Any, ctx: Any) -> None:
        for part in messages[-1].content.parts:
            if isinstance(part, TextPart):
                part.text = masked(part.text)


class Meddle(Processor):
    """Tries to change the prompt in place."""

    id = "meddle"

    def __init__(self) -> None:
        self.refused = 0

    def process_llm_request(self, request: Any, ctx: Any) -> None:
        message = request.prompt[-1]
        for target, name in ((request, "prompt"), (message, "content"), (message.content[0], "text")):
            try:
                setattr(target, name, "changed")
            except (AttributeError, TypeError):
                self.refused += 1


@both_modes
async def test_a_request_only_change_is_not_stored(mode: str) -> None:
    """The prompt is filtered; history stays byte for byte, the turn is stored as it was, all_messages shows
    it unfiltered.

    R4.3, R3.5, case 47.
    """
    bench = Bench([text("ok")], input_processors=[RequestOnly()])
    await bench.seed(conversation(*THREAD))
    before = await bench.raw()
    ran = await bench.run(mode, "pin 5678")
    assert bench.receives(1) == ["user: one", "assistant: first", "user: pin ****"]
    assert (await bench.raw())[: len(before)] == before
    assert (await bench.stored())[len(before) :] == ["user: pin 5678", "assistant: ok"]
    assert lines(ran.result.all_messages)[-2:] == ["user: pin 5678", "assistant: ok"]
    assert "look → pin 1234" in lines(ran.result.all_messages)[1]


@both_modes
async def test_the_same_change_in_process_input_is_stored(mode: str) -> None:
    """Made in process_input, the change is durable. R8.3, case 47."""
    bench = Bench([text("ok")], input_processors=[Durable()])
    await bench.seed(conversation(*THREAD))
    await bench.run(mode, "pin 5678")
    assert bench.receives(1)[-1] == "user: pin ****"
    assert (await bench.stored())[-2:] == ["user: pin ****", "assistant: ok"]
    assert "pin 1234" in (await bench.stored())[1], "remembered messages stay as stored"


async def test_the_request_cannot_be_changed_in_place() -> None:
    """What the request hook gets is frozen: an in-place change raises and changes nothing. R4.3, case 47."""
    meddle = Meddle()
    bench = Bench([text("ok")], input_processors=[meddle])
    await bench.run("generate", "pin 5678")
    assert meddle.refused == 3
    assert bench.receives(1) == ["user: pin 5678"]


async def test_metadata_of_a_message_stays_for_later_hooks() -> None:
    """Provider metadata of a part is still in the prompt after map_text. R4.3, case 47."""
    bench = Bench([text("ok")], input_processors=[RequestOnly()])
    part = {"type": "text", "text": "pin 5678", "providerMetadata": {"cache": {"ttl": 5}}}
    message = {"id": "m1", "role": "user", "content": {"format": 2, "parts": [part]}}
    await bench.run("generate", [message])
    (sent,) = bench.model.calls[0].request.prompt[0].content
    assert (sent.text, sent.provider_options) == ("pin ****", {"cache": {"ttl": 5}})
