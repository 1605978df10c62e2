"""Corners of a run where two rules meet; each was a fault once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Agent, Parallel, Processor, Retry, tool
from interlock.chunks import Finish, StepFinish, TextDelta, TextEnd, TextStart
from interlock.memory import Memory
from interlock.testing import ScriptedModel, error, text, tool_call

pytestmark = pytest.mark.anyio
THREAD = {"thread": "t", "resource": "r"}


class Hooks(Processor):
    """A processor made of functions."""

    def __init__(self, name: str = "p", **hooks: Any) -> None:
        self.id = name
        for hook, function in hooks.items():
            setattr(self, hook, function)


@tool
def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize("wrap", [lambda guard: guard, Parallel], ids=["bare", "in Parallel"])
async def test_input_that_no_guard_has_passed_is_not_stored(wrap: Any) -> None:
    """R0.3, R8.2: a run cancelled while an input guard looks keeps nothing of what the guard has not passed."""
    looking = asyncio.Event()

    async def guard(messages: Any, ctx: Any) -> None:
        looking.set()
        await asyncio.sleep(30)

    memory = Memory()
    agent = Agent(
        id="a",
        model=ScriptedModel([text("ok")]),
        memory=memory,
        input_processors=[wrap(Hooks("guard", process_input=guard))],
    )
    task = asyncio.create_task(agent.generate("my secret", memory=THREAD))
    await looking.wait()
    task.cancel()
    await asyncio.wait([task])
    assert await memory.messages("t", resource="r") == []


async def test_data_sent_on_an_own_tools_result_starts_behind_its_sender() -> None:
    """R9.2: a chunk emitted from process_output_stream is seen by those after the emitter, whatever the chunk was."""
    seen: list[str] = []

    def watcher(name: str, send: bool = False) -> Hooks:
        def watch(chunk: Any, ctx: Any) -> Any:
            if chunk.type == "data-x":
                seen.append(name)
            if send and chunk.type == "tool-result":
                ctx.writer.custom({"type": "data-x", "data": 1})
            return chunk

        made = Hooks(name, process_output_stream=watch)
        made.process_data_parts = True
        return made

    agent = Agent(
        id="a",
        model=ScriptedModel([tool_call("look")], [text("ok")]),
        tools=[look],
        output_processors=[watcher("before"), watcher("sender", send=True), watcher("after")],
    )
    await agent.generate("go")
    assert seen == ["after"]


async def test_an_abort_on_the_withdrawal_of_a_failed_call_is_final() -> None:
    """R7.3, D01: an abort on a step-finish with reason retry ends the run, after an error retry too."""

    def refuse(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, StepFinish) and chunk.finish_reason == "retry":
            ctx.abort("enough", retry=True)
        return chunk

    agent = Agent(
        id="a",
        model=ScriptedModel([error(400, "no")], [text("never")]),
        output_processors=[Hooks("out", process_output_stream=refuse)],
        error_processors=[Hooks("err", process_api_error=lambda error, ctx: Retry())],
    )
    result = await agent.generate("go")
    assert result.tripwire is not None
    assert result.tripwire.reason == "enough"
    assert len(result.violations) == 1


async def test_feedback_lasts_until_the_step_is_accepted() -> None:
    """R7.3, D39: a retry asked on the step-finish keeps the feedback of the try before it."""
    asked: list[int] = []

    def judge(output: Any, ctx: Any) -> None:
        if ctx.retry_count == 0:
            ctx.abort("REASON-A", retry=True)

    def late(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, StepFinish) and chunk.finish_reason != "retry" and not asked:
            asked.append(1)
            ctx.abort("REASON-B", retry=True)
        return chunk

    model = ScriptedModel([text("one")], [text("two")], [text("three")], [text("four")])
    agent = Agent(
        id="a",
        model=model,
        output_processors=[
            Hooks("judge", process_output_step=judge),
            Hooks("late", process_output_stream=late),
        ],
        max_processor_retries=5,
    )
    result = await agent.generate("go")
    assert result.text == "three"
    assert "REASON-A" in model.calls[2].prompt_text
    assert "REASON-B" in model.calls[2].prompt_text


@pytest.mark.parametrize("release", ["live", "step"])
async def test_data_of_a_step_stands_behind_its_border(release: Any) -> None:
    """R3.6: step-start stands between the steps, in front of what the second brings, under every policy."""

    def send(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, TextDelta) and ctx.step_number == 1:
            ctx.writer.custom({"type": "data-x", "data": 1})
        return chunk

    agent = Agent(
        id="a",
        model=ScriptedModel([tool_call("look")], [text("ok")]),
        tools=[look],
        output_processors=[Hooks("out", process_output_stream=send)],
    )
    result = await agent.generate("go", release=release)
    types = [part.type for part in result.messages[0].content.parts]
    assert types.index("step-start") < types.index("data-x")
    assert types.count("step-start") == 1


async def test_a_block_is_closed_even_if_its_step_start_was_hidden() -> None:
    """R4.6, D01: a step-start that a hook drops leaves no open block behind when the step is withdrawn."""
    tries: list[int] = []

    def hide(chunk: Any, ctx: Any) -> Any:
        if chunk.type == "step-start":
            return None
        if isinstance(chunk, TextEnd) and not tries:
            tries.append(1)
            ctx.abort("again", retry=True)
        return chunk

    agent = Agent(
        id="a",
        model=ScriptedModel([text("bad")], [text("good")]),
        output_processors=[Hooks("out", process_output_stream=hide)],
        max_processor_retries=1,
    )
    async with agent.stream("go") as stream:
        kinds = [type(chunk) async for chunk in stream if isinstance(chunk, TextStart | TextDelta | TextEnd)]
    assert kinds == [TextStart, TextDelta, TextEnd] * 2


async def test_a_violation_is_told_even_if_the_hook_then_raises() -> None:
    """R2.6: what a processor objected to reaches on_violation, however its hook ends."""
    told: list[str] = []

    def flag_and_fail(messages: Any, ctx: Any) -> None:
        ctx.violation("odd")
        raise ValueError("broken")

    processor = Hooks(
        "p", process_input=flag_and_fail, on_violation=lambda violation: told.append(violation.message)
    )
    agent = Agent(id="a", model=ScriptedModel([text("ok")]), input_processors=[processor])
    with pytest.raises(ValueError, match="broken"):
        await agent.generate("go")
    assert told == ["odd"]


async def test_log_probabilities_do_not_tell_what_a_hook_removed() -> None:
    """R0.3: tokens in provider metadata spell the text; where hooks may change the text, they do not leave."""

    def shout(chunk: Any, ctx: Any) -> Any:
        return chunk.replace(text="x") if isinstance(chunk, TextDelta) else chunk

    finish = Finish(
        finish_reason="stop", provider_metadata={"openai": {"logprobs": [{"token": "secret"}], "id": 1}}
    )
    model = ScriptedModel([text("secret"), finish], repeat_last=True)
    guarded = await Agent(
        id="a", model=model, output_processors=[Hooks("p", process_output_stream=shout)]
    ).generate("q")
    assert guarded.steps[0].provider_metadata == {"openai": {"id": 1}}
    plain = await Agent(id="b", model=model).generate("q")
    assert "logprobs" in (plain.steps[0].provider_metadata or {})["openai"]
