"""When: processors behind a condition that is asked at each hook call (R10.3)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_runs import Hooks, Recorder, check_last, echo_tool, in_both_modes, make_agent, play
from interlock import Chain, UsageError, When
from interlock.chunks import TextDelta
from interlock.memory import Memory
from interlock.testing import ScriptedModel, error, text, tool_call

pytestmark = pytest.mark.anyio

EVERY_LIST = ("input_processors", "output_processors", "error_processors")


def _agent(model: Any, processor: Any, **options: Any) -> Any:
    return make_agent(model, **{name: [processor] for name in EVERY_LIST}, tools=[echo_tool()], **options)


async def _later(answer: Any) -> Any:
    await asyncio.sleep(0)
    return answer


PREDICATES: dict[str, Any] = {
    "bool": lambda value: lambda ctx: value,
    "async": lambda value: lambda ctx: _later(value),
    "truthy": lambda value: lambda ctx: ["x"] if value else [],
    "of the request": lambda value: (
        lambda ctx: ctx.request_context.get("on") if value else ctx.request_context.get("off")
    ),
}


@in_both_modes
@pytest.mark.parametrize("kind", PREDICATES)
@pytest.mark.parametrize("value", [True, False])
async def test_the_predicate_decides_for_all_nine_hooks(value: bool, kind: str, mode: str) -> None:
    """Sync or async, it is asked with ctx; where it does not hold, the subject passes unchanged (R10.3)."""
    recorder = Recorder()
    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("a", "b")])
    agent = _agent(model, When(PREDICATES[kind](value), recorder))
    seen = await play(agent, mode=mode, request_context={"on": True, "off": False})
    assert seen.result.text == "ab"
    assert seen.result.tool_results[0].result == 1
    assert (len(recorder.log) > 10) == value
    assert bool(recorder.log) == value
    assert len(recorder.ends) == 1, "on_run_end is every processor's (R1.5)"


@in_both_modes
async def test_it_is_asked_at_each_hook_call(mode: str) -> None:
    """The answer may change from call to call, within one stream (R10.3)."""
    asked: list[int] = []

    def double(chunk: Any, ctx: Any) -> Any:
        return chunk.replace(text=chunk.text * 2) if isinstance(chunk, TextDelta) else chunk

    def not_the_third_and_fourth(ctx: Any) -> bool:
        asked.append(1)
        return len(asked) not in (3, 4)

    condition = When(not_the_third_and_fourth, Hooks("m", process_output_stream=double))
    seen = await play(
        make_agent(ScriptedModel([text("a", "b", "c")]), output_processors=[condition]), mode=mode
    )
    assert seen.result.text == "abcc", "asked for step-start, text-start, a, b, c, ..."
    assert len(asked) == 8


@in_both_modes
async def test_the_predicate_gets_the_members_ctx(mode: str) -> None:
    """ctx is the member's: its state, the run's messages (R10.3, R6)."""
    seen: list[Any] = []

    def predicate(ctx: Any) -> bool:
        seen.append(([message.text for message in ctx.messages], ctx.state.get("n")))
        ctx.state["n"] = 1
        return True

    member = Hooks("m", process_input=lambda messages, ctx: seen.append(ctx.state["n"]))
    await play(
        make_agent(ScriptedModel([text("ok")]), input_processors=[When(predicate, member)]), "q", mode=mode
    )
    assert seen == [(["q"], None), 1]


@in_both_modes
@pytest.mark.parametrize(("outer", "inner"), [(True, True), (True, False), (False, True), (False, False)])
async def test_conditions_add_up(outer: bool, inner: bool, mode: str) -> None:
    """A When in a When, or in a Chain in a When, runs only if both hold (R10.3)."""
    for build in (lambda m: When(lambda ctx: inner, m), lambda m: Chain(When(lambda ctx: inner, m))):
        recorder = Recorder(hooks=["process_input"])
        agent = make_agent(
            ScriptedModel([text("ok")]),
            input_processors=[When(lambda ctx: outer, build(recorder), id="outer")],
        )
        await play(agent, mode=mode)
        assert bool(recorder.log) == (outer and inner)


@in_both_modes
async def test_members_that_are_asleep_do_not_handle_errors(mode: str) -> None:
    """process_api_error behind a condition that does not hold is not asked (R10.3, R4.5)."""
    recorder = Recorder(hooks=["process_api_error"])
    original = error(400, "no")
    agent = make_agent(ScriptedModel([original]), error_processors=[When(lambda ctx: False, recorder)])
    assert (await play(agent, mode=mode)).error is original
    assert recorder.log == []


@in_both_modes
@pytest.mark.parametrize("hook", ["process_input", "process_output_stream", "process_output_result"])
async def test_a_predicate_that_raises_is_an_exception_in_the_hook(hook: str, mode: str) -> None:
    """It surfaces with a note of processor and hook, and nothing of the turn is saved (R5.4, R8.2)."""
    boom = ValueError("boom")

    def predicate(ctx: Any) -> bool:
        raise boom

    memory = Memory()
    member = Hooks("member", **{hook: lambda subject, ctx: None})
    lane = "input_processors" if hook == "process_input" else "output_processors"
    agent = make_agent(ScriptedModel([text("ok")]), **{lane: [When(predicate, member)]}, memory=memory)
    seen = await play(agent, mode=mode, memory={"thread": "t"})
    assert seen.error is boom
    assert any("member" in note and hook in note for note in getattr(boom, "__notes__", []))
    check_last(seen, "error")
    assert await memory.messages("t") == []


@in_both_modes
@pytest.mark.parametrize("hook", ["process_input", "process_output_stream", "process_output_result"])
async def test_a_predicate_that_fails_open_is_passed_over(hook: str, mode: str) -> None:
    """on_error="open" of the member covers its condition: the subject passes unchanged, a violation tells (R2.7)."""

    def predicate(ctx: Any) -> bool:
        raise ValueError("boom")

    member = Hooks("member", **{hook: lambda subject, ctx: ctx.abort("never")}, on_error="open")
    lane = "input_processors" if hook == "process_input" else "output_processors"
    seen = await play(make_agent(ScriptedModel([text("ok")]), **{lane: [When(predicate, member)]}), mode=mode)
    assert seen.result.text == "ok"
    assert {violation.processor_id for violation in seen.result.violations} == {"member"}


@in_both_modes
@pytest.mark.parametrize("swallow", [False, True])
@pytest.mark.parametrize("lane", ["input_processors", "output_processors"])
async def test_an_abort_in_a_predicate_counts(lane: str, swallow: bool, mode: str) -> None:
    """ctx.abort in a condition stops the run there, even swallowed: no later processor is called (R5.1)."""

    def predicate(ctx: Any) -> bool:
        try:
            ctx.abort("from the condition")
        except BaseException:
            if not swallow:
                raise
        return False

    hook = "process_input" if lane == "input_processors" else "process_output_step"
    later = Recorder("later", hooks=[hook])
    member = Hooks("member", **{hook: lambda subject, ctx: None})
    seen = await play(
        make_agent(ScriptedModel([text("ok")]), **{lane: [When(predicate, member), later]}), mode=mode
    )
    assert seen.result.tripwire is not None
    assert seen.result.tripwire.reason == "from the condition"
    assert later.log == []


def test_mistakes_are_told_at_set_up() -> None:
    """A condition that cannot be called, and no members, are refused with what to write (R2.4)."""
    with pytest.raises(UsageError, match="function of ctx"):
        When(True, Recorder())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="function of ctx"):
        When(Recorder())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least one"):
        When(lambda ctx: True)
