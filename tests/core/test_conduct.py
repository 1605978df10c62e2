"""A run from its first hook to its last chunk: what is saved for each kind of end (R8), cancellation (R5.5)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_runs import Hooks, Recorder, WatchedModel, check_last, echo_tool, in_both_modes, make_agent, play
from interlock import Agent, Message, ModelError, StorageError, tool
from interlock.chunks import TextDelta, TextStart, ToolCall
from interlock.memory import InMemoryStore, Memory, Turn
from interlock.testing import ScriptedModel, error, text, tool_call

pytestmark = pytest.mark.anyio

THREAD = {"thread": "t1", "resource": "u1"}
TOOL_STEP = [text("looking"), tool_call("echo", {"value": "found"}, id="c1")]


async def _stored(memory: Memory) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in await memory.messages("t1", resource="u1")]


async def _parts(memory: Memory) -> list[str]:
    messages = await memory.messages("t1", resource="u1")
    return [part.type for message in messages for part in message.content.parts]


async def _marked(memory: Memory) -> list[bool]:
    messages = await memory.messages("t1", resource="u1")
    return [bool((message.content.metadata or {}).get("unfinished")) for message in messages]


# ------------------------------------------------------------------------------------------------------ a normal end


@in_both_modes
async def test_what_was_shown_is_what_is_kept(mode: str) -> None:
    """Released text, result, storage and the next prompt have the same text, after every processor (R0.1, R8.1)."""

    def shout(chunk: Any, ctx: Any) -> Any:
        return chunk.replace(text=chunk.text.upper()) if isinstance(chunk, TextDelta) else chunk

    def sign(output: Any, ctx: Any) -> None:
        for message in ctx.messages:
            for part in message.content.parts:
                if part.type == "text" and message.role == "assistant":
                    part.text += "!"

    memory = Memory()
    model = ScriptedModel([text("a", "b")], [text("next")])
    agent = make_agent(
        model, Hooks("s", process_output_stream=shout), Hooks("e", process_output_step=sign), memory=memory
    )
    seen = await play(agent, "q", mode=mode, memory=THREAD)
    assert seen.result.text == "AB!"
    assert seen.result.released_text == "AB!"
    if mode == "stream":
        assert seen.shown == "AB!"
    assert await _stored(memory) == [("user", "q"), ("assistant", "AB!")]
    await agent.generate("again", memory=THREAD, output_processors=[])
    assert "AB!" in model.calls[1].prompt_text


@in_both_modes
async def test_only_new_messages_are_saved(mode: str) -> None:
    """A turn holds the new messages; not remembered ones, context or system messages (R8.1, R8.3, R10.5)."""
    turns: list[Turn] = []

    class Watched(InMemoryStore):
        async def save_turn(self, turn: Turn) -> None:
            turns.append(turn)
            await super().save_turn(turn)

    memory = Memory(Watched())
    model = ScriptedModel([text("one")], [text("two")])
    agent = make_agent(model, memory=memory, instructions="be brief")
    await play(agent, "first", mode=mode, memory=THREAD)
    await play(agent, "second", mode=mode, memory=THREAD, context="by the way", system="be kind")
    assert [[message.text for message in turn.messages] for turn in turns] == [
        ["first", "one"],
        ["second", "two"],
    ]
    assert {turn.unfinished for turn in turns} == {False}
    for said in ("first", "one", "by the way", "be kind", "be brief"):
        assert said in model.calls[1].prompt_text


@in_both_modes
async def test_in_place_edits_and_returned_lists_are_saved_alike(mode: str) -> None:
    """A list returned and an edit in place leave the same in storage, in the order of the list (R8.3, R3.3)."""

    def in_place(messages: Any, ctx: Any) -> None:
        messages[0].content.parts[0].text = "changed"

    def returned(messages: Any, ctx: Any) -> Any:
        message = messages[0]
        content = message.content.replace(parts=[message.content.parts[0].replace(text="changed")])
        return [message.replace(content=content)]

    kept: list[Any] = []
    for hook in (in_place, returned):
        memory = Memory()
        agent = make_agent(ScriptedModel([text("ok")]), Hooks("p", process_input=hook), memory=memory)
        await play(agent, "given", mode=mode, memory=THREAD)
        kept.append(await _stored(memory))
    assert kept[0] == kept[1] == [("user", "changed"), ("assistant", "ok")]


@in_both_modes
async def test_edits_of_remembered_messages_are_not_saved(mode: str) -> None:
    """Remembered messages that a hook edits or drops change for the run only; storage keeps them (R3.5)."""

    def forget(messages: Any, ctx: Any) -> Any:
        messages[0].content.parts[0].text = "edited"
        return [message for message in messages if message.text != "one"]

    memory = Memory()
    model = ScriptedModel([text("one")], [text("two")])
    agent = make_agent(model, memory=memory)
    await play(agent, "first", mode=mode, memory=THREAD)
    await play(agent, "second", mode=mode, memory=THREAD, input_processors=[Hooks("f", process_input=forget)])
    assert "edited" in model.calls[1].prompt_text
    assert "one" not in model.calls[1].prompt_text
    assert await _stored(memory) == [
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second"),
        ("assistant", "two"),
    ]


@in_both_modes
async def test_saved_messages_have_increasing_times_in_list_order(mode: str) -> None:
    """New messages get increasing created_at in list order, and their thread and resource (R3.3)."""

    def turn_round(messages: Any, ctx: Any) -> Any:
        return list(reversed(messages))

    memory = Memory()
    agent = make_agent(ScriptedModel([text("ok")]), Hooks("r", process_input=turn_round), memory=memory)
    await play(agent, ["a", "b", "c"], mode=mode, memory=THREAD)
    stored = await memory.messages("t1", resource="u1")
    assert [message.text for message in stored] == ["c", "b", "a", "ok"]
    times = [message.created_at for message in stored]
    assert all(one is not None for one in times)
    assert times == sorted(times, key=str)
    assert len(set(times)) == 4
    assert {(message.thread_id, message.resource_id) for message in stored} == {("t1", "u1")}


@in_both_modes
async def test_retry_feedback_is_not_saved(mode: str) -> None:
    """Neither the rejected answer nor the reason is in storage (R7.3, R8.3)."""

    def judge(output: Any, ctx: Any) -> None:
        if output.text == "bad":
            ctx.abort("the reason", retry=True)

    memory = Memory()
    model = ScriptedModel([text("bad")], [text("good")])
    agent = make_agent(model, Hooks("j", process_output_step=judge), memory=memory, max_processor_retries=1)
    await play(agent, "q", mode=mode, memory=THREAD)
    assert await _stored(memory) == [("user", "q"), ("assistant", "good")]


@in_both_modes
async def test_without_a_thread_nothing_is_saved(mode: str) -> None:
    """Memory is on only for calls that name a thread (R8.1)."""
    memory = Memory()
    await play(make_agent(ScriptedModel([text("ok")]), memory=memory), mode=mode)
    assert await _stored(memory) == []


@in_both_modes
async def test_custom_data_is_saved_unless_transient(mode: str) -> None:
    """Data chunks become parts of the assistant message, from hook and tool, transient ones not (R8.4)."""

    async def write(result: Any, ctx: Any) -> None:
        await ctx.writer.custom({"type": "data-kept", "data": 1})
        await ctx.writer.custom({"type": "data-gone", "data": 2, "transient": True})

    memory = Memory()
    agent = make_agent(
        ScriptedModel([text("ok")]), Hooks("w", process_output_step=write, observes=True), memory=memory
    )
    await play(agent, mode=mode, memory=THREAD)
    assert await _parts(memory) == ["text", "text", "data-kept"]


# ---------------------------------------------------------------------------------------------- tripwires and errors


def _aborts(subject: Any, ctx: Any) -> None:
    ctx.abort("no")


def _raises(subject: Any, ctx: Any) -> None:
    raise ValueError("boom")


@in_both_modes
@pytest.mark.parametrize("end", [_aborts, _raises], ids=["tripwire", "exception"])
@pytest.mark.parametrize(
    "hook",
    ["process_input", "process_input_step", "process_llm_request", "process_llm_response", "process_output_step",
     "process_output_result"],
)  # fmt: skip
async def test_nothing_is_saved_of_a_refused_turn_without_tools(hook: str, end: Any, mode: str) -> None:
    """After a tripwire or an exception in a hook nothing of the turn is saved, not even the question (R8.2)."""
    memory = Memory()
    agent = make_agent(ScriptedModel([text("answer")]), Hooks("p", **{hook: end}), memory=memory)
    seen = await play(agent, "q", mode=mode, memory=THREAD)
    check_last(seen, "tripwire" if end is _aborts else "error")
    assert await _stored(memory) == []


def _second_time(end: Any) -> Any:
    def hook(subject: Any, ctx: Any) -> None:
        if ctx.step_number == 1:
            end(subject, ctx)

    return hook


@in_both_modes
@pytest.mark.parametrize("end", [_aborts, _raises], ids=["tripwire", "exception"])
@pytest.mark.parametrize(
    "hook", ["process_input_step", "process_llm_request", "process_llm_response", "process_output_step"]
)
async def test_steps_whose_tools_ran_are_saved_whole(hook: str, end: Any, mode: str) -> None:
    """If tools of accepted steps ran, the question and those steps are saved, whole, text included (R8.2)."""
    memory = Memory()
    model = ScriptedModel(TOOL_STEP, [text("refused")], [text("next")])
    agent = make_agent(model, Hooks("p", **{hook: _second_time(end)}), tools=[echo_tool()], memory=memory)
    await play(agent, "q", mode=mode, memory=THREAD)
    assert await _stored(memory) == [("user", "q"), ("assistant", "looking")]
    assert await _parts(memory) == ["text", "text", "tool-invocation"]
    assert await _marked(memory) == [False, False], "a refused turn is not an unfinished one"


@in_both_modes
@pytest.mark.parametrize("end", [_aborts, _raises], ids=["tripwire", "exception"])
async def test_after_a_refused_final_answer_calls_with_results_are_saved(end: Any, mode: str) -> None:
    """After process_output_result ended the run, only calls with their results are saved, no text (R8.2)."""
    memory = Memory()
    model = ScriptedModel(TOOL_STEP, [text("refused")])
    agent = make_agent(model, Hooks("p", process_output_result=end), tools=[echo_tool()], memory=memory)
    await play(agent, "q", mode=mode, memory=THREAD)
    assert await _stored(memory) == [("user", "q"), ("assistant", "")]
    assert await _parts(memory) == ["text", "tool-invocation"]


@in_both_modes
async def test_a_step_refused_after_its_own_tool_ran_is_not_saved(mode: str) -> None:
    """Only accepted steps count: a tripwire in process_tool_result of the first step saves nothing (R8.2)."""
    memory = Memory()
    agent = make_agent(
        ScriptedModel(TOOL_STEP), Hooks("p", process_tool_result=_aborts), tools=[echo_tool()], memory=memory
    )
    await play(agent, "q", mode=mode, memory=THREAD)
    assert await _stored(memory) == []


@in_both_modes
async def test_an_accepted_step_whose_tool_did_not_run_is_no_reason_to_save(mode: str) -> None:
    """A call of an unknown tool did nothing that the next turn had to know (R8.2)."""
    memory = Memory()
    model = ScriptedModel([tool_call("unknown")], [text("refused")])
    agent = make_agent(
        model, Hooks("p", process_output_step=_second_time(_aborts)), tools=[echo_tool()], memory=memory
    )
    await play(agent, "q", mode=mode, memory=THREAD)
    assert await _stored(memory) == []


# ---------------------------------------------------------------------------------------------------------- failures


@in_both_modes
async def test_a_providers_failure_saves_what_had_left(mode: str) -> None:
    """Question, accepted steps and released text are saved, marked unfinished (R8.2)."""
    memory = Memory()
    model = ScriptedModel(
        TOOL_STEP,
        [
            TextStart(id="t"),
            TextDelta(id="t", text="half an "),
            TextDelta(id="t", text="answer"),
            error(500, "x"),
        ],
    )
    agent = make_agent(model, tools=[echo_tool()], memory=memory)
    seen = await play(agent, "q", mode=mode, memory=THREAD)
    assert isinstance(seen.error, ModelError)
    assert await _stored(memory) == [("user", "q"), ("assistant", "lookinghalf an answer")]
    assert (await _marked(memory))[-1] is True
    if mode == "stream":
        assert seen.shown == "lookinghalf an answer"


@in_both_modes
async def test_held_text_of_a_failed_step_is_not_saved(mode: str) -> None:
    """Text that had not been released when the provider failed is neither sent nor saved (R8.2, R7.5)."""
    memory = Memory()
    model = ScriptedModel([TextStart(id="t"), TextDelta(id="t", text="half"), error(500, "x")])
    agent = make_agent(model, memory=memory, release="step")
    seen = await play(agent, "q", mode=mode, memory=THREAD)
    assert seen.shown == ""
    assert await _stored(memory) == [("user", "q")]
    assert await _marked(memory) == [True]


@in_both_modes
@pytest.mark.parametrize("where", ["call", "memory"])
async def test_save_unfinished_can_be_turned_off(where: str, mode: str) -> None:
    """With save_unfinished=False a failed turn leaves nothing (R8.2)."""
    memory = Memory(save_unfinished=where != "memory")
    options: dict[str, Any] = {"save_unfinished": False} if where == "call" else {}
    agent = make_agent(ScriptedModel([text("half"), error(500, "x")]), memory=memory)
    await play(agent, "q", mode=mode, memory=THREAD, **options)
    assert await _stored(memory) == []


@in_both_modes
async def test_an_unfinished_turn_is_remembered_by_the_next(mode: str) -> None:
    """The next turn's prompt has what the client had seen (R8.2)."""
    memory = Memory()
    model = ScriptedModel([text("half"), error(500, "x")], [text("ok")])
    agent = make_agent(model, memory=memory)
    await play(agent, "q", mode=mode, memory=THREAD)
    await play(agent, "go on", mode=mode, memory=THREAD)
    assert [message["role"] for message in model.calls[1].prompt] == ["user", "assistant", "user"]
    assert "half" in model.calls[1].prompt_text


class _Broken(InMemoryStore):
    """A store that cannot write."""

    async def save_turn(self, turn: Turn) -> None:
        raise OSError("disk full")


@in_both_modes
async def test_a_failing_store_fails_the_run(mode: str) -> None:
    """StorageError is raised, error is the last chunk, and the answer is on the exception (R8.1, R5.4)."""
    recorder = Recorder()
    agent = make_agent(ScriptedModel([text("ok")]), recorder, memory=Memory(_Broken()))
    seen = await play(agent, mode=mode, memory=THREAD)
    assert isinstance(seen.error, StorageError)
    assert "disk full" in str(seen.error)
    assert seen.error.result.text == "ok"
    check_last(seen, "error")
    assert [end.kind for end in recorder.ends] == ["error"]


@in_both_modes
async def test_a_failing_store_does_not_hide_what_went_wrong_before(mode: str) -> None:
    """If the provider failed first, its error surfaces, though the unfinished turn cannot be saved either (R5.4)."""
    agent = make_agent(ScriptedModel([error(401, "bad key")]), memory=Memory(_Broken()))
    seen = await play(agent, mode=mode, memory=THREAD)
    assert isinstance(seen.error, ModelError)


@in_both_modes
async def test_a_store_that_cannot_be_read_fails_the_run_before_the_model(mode: str) -> None:
    """What the store raises when the history is read surfaces, and nothing is asked of the model (R5.4)."""

    class Unreadable(InMemoryStore):
        async def messages(
            self, thread_id: str, *, resource_id: str | None, last: int | None = None
        ) -> list[Message]:
            raise StorageError("no connection")

    model = ScriptedModel([text("ok")])
    seen = await play(make_agent(model, memory=Memory(Unreadable())), mode=mode, memory=THREAD)
    assert isinstance(seen.error, StorageError)
    assert model.calls == []


async def test_the_turn_is_saved_before_the_last_chunk() -> None:
    """Who has the finish chunk can rely on the turn being saved (R1.4)."""
    memory = Memory()
    agent = make_agent(ScriptedModel([text("ok")]), memory=memory)
    async with agent.stream("q", memory=THREAD) as stream:
        async for chunk in stream:
            if chunk.type == "finish":
                assert await _stored(memory) == [("user", "q"), ("assistant", "ok")]


# ------------------------------------------------------------------------------------------------------ cancellation


HALF = (TextStart(id="t"), TextDelta(id="t", text="half"))


async def _cancelled_generate(agent: Agent, ready: asyncio.Event, **options: Any) -> None:
    task = asyncio.create_task(agent.generate("q", **options))
    await ready.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("release", ["live", "step"])
async def test_a_cancelled_stream_ends_with_abort(release: Any) -> None:
    """cancel(): an abort chunk last, finish_reason aborted, no tripwire; the provider's stream is closed (R5.5)."""
    model = WatchedModel(*HALF, hangs=True)
    recorder = Recorder()
    async with make_agent(model, recorder, release=release).stream("q") as stream:
        chunks = [await anext(stream)]
        await model.waiting.wait()
        called = list(recorder.hooks)
        await stream.cancel()
        assert len(model.closed) == 1
        chunks += [chunk async for chunk in stream]
        result = await stream.result()
    assert [chunk.type for chunk in chunks][-1] == "abort"
    held = release == "step"
    assert [chunk.type for chunk in chunks[1:-1]] == (
        [] if held else ["step-start", "text-start", "text-delta"]
    )
    assert result.finish_reason == "aborted"
    assert result.tripwire is None
    assert result.text == ""
    assert result.steps == []
    assert result.messages == []
    assert result.released_text == ("" if held else "half")
    assert recorder.hooks == called, "no hook but on_run_end runs after a cancellation"
    assert [end.kind for end in recorder.ends] == ["cancelled"]


async def test_a_cancelled_generate_cleans_up() -> None:
    """Cancelling the task closes the provider's stream, tells the end once and raises CancelledError (R5.5)."""
    model = WatchedModel(*HALF, hangs=True)
    recorder = Recorder()
    await _cancelled_generate(make_agent(model, recorder), model.waiting)
    assert len(model.closed) == 1
    assert [end.kind for end in recorder.ends] == ["cancelled"]
    assert recorder.ends[0].result.finish_reason == "aborted"


async def test_leaving_the_stream_early_is_a_cancellation() -> None:
    """Who leaves the async with stops the run: the provider's stream is closed, the end told once (R5.5)."""
    model = WatchedModel(*HALF, hangs=True)
    recorder = Recorder()
    async with make_agent(model, recorder, release="live").stream("q") as stream:
        async for chunk in stream:
            if chunk.type == "text-delta":
                break
    assert len(model.closed) == 1
    assert [end.kind for end in recorder.ends] == ["cancelled"]


async def test_leaving_the_stream_with_an_exception_lets_it_through() -> None:
    """The caller's own exception is what leaves the async with (R5.5)."""
    model = WatchedModel(*HALF, hangs=True)
    with pytest.raises(KeyError):  # noqa: PT012
        async with make_agent(model).stream("q") as stream:
            await anext(stream)
            raise KeyError("mine")
    await asyncio.sleep(0)
    assert len(model.closed) == model.opened


async def test_cancellation_cancels_running_tools() -> None:
    """Running tools are cancelled; the accepted steps stay, the step under way has no entry (R5.5)."""
    started, cancelled = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    model = ScriptedModel(TOOL_STEP, [text("now "), tool_call("slow")])
    agent = make_agent(model, tools=[slow, echo_tool()])
    async with agent.stream("q") as stream:
        await started.wait()
        await stream.cancel()
        assert cancelled.is_set()
        result = await stream.result()
    assert [step.text for step in result.steps] == ["looking"]
    assert result.text == "looking"
    assert [call.tool_name for call in result.tool_calls] == ["echo"]
    assert result.finish_reason == "aborted"


@pytest.mark.parametrize("way", ["cancel", "leave", "generate"])
async def test_a_cancelled_turn_is_saved_with_what_had_left(way: str) -> None:
    """Question, accepted steps and released text are saved, marked; never an open call (R8.2)."""
    memory = Memory()
    tools_model = ScriptedModel(TOOL_STEP)
    model = WatchedModel(*HALF, ToolCall(tool_call_id="c2", tool_name="echo", args={}), hangs=True)

    def second_model(step: Any, ctx: Any) -> Any:
        from interlock import StepChange

        return StepChange(model=model) if ctx.step_number else None

    agent = make_agent(
        tools_model, Hooks("m", process_input_step=second_model), tools=[echo_tool()], memory=memory
    )
    if way == "generate":
        await _cancelled_generate(agent, model.waiting, memory=THREAD)
    else:
        async with agent.stream("q", memory=THREAD) as stream:
            await model.waiting.wait()
            if way == "cancel":
                await stream.cancel()
    assert await _stored(memory) == [("user", "q"), ("assistant", "lookinghalf")]
    assert (await _parts(memory)).count("tool-invocation") == 1
    assert (await _marked(memory))[-1] is True


async def test_input_that_no_guard_has_passed_is_not_saved() -> None:
    """A cancellation during process_input stores nothing: a guard was about to judge the input (R0.3, design)."""
    memory = Memory()
    waiting = asyncio.Event()

    async def slow_guard(messages: Any, ctx: Any) -> None:
        waiting.set()
        await asyncio.Event().wait()

    agent = make_agent(ScriptedModel(), Hooks("g", process_input=slow_guard), memory=memory)
    async with agent.stream("secret", memory=THREAD) as stream:
        await waiting.wait()
        await stream.cancel()
        assert [chunk.type async for chunk in stream] == ["abort"]
    assert await _stored(memory) == []


async def test_a_stream_cancelled_before_it_began_runs_nothing() -> None:
    """cancel() before the first read: no hook, no model; the end is told, abort is the only chunk (R5.5, R1.5)."""
    recorder = Recorder()
    model = ScriptedModel([text("x")])
    stream = make_agent(model, recorder).stream("q")
    await stream.cancel()
    assert [chunk.type async for chunk in stream] == ["abort"]
    assert (await stream.result()).finish_reason == "aborted"
    assert recorder.log == []
    assert model.calls == []
    assert [end.kind for end in recorder.ends] == ["cancelled"]


async def test_a_stream_that_is_never_read_never_runs() -> None:
    """A run starts when the stream is entered or first read, not before (R10.4)."""
    model = ScriptedModel([text("x")])
    stream = make_agent(model).stream("q")
    await asyncio.sleep(0)
    assert model.calls == []
    assert (await stream.result()).text == "x"


async def test_cancelling_after_the_end_changes_nothing() -> None:
    """A finished run stays finished (R5.5)."""
    async with make_agent(ScriptedModel([text("x")])).stream("q") as stream:
        assert (await stream.result()).text == "x"
        await stream.cancel()
        assert (await stream.result()).finish_reason == "stop"


async def test_result_drains_what_was_not_read() -> None:
    """stream.result() after a few chunks, and after none, runs to the end (R10.4)."""
    model = ScriptedModel(
        [text(*"a long answer in many pieces, more than any buffer holds")], repeat_last=True
    )
    for read in (0, 3):
        async with make_agent(model).stream("q") as stream:
            for _ in range(read):
                await anext(stream)
            result = await stream.result()
        assert result.text == "a long answer in many pieces, more than any buffer holds"
        assert result.finish_reason == "stop"


async def test_an_async_on_run_end_is_finished_after_a_cancellation() -> None:
    """Clean-up that awaits is not cut off by the cancellation that it cleans up after (R1.5, R5.5)."""
    model = WatchedModel(*HALF, hangs=True)
    cleaned: list[str] = []

    async def clean(outcome: Any, ctx: Any) -> None:
        await asyncio.sleep(0.01)
        cleaned.append(outcome.kind)

    agent = make_agent(model, Hooks("c", process_input=lambda messages, ctx: None, on_run_end=clean))
    await _cancelled_generate(agent, model.waiting)
    assert cleaned == ["cancelled"]


async def test_ctx_cancelled_tells_work_in_threads() -> None:
    """ctx.cancelled is false while the run goes on and true once it was cancelled or blocked (R4)."""
    seen: list[bool] = []
    kept: list[Any] = []

    def look(messages: Any, ctx: Any) -> None:
        kept.append(ctx)
        seen.append(ctx.cancelled)

    blocked = make_agent(ScriptedModel(), Hooks("l", process_input=look), Hooks("b", process_input=_aborts))
    await blocked.generate("q")
    model = WatchedModel(*HALF, hangs=True)
    await _cancelled_generate(make_agent(model, Hooks("l", process_input=look)), model.waiting)
    assert seen == [False, False]
    assert [ctx.cancelled for ctx in kept] == [True, True]


@in_both_modes
async def test_a_model_that_raises_cancelled_error_itself_is_a_cancellation(mode: str) -> None:
    """on_run_end is told once even when a CancelledError comes out of a hook (R1.5)."""
    recorder = Recorder()

    async def give_up(messages: Any, ctx: Any) -> None:
        raise asyncio.CancelledError

    agent = make_agent(ScriptedModel(), recorder, Hooks("g", process_input=give_up))
    with pytest.raises(asyncio.CancelledError):  # noqa: PT012
        if mode == "generate":
            await agent.generate("q")
        else:
            async with agent.stream("q") as stream:
                async for _ in stream:
                    pass
                assert (await stream.result()).finish_reason == "aborted"
            raise asyncio.CancelledError
    assert [end.kind for end in recorder.ends] == ["cancelled"]


# ------------------------------------------------------------------------------------- a cancellation during the end


class _SlowStore(InMemoryStore):
    """A store that takes its time to write.

    Attributes:
        writing: set when it has begun.
        go_on: lets it end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.writing = asyncio.Event()
        self.go_on = asyncio.Event()

    async def save_turn(self, turn: Turn) -> None:
        self.writing.set()
        await self.go_on.wait()
        await super().save_turn(turn)


async def test_a_cancellation_while_the_turn_is_saved_still_tells_the_end() -> None:
    """on_run_end is called exactly once on every exit, also when the run is cancelled while it is saved (R1.5)."""
    store = _SlowStore()
    recorder = Recorder()
    agent = make_agent(ScriptedModel([text("ok")]), recorder, memory=Memory(store))
    task = asyncio.create_task(agent.generate("q", memory=THREAD))
    await store.writing.wait()
    task.cancel()
    await asyncio.sleep(0)
    store.go_on.set()
    await asyncio.wait([task])
    assert task.cancelled()
    assert [end.kind for end in recorder.ends] == ["finished"], (
        "what is saved as finished has finished (R8.2)"
    )
    assert await _stored(Memory(store)) == [("user", "q"), ("assistant", "ok")]


async def test_a_second_cancellation_still_tells_the_end() -> None:
    """Cancelled once more while the unfinished turn is saved, the run tells its end all the same (R1.5)."""
    store = _SlowStore()
    recorder = Recorder()
    model = WatchedModel(*HALF, hangs=True)
    task = asyncio.create_task(make_agent(model, recorder, memory=Memory(store)).generate("q", memory=THREAD))
    await model.waiting.wait()
    task.cancel()
    await store.writing.wait()
    task.cancel()
    await asyncio.sleep(0)
    store.go_on.set()
    await asyncio.wait([task])
    assert [end.kind for end in recorder.ends] == ["cancelled"]
    assert task.cancelled()


async def test_a_cancellation_in_one_on_run_end_does_not_spare_the_next() -> None:
    """Every processor is told the end, also if the run is cancelled while one of them cleans up (R1.5)."""
    cleaning = asyncio.Event()
    second = Recorder("second")

    async def slow(outcome: Any, ctx: Any) -> None:
        cleaning.set()
        await asyncio.sleep(0.02)

    first = Hooks("first", process_input=lambda messages, ctx: None, on_run_end=slow)
    task = asyncio.create_task(make_agent(ScriptedModel([text("ok")]), first, second).generate("q"))
    await cleaning.wait()
    task.cancel()
    await asyncio.wait([task])
    assert len(second.ends) == 1


async def test_leaving_the_stream_while_the_turn_is_saved_still_tells_the_end() -> None:
    """Who leaves the async with during the last steps gets clean-up as anybody (R1.5, R5.5)."""
    store = _SlowStore()
    recorder = Recorder()
    async with make_agent(ScriptedModel([text("ok")]), recorder, memory=Memory(store)).stream(
        "q", memory=THREAD
    ):
        await store.writing.wait()
        asyncio.get_running_loop().call_later(0.01, store.go_on.set)
    assert len(recorder.ends) == 1


@pytest.mark.parametrize("release", ["live", "step"])
async def test_released_text_of_the_step_under_way_is_only_in_storage(release: Any) -> None:
    """Cancelled while a step's tools run: its released text is saved, and is not in the result (R5.5, R8.2)."""
    started = asyncio.Event()

    @tool
    async def slow() -> None:
        started.set()
        await asyncio.Event().wait()

    memory = Memory()
    agent = make_agent(ScriptedModel([text("working "), tool_call("slow")]), tools=[slow], memory=memory)
    async with agent.stream("q", memory=THREAD, release=release) as stream:
        await started.wait()
        await stream.cancel()
        result = await stream.result()
    assert (result.text, result.released_text, result.steps, result.messages) == ("", "working ", [], [])
    assert await _stored(memory) == [("user", "q"), ("assistant", "working ")]
    assert await _parts(memory) == ["text", "text"], "an open call is never saved"


@in_both_modes
async def test_a_withdrawn_attempt_is_not_what_had_left(mode: str) -> None:
    """Text of a rejected attempt is never saved, though it was released before a later failure (R7.3, R8.2)."""

    def judge(output: Any, ctx: Any) -> None:
        if output.text == "bad":
            ctx.abort("no", retry=True)

    memory = Memory()
    model = ScriptedModel([text("bad")], [TextStart(id="t"), TextDelta(id="t", text="half"), error(500, "x")])
    agent = make_agent(model, Hooks("j", process_output_step=judge), memory=memory, max_processor_retries=1)
    await play(agent, "q", mode=mode, memory=THREAD, release="live")
    assert await _stored(memory) == [("user", "q"), ("assistant", "half")]


@in_both_modes
async def test_after_a_granted_error_retry_the_failed_half_is_not_saved(mode: str) -> None:
    """The half of a failed attempt that was withdrawn is in no storage, the answer is (R4.5, R8.1)."""
    from interlock import Retry

    memory = Memory()
    model = ScriptedModel([TextDelta(id="t", text="half"), error(500, "x")], [text("whole")])
    handler = Hooks("h", process_api_error=lambda problem, ctx: Retry())
    await play(make_agent(model, handler, memory=memory), "q", mode=mode, memory=THREAD)
    assert await _stored(memory) == [("user", "q"), ("assistant", "whole")]
    assert await _marked(memory) == [False, False]
