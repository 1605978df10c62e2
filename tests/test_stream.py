"""A run as a stream: one reader, a small buffer, and nothing left behind, whoever leaves when (R10.4, R5.4, R5.5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from interlock import Agent, ModelError, Processor, RunStream, UsageError, tool
from interlock.chunks import Chunk, Finish, TextDelta, TextEnd, TextStart, ToolCall
from interlock.testing import ScriptedModel, text, tool_call

AHEAD = 64
"""How many chunks the provider may be ahead of the reader: one small buffer, and what is in hand."""


class CountingModel:
    """A model that counts what it gave and whether its generator was closed.

    Args:
        deltas: how many pieces of text it has.
        hangs_after: waits for ever after so many.
        error: raised after the deltas.
        calls: tool calls after the deltas, in the first call only.
    """

    provider = "test"
    model_id = "counting"

    def __init__(
        self,
        deltas: int = 3,
        *,
        hangs_after: int | None = None,
        error: Exception | None = None,
        calls: tuple[ToolCall, ...] = (),
    ) -> None:
        self.deltas = deltas
        self.hangs_after = hangs_after
        self.error = error
        self.tool_calls = calls
        self.given = 0
        self.opened = 0
        self.closed = 0
        self.hanging = asyncio.Event()

    async def stream(self, request: Any) -> AsyncGenerator[Chunk, None]:
        self.opened += 1
        try:
            yield TextStart(id="t")
            for number in range(self.deltas):
                if number == self.hangs_after:
                    self.hanging.set()
                    await asyncio.Event().wait()
                self.given += 1
                yield TextDelta(id="t", text=f"{number} ")
            yield TextEnd(id="t")
            if self.error is not None:
                raise self.error
            for call in self.tool_calls if self.opened == 1 else ():
                yield call.replace()
            yield Finish(finish_reason="stop")
        finally:
            self.closed += 1


class Hooks(Processor):
    """A processor made of functions."""

    id = "hooks"

    def __init__(self, **hooks: Callable[..., Any]) -> None:
        for name, function in hooks.items():
            setattr(self, name, function)


def stream_of(model: Any, **options: Any) -> RunStream:
    """A new agent's stream."""
    return Agent(id="a", model=model, **options).stream("hi")


def other_tasks() -> set[str]:
    """The names of tasks beside the test's own and the test runner's."""
    left: set[str] = set()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        code = getattr(task.get_coro(), "cr_code", None)
        if code is None or "anyio" not in code.co_filename:
            left.add(task.get_name())
    return left


@pytest.fixture(autouse=True)
async def no_task_is_left(anyio_backend: str) -> AsyncGenerator[None, None]:
    """R5.5: whatever a test does, no task is left over; asked before the event loop has a chance to tidy up."""
    yield
    assert other_tasks() == set()


# ------------------------------------------------------------------------------------------------------------- reading


@pytest.mark.anyio
async def test_chunks_then_result() -> None:
    """R10.4: the chunks come in order, and the result after them is that of the run."""
    model = ScriptedModel([text("a", "b")])
    async with stream_of(model) as stream:
        types = [chunk.type async for chunk in stream]
        result = await stream.result()
    assert types == [
        "start",
        "step-start",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "step-finish",
        "finish",
    ]
    assert result.text == "ab"


@pytest.mark.anyio
async def test_nothing_runs_before_the_stream_is_entered_or_read() -> None:
    """R10.4: a run starts when the stream is entered or first read, not when it is made."""
    model = ScriptedModel([text("a")], repeat_last=True)
    stream = stream_of(model)
    await asyncio.sleep(0)
    assert model.calls == []
    assert other_tasks() == set()
    async with stream:
        await stream.result()
    assert len(model.calls) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["chunks", "text", "result"])
async def test_a_stream_works_without_async_with(way: str) -> None:
    """R10.4: it starts when first read."""
    stream = stream_of(ScriptedModel([text("a", "b")]))
    if way == "chunks":
        assert [chunk.text async for chunk in stream if isinstance(chunk, TextDelta)] == ["a", "b"]
    elif way == "text":
        assert [piece async for piece in stream.text_stream] == ["a", "b"]
    assert (await stream.result()).text == "ab"


@pytest.mark.anyio
async def test_text_stream_gives_text_and_nothing_else() -> None:
    """R10.6: the pieces of text as they arrive, over all steps."""

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    model = ScriptedModel([text("a", "", "b"), tool_call("look")], [text("c")])
    async with stream_of(model, tools=[look]) as stream:
        assert [piece async for piece in stream.text_stream] == ["a", "b", "c"]


@pytest.mark.anyio
async def test_result_first_drains_what_was_not_read() -> None:
    """R10.4: result() drains the rest, also of a run longer than any buffer; reading after it ends at once."""
    model = CountingModel(deltas=500)
    async with stream_of(model) as stream:
        result = await stream.result()
        rest = [chunk async for chunk in stream]
    assert result.text == "".join(f"{number} " for number in range(500))
    assert rest == []
    assert model.closed == 1


@pytest.mark.anyio
async def test_half_read_then_result() -> None:
    """R10.4: result() after a few chunks drains what is left; it may be asked again and gives the same."""
    model = CountingModel(deltas=300)
    async with stream_of(model) as stream:
        async for chunk in stream:
            if isinstance(chunk, TextDelta):
                break
        first = await stream.result()
        second = await stream.result()
    assert first is second
    assert first.text.startswith("0 1 2 ")
    assert first.text.endswith("299 ")


@pytest.mark.anyio
async def test_a_second_loop_goes_on_where_the_first_stopped() -> None:
    """R10.4: no chunk is lost or told twice between two loops."""
    model = ScriptedModel([text(*"abcdef")])
    async with stream_of(model) as stream:
        pieces: list[str] = []
        async for chunk in stream:
            if isinstance(chunk, TextDelta):
                pieces.append(chunk.text)
                if len(pieces) == 2:
                    break
        pieces += [piece async for piece in stream.text_stream]
    assert pieces == list("abcdef")


@pytest.mark.anyio
async def test_reading_to_the_end_twice_gives_nothing_the_second_time() -> None:
    """R10.4: a stream can be read once; after its end it stays ended."""
    async with stream_of(ScriptedModel([text("a")])) as stream:
        assert [chunk async for chunk in stream]
        assert [chunk async for chunk in stream] == []
        assert [piece async for piece in stream.text_stream] == []


@pytest.mark.anyio
async def test_two_tasks_cannot_read_one_stream() -> None:
    """R10.4: a second reader is told so at once, and the first one loses nothing."""
    model = CountingModel(deltas=3, hangs_after=2)
    async with stream_of(model) as stream:
        got: list[str] = []

        async def read() -> None:
            async for piece in stream.text_stream:
                got.append(piece)

        reader = asyncio.create_task(read())
        await model.hanging.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        assert got == ["0 ", "1 "]
        with pytest.raises(UsageError, match="one reader"):
            await anext(stream)
        await stream.cancel()
        await reader
    assert got == ["0 ", "1 "]


@pytest.mark.anyio
async def test_result_while_another_task_reads() -> None:
    """R10.4: result() in one task and reading in another: both end, and the result is whole."""
    model = CountingModel(deltas=100)
    async with stream_of(model) as stream:

        async def read() -> list[str]:
            return [piece async for piece in stream.text_stream]

        reader = asyncio.create_task(read())
        await asyncio.sleep(0)
        result = await stream.result()
        pieces = await reader
    assert result.text.count(" ") == 100
    assert "".join(pieces) in result.text


@pytest.mark.anyio
async def test_several_tasks_may_wait_for_the_result() -> None:
    """R10.4: everyone who awaits result() gets the same one."""
    async with stream_of(CountingModel(deltas=50)) as stream:
        first, second = await asyncio.gather(stream.result(), stream.result())
    assert first is second


# -------------------------------------------------------------------------------------------------------- slow readers


@pytest.mark.anyio
async def test_a_slow_reader_slows_the_provider_down() -> None:
    """R10.4: between run and reader stands one small buffer: the model is never far ahead of who reads."""
    model = CountingModel(deltas=400)
    taken = 0
    furthest = 0
    async with stream_of(model) as stream:
        async for chunk in stream:
            for _ in range(3):  # the run has every chance to run ahead
                await asyncio.sleep(0)
            taken += isinstance(chunk, TextDelta)
            furthest = max(furthest, model.given - taken)
    assert taken == 400
    assert 0 < furthest <= AHEAD


@pytest.mark.anyio
async def test_a_reader_that_never_comes_stops_the_provider() -> None:
    """R10.4: nothing piles up while nobody reads."""
    model = CountingModel(deltas=1000)
    async with stream_of(model):
        for _ in range(200):
            await asyncio.sleep(0)
        assert 0 < model.given <= AHEAD
    assert model.closed == 1


@pytest.mark.anyio
async def test_many_chunks_from_one_hook_wait_for_the_reader() -> None:
    """R10.4, R4.6: a hook that makes many chunks of one fills no unbounded buffer either."""
    passed = 0

    def burst(chunk: Chunk, ctx: Any) -> Any:
        return [TextDelta(text=str(n)) for n in range(500)] if isinstance(chunk, TextDelta) else chunk

    class Count(Processor):
        id = "count"

        def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
            nonlocal passed
            passed += 1
            return chunk

    model = CountingModel(deltas=1)
    async with stream_of(model, output_processors=[Hooks(process_output_stream=burst), Count()]) as stream:
        for _ in range(200):
            await asyncio.sleep(0)
        assert passed <= AHEAD
        assert len([piece async for piece in stream.text_stream]) == 500


# ------------------------------------------------------------------------------------------------------------ leaving


@pytest.mark.anyio
@pytest.mark.parametrize("after", ["nothing", "start", "step-start", "text-start", "text-delta"])
async def test_leaving_early_closes_the_provider(after: str) -> None:
    """R5.5: leaving the ``async with`` at any point closes the model's generator and leaves no task."""
    model = CountingModel(deltas=1000)
    async with stream_of(model) as stream:
        async for chunk in stream if after != "nothing" else _nothing():
            if chunk.type == after:
                break
    assert model.closed == model.opened
    assert other_tasks() == set()


async def _nothing() -> AsyncGenerator[Chunk, None]:
    for chunk in list[Chunk]():
        yield chunk


@pytest.mark.anyio
async def test_the_result_after_leaving_early() -> None:
    """R5.5: who leaves early cancels the run; the result says aborted and holds accepted steps only."""
    model = CountingModel(deltas=1000)
    async with stream_of(model) as stream:
        async for chunk in stream:
            if isinstance(chunk, TextDelta):
                break
    result = await stream.result()
    assert (result.finish_reason, result.text, result.steps, result.tripwire) == ("aborted", "", [], None)


@pytest.mark.anyio
async def test_an_exception_in_the_readers_body_is_the_readers() -> None:
    """R5.5: the body's own exception comes out of the ``async with``, and the run is over by then."""
    model = CountingModel(deltas=1000)

    async def read() -> None:
        async with stream_of(model) as stream:
            async for _ in stream:
                raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await read()
    assert model.closed == model.opened == 1
    assert other_tasks() == set()


@pytest.mark.anyio
async def test_leaving_runs_on_run_end_once_and_no_other_hook() -> None:
    """R1.5, R5.5: on a cancellation on_run_end is called exactly once, with kind cancelled, and no other hook."""
    called: list[str] = []

    def note(name: str) -> Callable[..., None]:
        return lambda *_: called.append(name)

    hooks = Hooks(
        process_output_step=note("process_output_step"),
        process_output_result=note("process_output_result"),
        process_llm_response=note("process_llm_response"),
        on_run_end=lambda outcome, ctx: called.append(outcome.kind),
    )
    model = CountingModel(deltas=5, hangs_after=2)
    agent = Agent(id="a", model=model, input_processors=[hooks], output_processors=[hooks])
    async with agent.stream("hi"):
        await model.hanging.wait()
    assert called == ["cancelled"]


# ------------------------------------------------------------------------------------------------------------- cancel


@pytest.mark.anyio
async def test_cancel_before_anything_began() -> None:
    """R5.5: a stream cancelled before it was read calls no model; its only last chunk is abort."""
    model = ScriptedModel([text("a")])
    stream = stream_of(model)
    await stream.cancel()
    chunks = [chunk async for chunk in stream]
    result = await stream.result()
    assert [chunk.type for chunk in chunks] == ["abort"]
    assert (result.finish_reason, result.text) == ("aborted", "")
    assert model.calls == []


def _wait_in(name: str) -> tuple[asyncio.Event, Callable[..., Any]]:
    reached = asyncio.Event()

    async def hook(subject: Any, ctx: Any) -> Any:
        if name != "process_output_stream" or isinstance(subject, TextDelta):
            reached.set()
            await asyncio.Event().wait()
        return subject

    return reached, hook


HOOKS = [
    "process_input",
    "process_input_step",
    "process_llm_request",
    "process_output_stream",
    "process_llm_response",
    "process_output_step",
    "process_tool_result",
    "process_output_result",
]


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["live", "run"])
@pytest.mark.parametrize("hook", HOOKS)
async def test_cancel_inside_a_hook(hook: str, release: Any) -> None:
    """R5.5: a cancellation while any hook runs: one abort chunk, last; no tripwire; the provider is closed."""

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    reached, function = _wait_in(hook)
    hooks = Hooks(**{hook: function})
    call = ToolCall(tool_call_id="c", tool_name="look", args={})
    model = CountingModel(calls=(call,) if hook == "process_tool_result" else ())
    inputs = ("process_input", "process_input_step", "process_llm_request", "process_llm_response")
    lane = "input_processors" if hook in inputs else "output_processors"
    agent = Agent(id="a", model=model, tools=[look], **{lane: [hooks]})  # type: ignore[arg-type]
    async with agent.stream("hi", release=release) as stream:
        await reached.wait()
        await stream.cancel()
        types = [chunk.type async for chunk in stream]
        result = await stream.result()
    assert types[-1:] == ["abort"]
    assert types.count("abort") == 1
    assert not {"tripwire", "error", "finish"} & set(types)
    assert result.finish_reason == "aborted"
    assert result.tripwire is None
    assert model.closed == model.opened
    if release == "run":
        assert "text-delta" not in types
    if hook != "process_output_result":  # no step had been accepted yet
        assert (result.text, result.steps) == ("", [])


@pytest.mark.anyio
async def test_cancel_while_a_tool_runs() -> None:
    """R5.5: running tools are closed at once; the step under way has no entry in the result."""
    started, closed = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            closed.set()
        return "never"

    model = ScriptedModel([text("a"), tool_call("wait")])
    async with stream_of(model, tools=[wait]) as stream:
        await started.wait()
        await stream.cancel()
        assert closed.is_set()
        types = [chunk.type async for chunk in stream]
        result = await stream.result()
    assert types[-1] == "abort"
    assert "tool-result" not in types
    assert "tool-error" not in types
    assert (result.text, result.steps, result.finish_reason) == ("", [], "aborted")


@pytest.mark.anyio
async def test_cancel_keeps_accepted_steps() -> None:
    """R5.5: the result of a cancelled run holds the accepted steps, and only these."""

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    hanging = asyncio.Event()

    class SecondHangs(ScriptedModel):
        async def stream(self, request: Any) -> AsyncGenerator[Chunk, None]:
            if self.calls:
                yield TextStart(id="t")
                yield TextDelta(id="t", text="partial")
                hanging.set()
                await asyncio.Event().wait()
            async for chunk in super().stream(request):
                yield chunk

    model = SecondHangs([text("first"), tool_call("look")])
    async with stream_of(model, tools=[look]) as stream:
        await hanging.wait()
        await stream.cancel()
        result = await stream.result()
    assert result.text == "first"
    assert [step.text for step in result.steps] == ["first"]
    assert [call.tool_name for call in result.tool_calls] == ["look"]
    assert result.released_text == "firstpartial"
    assert result.usage.total_tokens == 15


@pytest.mark.anyio
async def test_cancel_with_a_full_buffer() -> None:
    """R5.5: a run that waits for its reader is cancelled too; what was on its way can be read, abort comes last."""
    model = CountingModel(deltas=1000)
    async with stream_of(model) as stream:
        for _ in range(100):
            await asyncio.sleep(0)
        await stream.cancel()
        types = [chunk.type async for chunk in stream]
    assert types[-1] == "abort"
    assert types.count("text-delta") <= AHEAD
    assert model.closed == 1


@pytest.mark.anyio
async def test_cancel_after_the_end_changes_nothing() -> None:
    """R5.5: a finished run stays finished; cancel may be called again and again."""
    async with stream_of(ScriptedModel([text("a")])) as stream:
        types = [chunk.type async for chunk in stream]
        await stream.cancel()
        await stream.cancel()
        result = await stream.result()
    assert types[-1] == "finish"
    assert (result.text, result.finish_reason) == ("a", "stop")


@pytest.mark.anyio
async def test_cancelling_who_awaits_the_result_cancels_the_run() -> None:
    """R5.5: the task cancelled: the waiter sees its CancelledError, and the run is closed."""
    model = CountingModel(deltas=5, hangs_after=2)
    stream = stream_of(model)
    waiter = asyncio.create_task(stream.result())
    await model.hanging.wait()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert model.closed == 1
    assert other_tasks() == set()


@pytest.mark.anyio
async def test_cancelling_the_reading_task_closes_the_run() -> None:
    """R5.5: a reader cancelled inside its ``async with`` takes the run with it."""
    model = CountingModel(deltas=5, hangs_after=2)

    async def read() -> None:
        async with stream_of(model) as stream:
            async for _ in stream:
                pass

    reader = asyncio.create_task(read())
    await model.hanging.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert model.closed == 1
    assert other_tasks() == set()


@pytest.mark.anyio
async def test_cancelling_generate_closes_the_run() -> None:
    """R5.5, R10.4: ``generate`` is cancelled like any task, and leaves nothing behind."""
    model = CountingModel(deltas=5, hangs_after=2)
    ended: list[str] = []
    hooks = Hooks(
        process_output_step=lambda *_: None, on_run_end=lambda outcome, ctx: ended.append(outcome.kind)
    )
    run = asyncio.create_task(Agent(id="a", model=model, output_processors=[hooks]).generate("hi"))
    await model.hanging.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert model.closed == 1
    assert ended == ["cancelled"]


@pytest.mark.anyio
async def test_a_timeout_around_a_stream_works() -> None:
    """R5.5: ``asyncio.timeout`` raises TimeoutError as it should, and the run is closed."""
    model = CountingModel(deltas=5, hangs_after=2)

    async def read() -> None:
        async with asyncio.timeout(0.02), stream_of(model) as stream:
            async for _ in stream:
                pass

    with pytest.raises(TimeoutError):
        await read()
    assert model.closed == 1
    assert other_tasks() == set()


# ------------------------------------------------------------------------------------------------------------- errors


def _hook_error() -> dict[str, Any]:
    def fail(output: Any, ctx: Any) -> None:
        raise RuntimeError("broken")

    return {"model": CountingModel(), "output_processors": [Hooks(process_output_step=fail)]}


def _model_error() -> dict[str, Any]:
    return {"model": CountingModel(error=ModelError("no", status=400))}


@pytest.mark.anyio
@pytest.mark.parametrize(("make", "kind"), [(_hook_error, RuntimeError), (_model_error, ModelError)])
async def test_an_error_is_the_same_wherever_it_is_met(
    make: Callable[[], Any], kind: type[Exception]
) -> None:
    """R5.4: error is the last chunk; iterating, text_stream and result() all raise the very same exception, as often
    as they are asked; leaving the ``async with`` does not raise.
    """
    types: list[str] = []
    async with Agent(id="a", **make()).stream("hi", release="live") as stream:

        async def read() -> None:
            async for chunk in stream:
                types.append(chunk.type)

        with pytest.raises(kind) as first:
            await read()
        with pytest.raises(kind) as again:
            await anext(stream)
        with pytest.raises(kind) as in_text:
            async for _ in stream.text_stream:
                pass
        with pytest.raises(kind) as in_result:
            await stream.result()
    assert types[-1] == "error"
    assert types.count("error") == 1
    assert first.value is again.value is in_text.value is in_result.value
    if kind is RuntimeError:
        assert any("hooks" in note and "process_output_step" in note for note in first.value.__notes__)
        assert len(first.value.__notes__) == 1, "one note, however often it is raised"


@pytest.mark.anyio
@pytest.mark.parametrize("read", [False, True])
async def test_leaving_after_an_error_nobody_asked_for_is_silent(read: bool) -> None:
    """R5.4: leaving the ``async with`` does not raise the run's error."""
    async with Agent(id="a", **_model_error()).stream("hi") as stream:
        if read:
            async for chunk in stream:
                if chunk.type == "error":
                    break
        else:
            for _ in range(50):
                await asyncio.sleep(0)


@pytest.mark.anyio
async def test_generate_raises_what_a_stream_raises() -> None:
    """R5.4, R10.4: generate raises the original exception, with a note of processor and hook."""
    options = _hook_error()
    with pytest.raises(RuntimeError, match="broken") as caught:
        await Agent(id="a", **options).generate("hi")
    assert any("hooks" in note and "process_output_step" in note for note in caught.value.__notes__)
    assert options["model"].closed == 1


@pytest.mark.anyio
async def test_a_tripwire_does_not_raise() -> None:
    """R5.2: after a tripwire iteration ends with its chunk, text_stream just ends, and result() returns."""

    def block(chunk: Chunk, ctx: Any) -> Chunk:
        if isinstance(chunk, TextDelta) and chunk.text == "1 ":
            ctx.abort("no")
        return chunk

    model = CountingModel(deltas=500)
    async with stream_of(model, output_processors=[Hooks(process_output_stream=block)]) as stream:
        assert [piece async for piece in stream.text_stream] == ["0 "]
        result = await stream.result()
    assert result.tripwire is not None
    assert (result.finish_reason, result.text, result.released_text) == ("other", "", "0 ")
    assert model.closed == 1
    assert model.given == 2


@pytest.mark.anyio
async def test_a_stream_can_be_left_and_another_opened_at_once() -> None:
    """R6: two streams of one agent at the same time do not disturb each other."""
    agent = Agent(id="a", model=ScriptedModel([text("a", "b")], repeat_last=True))
    async with agent.stream("1") as one, agent.stream("2") as two:
        first = await anext(one)
        assert [piece async for piece in two.text_stream] == ["a", "b"]
        assert first.type == "start"
        assert [piece async for piece in one.text_stream] == ["a", "b"]
