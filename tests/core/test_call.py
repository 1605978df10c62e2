"""One call of the model: its request, its stream, its failures, its closing (R1.2c, R4.5, R5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from harness_runs import Hooks, Recorder, WatchedModel, check_last, echo_tool, in_both_modes, make_agent, play
from interlock import ModelError, ModelRequest, Retry, UsageError, tool
from interlock.chunks import (
    Abort,
    Chunk,
    ErrorChunk,
    Finish,
    ResponseMetadata,
    Start,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolResult,
    TripWireChunk,
    Usage,
)
from interlock.testing import ScriptedModel, error, text, tool_call

pytestmark = pytest.mark.anyio

BLOCK = (TextStart(id="t"), TextDelta(id="t", text="a"), TextDelta(id="t", text="b"), TextEnd(id="t"))


# ----------------------------------------------------------------------------------------------------------- failures


@in_both_modes
async def test_a_rejected_call(mode: str) -> None:
    """step-start goes out also for a failed call; no response hook follows; error is last (R1.4, R1.2e, R5.4)."""
    recorder = Recorder()
    original = error(401, "bad key")
    seen = await play(make_agent(ScriptedModel([original]), recorder), mode=mode, release="live")
    assert seen.error is original
    assert recorder.hooks == [
        "process_input",
        "process_input_step",
        "process_llm_request",
        "process_output_stream",
        "process_api_error",
    ]
    if mode == "stream":
        assert seen.types == ["start", "step-start", "error"]
        assert seen.chunks[-1].error is original  # type: ignore[attr-defined]


@in_both_modes
@pytest.mark.parametrize(
    "given", [error(500, "cut"), "cut", {"message": "cut"}, RuntimeError("cut")], ids=str
)
async def test_an_error_chunk_in_the_stream_is_a_failed_call(given: Any, mode: str) -> None:
    """An error chunk is shown to no processor; it surfaces as ModelError after what had left (R4.5, R4.6, R5.4)."""
    recorder = Recorder()
    model = ScriptedModel([*BLOCK[:2], ErrorChunk(given), *BLOCK[2:]])
    seen = await play(make_agent(model, recorder), mode=mode, release="live")
    assert isinstance(seen.error, ModelError)
    assert "cut" in str(seen.error)
    assert ("process_output_stream", "error") not in recorder.log
    assert recorder.stages[-1] == "process_api_error"
    if mode == "stream":
        assert seen.shown == "a"
        assert "text-end" not in seen.types, "error ends an open block (R4.6)"
    check_last(seen, "error")


@in_both_modes
@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("problem", [OSError("no network"), ValueError("unreadable"), KeyError("choices")])
async def test_what_else_a_model_raises_is_a_model_error(problem: Exception, after: int, mode: str) -> None:
    """Anything a model raises is a provider's failure: ModelError, with what it raised as its cause (R5.4)."""

    class Raises:
        provider = model_id = "raises"

        async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
            for chunk in BLOCK[:after]:
                yield chunk.replace()
            raise problem

    asked: list[Exception] = []
    handler = Hooks("h", process_api_error=lambda given, ctx: asked.append(given))
    seen = await play(make_agent(Raises(), handler), mode=mode)
    assert isinstance(seen.error, ModelError)
    assert seen.error.__cause__ is problem
    assert asked == [seen.error]
    check_last(seen, "error")


@in_both_modes
async def test_a_models_own_hook_is_not_blamed(mode: str) -> None:
    """A provider's failure carries no note of a processor (R5.4)."""
    seen = await play(make_agent(ScriptedModel([error(500, "x")]), Recorder()), mode=mode)
    assert not getattr(seen.error, "__notes__", [])


@in_both_modes
async def test_a_stream_without_a_finish(mode: str) -> None:
    """A stream that just ends is a response: reason unknown, usage zero, still numbers (R5.3, R4.6)."""

    class NoFinish:
        provider = model_id = "no-finish"

        async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
            for chunk in BLOCK[:2]:
                yield chunk.replace()

    recorder = Recorder(hooks=["process_output_stream"])
    seen = await play(make_agent(NoFinish(), recorder), mode=mode)
    result = seen.result
    assert (result.text, result.finish_reason, result.usage) == ("a", "unknown", Usage())
    shown = [detail for _, detail in recorder.log]
    assert shown == ["step-start", "text-start", "text-delta", "text-end", "finish", "step-finish"]


@in_both_modes
async def test_usage_is_added_up_over_calls(mode: str) -> None:
    """Usage counts every call made, rejected attempts included, and fills in the total (R5.3)."""

    def finish(reason: str, **usage: int) -> Finish:
        return Finish(finish_reason=reason, usage=Usage(**usage))

    def judge(output: Any, ctx: Any) -> None:
        if output.text == "bad":
            ctx.abort(retry=True)

    model = ScriptedModel(
        [text("bad"), finish("stop", input_tokens=1, output_tokens=2)],
        [
            tool_call("echo", {"value": 1}),
            finish("tool-calls", input_tokens=10, output_tokens=20, reasoning_tokens=5),
        ],
        [text("ok"), Finish(finish_reason="stop")],
    )
    agent = make_agent(
        model, Hooks("j", process_output_step=judge), tools=[echo_tool()], max_processor_retries=1
    )
    result = (await play(agent, mode=mode)).result
    assert (result.usage.input_tokens, result.usage.output_tokens, result.usage.total_tokens) == (11, 22, 33)
    assert result.usage.reasoning_tokens == 5
    assert [step.usage.total_tokens for step in result.steps] == [3, 30, 0]


# ------------------------------------------------------------------------------------------------------- what it sends


@in_both_modes
async def test_the_request_is_made_of_the_steps_things(mode: str) -> None:
    """Tools in their order, tool_choice, settings and options go to the model (R4.2, R10.5)."""

    @tool
    def second(query: str) -> str:
        """Look something up."""
        return query

    model = ScriptedModel([text("{}")], repeat_last=True, native_structured_output=True)
    agent = make_agent(model, tools=[echo_tool(), second], model_settings={"temperature": 1})
    await play(
        agent,
        mode=mode,
        tool_choice="required",
        active_tools=["second", "echo"],
        model_settings={"top_p": 0.5},
        provider_options={"p": {"x": 1}},
        structured_output={"type": "object"},
    )
    request = model.calls[0].request
    assert [(spec.name, spec.description) for spec in request.tools] == [
        ("echo", "Give the value back."),
        ("second", "Look something up."),
    ]
    assert request.tools[1].parameters["required"] == ["query"]
    assert request.tool_choice == "required"
    assert request.settings == {"temperature": 1, "top_p": 0.5}
    assert request.provider_options == {"p": {"x": 1}}
    assert request.structured_output == {"type": "object"}


@in_both_modes
async def test_a_call_beyond_the_script_is_an_error(mode: str) -> None:
    """A scripted model that is asked too often fails the run, and says how often it was asked (R10.6)."""
    model = ScriptedModel([tool_call("echo", {"value": 1})])
    seen = await play(make_agent(model, tools=[echo_tool()]), mode=mode)
    assert isinstance(seen.error, ModelError | UsageError)
    assert "script" in str(seen.error)


# ---------------------------------------------------------------------------------------------------------- its stream


@in_both_modes
@pytest.mark.parametrize(
    "chunk",
    [
        Start(),
        StepFinish(finish_reason="stop", usage=Usage()),
        TripWireChunk(reason="x", processor_id="x"),
        Abort(),
        StepStart(),
    ],
    ids=lambda chunk: chunk.type,
)
async def test_a_model_cannot_send_what_is_not_its_own(chunk: Chunk, mode: str) -> None:
    """A model that yields a chunk of the run's frame changes nothing: the frame is the runtime's (R1.4, R5.2)."""
    plain = await play(make_agent(ScriptedModel([*BLOCK])), mode=mode)
    seen = await play(make_agent(ScriptedModel([*BLOCK[:2], chunk, *BLOCK[2:]])), mode=mode)
    assert seen.types == plain.types
    assert seen.result.text == "ab"
    assert seen.result.tripwire is None


@in_both_modes
async def test_the_response_is_kept_with_its_step(mode: str) -> None:
    """response-metadata is shown to nobody and kept in the step record (R4, R4.6)."""
    recorder = Recorder(hooks=["process_output_stream"])
    model = ScriptedModel([ResponseMetadata(id="r1", model_id="m1"), *BLOCK])
    seen = await play(make_agent(model, recorder), mode=mode)
    assert "response-metadata" not in seen.types + [detail for _, detail in recorder.log]
    response = seen.result.steps[0].response
    assert (response["id"], response["model_id"]) == ("r1", "m1")


@in_both_modes
async def test_a_call_without_an_id_gets_one(mode: str) -> None:
    """A call that the model gave no id can still be answered (R3.8)."""
    model = ScriptedModel([ToolCall(tool_call_id="", tool_name="echo", args={"value": 1})], [text("ok")])
    seen = await play(make_agent(model, tools=[echo_tool()]), mode=mode)
    assert seen.result.tool_calls[0].tool_call_id
    assert seen.result.tool_results[0].tool_call_id == seen.result.tool_calls[0].tool_call_id


# --------------------------------------------------------------------------------------------- provider-executed tools


def _searched(result: Any = "found", call_id: str = "c") -> list[Chunk]:
    return [
        ToolCall(tool_call_id="c", tool_name="search", args={"q": 1}, provider_executed=True),
        ToolResult(tool_call_id=call_id, tool_name="search", result=result, provider_executed=True),
    ]


@in_both_modes
async def test_a_provider_executed_result_waits_for_its_hook(mode: str) -> None:
    """process_tool_result comes before the result's chunk, the call among the messages; nothing runs (R4.8)."""
    order: list[str] = []
    states: list[str] = []

    def hear(result: Any, ctx: Any) -> None:
        order.append("hook")
        states.extend(part.state for part in ctx.messages[-1].content.parts if part.type == "tool-invocation")
        assert result.provider_executed is True
        assert result.args == {"q": 1}

    def look(chunk: Any, ctx: Any) -> Any:
        if chunk.type == "tool-result":
            order.append("chunk")
        return chunk

    model = ScriptedModel([*_searched(), text("done")])
    agent = make_agent(
        model, Hooks("p", process_tool_result=hear, process_output_stream=look), tools=[echo_tool()]
    )
    seen = await play(agent, mode=mode)
    assert order == ["hook", "chunk"]
    assert states == ["call"]
    assert len(model.calls) == 1, "a provider's own tool leads to no further step (R1.2h)"
    assert seen.result.text == "done"
    assert [result.result for result in seen.result.tool_results] == ["found"]


@in_both_modes
async def test_a_provider_executed_result_comes_raw(mode: str) -> None:
    """Provider-executed results are not made JSON first (R4.8)."""
    heard: list[Any] = []
    raw = {"many": (1, 2)}
    agent = make_agent(
        ScriptedModel([*_searched(raw), text("ok")]),
        Hooks("p", process_tool_result=lambda result, ctx: heard.append(result.result)),
    )
    await play(agent, mode=mode)
    assert heard == [raw]


@in_both_modes
async def test_the_result_of_a_dropped_call_is_dropped(mode: str) -> None:
    """With a provider-executed call its result goes too: there is nothing it could answer (R4.6)."""
    heard: list[Any] = []

    def drop(chunk: Any, ctx: Any) -> Any:
        return None if isinstance(chunk, ToolCall) else chunk

    agent = make_agent(
        ScriptedModel([*_searched("secret"), text("ok")]),
        Hooks("d", process_output_stream=drop, process_tool_result=lambda result, ctx: heard.append(1)),
    )
    seen = await play(agent, mode=mode)
    assert heard == []
    assert "secret" not in repr(seen.result) + repr(seen.chunks)


@in_both_modes
async def test_an_abort_on_a_provider_executed_result_sends_nothing_of_it(mode: str) -> None:
    """A tripwire in process_tool_result stops the stream before the result's chunk (R5.1, R4.8)."""
    model = WatchedModel(*_searched("secret"), *BLOCK, Finish(finish_reason="stop"))
    stop = Hooks("s", process_tool_result=lambda result, ctx: ctx.abort("no"))
    seen = await play(make_agent(model, stop), mode=mode)
    assert seen.result.tripwire is not None
    assert "secret" not in repr(seen.result) + repr(seen.chunks)
    assert len(model.closed) == 1
    assert model.closed != ["end"]


# ------------------------------------------------------------------------------------------------------------- closing


def _on_delta(then: Any) -> Hooks:
    def hook(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, TextDelta):
            then(ctx)
        return chunk

    return Hooks("p", process_output_stream=hook)


def _swallowed(ctx: Any) -> None:
    try:
        ctx.abort("no")
    except BaseException:
        return


def _fails(ctx: Any) -> None:
    raise ValueError("boom")


@in_both_modes
@pytest.mark.parametrize(
    "then", [lambda ctx: ctx.abort("no"), _swallowed, _fails], ids=["abort", "swallowed", "error"]
)
async def test_the_providers_stream_is_closed_at_once(then: Any, mode: str) -> None:
    """An abort or an exception in a hook closes the model's stream where it is, before the last chunk (R5.1)."""
    model = WatchedModel(*BLOCK, hangs=True)
    closed: list[int] = []

    class Ends(Hooks):
        def on_run_end(self, outcome: Any, ctx: Any) -> None:
            closed.append(len(model.closed))

    watch = Ends("w", process_input=lambda messages, ctx: None)
    await play(make_agent(model, _on_delta(then), watch), mode=mode)
    assert model.closed == ["GeneratorExit"]
    assert closed == [1]


@in_both_modes
async def test_a_retry_closes_the_stream_before_the_next_call(mode: str) -> None:
    """The withdrawn attempt's stream is closed before the model is called again (R7.3, R5.1)."""
    model = WatchedModel(*BLOCK, hangs=True)
    order: list[Any] = []

    def then(ctx: Any) -> None:
        order.append((model.opened, len(model.closed)))
        ctx.abort("no", retry=True)

    seen = await play(make_agent(model, _on_delta(then), max_processor_retries=2), mode=mode)
    assert order == [(1, 0), (2, 1), (3, 2)]
    assert len(model.closed) == 3
    assert seen.result.tripwire is not None


async def test_cancelling_closes_a_stream_that_waits() -> None:
    """A cancellation reaches the model that waits for its provider (R5.5)."""
    model = WatchedModel(*BLOCK, hangs=True)
    task = asyncio.create_task(make_agent(model).generate("q"))
    await model.waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.closed == ["CancelledError"]


async def test_a_slow_reader_slows_the_provider_down() -> None:
    """What is not read is not asked of the provider: at most a small buffer is ahead of the reader (design)."""
    produced: list[int] = []

    class Endless:
        provider = model_id = "endless"

        async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
            yield TextStart(id="t")
            for n in range(100_000):
                produced.append(n)
                yield TextDelta(id="t", text=".")

    async with make_agent(Endless()).stream("q") as stream:
        for _ in range(3):
            await anext(stream)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(produced) < 100


async def test_the_abort_of_a_hook_that_waits_is_not_lost() -> None:
    """An abort called from a task the hook left behind stops the run at the next look (R5.1)."""
    released = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def late(ctx: Any) -> None:
        await released.wait()
        ctx.abort("late")

    def start(messages: Any, ctx: Any) -> None:
        tasks.append(asyncio.create_task(late(ctx)))

    class Waits:
        provider = model_id = "waits"

        async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
            yield BLOCK[0].replace()
            released.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            for chunk in BLOCK[1:]:
                yield chunk.replace()

    seen = await play(make_agent(Waits(), Hooks("l", process_input=start)), mode="stream")
    assert seen.result.tripwire is not None
    assert seen.result.tripwire.reason == "late"
    assert "text-delta" not in seen.types
    await asyncio.gather(*tasks, return_exceptions=True)


@in_both_modes
async def test_process_api_error_can_be_async_and_see_the_list(mode: str) -> None:
    """The message list it sees has nothing of the failed attempt, or loses it before the retry (R4.5)."""

    async def handle(problem: Any, ctx: Any) -> Retry:
        await asyncio.sleep(0)
        return Retry()

    model = ScriptedModel(
        [TextDelta(id="t", text="half"), tool_call("echo", {"value": 1}), error(500, "x")], [text("ok")]
    )
    ran: list[Any] = []
    seen = await play(
        make_agent(model, Hooks("h", process_api_error=handle), tools=[echo_tool(ran)]), mode=mode
    )
    assert ran == []
    assert seen.result.tool_calls == []
    assert [message["role"] for message in model.calls[1].prompt] == ["user"]
