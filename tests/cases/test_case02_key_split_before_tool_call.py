"""Case 02: a key in two pieces, then a tool call."""

from __future__ import annotations

import re
from typing import Any

import pytest
from notation import Bench, HoldBack, both_modes, counted

from interlock import Processor
from interlock.messages import TextPart
from interlock.processors import RegexFilter
from interlock.testing import reasoning, text, tool_call

pytestmark = pytest.mark.anyio
STREAMED = ("tool-call-input-streaming-start", "tool-call-delta", "tool-call-input-streaming-end")
KEY = re.compile(r"tok-live-[A-Z0-9]{8,}")


def builtin() -> RegexFilter:
    """The same guard, built in."""
    return RegexFilter({"key": KEY.pattern})


def redact(text: str) -> str:
    """What the guard makes of a text."""
    return KEY.sub("[KEY]", text)


@pytest.mark.parametrize(
    "pieces",
    [
        ["Here: tok-live-", "A1B2C3D4E5F6 done."],
        ["Here: tok-live-A1B2C3D4E5F6", " done."],
        list("Here: tok-live-A1B2C3D4E5F6 done."),
    ],
    ids=["inside", "at a chunk's end", "one by one"],
)
@pytest.mark.parametrize("release", ["live", "step", "run"])
@pytest.mark.parametrize(
    "make", [lambda: HoldBack("keys", redact), lambda: builtin()], ids=["own", "built in"]
)
async def test_the_held_tail_leaves_before_the_call(pieces: list[str], release: str, make: Any) -> None:
    """What is held leaves before text-end and before the tool-call chunk, which comes once.

    R0.1, R4.6, R8.1, case 02.
    """
    look, runs = counted("look", {"v": 7})
    bench = Bench(
        [text(*pieces), tool_call("look", {}, id="c1")],
        [text("ok")],
        tools=[look],
        output_processors=[make()],
    )
    ran = await bench.run("stream", "show it", release=release)
    # guarded arguments are told before their call, as one delta
    assert [line for line in ran.order() if line != "step-finish" and line not in STREAMED] == [
        "text-start",
        "text-delta Here: [KEY] done.",
        "text-end",
        "tool-call c1",
        "tool-result c1",
        "text-start",
        "text-delta ok",
        "text-end",
        "finish",
    ]
    ran.never_contains("tok-live-")
    assert len(runs) == 1
    assert bench.receives(2)[1:] == ["assistant: Here: [KEY] done. + call look", 'tool: {"v":7}']
    assert await bench.stored() == ["user: show it", 'assistant: Here: [KEY] done. | look → {"v":7} | ok']


class WholeStep(Processor):
    """Looks at the step's text as a whole once more, across its blocks."""

    id = "whole"

    def process_output_step(self, output: Any, ctx: Any) -> None:
        found = KEY.search(output.text)
        if not found:
            return
        place = 0
        for message in ctx.message_list.get.response.db():
            for part in message.content.parts:
                if isinstance(part, TextPart):
                    start, end = found.start() - place, found.end() - place
                    place += len(part.text)
                    kept = part.text[: max(start, 0)], part.text[max(end, 0) :]
                    if start < len(part.text) and end > 0:
                        part.text = kept[0] + ("[KEY]" if start >= 0 else "") + kept[1]


@pytest.mark.parametrize("release", ["step", "run", "auto"])
async def test_a_key_across_two_blocks(release: str) -> None:
    """A key that begins in one block and ends in the next is found in the joined text and is nowhere.

    R0.2, R4.7, R7.5, case 02.
    """
    bench = Bench(
        [text("Here: tok-live-A1"), reasoning("hm"), text("B2C3D4E5F6 done.")],
        output_processors=[HoldBack("keys", redact), WholeStep()],
    )
    ran = await bench.run("stream", "show it", release=release)
    assert ran.text_concat == ran.result.text == "Here: [KEY] done."
    ran.never_contains("tok-live-", "B2C3D4E5F6")
    assert len({chunk.id for chunk in ran.of_type("text-start")}) == 2
    assert await bench.stored() == ["user: show it", "assistant: Here: [KEY] | reasoning |  done."]


@both_modes
@pytest.mark.parametrize("release", ["live", "step", "run", "auto"])
async def test_the_built_in_filter_sees_a_key_across_two_blocks(mode: str, release: str) -> None:
    """The blocks of a step are one text, also under ``live``: no piece of the key leaves in either.

    R0.2, R0.3, case 02.
    """
    bench = Bench(
        [text("Here: tok-live-A1"), reasoning("hm"), text("B2C3D4E5F6 done.")],
        output_processors=[builtin()],
    )
    ran = await bench.run(mode, "show it", release=release)
    assert ran.result.text == "Here: [KEY] done."
    if mode == "stream":
        assert ran.text_concat == "Here: [KEY] done."
        ran.never_contains("tok-live-", "B2C3D4E5F6")
        assert len({chunk.id for chunk in ran.of_type("text-start")}) == 2
    assert await bench.stored() == ["user: show it", "assistant: Here: [KEY] | reasoning |  done."]
