"""Case 53: a model-based filter on a long stream: a judge written with plain hooks, and one on UnitGuard."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from notation import Bench, conversation

from interlock import Processor
from interlock.chunks import TextDelta, TextEnd
from interlock.processors import Unit, UnitGuard, Verdict
from interlock.testing import ScriptedModel, text

SENTENCE = "x" * 599 + "."
WHOLE = SENTENCE * 10


class Judge(Processor):
    """Judges each sentence once, and of the input what is new."""

    id = "judge"

    def __init__(self) -> None:
        self.judged: list[str] = []

    def process_input(self, messages: Any, ctx: Any) -> None:
        for message in ctx.message_list.get.input.db():
            self.judged.append(message.text)

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        pieces: list[str] = ctx.state.setdefault("pieces", [])
        if isinstance(chunk, TextDelta):
            pieces.append(chunk.text)
            if "." not in chunk.text:
                return None
            return self.judge(pieces, chunk)
        if isinstance(chunk, TextEnd) and pieces:
            return [self.judge(pieces, TextDelta(id=chunk.id)), chunk]
        return chunk

    def judge(self, pieces: list[str], chunk: TextDelta) -> TextDelta:
        whole = "".join(pieces)
        pieces.clear()
        self.judged.append(whole)
        return chunk.replace(text=whole)


class Final(Processor):
    """Only looks at the result."""

    id = "final"

    def __init__(self) -> None:
        self.calls = 0

    def process_output_result(self, result: Any, ctx: Any) -> None:
        self.calls += 1


def cut(number: int) -> list[str]:
    """The text in so many pieces."""
    size = len(WHOLE) // number
    return [WHOLE[i : i + size] for i in range(0, len(WHOLE), size)]


@pytest.mark.anyio
@pytest.mark.parametrize("deltas", [2_000, 20])
async def test_a_judge_runs_once_a_sentence(deltas: int) -> None:
    """Verdicts are as many as sentences, for any cut; old messages are not judged again; the result hook
    runs once.

    R4.1, R4.6, case 53.
    """
    judge, final = Judge(), Final()
    old = [f"{'user' if i % 2 == 0 else 'assistant'}: old {i}" for i in range(40)]
    bench = Bench([text(*cut(deltas))], input_processors=[judge], output_processors=[judge, final])
    await bench.seed(conversation(*old))
    ran = await bench.run("stream")
    assert ran.text_concat == ran.result.text == WHOLE
    assert judge.judged == ["x", *[SENTENCE] * 10]
    assert final.calls == 1


def calls_of(deltas: int, processors: list[Any], read: bool) -> int:
    """How many Python functions a run of so many deltas calls."""
    from interlock import Agent

    agent = Agent(id="a", model=ScriptedModel([text(*["abc"] * deltas)]), output_processors=processors)
    count = 0

    def profile(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    async def run() -> None:
        if not read:
            await agent.generate("x")
            return
        async with agent.stream("x") as stream:
            async for _ in stream:
                pass

    sys.setprofile(profile)
    try:
        asyncio.run(run())
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("read", [True, False])
def test_the_work_is_linear(read: bool) -> None:
    """Ten times the deltas are at most about ten times the calls. R2.2, case 53."""
    calls_of(10, [Judge(), Final()], read)  # caches fill
    few, many = (calls_of(deltas, [Judge(), Final()], read) for deltas in (200, 2_000))
    assert many < 11 * few


def test_a_result_hook_costs_nothing_while_streaming() -> None:
    """A processor with process_output_result only adds no call per chunk. R2.2, case 53."""
    calls_of(10, [Final()], False)
    without, having = (calls_of(2_000, processors, False) for processors in ([], [Final()]))
    assert having - without < 200


class GuardJudge(UnitGuard):
    """Counts what it is asked."""

    def __init__(self, unit: Any = "sentence", **options: Any) -> None:
        super().__init__(id="judge", unit=unit, **options)
        self.judged: list[str] = []

    async def judge(self, unit: Unit, ctx: Any) -> Verdict:
        self.judged.append(unit.text)
        return Verdict.allow()


SPOKEN = " ".join(f"{'word ' * 119}end{number}." for number in range(10))
"""Ten sentences of 600 characters."""


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["stream", "result", "generate"])
@pytest.mark.parametrize("deltas", [2_000, 20])
@pytest.mark.parametrize(("unit", "calls"), [("sentence", 10), (600, 11), ("answer", 1)])
async def test_a_unit_guard_asks_once_a_unit(mode: str, deltas: int, unit: Any, calls: int) -> None:
    """Units, not chunks: as many verdicts for 2,000 deltas as for 20, each of its own text; the input is judged once
    and old messages never.

    R0.2, R4.1, case 53.
    """
    judge = GuardJudge(unit)
    size = len(SPOKEN) // deltas
    pieces = [SPOKEN[at : at + size] for at in range(0, len(SPOKEN), size)]
    bench = Bench([text(*pieces)], input_processors=[judge], output_processors=[judge])
    await bench.seed(conversation(*[f"{'user' if n % 2 == 0 else 'assistant'}: old {n}" for n in range(40)]))
    ran = await bench.run(mode)
    assert ran.result.text == SPOKEN
    assert judge.judged[0] == "x"
    assert "".join(judge.judged[1:]) == SPOKEN
    assert len(judge.judged) == 1 + calls


def test_the_work_of_a_unit_guard_is_linear() -> None:
    """Ten times the deltas are at most about ten times the Python calls. R2.2, case 53."""
    calls_of(10, [GuardJudge()], True)
    few, many = (calls_of(deltas, [GuardJudge()], True) for deltas in (200, 2_000))
    assert many < 11 * few
