"""Case 43: three requests at once on one agent and one set of processors."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from notation import Bench

from interlock import Agent, Processor, UsageError
from interlock.chunks import Chunk, Finish, TextDelta, TextEnd, TextStart
from interlock.testing import ScriptedModel, text

pytestmark = pytest.mark.anyio


class Letters:
    """Says the letter it was asked for fifty times, with pauses."""

    provider = "test"
    model_id = "letters"

    def __init__(self) -> None:
        self.open = 0

    async def stream(self, request: Any) -> AsyncGenerator[Chunk, None]:
        letter = request.prompt[-1].text
        dice = random.Random(letter)
        self.open += 1
        try:
            yield TextStart(id="t")
            for _ in range(50):
                await asyncio.sleep(dice.choice([0, 0, 0.001]))
                yield TextDelta(id="t", text=f"{letter} ")
            yield TextEnd(id="t")
            yield Finish(finish_reason="stop")
        finally:
            self.open -= 1


class Hold(Processor):
    """A hold-back buffer of one delta and a counter, both in the state."""

    id = "hold"

    def __init__(self) -> None:
        self.seen: dict[str, list[Any]] = {}

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        held = ctx.state.get("held")
        if isinstance(chunk, TextDelta):
            ctx.state["count"] = ctx.state.get("count", 0) + 1
            ctx.state.setdefault("letters", set()).add(chunk.text)
            ctx.state["held"] = chunk
            if ctx.request_context.get("letter") == "B" and ctx.state["count"] == 20:
                ctx.abort("enough of B")
            return held
        if isinstance(chunk, TextEnd) and held is not None:
            return [held, chunk]
        return chunk

    def on_run_end(self, outcome: Any, ctx: Any) -> None:
        self.seen[ctx.request_context.get("letter")] = [
            ctx.state.get("count"),
            ctx.state.get("letters"),
            outcome.kind,
        ]


async def test_each_run_has_only_its_own() -> None:
    """Client text, counter, storage, outcome and request context are each run's own; nothing is left for a
    fourth.

    R6, R5.5, case 43.
    """
    model, hold = Letters(), Hold()
    bench = Bench(model=model, output_processors=[hold])

    async def run(letter: str, cancel_at: int | None = None) -> str:
        options: Any = {"memory": {"thread": letter, "resource": "r"}, "request_context": {"letter": letter}}
        shown: list[str] = []
        async with bench.agent.stream(letter, **options) as stream:
            async for piece in stream.text_stream:
                shown.append(piece)
                if len(shown) == cancel_at:
                    await stream.cancel()
                    break
        return "".join(shown)

    a, b, c = await asyncio.gather(run("A"), run("B"), run("C", cancel_at=30))
    assert a == "A " * 50
    assert b == "B " * 18, "the held one and the one that was blocked are not sent"
    assert c == "C " * 30
    assert hold.seen["A"] == [50, {"A "}, "finished"]
    assert hold.seen["B"] == [20, {"B "}, "tripwire"]
    assert hold.seen["C"][1:] == [{"C "}, "cancelled"]
    assert await bench.stored("A") == ["user: A", "assistant: " + "A " * 50]
    assert await bench.stored("B") == []
    stored_c = await bench.stored("C")
    assert stored_c[0] == "user: C"
    assert set(stored_c[1].removeprefix("assistant: ").split()) == {"C"}
    assert model.open == 0
    await run("D")
    assert hold.seen["D"] == [50, {"D "}, "finished"]


def test_in_several_event_loops() -> None:
    """One agent in several threads, each with its own event loop: the runs do not mix. R6, case 43."""
    import threading

    hold = Hold()
    agent = Agent(id="threads", model=Letters(), output_processors=[hold])
    texts: dict[str, str] = {}

    def work(letter: str) -> None:
        texts[letter] = agent.generate_sync(letter, request_context={"letter": letter}).text

    threads = [threading.Thread(target=work, args=(letter,)) for letter in "PQRS"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {letter: f"{letter} " * 50 for letter in "PQRS"}
    assert all(hold.seen[letter] == [50, {f"{letter} "}, "finished"] for letter in "PQRS")


def test_two_processors_with_one_id_are_refused() -> None:
    """The same id twice in one list is an error at set-up. R2.5, case 43."""
    with pytest.raises(UsageError, match="same id 'hold'"):
        Agent(id="a", model=ScriptedModel([text("x")]), output_processors=[Hold(), Hold()])
