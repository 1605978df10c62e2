"""Case 38: a batcher between text and tool call."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, both_modes, counted

from interlock import Processor
from interlock.chunks import Chunk, Finish, StepFinish, TextDelta
from interlock.processors import KeywordFilter, RegexFilter, Unit, UnitGuard, Verdict
from interlock.testing import text, tool_call

pytestmark = pytest.mark.anyio


class Batch(Processor):
    """Joins deltas in pairs; lets other chunks out at once, or keeps them in the batch too."""

    id = "batch"

    def __init__(self, keep_others: bool) -> None:
        self.keep_others = keep_others

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        batch: list[Chunk] = ctx.state.setdefault("batch", [])
        last = batch[-1] if batch else None
        if isinstance(chunk, TextDelta) and isinstance(last, TextDelta) and last.id == chunk.id:
            last.text += chunk.text
            return flushed(batch)
        batch.append(chunk)
        waits = isinstance(chunk, TextDelta) or (
            self.keep_others and not isinstance(chunk, Finish | StepFinish)
        )
        return None if waits else flushed(batch)


def flushed(batch: list[Chunk]) -> list[Chunk]:
    """What was kept, and an empty batch."""
    out = list(batch)
    batch.clear()
    return out


@pytest.mark.parametrize("release", ["live", "step", "run"])
@pytest.mark.parametrize("keep_others", [False, True])
async def test_order_and_parts_are_kept(keep_others: bool, release: str) -> None:
    """Text before its call, the call before its result, steps apart, the tool runs once; result and store
    as without.

    R4.6, R1.2, case 38.
    """
    look, runs = counted("look", 7)
    bench = Bench(
        [text("a ", "b ", "c "), tool_call("look", {}, id="c1")],
        [text("d ", "e")],
        tools=[look],
        output_processors=[Batch(keep_others)],
    )
    ran = await bench.run("stream", release=release)
    assert ran.order() == [
        "text-start",
        "text-delta a b c ",
        "text-end",
        "tool-call c1",
        "tool-result c1",
        "step-finish",
        "text-start",
        "text-delta d e",
        "text-end",
        "step-finish",
        "finish",
    ]
    assert [chunk.text for chunk in ran.of_type("text-delta")] == ["a b ", "c ", "d e"]
    assert ran.text_concat == ran.result.text == "a b c d e"
    assert len(runs) == 1
    assert await bench.stored() == ["user: x", "assistant: a b c  | look → 7 | d e"]


class Fine(UnitGuard):
    """Has nothing to object to."""

    def judge(self, unit: Unit, ctx: Any) -> Verdict:
        return Verdict.allow()


HOLDING = {
    "pattern to the end": lambda: RegexFilter({"end": r"zz$"}),
    "patterns": lambda: RegexFilter({"spaced": r"(?:\w )+!"}),
    "words": lambda: KeywordFilter(["a b c d"]),
    "sentences": lambda: Fine(id="fine"),
    "answer": lambda: Fine(id="fine", unit="answer"),
}
"""Guards that hold all of these texts to their end, and find nothing."""


@both_modes
@pytest.mark.parametrize("release", ["live", "step", "run"])
@pytest.mark.parametrize("holding", HOLDING)
async def test_a_guard_that_holds_keeps_order_and_parts(holding: str, release: str, mode: str) -> None:
    """The same of guards: what they hold leaves before the call, and steps stay apart.

    R0.2, R4.6, case 38.
    """
    look, runs = counted("look", 7)
    bench = Bench(
        [text("a ", "b ", "c "), tool_call("look", {}, id="c1")],
        [text("d ", "e")],
        tools=[look],
        output_processors=[HOLDING[holding]()],
    )
    ran = await bench.run(mode, release=release)
    assert ran.result.text == "a b c d e"
    assert len(runs) == 1
    assert await bench.stored() == ["user: x", "assistant: a b c  | look → 7 | d e"]
    if mode == "stream":
        order = [line for line in ran.order() if "input-streaming" not in line and line != "tool-call-delta"]
        assert order == [
            "text-start",
            "text-delta a b c ",
            "text-end",
            "tool-call c1",
            "tool-result c1",
            "step-finish",
            "text-start",
            "text-delta d e",
            "text-end",
            "step-finish",
            "finish",
        ]
