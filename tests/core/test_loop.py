"""The loop: the order of a run (R1), what an abort means (R5), what a retry means (R7)."""

from __future__ import annotations

import asyncio
import inspect
import re
from typing import Any

import pytest

from harness_runs import (
    ALL_HOOKS,
    Hooks,
    Recorder,
    Seen,
    check_last,
    echo_tool,
    in_both_modes,
    make_agent,
    play,
)
from interlock import ModelError, Retry, StepChange, ToolContext, TripWireError, tool
from interlock.chunks import Finish, StepFinish, TextDelta, TextStart, ToolCall, Usage
from interlock.core import loop
from interlock.testing import ScriptedModel, error, text, tool_call

pytestmark = pytest.mark.anyio

CALLS_MADE = {  # how often the model was called when the hook is reached for the first time
    "process_input": 0,
    "process_input_step": 0,
    "process_llm_request": 0,
    "process_output_stream": 1,
    "process_api_error": 1,
    "process_llm_response": 1,
    "process_output_step": 1,
    "process_tool_result": 1,
    "process_output_result": 2,
}


def script_for(hook: str) -> list[list[Any]]:
    """A script in which this hook is reached: a tool call and an answer, or a rejected call."""
    calls = [[tool_call("echo", {"value": "v"}, id="c1")], [text("done")]]
    return [[error(400, "rejected")], *calls] if hook == "process_api_error" else calls


async def stopped_in(
    hook: str, mode: str, stop: Any, **options: Any
) -> tuple[Seen, Recorder, ScriptedModel, list[Any]]:
    """A run with a processor that does ``stop(ctx)`` in a hook the first time, behind one that records."""
    ran: list[Any] = []

    def act(name: str, subject: Any, ctx: Any) -> Any:
        if name == hook and recorder.hooks.count(hook) == 1:
            return stop(ctx)
        return Retry() if name == "process_api_error" else None

    recorder = Recorder("stopper", act=act)
    model = ScriptedModel(*script_for(hook), repeat_last=True)
    agent = make_agent(model, recorder, tools=[echo_tool(ran)], **options)
    return await play(agent, mode=mode), recorder, model, ran


# -------------------------------------------------------------------------------------------------- the order of a run


async def _full_run(mode: str) -> Recorder:
    recorder = Recorder(act=lambda name, subject, ctx: Retry() if name == "process_api_error" else None)
    model = ScriptedModel(
        [error(400, "rejected")], [tool_call("echo", {"value": 1}, id="c1")], [text("done")]
    )
    seen = await play(make_agent(model, recorder, tools=[echo_tool()]), mode=mode)
    assert seen.result.text == "done"
    return recorder


@in_both_modes
async def test_the_diagram_is_the_order_of_a_run(mode: str) -> None:
    """The loop's docstring names the nine hooks in the order in which a run first calls them (R1)."""
    drawn = re.findall(r"process_\w+", inspect.getdoc(loop) or "")
    recorder = await _full_run(mode)
    assert sorted(drawn) == sorted(ALL_HOOKS), "each hook stands in the diagram once"
    assert list(dict.fromkeys(recorder.hooks)) == drawn


@in_both_modes
async def test_every_hook_is_called_where_the_rules_say(mode: str) -> None:
    """A run with a rejected call, a tool step and an answer calls exactly these hooks in this order (R1, R10.4)."""
    recorder = await _full_run(mode)
    step = ["process_input_step", "process_llm_request"]
    after = ["process_llm_response", "process_output_step"]
    assert recorder.stages == [
        "process_input",
        *[*step, "process_api_error"],
        *[*step, *after, "process_tool_result"],
        *[*step, *after],
        "process_output_result",
    ]
    chunks = [detail for name, detail in recorder.log if name == "process_output_stream"]
    assert chunks == [
        *["step-start", "step-finish"],
        *["step-start", "tool-call", "finish", "tool-result", "step-finish"],
        *["step-start", "text-start", "text-delta", "text-end", "finish", "step-finish"],
    ]


@in_both_modes
async def test_processors_run_in_list_order_and_see_each_others_changes(mode: str) -> None:
    """Within each hook the list's order holds, on output as on input, and what one changes the next sees (R1)."""

    def add(mark: str) -> Hooks:
        def on_input(messages: Any, ctx: Any) -> None:
            messages[0].content.parts[0].text += mark

        def on_chunk(chunk: Any, ctx: Any) -> Any:
            return chunk.replace(text=chunk.text + mark) if isinstance(chunk, TextDelta) else chunk

        return Hooks(
            mark,
            process_input=on_input,
            process_llm_request=lambda request, ctx: request.map_text(lambda said: said + mark.upper()),
            process_output_stream=on_chunk,
            process_tool_result=lambda result, ctx: result.replace(result=result.result + mark),
        )

    model = ScriptedModel([tool_call("echo", {"value": "r"})], [text("t")])
    seen = await play(make_agent(model, add("a"), add("b"), tools=[echo_tool()]), "q", mode=mode)
    assert model.calls[0].prompt_text == "qabAB"
    assert seen.result.tool_results[0].result == "rab"
    assert seen.result.text == "tab"


@in_both_modes
async def test_prepare_step_is_the_last_of_process_input_step(mode: str) -> None:
    """The caller's prepare_step sees what the input processors made of the step, and runs in every step (R1.2a)."""
    asked: list[Any] = []

    def prepare(step: Any, ctx: Any) -> StepChange:
        asked.append((ctx.step_number, step.model_settings))
        return StepChange(model_settings={**step.model_settings, "top_p": 1})

    first = Hooks("first", process_input_step=lambda step, ctx: StepChange(model_settings={"temperature": 0}))
    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("done")])
    await play(make_agent(model, first, tools=[echo_tool()]), mode=mode, prepare_step=prepare)
    assert asked == [(0, {"temperature": 0}), (1, {"temperature": 0})]
    assert [call.settings for call in model.calls] == [{"temperature": 0, "top_p": 1}] * 2


async def test_the_frame_of_a_stream() -> None:
    """start after process_input, step-start and step-finish around each step, finish last (R1.4)."""
    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("a", "b")])
    seen = await play(make_agent(model, tools=[echo_tool()]), mode="stream")
    assert seen.types == [
        "start",
        *["step-start", "tool-call", "tool-result", "step-finish"],
        *["step-start", "text-start", "text-delta", "text-delta", "text-end", "step-finish"],
        "finish",
    ]
    steps = [chunk for chunk in seen.chunks if isinstance(chunk, StepFinish)]
    assert [(step.finish_reason, step.is_continued) for step in steps] == [
        ("tool-calls", True),
        ("stop", False),
    ]
    last = seen.chunks[-1]
    assert isinstance(last, Finish)
    assert last.finish_reason == "stop"
    assert last.usage == Usage(input_tokens=20, output_tokens=10, total_tokens=30)
    assert last.messages == seen.result.messages


async def test_nothing_goes_out_before_process_input_has_passed() -> None:
    """A block in the second process_input leaves a stream of one chunk: no start (R1.4)."""
    block = Hooks("block", process_input=lambda messages, ctx: ctx.abort("no"))
    seen = await play(
        make_agent(ScriptedModel(), Hooks("a", process_input=lambda m, ctx: None), block), mode="stream"
    )
    assert seen.types == ["tripwire"]


async def test_start_goes_out_before_the_first_custom_data() -> None:
    """Data written in process_input does not wait for the rest of the input stage: start comes in front (R1.4)."""

    async def write(messages: Any, ctx: Any) -> None:
        await ctx.writer.custom({"type": "data-x", "data": 1})

    block = Hooks("block", process_input=lambda messages, ctx: ctx.abort("no"))
    seen = await play(make_agent(ScriptedModel(), Hooks("w", process_input=write), block), mode="stream")
    assert seen.types == ["start", "data-x", "tripwire"]


@in_both_modes
async def test_tools_run_at_the_same_time_and_are_heard_in_call_order(mode: str) -> None:
    """All tools of a step run concurrently; process_tool_result follows when all have ended, in call order (R1.2g)."""
    events: list[str] = []
    second_done = asyncio.Event()

    @tool
    async def first() -> str:
        await second_done.wait()
        events.append("first ended")
        return "1"

    @tool
    async def second() -> str:
        events.append("second ended")
        second_done.set()
        return "2"

    heard = Hooks("heard", process_tool_result=lambda result, ctx: events.append(result.tool_name))
    model = ScriptedModel([tool_call("first"), tool_call("second")], [text("done")])
    seen = await play(make_agent(model, heard, tools=[first, second]), mode=mode)
    assert events == ["second ended", "first ended", "first", "second"]
    if mode == "stream":
        results = [chunk.tool_name for chunk in seen.chunks if chunk.type == "tool-result"]  # type: ignore[attr-defined]
        assert results == ["first", "second"]


@in_both_modes
@pytest.mark.parametrize("finish_reason", ["stop", "length", "unknown"])
async def test_own_calls_lead_to_another_step_whatever_the_finish_reason(
    mode: str, finish_reason: str
) -> None:
    """The loop goes on because tools were called, not because of the reason the model gave (R1.2h)."""
    model = ScriptedModel(
        [tool_call("echo", {"value": 1}), Finish(finish_reason=finish_reason)], [text("done")]
    )
    seen = await play(make_agent(model, tools=[echo_tool()]), mode=mode)
    assert seen.result.text == "done"
    assert len(model.calls) == 2


@in_both_modes
@pytest.mark.parametrize("call", [tool_call("nowhere"), tool_call("echo", {"wrong": 1}), tool_call("fails")])
async def test_a_failed_call_leads_to_another_step_too(mode: str, call: Any) -> None:
    """An unknown tool, bad arguments, a raised error: the model gets it as result and is asked again (R1.2h)."""

    @tool
    async def fails() -> None:
        raise ValueError("broken")

    asked = Recorder(hooks=["process_tool_result"])
    model = ScriptedModel([call], [text("sorry")])
    seen = await play(make_agent(model, asked, tools=[echo_tool(), fails]), mode=mode)
    assert seen.result.text == "sorry"
    assert asked.log == []
    answer = model.calls[1].prompt[-1]
    assert answer["role"] == "tool"
    assert answer["content"][0]["output"]["type"] == "error-text"
    if mode == "stream":
        assert "tool-error" in seen.types
        assert "tool-result" not in seen.types


@in_both_modes
async def test_an_unknown_finish_reason_without_calls_ends_the_loop(mode: str) -> None:
    """Without calls there is no further step, even if the model says tool-calls (R1.2h)."""
    model = ScriptedModel([text("done"), Finish(finish_reason="tool-calls")])
    seen = await play(make_agent(model), mode=mode)
    assert seen.result.text == "done"
    assert len(model.calls) == 1


@in_both_modes
@pytest.mark.parametrize(("options", "steps"), [({}, 5), ({"max_steps": 1}, 1), ({"max_steps": 3}, 3)])
async def test_max_steps_ends_the_loop(mode: str, options: dict[str, Any], steps: int) -> None:
    """After max_steps (default 5) the loop is left normally, its last tools having run (R1.2h, R1.3)."""
    ran: list[Any] = []
    recorder = Recorder()
    model = ScriptedModel([tool_call("echo", {"value": 1})], repeat_last=True)
    seen = await play(make_agent(model, recorder, tools=[echo_tool(ran)]), mode=mode, **options)
    assert len(model.calls) == len(seen.result.steps) == len(ran) == steps
    assert recorder.hooks.count("process_output_result") == 1
    assert seen.result.finish_reason == "tool-calls"
    check_last(seen, "finish")


@in_both_modes
async def test_process_output_result_sees_the_whole_answer_once(mode: str) -> None:
    """It gets the text of all steps joined, the usage of all calls and the response's messages, once (R1.3, R4.9)."""
    got: list[Any] = []
    last = Hooks("last", process_output_result=lambda result, ctx: got.append((result, list(ctx.messages))))
    model = ScriptedModel([text("one "), tool_call("echo", {"value": 1})], [text("two")])
    seen = await play(make_agent(model, last, tools=[echo_tool()]), mode=mode)
    ((result, messages),) = got
    assert result.text == "one two" == seen.result.text
    assert result.usage.total_tokens == 30
    assert result.finish_reason == "stop"
    assert [step.text for step in result.steps] == ["one ", "two"]
    assert messages == seen.result.messages
    assert [message.role for message in messages] == ["assistant"]


@in_both_modes
async def test_a_result_holds_what_the_run_did(mode: str) -> None:
    """A result has text, messages, all_messages, steps, calls, results, reasoning and usage of the run (R10.6)."""
    from interlock.testing import reasoning

    model = ScriptedModel([reasoning("hm"), tool_call("echo", {"value": 7}, id="c1")], [text("a", "b")])
    result = (await play(make_agent(model, tools=[echo_tool()]), mode=mode)).result
    assert (result.text, result.reasoning, result.finish_reason) == ("ab", "hm", "stop")
    assert [(c.tool_call_id, c.tool_name, c.args) for c in result.tool_calls] == [
        ("c1", "echo", {"value": 7})
    ]
    assert [(r.tool_call_id, r.result) for r in result.tool_results] == [("c1", 7)]
    assert [m.role for m in result.all_messages] == ["user", "assistant"]
    assert [(s.text, s.reasoning, s.finish_reason) for s in result.steps] == [
        ("", "hm", "tool-calls"),
        ("ab", "", "stop"),
    ]
    assert result.steps[0].tool_results == result.tool_results
    assert (result.usage.input_tokens, result.usage.output_tokens) == (20, 10)
    assert result.released_text == "ab"
    assert result.tripwire is None
    assert result.violations == []


# -------------------------------------------------------------------------------------------------------- an abort


@in_both_modes
@pytest.mark.parametrize("hook", ALL_HOOKS)
async def test_an_abort_stops_the_run_from_every_hook(hook: str, mode: str) -> None:
    """No later hook, tool or model call; one tripwire chunk, the last; a result with the tripwire (R5.1, R5.2)."""
    metadata = {"category": "test"}
    seen, recorder, model, ran = await stopped_in(
        hook, mode, lambda ctx: ctx.abort("enough", metadata=metadata)
    )
    assert recorder.hooks[-1] == hook, "no hook was called after the abort"
    assert len(model.calls) == CALLS_MADE[hook]
    assert bool(ran) == (hook in ("process_tool_result", "process_output_result"))
    result = seen.result
    assert result.finish_reason == "other"
    assert result.tripwire is not None
    assert result.tripwire.reason == "enough"
    assert result.tripwire.retry is False
    assert result.tripwire.metadata == metadata
    assert result.tripwire.processor_id == "stopper"
    check_last(seen, "tripwire")
    if mode == "stream":
        chunk: Any = seen.chunks[-1]
        assert (chunk.reason, chunk.processor_id, chunk.metadata) == ("enough", "stopper", metadata)
    with pytest.raises(TripWireError, match="enough") as caught:
        result.raise_for_tripwire()
    assert (caught.value.processor_id, caught.value.metadata) == ("stopper", metadata)
    assert [(v.processor_id, v.message, v.detail) for v in result.violations] == [
        ("stopper", "enough", metadata)
    ]


@in_both_modes
@pytest.mark.parametrize("hook", ALL_HOOKS)
async def test_an_abort_without_a_reason_names_the_processor(hook: str, mode: str) -> None:
    """The default reason names the processor (R5.1)."""
    seen, *_ = await stopped_in(hook, mode, lambda ctx: ctx.abort())
    assert seen.result.tripwire is not None
    assert "stopper" in seen.result.tripwire.reason


@in_both_modes
@pytest.mark.parametrize("hook", ALL_HOOKS)
async def test_a_block_leaves_accepted_steps_only(hook: str, mode: str) -> None:
    """The blocked step is listed without text if its stream had opened; messages hold accepted steps only (R5.3)."""
    seen, *_ = await stopped_in(hook, mode, lambda ctx: ctx.abort("enough"))
    result = seen.result
    assert result.text == ""
    if hook in ("process_input", "process_input_step", "process_llm_request", "process_api_error"):
        assert result.steps == [], "no stream had opened, or the call failed"
        assert result.messages == []
    elif hook == "process_output_result":
        assert [part.type for message in result.messages for part in message.content.parts] == [
            "tool-invocation"
        ]
        assert [(step.text, step.tripwire is not None) for step in result.steps] == [("", False), ("", True)]
        assert result.steps[1].finish_reason == "tripwire"
    else:
        assert [(step.finish_reason, step.text, step.tool_calls) for step in result.steps] == [
            ("tripwire", "", [])
        ]
        assert result.steps[0].tripwire == result.tripwire
        assert result.messages == []
        assert result.tool_calls == result.tool_results == []
    counted = 10 * (CALLS_MADE[hook] if hook not in ("process_output_stream", "process_api_error") else 0)
    assert result.usage.input_tokens == counted


@in_both_modes
async def test_a_block_in_a_later_step_keeps_the_accepted_ones(mode: str) -> None:
    """Text, messages and steps of accepted steps stay whole; the blocked step adds nothing but its mark (R5.3)."""
    guard = Hooks(
        "guard", process_output_step=lambda out, ctx: ctx.abort("no") if "secret" in out.text else None
    )
    model = ScriptedModel([text("looking"), tool_call("echo", {"value": 1})], [text("the secret")])
    seen = await play(make_agent(model, guard, tools=[echo_tool()]), mode=mode)
    result = seen.result
    assert result.text == "looking"
    assert "secret" not in repr(result.messages) + repr(result.all_messages)
    assert [(step.text, step.finish_reason) for step in result.steps] == [
        ("looking", "tool-calls"),
        ("", "tripwire"),
    ]
    assert len(result.tool_results) == 1
    assert result.usage.total_tokens == 30
    assert "secret" not in repr(seen.chunks), "auto holds the step for a judge (R7.5)"


@in_both_modes
async def test_a_block_of_the_final_answer_keeps_calls_with_results_only(mode: str) -> None:
    """After a block in process_output_result every step's text is empty and only answered calls stay (R5.3)."""
    guard = Hooks("guard", process_output_result=lambda result, ctx: ctx.abort("no"))
    model = ScriptedModel([text("one"), tool_call("echo", {"value": 1})], [text("two")])
    result = (await play(make_agent(model, guard, tools=[echo_tool()]), mode=mode, release="run")).result
    assert [part.type for m in result.messages for part in m.content.parts] == ["tool-invocation"]
    assert [(step.text, step.reasoning) for step in result.steps] == [("", ""), ("", "")]
    assert [step.tripwire is not None for step in result.steps] == [False, True]
    assert result.released_text == ""


async def test_what_left_before_a_block_is_told_apart() -> None:
    """Under live release the blocked text is in released_text, and nowhere else in the result (R0, R5.3)."""
    guard = Hooks("guard", process_output_step=lambda out, ctx: ctx.abort("no"))
    agent = make_agent(ScriptedModel([text("se", "cret")]), guard, release="live")
    seen = await play(agent, mode="stream")
    result = seen.result
    assert result.released_text == seen.shown == "secret"
    assert "secret" not in repr(result.replace(released_text=""))
    assert "text-end" in seen.types


async def test_an_abort_inside_an_open_block_sends_no_end_for_it() -> None:
    """A tripwire ends an open block; no text-end is sent (R4.6, R5.2)."""
    stop = Hooks(
        "stop",
        process_output_stream=lambda chunk, ctx: (
            ctx.abort("no") if getattr(chunk, "text", "") == "b" else chunk
        ),
    )
    seen = await play(make_agent(ScriptedModel([text("a", "b", "c")]), stop), mode="stream")
    assert seen.types == ["start", "step-start", "text-start", "text-delta", "tripwire"]
    assert seen.result.text == ""
    assert seen.result.released_text == "a"


@in_both_modes
async def test_an_abort_cancels_the_tools_that_still_run(mode: str) -> None:
    """A tripwire while tools run cancels them, and waits for nothing else (R5.1)."""
    ended: list[str] = []
    running = asyncio.Event()

    @tool
    async def slow() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    @tool
    async def writes(context: ToolContext) -> None:
        await running.wait()
        await context.writer.custom({"type": "data-bad", "data": 1})
        ended.append("went on")

    def judge(chunk: Any, ctx: Any) -> Any:
        return ctx.abort("no") if chunk.type == "data-bad" else chunk

    guard = Hooks("guard", process_data_parts=True, process_output_stream=judge)
    model = ScriptedModel([tool_call("slow"), tool_call("writes")])
    seen = await play(make_agent(model, guard, tools=[slow, writes]), mode=mode)
    assert seen.result.tripwire is not None
    assert ended == ["cancelled"]
    assert "data-bad" not in seen.types


# ---------------------------------------------------------------------------------------- swallowed aborts


def _swallow_all(ctx: Any) -> None:
    try:
        ctx.abort("swallowed")
    except BaseException:
        return


def _return_from_finally(ctx: Any) -> None:
    try:
        ctx.abort("swallowed")
    finally:
        return  # noqa: B012  # the mistake that must not matter


async def _gathered(ctx: Any) -> None:
    async def check() -> None:
        ctx.abort("swallowed")

    await asyncio.gather(check(), return_exceptions=True)


async def _in_task_group(ctx: Any) -> None:
    async def check() -> None:
        ctx.abort("swallowed")

    async with asyncio.TaskGroup() as group:
        group.create_task(check())


async def _in_thread(ctx: Any) -> None:
    await asyncio.to_thread(ctx.abort, "swallowed")


async def _swallowed_in_thread(ctx: Any) -> None:
    await asyncio.to_thread(_swallow_all, ctx)


async def _raised_otherwise(ctx: Any) -> None:
    try:
        ctx.abort("swallowed")
    except BaseException as trip:
        raise RuntimeError("something else") from trip


async def _in_nested_groups(ctx: Any) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_in_task_group(ctx))


SWALLOWERS = [
    _swallow_all,
    _return_from_finally,
    _gathered,
    _in_task_group,
    _in_nested_groups,
    _in_thread,
    _swallowed_in_thread,
    _raised_otherwise,
]


@in_both_modes
@pytest.mark.parametrize("hook", ALL_HOOKS)
@pytest.mark.parametrize("swallow", SWALLOWERS, ids=lambda function: function.__name__.strip("_"))
async def test_an_abort_counts_when_it_is_called(swallow: Any, hook: str, mode: str) -> None:
    """Swallowed, wrapped in a group or raised in a thread, an abort stops the run after the hook (R5.1)."""
    seen, recorder, model, _ = await stopped_in(hook, mode, swallow)
    assert recorder.hooks[-1] == hook
    assert len(model.calls) == CALLS_MADE[hook]
    assert seen.result.tripwire is not None
    assert seen.result.tripwire.reason == "swallowed"
    check_last(seen, "tripwire")


@in_both_modes
async def test_the_first_of_two_aborts_counts(mode: str) -> None:
    """A hook that aborts twice has aborted with the first reason; both are violations (R5.1, R2.6)."""

    def twice(messages: Any, ctx: Any) -> None:
        for reason in ("first", "second"):
            try:
                ctx.abort(reason)
            except BaseException:
                continue

    seen = await play(make_agent(ScriptedModel(), Hooks("twice", process_input=twice)), mode=mode)
    assert seen.result.tripwire is not None
    assert seen.result.tripwire.reason == "first"


@in_both_modes
async def test_an_abort_in_a_stream_hook_stops_the_other_processors_of_the_chunk(mode: str) -> None:
    """When an abort is swallowed in a stream hook, no later processor gets that chunk (R5.1)."""
    after = Recorder("after", hooks=["process_output_stream"])

    def stop(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, TextDelta):
            _swallow_all(ctx)
        return chunk

    agent = make_agent(ScriptedModel([text("x")]), Hooks("stop", process_output_stream=stop), after)
    seen = await play(agent, mode=mode)
    assert seen.result.tripwire is not None
    assert [detail for _, detail in after.log] == ["step-start", "text-start"]
    assert "text-delta" not in seen.types


# ------------------------------------------------------------------------------------------------------ exceptions


@in_both_modes
@pytest.mark.parametrize("hook", ALL_HOOKS)
async def test_an_exception_in_a_hook_surfaces_as_it_is(hook: str, mode: str) -> None:
    """The very exception comes out, with a note naming processor and hook; no later hook runs; error is last (R5.4)."""
    boom = ValueError("boom")

    def stop(ctx: Any) -> None:
        raise boom

    seen, recorder, model, _ = await stopped_in(hook, mode, stop)
    assert seen.error is boom
    assert any("stopper" in note and hook in note for note in boom.__notes__)
    assert recorder.hooks[-1] == hook
    assert len(model.calls) == CALLS_MADE[hook]
    check_last(seen, "error")
    assert [end.kind for end in recorder.ends] == ["error"]
    assert recorder.ends[0].error is boom


async def test_a_failed_stream_raises_the_same_everywhere() -> None:
    """Iterating, text_stream and result() raise the same exception; leaving the stream does not (R5.4)."""
    boom = ValueError("boom")

    def fail(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, TextDelta) and chunk.text == "b":
            raise boom
        return chunk

    agent = make_agent(
        ScriptedModel([text("a", "b")], repeat_last=True), Hooks("p", process_output_stream=fail)
    )
    pieces: list[str] = []
    async with agent.stream("hi") as stream:
        with pytest.raises(ValueError, match="boom"):  # noqa: PT012
            async for piece in stream.text_stream:
                pieces.append(piece)
        for _ in range(2):
            with pytest.raises(ValueError, match="boom") as caught:
                await stream.result()
            assert caught.value is boom
    assert pieces == ["a"], "the chunk being processed is not sent"
    async with agent.stream("hi"):
        pass  # nobody asks: nothing is raised


@in_both_modes
async def test_a_providers_failure_is_a_model_error(mode: str) -> None:
    """A rejected call surfaces as the ModelError it is, and error is the stream's last chunk (R5.4)."""
    seen = await play(make_agent(ScriptedModel([error(401, "bad key")])), mode=mode)
    assert isinstance(seen.error, ModelError)
    assert (seen.error.status, seen.error.message) == (401, "bad key")
    check_last(seen, "error")


# ------------------------------------------------------------------------------------------------------ on_run_end


@in_both_modes
@pytest.mark.parametrize("hook", ALL_HOOKS)
async def test_on_run_end_after_an_abort_in_any_hook(hook: str, mode: str) -> None:
    """on_run_end is called exactly once after a tripwire, with the result (R1.5)."""
    seen, recorder, *_ = await stopped_in(hook, mode, lambda ctx: ctx.abort())
    assert [end.kind for end in recorder.ends] == ["tripwire"]
    assert recorder.ends[0].result.tripwire == seen.result.tripwire


@in_both_modes
@pytest.mark.parametrize(
    ("script", "kind"),
    [([text("ok")], "finished"), ([error(400, "no")], "error"), ([error(None, "cut")], "error")],
)
async def test_on_run_end_after_other_ends(script: list[Any], kind: str, mode: str) -> None:
    """on_run_end is called exactly once after an answer and after a provider's failure (R1.5)."""
    recorder = Recorder()
    await play(make_agent(ScriptedModel(script), recorder), mode=mode)
    assert [end.kind for end in recorder.ends] == [kind]


@in_both_modes
async def test_on_run_end_is_once_for_an_object_in_several_lists(mode: str) -> None:
    """One object that stands in three lists is told the end once (R1.5, R2.5)."""
    recorder = Recorder()
    agent = make_agent(
        ScriptedModel([text("ok")]),
        input_processors=[recorder],
        output_processors=[recorder],
        error_processors=[recorder],
    )
    await play(agent, mode=mode)
    assert len(recorder.ends) == 1


@in_both_modes
@pytest.mark.parametrize("problem", ["exception", "abort", "async"])
async def test_what_on_run_end_raises_changes_nothing(
    problem: str, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A failing on_run_end, an abort in it too, is logged; the others are told and the result stays (R1.5)."""

    async def fail_later(outcome: Any, ctx: Any) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("late")

    def fail(outcome: Any, ctx: Any) -> None:
        if problem == "abort":
            ctx.abort("too late")
        raise RuntimeError("late")

    bad = Hooks(
        "bad", process_input=lambda m, ctx: None, on_run_end=fail_later if problem == "async" else fail
    )
    good = Recorder("good")
    seen = await play(make_agent(ScriptedModel([text("ok")]), bad, good), mode=mode)
    assert seen.result.text == "ok"
    assert seen.result.tripwire is None
    assert seen.result.finish_reason == "stop"
    check_last(seen, "finish")
    assert [end.kind for end in good.ends] == ["finished"]
    assert "bad" in caplog.text


async def test_on_run_end_comes_before_the_last_chunk() -> None:
    """Who has the last chunk can rely on clean-up being over (design, R1.5)."""
    recorder = Recorder()
    async with make_agent(ScriptedModel([text("ok")]), recorder).stream("hi") as stream:
        async for chunk in stream:
            if chunk.type == "finish":
                assert len(recorder.ends) == 1


# ---------------------------------------------------------------------------------------------------- retries


def _no_bad_text(output: Any, ctx: Any) -> None:
    if output.text == "bad":
        ctx.abort("no", retry=True)


def retry_once(hook: str, **options: Any) -> Recorder:
    """A processor that asks for a retry the first time its hook is called."""

    def act(name: str, subject: Any, ctx: Any) -> Any:
        if name == hook and recorder.hooks.count(hook) == 1:
            ctx.abort("say it better", retry=True, metadata={"n": 1})
        return None

    recorder = Recorder("retrier", act=act, **options)
    return recorder


RETRYABLE = tuple(hook for hook in ALL_HOOKS if hook != "process_input")


@in_both_modes
@pytest.mark.parametrize("hook", RETRYABLE)
async def test_a_retry_is_granted_from_every_hook_inside_a_step(hook: str, mode: str) -> None:
    """The same step is asked again with the reason, from any hook inside a step and the last one (R7.1, R7.3)."""
    due = hook in (
        "process_output_stream",
        "process_llm_response",
        "process_output_step",
        "process_tool_result",
    )
    script = script_for(hook)
    retrier = retry_once(hook)
    model = ScriptedModel(*(script[:1] if due else ()), *script, repeat_last=True)
    agent = make_agent(model, retrier, tools=[echo_tool()], max_processor_retries=1)
    seen = await play(agent, mode=mode)
    result = seen.result
    assert result.tripwire is None
    assert result.text == "done"
    check_last(seen, "finish")
    told = [index for index, call in enumerate(model.calls) if "say it better" in call.prompt_text]
    asked_again = 2 if hook == "process_output_result" else CALLS_MADE[hook]
    assert told == [asked_again], "the reason is in the prompt of the retried step and of no other"
    assert [v.message for v in result.violations] == ["say it better"]
    rejected = [step for step in result.steps if step.finish_reason == "retry"]
    if due or hook == "process_output_result":
        assert len(rejected) == 1
        assert rejected[0].tripwire is not None
        assert (rejected[0].tripwire.reason, rejected[0].tripwire.metadata) == ("say it better", {"n": 1})
        assert rejected[0].text == ""
        assert rejected[0].tool_calls == []
    else:
        assert rejected == [], (
            "an attempt whose stream had not opened, or whose call failed, has no entry (R5.3)"
        )
    accepted = [step.step_number for step in result.steps if step.tripwire is None]
    assert accepted == [0, 1]


@in_both_modes
@pytest.mark.parametrize(
    "hook", [hook for hook in ALL_HOOKS if hook != "process_api_error"]
)  # it sets the cap (R7.2)
async def test_a_retry_without_a_cap_is_a_plain_abort(hook: str, mode: str) -> None:
    """With max_processor_retries unset (no error processors) a retry is an abort whose tripwire says retry (R7.1)."""
    retrier = retry_once(hook, hooks=[each for each in ALL_HOOKS if each != "process_api_error"])
    model = ScriptedModel(*script_for(hook), repeat_last=True)
    seen = await play(make_agent(model, retrier, tools=[echo_tool()]), mode=mode)
    assert seen.result.tripwire is not None
    assert seen.result.tripwire.retry is True
    assert retrier.hooks[-1] == hook
    check_last(seen, "tripwire")
    if mode == "stream":
        assert seen.chunks[-1].retry is True  # type: ignore[attr-defined]


@in_both_modes
async def test_a_retry_from_process_input_is_a_plain_abort(mode: str) -> None:
    """There is no step yet that could be asked again (R7.1)."""
    model = ScriptedModel([text("x")])
    seen = await play(make_agent(model, retry_once("process_input"), max_processor_retries=3), mode=mode)
    assert seen.result.tripwire is not None
    assert seen.result.tripwire.retry is True
    assert model.calls == []


@in_both_modes
@pytest.mark.parametrize("hook", ["process_tool_result", "process_output_stream"])
async def test_no_retry_after_an_unrepeatable_tool(hook: str, mode: str) -> None:
    """After a tool declared repeatable=False has run in the step, a retry is a plain abort (R7.1)."""

    def act(name: str, subject: Any, ctx: Any) -> Any:
        if name == hook and getattr(subject, "type", "") == "tool-result":
            ctx.abort("again", retry=True)
        return subject if name == "process_output_stream" else None

    ran: list[Any] = []
    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("done")])
    agent = make_agent(
        model, Recorder("p", act=act), tools=[echo_tool(ran, repeatable=False)], max_processor_retries=3
    )
    seen = await play(agent, mode=mode)
    assert seen.result.tripwire is not None
    assert seen.result.tripwire.retry is True
    assert ran == [1]


@in_both_modes
async def test_an_unrepeatable_tool_of_an_earlier_step_does_not_forbid_a_retry(mode: str) -> None:
    """Only a tool that ran in the step to be repeated counts (R7.1)."""

    def judge(output: Any, ctx: Any) -> None:
        if output.text == "bad":
            ctx.abort("again", retry=True)

    ran: list[Any] = []
    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("bad")], [text("good")])
    agent = make_agent(
        model,
        Hooks("p", process_output_step=judge),
        tools=[echo_tool(ran, repeatable=False)],
        max_processor_retries=1,
    )
    seen = await play(agent, mode=mode)
    assert seen.result.text == "good"
    assert ran == [1]


@in_both_modes
async def test_used_up_retries_end_as_a_tripwire(mode: str) -> None:
    """After the cap the tripwire ends the run as a plain abort would; each attempt is counted (R7.4, R5.3)."""
    counts: list[int] = []

    def judge(output: Any, ctx: Any) -> None:
        counts.append(ctx.retry_count)
        ctx.abort("no", retry=True)

    model = ScriptedModel([text("bad")], repeat_last=True)
    seen = await play(
        make_agent(model, Hooks("j", process_output_step=judge), max_processor_retries=2), mode=mode
    )
    result = seen.result
    assert counts == [0, 1, 2]
    assert [step.finish_reason for step in result.steps] == ["retry", "retry", "tripwire"]
    assert {step.step_number for step in result.steps} == {0}
    assert result.text == ""
    assert result.usage.total_tokens == 45
    assert result.tripwire is not None
    check_last(seen, "tripwire")


@in_both_modes
async def test_the_calls_cap_goes_before_the_agents(mode: str) -> None:
    """max_processor_retries of the call replaces the agent's, 0 included (R7.1, R10.2)."""
    model = ScriptedModel([text("bad")], repeat_last=True)
    agent = make_agent(
        model, Hooks("j", process_output_step=lambda out, ctx: ctx.abort(retry=True)), max_processor_retries=4
    )
    assert (await play(agent, mode=mode, max_processor_retries=0)).result.tripwire is not None
    assert len(model.calls) == 1
    model.rewind()
    await play(agent, mode=mode, max_processor_retries=1)
    assert len(model.calls) == 2


@in_both_modes
async def test_error_processors_set_the_cap_to_ten_for_every_retry(mode: str) -> None:
    """With error processors and no value set the cap is 10, for abort(retry=True) too (R7.2)."""
    model = ScriptedModel([text("bad")], repeat_last=True)
    judge = Hooks("j", process_output_step=lambda out, ctx: ctx.abort(retry=True))
    agent = make_agent(model, judge, Hooks("e", process_api_error=lambda error, ctx: None))
    seen = await play(agent, mode=mode)
    assert len(model.calls) == 11
    assert seen.result.tripwire is not None
    model.rewind()
    await play(agent, mode=mode, error_processors=[])
    assert len(model.calls) == 1, "without error processors in the call there is no cap"


@in_both_modes
async def test_a_retry_costs_no_step_and_keeps_the_number(mode: str) -> None:
    """A retried step has the same number and does not count against max_steps (R7.3)."""
    numbers: list[int] = []

    def judge(output: Any, ctx: Any) -> None:
        numbers.append(ctx.step_number)
        if output.text == "bad":
            ctx.abort("again", retry=True)

    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("bad")], [text("good")])
    agent = make_agent(
        model,
        Hooks("j", process_output_step=judge),
        tools=[echo_tool()],
        max_processor_retries=1,
        max_steps=2,
    )
    seen = await play(agent, mode=mode)
    assert numbers == [0, 1, 1]
    assert seen.result.text == "good"


@in_both_modes
async def test_a_rejected_response_is_gone(mode: str) -> None:
    """It is in no prompt, message or text; its tools did not run; accepted steps stay; feedback is not kept (R7.3)."""
    ran: list[Any] = []

    def judge(output: Any, ctx: Any) -> None:
        if "bad" in output.text:
            ctx.abort("try harder", retry=True)

    model = ScriptedModel(
        [text("first "), tool_call("echo", {"value": 1}, id="c1")],
        [text("bad"), tool_call("echo", {"value": 2}, id="c2")],
        [text("good "), tool_call("echo", {"value": 3}, id="c3")],
        [text("end")],
    )
    agent = make_agent(
        model, Hooks("j", process_output_step=judge), tools=[echo_tool(ran)], max_processor_retries=1
    )
    seen = await play(agent, mode=mode)
    result = seen.result
    assert ran == [1, 3]
    assert result.text == "first good end"
    assert "bad" not in repr(result.all_messages)
    assert "bad" not in model.calls[2].prompt_text
    assert "first" in model.calls[2].prompt_text
    assert ["try harder" in call.prompt_text for call in model.calls] == [False, False, True, False]
    assert model.calls[2].prompt[0]["role"] == "system"
    assert "try harder" not in repr(result.all_messages)
    assert [part.tool_call_id for part in result.tool_calls] == ["c1", "c3"]


async def test_the_client_is_told_of_a_withdrawn_attempt() -> None:
    """A step-start that went out is withdrawn with a step-finish of reason retry and empty text (R7.3)."""
    retrier = Hooks("j", process_output_step=_no_bad_text)
    agent = make_agent(
        ScriptedModel([text("bad")], [text("good")]), retrier, release="live", max_processor_retries=1
    )
    seen = await play(agent, mode="stream")
    block = ["text-start", "text-delta", "text-end"]
    assert seen.types == [
        "start",
        *["step-start", *block, "step-finish"],
        *["step-start", *block, "step-finish"],
        "finish",
    ]
    withdrawn = next(chunk for chunk in seen.chunks if isinstance(chunk, StepFinish))
    assert (withdrawn.finish_reason, withdrawn.text, withdrawn.processor_retry_count) == ("retry", "", 1)
    assert "bad" not in repr(withdrawn)
    assert seen.result.released_text == "badgood"
    assert seen.result.text == "good"


async def test_a_held_attempt_is_withdrawn_unseen() -> None:
    """When the step was held, the client sees nothing of the rejected attempt (R7.3, R7.5)."""
    retrier = Hooks("j", process_output_step=_no_bad_text)
    agent = make_agent(ScriptedModel([text("bad")], [text("good")]), retrier, max_processor_retries=1)
    seen = await play(agent, mode="stream")
    assert seen.types == [
        "start",
        "step-start",
        "text-start",
        "text-delta",
        "text-end",
        "step-finish",
        "finish",
    ]
    assert seen.result.released_text == "good"


async def test_a_block_the_client_has_open_is_closed_when_an_attempt_is_withdrawn() -> None:
    """A retry in the middle of a block closes it before the step-finish that withdraws the attempt (R4.6, R7.3)."""

    def judge(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, TextDelta) and chunk.text == "bad":
            ctx.abort("no", retry=True)
        return chunk

    agent = make_agent(
        ScriptedModel([text("a", "bad")], [text("good")]),
        Hooks("j", process_output_stream=judge),
        max_processor_retries=1,
    )
    seen = await play(agent, mode="stream")
    assert seen.types[:6] == ["start", "step-start", "text-start", "text-delta", "text-end", "step-finish"]
    assert seen.result.text == "good"


async def test_a_retry_from_process_output_result_withdraws_the_finished_step() -> None:
    """The step-finish of the last step is followed by one of reason retry, then the step comes again (R7.3)."""
    judge = Hooks("j", process_output_result=_no_bad_text)
    agent = make_agent(ScriptedModel([text("bad")], [text("good")]), judge, max_processor_retries=1)
    seen = await play(agent, mode="stream")
    reasons = [chunk.finish_reason for chunk in seen.chunks if isinstance(chunk, StepFinish)]
    assert reasons == ["stop", "retry", "stop"]
    assert seen.result.text == "good"
    assert [step.step_number for step in seen.result.steps] == [0, 0]


@in_both_modes
async def test_an_abort_on_the_withdrawing_step_finish_is_final(mode: str) -> None:
    """The step-finish of reason retry passes process_output_stream, where even a retry is a plain abort (R7.3)."""

    def judge(output: Any, ctx: Any) -> None:
        ctx.abort("no", retry=True)

    def again(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, StepFinish) and chunk.finish_reason == "retry":
            ctx.abort("not even that", retry=True)
        return chunk

    model = ScriptedModel([text("bad")], repeat_last=True)
    agent = make_agent(
        model,
        Hooks("j", process_output_step=judge),
        Hooks("s", process_output_stream=again),
        max_processor_retries=5,
    )
    seen = await play(agent, mode=mode)
    assert seen.result.tripwire is not None
    assert seen.result.tripwire.processor_id == "s"
    assert len(model.calls) == 1


@in_both_modes
async def test_data_of_a_rejected_attempt_goes_with_it(mode: str) -> None:
    """Custom data written in a rejected attempt is not among the messages; that of the accepted one is (R7.3)."""

    async def judge(output: Any, ctx: Any) -> None:
        await ctx.writer.custom({"type": "data-note", "data": output.text})
        if output.text == "bad":
            ctx.abort("no", retry=True)

    model = ScriptedModel([text("bad")], [text("good")])
    seen = await play(
        make_agent(model, Hooks("j", process_output_step=judge), max_processor_retries=1), mode=mode
    )
    parts = [part for message in seen.result.messages for part in message.content.parts]
    assert [part.data for part in parts if part.type == "data-note"] == ["good"]  # type: ignore[attr-defined]
    assert "bad" not in repr(seen.result.all_messages)


@in_both_modes
async def test_what_a_hook_added_to_a_rejected_response_goes_with_it(mode: str) -> None:
    """What a hook adds to a response belongs to the step under way and goes with it (R3.3, R7.3)."""

    def add(output: Any, ctx: Any) -> Any:
        if output.text == "bad":
            ctx.message_list.add([{"role": "assistant", "content": "an addition"}], "response")
            return ctx.message_list
        return None

    judge = Hooks(
        "j", process_output_step=lambda out, ctx: ctx.abort(retry=True) if "bad" in out.text else None
    )
    model = ScriptedModel([text("bad")], [text("good")])
    agent = make_agent(model, Hooks("a", process_output_step=add), judge, max_processor_retries=1)
    seen = await play(agent, mode=mode)
    assert "an addition" not in repr(seen.result.all_messages)
    assert "an addition" not in model.calls[1].prompt_text
    assert seen.result.text == "good"


@in_both_modes
async def test_tools_of_an_attempt_rejected_while_they_run_are_cancelled(mode: str) -> None:
    """A retry while the step's tools run cancels them (R7.3)."""
    ended: list[str] = []
    running = asyncio.Event()

    @tool
    async def slow() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    @tool
    async def writes(context: ToolContext) -> None:
        await running.wait()
        await context.writer.custom({"type": "data-bad", "data": 1})

    def judge(chunk: Any, ctx: Any) -> Any:
        return ctx.abort("no", retry=True) if chunk.type == "data-bad" else chunk

    guard = Hooks("guard", process_data_parts=True, process_output_stream=judge)
    model = ScriptedModel([tool_call("slow"), tool_call("writes")], [text("good")])
    agent = make_agent(model, guard, tools=[slow, writes], max_processor_retries=1)
    seen = await play(agent, mode=mode)
    assert ended == ["cancelled"]
    assert seen.result.text == "good"
    assert seen.result.tool_calls == []
    assert "data-bad" not in repr(seen.result.all_messages)


@in_both_modes
async def test_error_retries_and_aborts_share_one_count(mode: str) -> None:
    """retry_count counts accepted retries of the whole run, error retries included (R7.1, R4.5)."""
    counts: list[tuple[str, int]] = []

    def on_error(problem: Exception, ctx: Any) -> Retry:
        counts.append(("error", ctx.retry_count))
        return Retry()

    def judge(output: Any, ctx: Any) -> None:
        counts.append(("judge", ctx.retry_count))
        if output.text == "bad":
            ctx.abort(retry=True)

    model = ScriptedModel(
        [error(400, "no")],
        [text("bad")],
        [error(400, "no")],
        [tool_call("echo", {"value": 1})],
        [error(400, "no")],
        [text("good")],
    )
    agent = make_agent(
        model,
        Hooks("e", process_api_error=on_error),
        Hooks("j", process_output_step=judge),
        tools=[echo_tool()],
    )
    seen = await play(agent, mode=mode)
    assert seen.result.text == "good"
    assert counts == [
        ("error", 0),
        ("judge", 1),
        ("error", 1),  # error retries of this step so far
        ("judge", 3),
        ("error", 0),  # another step counts anew
        ("judge", 4),
    ]
    if mode == "stream":
        assert seen.chunks[-1].processor_retry_count == 4  # type: ignore[attr-defined]


@in_both_modes
async def test_an_error_retry_is_limited_by_its_own_count_alone(mode: str) -> None:
    """An error retry is granted while the step's error retries are below the cap, whatever the run's count (R4.5)."""

    def judge(output: Any, ctx: Any) -> None:
        if output.text == "bad":
            ctx.abort(retry=True)

    model = ScriptedModel([text("bad")], [error(400, "no")], [text("good")])
    agent = make_agent(
        model,
        Hooks("e", process_api_error=lambda problem, ctx: Retry()),
        Hooks("j", process_output_step=judge),
        max_processor_retries=1,
    )
    seen = await play(agent, mode=mode)
    assert seen.result.text == "good"


@in_both_modes
async def test_feedback_stays_until_the_step_is_accepted(mode: str) -> None:
    """Two rejections of one step: the next prompt has both reasons; the step after has none (R7.3)."""

    def judge(output: Any, ctx: Any) -> None:
        if output.text in ("bad", "worse"):
            ctx.abort(f"not {output.text}", retry=True)

    model = ScriptedModel([text("bad")], [text("worse")], [tool_call("echo", {"value": 1})], [text("good")])
    agent = make_agent(
        model, Hooks("j", process_output_step=judge), tools=[echo_tool()], max_processor_retries=2
    )
    await play(agent, mode=mode)
    told = [("not bad" in c.prompt_text, "not worse" in c.prompt_text) for c in model.calls]
    assert told == [(False, False), (True, False), (True, True), (False, False)]


@in_both_modes
async def test_a_block_after_a_retry_lists_both_attempts(mode: str) -> None:
    """result.steps lists all attempts in order: rejected, then blocked (R5.3)."""

    def judge(output: Any, ctx: Any) -> None:
        ctx.abort(f"because of {output.text}", retry=output.text == "one")

    model = ScriptedModel([text("one")], [text("two")])
    seen = await play(
        make_agent(model, Hooks("j", process_output_step=judge), max_processor_retries=5), mode=mode
    )
    steps = seen.result.steps
    assert [(step.finish_reason, step.tripwire and step.tripwire.reason) for step in steps] == [
        ("retry", "because of one"),
        ("tripwire", "because of two"),
    ]


@in_both_modes
async def test_a_changed_call_runs_with_its_changed_arguments(mode: str) -> None:
    """The calls that run are those the message list holds after process_output_step (R4.7)."""
    ran: list[Any] = []

    def rewrite(chunk: Any, ctx: Any) -> Any:
        return chunk.replace(args={"value": "changed"}) if isinstance(chunk, ToolCall) else chunk

    model = ScriptedModel([tool_call("echo", {"value": "given"})], [text("done")])
    agent = make_agent(model, Hooks("r", process_output_stream=rewrite), tools=[echo_tool(ran)])
    seen = await play(agent, mode=mode)
    assert ran == ["changed"]
    assert seen.result.tool_calls[0].args == {"value": "changed"}


@in_both_modes
async def test_a_model_without_output_gives_an_empty_answer(mode: str) -> None:
    """An empty response is an accepted step with empty text, not a failure (R1.2)."""
    seen = await play(make_agent(ScriptedModel([])), mode=mode)
    assert seen.result.text == ""
    assert len(seen.result.steps) == 1
    assert seen.result.messages == []
    check_last(seen, "finish")


@in_both_modes
async def test_an_unopened_text_block_in_a_rejected_attempt_leaks_nothing(mode: str) -> None:
    """Text that a processor buffered in a rejected attempt does not appear in the next one's block (R7.3)."""
    model = ScriptedModel(
        [TextStart(id="t"), TextDelta(id="t", text="bad")], [TextDelta(id="t", text="good")]
    )
    judge = Hooks("j", process_output_step=_no_bad_text)
    seen = await play(make_agent(model, judge, max_processor_retries=1), mode=mode)
    assert seen.result.text == "good"


@in_both_modes
async def test_the_same_reason_is_told_once(mode: str) -> None:
    """Two rejections with one reason put it into the prompt once (R7.3, D39)."""

    def judge(output: Any, ctx: Any) -> None:
        if "bad" in output.text:
            ctx.abort("too short", retry=True)

    model = ScriptedModel([text("bad")], [text("bad again")], [text("good")])
    await play(make_agent(model, Hooks("j", process_output_step=judge), max_processor_retries=2), mode=mode)
    assert [call.prompt_text.count("too short") for call in model.calls] == [0, 1, 1]


@in_both_modes
async def test_a_retry_on_the_step_finish_asks_the_step_again(mode: str) -> None:
    """A step is accepted when its step-finish has passed: until then it can be asked again (R1.4, R7.1)."""
    asked: list[int] = []

    def judge(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, StepFinish) and chunk.finish_reason == "stop" and not asked:
            asked.append(1)
            ctx.abort("once more", retry=True)
        return chunk

    model = ScriptedModel([text("bad")], [text("good")])
    seen = await play(
        make_agent(model, Hooks("j", process_output_stream=judge), max_processor_retries=1), mode=mode
    )
    assert seen.result.text == "good"
    assert [(step.step_number, step.finish_reason) for step in seen.result.steps] == [
        (0, "retry"),
        (0, "stop"),
    ]
    assert "bad" not in repr(seen.result.messages)


@in_both_modes
async def test_a_block_on_the_step_finish_refuses_the_step(mode: str) -> None:
    """An abort on the step-finish blocks a step that was not accepted yet, whose tools have run (R1.4, R5.3)."""
    ran: list[Any] = []

    def judge(chunk: Any, ctx: Any) -> Any:
        return ctx.abort("no") if isinstance(chunk, StepFinish) else chunk

    model = ScriptedModel([text("refused"), tool_call("echo", {"value": 1})])
    agent = make_agent(model, Hooks("j", process_output_stream=judge), tools=[echo_tool(ran)])
    seen = await play(agent, mode=mode)
    assert ran == [1]
    assert seen.result.text == ""
    assert seen.result.messages == []
    assert [(step.finish_reason, step.text) for step in seen.result.steps] == [("tripwire", "")]
