"""Parallel: checks that run at the same time on the same subject (R10.3)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_runs import Hooks, Recorder, check_last, echo_tool, in_both_modes, make_agent, play
from interlock import Agent, Chain, InputChange, Parallel, ProcessorViolation, Retry, UsageError, When, tool
from interlock.core.pipeline import Pipeline
from interlock.memory import Memory
from interlock.testing import ScriptedModel, error, text, tool_call

pytestmark = pytest.mark.anyio


def _input(*members: Any, **options: Any) -> Agent:
    return make_agent(
        ScriptedModel([text("ok")], repeat_last=True), input_processors=[Parallel(*members, **options)]
    )


@in_both_modes
async def test_members_run_at_the_same_time_on_the_same_subject(mode: str) -> None:
    """Each member waits for all to have begun; all get the same messages (R10.3)."""
    together = asyncio.Barrier(3)
    subjects: list[Any] = []

    async def check(messages: Any, ctx: Any) -> None:
        subjects.append([id(message) for message in messages])
        await together.wait()

    agent = _input(*(Hooks(name, process_input=check) for name in "abc"))
    assert (await play(agent, mode=mode)).result.text == "ok"
    assert len(subjects) == 3
    assert subjects[0] == subjects[1] == subjects[2]


HOOKS = [
    "process_input",
    "process_input_step",
    "process_llm_request",
    "process_llm_response",
    "process_output_step",
    "process_tool_result",
    "process_output_result",
    "process_api_error",
]


@in_both_modes
@pytest.mark.parametrize("hook", HOOKS)
async def test_a_members_abort_is_the_runs(hook: str, mode: str) -> None:
    """From every hook: the tripwire names the member, and nothing follows (R10.3, R5.1, R5.2)."""
    lane = {"process_api_error": "error"}.get(
        hook, "output" if "output" in hook or "tool" in hook else "input"
    )
    quiet = Hooks("quiet", **{hook: lambda subject, ctx: None})
    stop = Hooks("stop", **{hook: lambda subject, ctx: ctx.abort("no", metadata={"a": 1})})
    script = [[error(400, "x")]] if lane == "error" else [[tool_call("echo", {"value": 1})], [text("ok")]]
    agent = make_agent(
        ScriptedModel(*script), **{f"{lane}_processors": [Parallel(quiet, stop)]}, tools=[echo_tool()]
    )
    seen = await play(agent, mode=mode)
    trip = seen.result.tripwire
    assert trip is not None
    assert (trip.processor_id, trip.reason, trip.metadata) == ("stop", "no", {"a": 1})
    check_last(seen, "tripwire")
    assert [violation.processor_id for violation in seen.result.violations] == ["stop"]


@in_both_modes
async def test_the_first_abort_in_list_order_wins(mode: str) -> None:
    """Not the fastest, but the first in the list; those after it are cancelled, those before it waited for (R10.3)."""
    ended: list[str] = []
    fast_done = asyncio.Event()

    async def slow_first(messages: Any, ctx: Any) -> None:
        await fast_done.wait()
        await asyncio.sleep(0)
        ended.append("passed")

    async def slow_abort(messages: Any, ctx: Any) -> None:
        await fast_done.wait()
        ctx.abort("by order")

    async def fast_abort(messages: Any, ctx: Any) -> None:
        fast_done.set()
        ctx.abort("by speed")

    async def never(messages: Any, ctx: Any) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    members = [slow_first, slow_abort, fast_abort, never]
    agent = _input(*(Hooks(check.__name__, process_input=check) for check in members))
    seen = await play(agent, mode=mode)
    assert seen.result.tripwire is not None
    assert (seen.result.tripwire.reason, seen.result.tripwire.processor_id) == ("by order", "slow_abort")
    assert ended == ["passed", "cancelled"]


@in_both_modes
async def test_an_abort_that_a_member_swallowed_counts(mode: str) -> None:
    """A member's swallowed abort stops the run as well (R5.1)."""

    def swallow(messages: Any, ctx: Any) -> None:
        try:
            ctx.abort("swallowed")
        except BaseException:
            return

    async def grouped(messages: Any, ctx: Any) -> None:
        async def inner() -> None:
            ctx.abort("swallowed")

        async with asyncio.TaskGroup() as group:
            group.create_task(inner())

    for hook in (swallow, grouped):
        later = Recorder("later", hooks=["process_input"])
        agent = make_agent(
            ScriptedModel(), input_processors=[Parallel(Hooks("m", process_input=hook)), later]
        )
        seen = await play(agent, mode=mode)
        assert seen.result.tripwire is not None
        assert seen.result.tripwire.reason == "swallowed"
        assert later.log == []


@in_both_modes
async def test_a_member_may_ask_for_a_retry(mode: str) -> None:
    """abort(retry=True) of a member asks the step again (R7.1)."""

    async def judge(output: Any, ctx: Any) -> None:
        if output.text == "bad":
            ctx.abort("better", retry=True)

    model = ScriptedModel([text("bad")], [text("good")])
    quiet = Hooks("quiet", process_output_step=lambda output, ctx: None)
    agent = make_agent(
        model,
        output_processors=[Parallel(quiet, Hooks("j", process_output_step=judge))],
        max_processor_retries=1,
    )
    seen = await play(agent, mode=mode)
    assert seen.result.text == "good"
    assert "better" in model.calls[1].prompt_text


# ------------------------------------------------------------------------------------------------------------- changes


@in_both_modes
@pytest.mark.parametrize("position", [0, 1])
async def test_a_change_is_an_error_unless_the_member_is_named(position: int, mode: str) -> None:
    """A member that returns a change is an error naming it; the one named by keep may (R10.3)."""
    changes = Hooks("changes", process_input=lambda m, ctx: InputChange(messages=m, system_messages=["kept"]))
    quiet = Hooks("quiet", process_input=lambda messages, ctx: None)
    members = [changes, quiet] if position == 0 else [quiet, changes]
    seen = await play(_input(*members), mode=mode)
    assert isinstance(seen.error, UsageError)
    for word in ("changes", "process_input", "keep"):
        assert word in str(seen.error)
    seen = await play(_input(*members, keep="quiet"), mode=mode)
    assert isinstance(seen.error, UsageError)
    agent = _input(*members, keep="changes")
    assert (await play(agent, mode=mode)).result.text == "ok"
    assert "kept" in agent.model.calls[0].prompt_text  # type: ignore[attr-defined]


@in_both_modes
async def test_an_abort_goes_before_a_kept_change(mode: str) -> None:
    """If another member aborts, the change does not count (R10.3)."""
    changes = Hooks("changes", process_input=lambda messages, ctx: [])
    stop = Hooks("stop", process_input=lambda messages, ctx: ctx.abort("no"))
    seen = await play(_input(changes, stop, keep="changes"), "q", mode=mode)
    assert seen.result.tripwire is not None
    assert [message.text for message in seen.result.all_messages] == ["q"]


@in_both_modes
async def test_a_kept_retry_of_an_error_check(mode: str) -> None:
    """Retry() is a change: it counts for the member named by keep (R10.3, R4.5)."""
    retries = Hooks("retries", process_api_error=lambda problem, ctx: Retry())
    quiet = Hooks("quiet", process_api_error=lambda problem, ctx: None)
    model = ScriptedModel([error(400, "x")], [text("ok")])
    agent = make_agent(model, error_processors=[Parallel(quiet, retries, keep="retries")])
    assert (await play(agent, mode=mode)).result.text == "ok"


# ---------------------------------------------------------------------------------------------------- what members are


@in_both_modes
async def test_members_have_their_own_state_and_contexts(mode: str) -> None:
    """Each member has the state of its id, the same in all its hooks (R6, R10.3)."""
    seen: list[Any] = []

    def write(messages: Any, ctx: Any) -> None:
        ctx.state["from"] = messages[0].text

    one = Hooks("one", process_input=write, process_input_step=lambda step, ctx: seen.append(dict(ctx.state)))
    two = Hooks("two", process_input_step=lambda step, ctx: seen.append(dict(ctx.state)))
    await play(_input(one, two), "q", mode=mode)
    assert seen == [{"from": "q"}, {}]


@in_both_modes
async def test_members_are_told_the_end(mode: str) -> None:
    """on_run_end of every processor, members included, exactly once (R1.5)."""
    members = [Recorder(name, hooks=["process_input", "process_input_step"]) for name in "ab"]
    await play(_input(*members), mode=mode)
    assert [[end.kind for end in member.ends] for member in members] == [["finished"], ["finished"]]


@in_both_modes
async def test_members_are_told_their_violations(mode: str) -> None:
    """on_violation of the member that aborted gets the violation (R2.6)."""
    told: list[ProcessorViolation] = []
    stop = Hooks("stop", process_input=lambda messages, ctx: ctx.abort("no"), on_violation=told.append)
    await play(_input(stop), mode=mode)
    assert [(violation.processor_id, violation.message) for violation in told] == [("stop", "no")]


@in_both_modes
async def test_a_members_exception_names_it(mode: str) -> None:
    """An exception surfaces as it is, with a note naming member and hook; nothing is saved (R5.4, R8.2)."""
    boom = ValueError("boom")

    async def fail(messages: Any, ctx: Any) -> None:
        raise boom

    memory = Memory()
    agent = make_agent(
        ScriptedModel(), input_processors=[Parallel(Hooks("member", process_input=fail))], memory=memory
    )
    seen = await play(agent, mode=mode, memory={"thread": "t"})
    assert seen.error is boom
    assert any("member" in note and "process_input" in note for note in boom.__notes__)
    assert await memory.messages("t") == []


@in_both_modes
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_member_that_fails_open_is_passed_over(is_async: bool, mode: str) -> None:
    """on_error="open" is the member's: its exception is a violation, the other checks count (R2.7)."""

    def fail(messages: Any, ctx: Any) -> None:
        raise ValueError("boom")

    async def fail_later(messages: Any, ctx: Any) -> None:
        await asyncio.sleep(0)
        raise ValueError("boom")

    bad = Hooks("bad", process_input=fail_later if is_async else fail, on_error="open")
    seen = await play(_input(bad, Hooks("quiet", process_input=lambda messages, ctx: None)), mode=mode)
    assert seen.result.text == "ok"
    assert [violation.processor_id for violation in seen.result.violations] == ["bad"]
    stop = Hooks("stop", process_input=lambda messages, ctx: ctx.abort("no"))
    seen = await play(_input(bad, stop), mode=mode)
    assert seen.result.tripwire is not None


@in_both_modes
async def test_members_that_ask_for_failed_tools_get_them(mode: str) -> None:
    """process_tool_errors is the member's: only members that ask are called for a failed tool (R4.8)."""

    @tool
    def fails() -> None:
        raise ValueError("broken")

    heard: list[tuple[str, Any]] = []

    def hear(name: str) -> Any:
        return lambda result, ctx: heard.append((name, result.is_error))

    asks = Hooks("asks", process_tool_result=hear("asks"), process_tool_errors=True)
    plain = Hooks("plain", process_tool_result=hear("plain"))
    model = ScriptedModel([tool_call("fails")], [text("ok")])
    await play(make_agent(model, output_processors=[Parallel(asks, plain)], tools=[fails]), mode=mode)
    assert heard == [("asks", True)]


@pytest.mark.parametrize(
    ("observes", "holds"), [((True, True), False), ((True, False), True), ((False, False), True)]
)
def test_observing_members_do_not_hold_the_text(observes: tuple[bool, bool], holds: bool) -> None:
    """Under auto a step is held only if a process_output_step judges, members' included (R7.5)."""
    members = [
        Hooks(f"m{n}", process_output_step=lambda output, ctx: None, observes=each)
        for n, each in enumerate(observes)
    ]
    assert Pipeline({"output": [Parallel(*members)]}).must_hold_steps is holds


async def test_cancelling_the_run_cancels_the_members() -> None:
    """A cancellation reaches every member that still runs (R5.5)."""
    ended: list[str] = []
    running = asyncio.Barrier(3)

    async def wait(messages: Any, ctx: Any) -> None:
        try:
            await running.wait()
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    task = asyncio.create_task(_input(*(Hooks(n, process_input=wait) for n in "ab")).generate("q"))
    await running.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cancelled"] * 2


@in_both_modes
async def test_it_can_stand_in_other_compositions(mode: str) -> None:
    """A Parallel is a processor: Chain and When take it (R10.3)."""
    recorder = Recorder("inner", hooks=["process_input"])
    for wrap in (Chain, lambda member: When(lambda ctx: True, member)):
        recorder.log.clear()
        agent = make_agent(ScriptedModel([text("ok")]), input_processors=[wrap(Parallel(recorder))])
        await play(agent, mode=mode)
        assert recorder.hooks == ["process_input"]


def test_mistakes_are_told_at_set_up() -> None:
    """No members, a stream hook, an unknown keep, no processor, the wrong list: refused by name (R10.3, R2.4)."""
    quiet = Hooks("quiet", process_input=lambda messages, ctx: None)
    with pytest.raises(UsageError, match="at least one"):
        Parallel()
    with pytest.raises(UsageError, match=r"streams.*process_output_stream"):
        Parallel(quiet, Hooks("streams", process_output_stream=lambda chunk, ctx: chunk))
    with pytest.raises(UsageError, match="nobody"):
        Parallel(quiet, keep="nobody")
    with pytest.raises(UsageError, match="str"):
        Parallel("text")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="process_output_step"):
        Agent(id="x", model=ScriptedModel(), output_processors=[Parallel(quiet)])


@pytest.mark.parametrize("inside", [True, False])
def test_a_members_id_is_an_id_of_the_list(inside: bool) -> None:
    """The same id twice within one list is refused, for members of a Parallel too (R2.5)."""
    one, two = (Hooks("same", process_input=lambda messages, ctx: None) for _ in range(2))
    processors = [Parallel(one, two)] if inside else [Parallel(one), two]
    with pytest.raises(UsageError, match="same"):
        Agent(id="x", model=ScriptedModel(), input_processors=processors)
