"""Case 51: how often and with which numbers each hook runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from notation import Bench, both_modes, counted

from interlock import Processor
from interlock.testing import text, tool_call

pytestmark = pytest.mark.anyio


class P(Processor):
    """Records every hook: name, step number, len(steps), retry count."""

    id = "p"

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int, int]] = []
        self.chunks: list[str] = []

    def note(self, name: str, ctx: Any) -> None:
        self.calls.append((name, ctx.step_number, len(ctx.steps), ctx.retry_count))

    def process_input(self, messages: Any, ctx: Any) -> None:
        self.note("input", ctx)

    def process_input_step(self, step: Any, ctx: Any) -> None:
        self.note("input_step", ctx)

    def process_llm_request(self, request: Any, ctx: Any) -> None:
        self.note("llm_request", ctx)

    def process_llm_response(self, response: Any, ctx: Any) -> None:
        self.note("llm_response", ctx)

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        self.note(f"stream {chunk.type}", ctx)
        self.chunks.append(getattr(chunk, "tool_call_id", None) or getattr(chunk, "text", "") or chunk.type)
        return chunk

    def process_output_step(self, output: Any, ctx: Any) -> None:
        self.note("output_step", ctx)

    def process_tool_result(self, result: Any, ctx: Any) -> None:
        self.note("tool_result", ctx)

    def process_output_result(self, result: Any, ctx: Any) -> None:
        self.note("output_result", ctx)

    def process_api_error(self, error: Any, ctx: Any) -> None:
        self.note("api_error", ctx)


@both_modes
async def test_counts_and_numbers(mode: str) -> None:
    """Each hook as often, and with the step numbers and step counts, that R1, R4 say, read or not, the
    result read twice.

    Case 51.
    """
    look, _ = counted("look", 7)
    p = P()
    bench = Bench(
        [text("a"), tool_call("look", {}, id="c1"), tool_call("look", {}, id="c2")],
        [text("b")],
        tools=[look],
        input_processors=[p],
        output_processors=[p],
        error_processors=[p],
    )
    if mode == "stream":
        async with bench.agent.stream("x") as stream:
            chunks = [chunk.type async for chunk in stream]
            assert await stream.result() == await stream.result()
        assert "finish" in chunks
    else:
        await bench.run("generate")
    counts = Counter(name for name, *_ in p.calls)
    assert {name: counts[name] for name in counts if not name.startswith("stream")} == {
        "input": 1,
        "input_step": 2,
        "llm_request": 2,
        "llm_response": 2,
        "output_step": 2,
        "tool_result": 2,
        "output_result": 1,
    }
    assert {name: number for name, number in counts.items() if name.startswith("stream")} == {
        "stream step-start": 2,
        "stream text-start": 2,
        "stream text-delta": 2,
        "stream text-end": 2,
        "stream tool-call": 2,
        "stream tool-result": 2,
        "stream finish": 2,
        "stream step-finish": 2,
    }
    assert p.chunks.count("c1") == p.chunks.count("c2") == 2, "each call once, each result once"
    for hook in ("input_step", "llm_request", "llm_response", "output_step"):
        assert [step for name, step, *_ in p.calls if name == hook] == [0, 1]
    early = ("input_step", "llm_request", "stream step-start", "stream text-delta", "stream finish")
    late = ("llm_response", "output_step", "stream step-finish")
    for hook in early:
        assert [steps for name, _, steps, _ in p.calls if name == hook] == [0, 1], hook
    for hook in late:
        assert [steps for name, _, steps, _ in p.calls if name == hook] == [1, 2], hook
    assert [steps for name, _, steps, _ in p.calls if name == "tool_result"] == [1, 1]
    assert [steps for name, _, steps, _ in p.calls if name == "output_result"] == [2]
    assert {retries for *_, retries in p.calls} == {0}


async def test_the_order_of_a_two_step_run() -> None:
    """The hooks come in the order of R1, step by step. R1, case 51."""
    look, _ = counted("look", 7)
    p = P()
    bench = Bench(
        [tool_call("look", {})], [text("b")], tools=[look], input_processors=[p], output_processors=[p]
    )
    await bench.run("generate")
    step = ["input_step", "llm_request", "llm_response", "output_step"]
    names = [name for name, *_ in p.calls if not name.startswith("stream")]
    assert names == ["input", *step, "tool_result", *step, "output_result"]


class Whole(Processor):
    """Sees in the stream hook that the text is unfinished."""

    id = "whole"

    def __init__(self) -> None:
        self.seen: list[tuple[str, bool]] = []

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        if chunk.type in ("text-delta", "text-end"):
            self.seen.append((ctx.messages[-1].text, chunk.type == "text-end"))
        return chunk


async def test_unfinished_text_is_known_to_be_unfinished() -> None:
    """The block's end tells a hook that checks unfinished text when it is whole; ctx.messages has what came
    so far.

    R3.1, R4.6, case 51.
    """
    whole = Whole()
    bench = Bench([text("a", "b")], output_processors=[whole])
    await bench.run("stream")
    assert whole.seen == [("", False), ("a", False), ("ab", True)]
