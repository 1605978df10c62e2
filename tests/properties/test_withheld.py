"""What was blocked or rejected is nowhere afterwards (R0.3, R5.3, R7.3)."""

from __future__ import annotations

import asyncio
import io
import logging
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from watched import THREAD, Seen, WatchedModel, check_frame, generate, stream

from interlock import Agent, Processor, RunOutcome, ToolContext, tool
from interlock.chunks import (
    Chunk,
    File,
    Finish,
    Source,
    TextEnd,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from interlock.memory import Memory
from interlock.testing import reasoning, text, tool_call

SECRET = "☠"
STEP_HOOKS = ["process_output_stream", "process_llm_response", "process_output_step", "process_tool_result"]


@dataclass(frozen=True)
class Setup:
    """A conversation of which some of the model's calls hold what must not be seen."""

    script: list[list[Any]]
    bad: frozenset[int]
    hook: str
    retry: bool
    error: bool
    retries: int | None
    release: str
    swallow: bool


class Guard(Processor):
    """Rejects every step that comes of a bad call."""

    id = "guard"

    def __init__(self, setup: Setup, model: WatchedModel) -> None:
        self.setup = setup
        self.model = model
        self.end: RunOutcome | None = None
        setattr(self, setup.hook, self.judge)

    def judge(self, subject: Any, ctx: Any) -> Any:
        """Reject."""
        unchanged = subject if isinstance(subject, Chunk) else None
        if self.setup.hook == "process_output_stream" and not isinstance(subject, Finish | TextEnd):
            return unchanged
        call = min(len(self.model.calls), len(self.setup.script)) - 1  # the last one repeats
        if call not in self.setup.bad:
            return unchanged
        if self.setup.error:
            raise ValueError("the guard broke")
        try:
            ctx.abort("no", retry=self.setup.retry)
        except BaseException:
            if self.setup.swallow:
                return unchanged
            raise

    def on_run_end(self, outcome: RunOutcome, ctx: Any) -> None:
        """Keep what it was told."""
        self.end = outcome


def bad_call(draw: st.DrawFn, number: int, with_tool: bool) -> list[Any]:
    """A call with secrets in any channel."""
    secret: list[Any] = [
        text("very ", SECRET, "bad"),
        text(SECRET + "x", "y"),
        reasoning("why ", SECRET),
        Source(id="s", url=f"https://{SECRET}.test", title=SECRET),
        File(mime_type="text/plain", data=SECRET),
        ToolInputStart(tool_call_id=f"i{number}", tool_name="look"),
        ToolInputDelta(tool_call_id=f"i{number}", args_text=SECRET),
        ToolInputEnd(tool_call_id=f"i{number}"),
    ]
    chosen = draw(st.lists(st.sampled_from(secret[:5]), max_size=3))
    if draw(st.booleans()):
        chosen += secret[5:]
    if with_tool:
        chosen.append(tool_call("look", {"q": SECRET}, id=f"i{number}"))
    return chosen or [text(SECRET)]


@st.composite
def setups(draw: st.DrawFn, final: bool = False) -> Setup:
    """Conversations with one to three steps; ``final`` ones are judged in process_output_result."""
    hook = "process_output_result" if final else draw(st.sampled_from(STEP_HOOKS))
    count = draw(st.integers(1, 4))
    bad = draw(st.frozensets(st.integers(0, count - 1), min_size=1))
    script: list[list[Any]] = []
    for number in range(count):
        with_tool = number < count - 1 or hook == "process_tool_result"
        if final:
            script.append(
                [text("so ", SECRET, "far")] + ([tool_call("look", {"q": "ok"})] if with_tool else [])
            )
        elif number in bad:
            script.append(bad_call(draw, number, with_tool or draw(st.booleans())))
        else:
            good: list[Any] = [text("fine ", str(number))]
            script.append(good + ([tool_call("look", {"q": "ok"})] if with_tool else []))
    return Setup(
        script=script,
        bad=frozenset(range(count)) if final else bad,
        hook=hook,
        retry=draw(st.booleans()),
        error=draw(st.sampled_from([False, False, True])),
        retries=draw(st.sampled_from([None, 1, 2])),
        release=draw(st.sampled_from(["live", "step", "run"])),
        swallow=draw(st.booleans()),
    )


async def check(setup: Setup, run: Any) -> None:
    """The run leaves no secret, not even in the log."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    log = logging.getLogger("interlock")
    log.addHandler(handler)
    try:
        await check_logged(setup, run)
    finally:
        log.removeHandler(handler)
    assert SECRET not in said.getvalue(), "R0.3: logs"


async def check_logged(setup: Setup, run: Any) -> None:
    """The run leaves no secret."""

    @tool
    def look(q: str, ctx: ToolContext) -> str:
        """Look."""
        return f"about {q}"

    model = WatchedModel(setup.script)
    guard = Guard(setup, model)
    memory = Memory()
    agent = Agent(
        id="withheld",
        model=model,
        tools=[look],
        memory=memory,
        output_processors=[guard] if setup.hook != "process_llm_response" else [],
        input_processors=[guard] if setup.hook == "process_llm_response" else [],
    )
    seen: Seen = await run(
        agent, memory=THREAD, release=setup.release, max_processor_retries=setup.retries, max_steps=6
    )
    assert guard.end is not None
    ended_badly = guard.end.kind != "finished"
    for place, value in (("on_run_end's result", guard.end.result), ("result", seen.result)):
        if value is None:
            continue
        released = value.released_text
        shown = repr(value.replace(released_text=""))
        assert SECRET not in shown, f"R0.3, R5.3: {place}: {shown}"
        if setup.release == "run" or (setup.release == "step" and setup.hook in STEP_HOOKS[:3]):
            assert SECRET not in released, "R7.5"
    stored = await memory.messages("t", resource="r")
    assert SECRET not in repr(stored), f"R0.3, R8.2: stored {stored}"
    judged_before_send = setup.release == "run" or (setup.release == "step" and setup.hook in STEP_HOOKS[:3])
    if judged_before_send:
        assert SECRET not in repr(seen.chunks), f"R7.5: chunks {seen.chunks}"
    for number, call in enumerate(model.calls):
        assert SECRET not in repr(call.prompt), f"R7.3: prompt of call {number}: {call.prompt}"
    if seen.chunks:
        check_frame(seen.chunks)
    if ended_badly and seen.result is not None:
        assert seen.result.tripwire is not None
        assert seen.result.tripwire.reason == "no"


@given(setup=setups())
@settings(max_examples=150)
def test_a_rejected_step_is_nowhere(setup: Setup) -> None:
    """What a guard rejected in any hook of the step is in no result, step, store, prompt or log.

    R0.3, R5.3, R7.3, R8.2; and, where the release policy lets the guard judge first, in no chunk (R7.5).
    """
    asyncio.run(check(setup, stream))
    asyncio.run(check(setup, generate))


async def check_final(setup: Setup, run: Any) -> None:
    """A refused final answer leaves no secret."""

    @tool
    def look(q: str) -> str:
        """Look."""
        return f"about {q}"

    model = WatchedModel(setup.script)
    guard = Guard(setup, model)
    memory = Memory()
    agent = Agent(id="final", model=model, tools=[look], memory=memory, output_processors=[guard])
    seen: Seen = await run(
        agent, memory=THREAD, release=setup.release, max_processor_retries=setup.retries, max_steps=6
    )
    assert guard.end is not None
    blocked = guard.end.kind == "tripwire"
    stored = await memory.messages("t", resource="r")
    assert SECRET not in repr(stored), "R8.2: after process_output_result calls with results only"
    if blocked:
        shown = repr(guard.end.result.replace(released_text=""))
        assert SECRET not in shown, f"R5.3: only calls with results stay, every text is empty: {shown}"
        assert guard.end.result.text == ""
        if len(setup.script) > 1:
            assert guard.end.result.tool_calls, "R5.3: calls with their results stay"
            assert stored, "R8.2: the next turn knows what was done"
    if setup.release == "run":
        assert SECRET not in repr(seen.chunks), "R7.5"


@given(setup=setups(final=True))
@settings(max_examples=60)
def test_a_refused_final_answer_is_nowhere(setup: Setup) -> None:
    """A block, a used-up retry or an exception in process_output_result withholds every text of the run.

    R5.3, R8.2, R7.5.
    """
    asyncio.run(check_final(setup, stream))
    asyncio.run(check_final(setup, generate))
