"""Case 08: the same guard in stream and in generate."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, HoldBack, counted, masked

from interlock.messages import TextPart
from interlock.processors import RegexFilter
from interlock.testing import text, tool_call

pytestmark = pytest.mark.anyio


class Pin(HoldBack):
    """Four digits become stars, in text and in tool results; counts its calls."""

    def __init__(self) -> None:
        super().__init__("pin", masked)
        self.counts: dict[str, int] = {}

    def count(self, hook: str) -> None:
        self.counts[hook] = self.counts.get(hook, 0) + 1

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        self.count(f"stream {chunk.type}")
        return super().process_output_stream(chunk, ctx)

    def process_tool_result(self, result: Any, ctx: Any) -> Any:
        self.count("tool_result")
        return result.replace(result=masked(result.result))

    def process_output_result(self, result: Any, ctx: Any) -> None:
        self.count("result")
        for message in ctx.messages:
            for part in message.content.parts:
                if isinstance(part, TextPart):
                    part.text = masked(part.text)


class BuiltIn(RegexFilter):
    """The same, built in; counts its calls."""

    def __init__(self) -> None:
        super().__init__({"pin": r"\d{4}"}, replacement="****")
        self.counts: dict[str, int] = {}

    def count(self, hook: str) -> None:
        self.counts[hook] = self.counts.get(hook, 0) + 1

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        self.count(f"stream {chunk.type}")
        return super().process_output_stream(chunk, ctx)

    def process_tool_result(self, result: Any, ctx: Any) -> Any:
        self.count("tool_result")
        return super().process_tool_result(result, ctx)


async def outcome(mode: str, make: Any, *, in_call: bool = False, **options: Any) -> Any:
    """What one way to run gives."""
    look, _ = counted("look", "pin 1234")
    guard = make()
    given: dict[str, Any] = {"output_processors": [guard]}
    bench = Bench(
        [tool_call("look", {}, id="c1")],
        [text("the pin is 12", "34")],
        tools=[look],
        **({} if in_call else given),
    )
    ran = await bench.run(mode, **(given if in_call else {}), **options)
    ran.never_contains("1234")
    return ran.result.text, await bench.stored(), bench.receives(2), guard.counts


@pytest.mark.parametrize("make", [Pin, BuiltIn])
async def test_one_outcome_for_five_ways_to_run(make: Any) -> None:
    """Read, awaited, generate, given with the call, release step and run: one outcome, equal hook counts.

    R0.2, R10.2, R10.4, case 08.
    """
    first = await outcome("stream", make)
    assert first[0] == "the pin is ****"
    assert first[1] == ["user: x", "assistant: look → pin **** | the pin is ****"]
    assert first[2][-1] == "tool: pin ****"
    assert await outcome("result", make) == first
    assert await outcome("generate", make) == first
    for mode in ("stream", "generate"):
        assert await outcome(mode, make, in_call=True) == first
        assert await outcome(mode, make, release="step") == first
        assert await outcome(mode, make, release="run") == first
