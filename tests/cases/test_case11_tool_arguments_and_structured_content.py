"""Case 11: sensitive data in tool arguments, in tool results and in structured content."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, counted, masked, said

from interlock import Processor
from interlock.chunks import ToolCall
from interlock.messages import TextPart, ToolInvocationPart
from interlock.processors import RegexFilter
from interlock.testing import text, tool_call

pytestmark = pytest.mark.anyio


def mask_values(value: Any) -> Any:
    """Four digits become stars, in every string of a value."""
    if isinstance(value, dict):
        return {key: mask_values(inner) for key, inner in value.items()}
    return masked(value) if isinstance(value, str) else value


class PinIn(Processor):
    id = "pin"

    def process_input(self, messages: Any, ctx: Any) -> None:
        for message in messages:
            for part in message.content.parts:
                if isinstance(part, TextPart):
                    part.text = masked(part.text)


class PinStream(PinIn):
    """Masks arguments in the stream."""

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        return chunk.replace(args=mask_values(chunk.args)) if isinstance(chunk, ToolCall) else chunk

    def process_tool_result(self, result: Any, ctx: Any) -> Any:
        return result.replace(result=mask_values(result.result))


class PinStep(PinIn):
    """Masks arguments when the step is complete."""

    def process_output_step(self, output: Any, ctx: Any) -> None:
        for message in ctx.message_list.get.response.db():
            for part in message.content.parts:
                if isinstance(part, ToolInvocationPart):
                    part.args = mask_values(part.args)

    def process_tool_result(self, result: Any, ctx: Any) -> None:
        ctx.message_list.update_tool_invocation(result.tool_call_id, result=mask_values(result.result))


def built_in() -> RegexFilter:
    """Masks every channel."""
    return RegexFilter({"pin": r"\d{4}"}, redaction="mask", id="pin")


@pytest.mark.parametrize("make", [PinStream, PinStep, built_in])
@pytest.mark.parametrize("release", ["auto", "run"])
@pytest.mark.parametrize("mode", ["stream", "generate"])
async def test_one_value_everywhere(make: Any, release: str, mode: str) -> None:
    """Client, tool, store and next prompt have the arguments and results the guard let through.

    R0.1, R4.6 to R4.8, case 11.
    """
    save, runs = counted("save", {"ok": True, "pin": "1234"})
    guard = make()
    bench = Bench(
        [tool_call("save", {"note": "pin 1234"}, id="c1")],
        [text("saved")],
        tools=[save],
        input_processors=[guard],
        output_processors=[guard],
    )
    image = {"type": "file", "mimeType": "image/png", "data": "aGk="}
    parts = [{"type": "text", "text": "see"}, image, {"type": "text", "text": "pin 1234"}]
    ran = await bench.run(mode, [{"role": "user", "content": parts}], release=release)
    assert bench.receives(1) == ["user: see + [file] + pin ****"]
    assert bench.receives(2)[1:] == [
        'assistant: call save{"note":"pin ****"}',
        'tool: {"ok":true,"pin":"****"}',
    ]
    assert runs == [{"note": "pin ****"}]
    if mode == "stream":
        (call,), (result,) = ran.of_type("tool-call"), ran.of_type("tool-result")
        assert call.args == {"note": "pin ****"}
        assert result.result == {"ok": True, "pin": "****"}
        ran.never_contains("1234")
    user, answer = await bench.rows()
    assert [part.type for part in user.content.parts] == ["text", "file", "text"]
    assert user.content.parts[1].data == "aGk=", "the image is untouched"  # type: ignore[attr-defined]
    assert "1234" not in said(user, answer)
    assert answer.content.parts[0].args == {"note": "pin ****"}  # type: ignore[attr-defined]
