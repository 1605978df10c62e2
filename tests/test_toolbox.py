"""Tools run at the same time, their data never races a hook, and none outlives the run (R1.2g, R4.8, R7.1, R9.1)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from interlock import Agent, Processor, RequestContext, RunResult, Tool, ToolContext, tool
from interlock.chunks import Chunk, DataChunk, ToolCall, ToolError, ToolResult
from interlock.testing import ScriptedModel, text, tool_call


class Hooks(Processor):
    """A processor made of functions."""

    id = "hooks"

    def __init__(self, **hooks: Any) -> None:
        for name, function in hooks.items():
            setattr(self, name, function)


async def play(agent: Agent, **options: Any) -> tuple[list[Chunk], RunResult]:
    """All chunks and the result."""
    async with agent.stream("hi", **options) as stream:
        chunks = [chunk async for chunk in stream]
        return chunks, await stream.result()


def agent_with(*tools: Any, calls: list[Any], **options: Any) -> Agent:
    """An agent whose model makes these calls and then says done."""
    return Agent(id="a", model=ScriptedModel(calls, [text("done")]), tools=list(tools), **options)


def outcomes(chunks: list[Chunk]) -> list[tuple[str, str, Any]]:
    """The tools' chunks: type, call id, result or error."""
    return [
        (c.type, c.tool_call_id, c.result if isinstance(c, ToolResult) else c.error)
        for c in chunks
        if isinstance(c, ToolResult | ToolError)
    ]


def model_of(agent: Agent) -> ScriptedModel:
    """The agent's model."""
    assert isinstance(agent.model, ScriptedModel)
    return agent.model


# ------------------------------------------------------------------------------------------------------- running them


@pytest.mark.anyio
async def test_tools_of_a_step_run_at_the_same_time_and_report_in_call_order() -> None:
    """R1.2g, R4.8: each waits for the other: only together they end. The last to end is told first if called first."""
    ended: list[str] = []
    second_done, first_started = asyncio.Event(), asyncio.Event()

    @tool
    async def first() -> str:
        """First."""
        first_started.set()
        await second_done.wait()
        ended.append("first")
        return "1"

    @tool
    async def second() -> str:
        """Second."""
        await first_started.wait()
        ended.append("second")
        second_done.set()
        return "2"

    seen: list[str] = []
    hooks = Hooks(process_tool_result=lambda result, ctx: seen.append(f"{result.tool_name} after {ended}"))
    agent = agent_with(
        first,
        second,
        calls=[tool_call("first", id="a"), tool_call("second", id="b")],
        output_processors=[hooks],
    )
    chunks, _ = await play(agent)
    assert ended == ["second", "first"]
    assert outcomes(chunks) == [("tool-result", "a", "1"), ("tool-result", "b", "2")]
    all_ended = "['second', 'first']"
    assert seen == [f"first after {all_ended}", f"second after {all_ended}"], (
        "hooks run when all tools have ended"
    )


@pytest.mark.anyio
async def test_plain_functions_run_in_threads_at_the_same_time() -> None:
    """R1.2g: a plain ``def`` does not block the event loop: two that wait for each other both end."""
    barrier = threading.Barrier(2, timeout=5)
    threads: list[int] = []

    @tool
    def meet(who: str) -> str:
        """Meet."""
        threads.append(threading.get_ident())
        barrier.wait()
        return who

    agent = agent_with(
        meet, calls=[tool_call("meet", {"who": "a"}, id="1"), tool_call("meet", {"who": "b"}, id="2")]
    )
    chunks, _ = await play(agent)
    assert outcomes(chunks) == [("tool-result", "1", "a"), ("tool-result", "2", "b")]
    assert threading.get_ident() not in threads


@pytest.mark.anyio
async def test_results_and_errors_stand_in_call_order() -> None:
    """R4.8: tool-result and tool-error chunks go out in call order; one invalid call never stops the others, and
    the model sees each error as that call's result.
    """
    ran: list[int] = []

    @tool
    def square(n: int) -> int:
        """Square."""
        ran.append(n)
        if n < 0:
            raise ValueError("no negative numbers")
        return n * n

    calls = [
        tool_call("square", {"n": "many"}, id="bad"),
        tool_call("square", {"n": 2}, id="good"),
        tool_call("nope", {}, id="unknown"),
        tool_call("square", {"n": -1}, id="raises"),
        ToolCall(tool_call_id="unreadable", tool_name="square", invalid="Expecting value"),
        tool_call("square", {"n": 3}, id="last"),
    ]
    agent = agent_with(square, calls=calls)
    chunks, result = await play(agent)
    told = outcomes(chunks)
    assert [(kind, id) for kind, id, _ in told] == [
        ("tool-error", "bad"),
        ("tool-result", "good"),
        ("tool-error", "unknown"),
        ("tool-error", "raises"),
        ("tool-error", "unreadable"),
        ("tool-result", "last"),
    ]
    assert sorted(ran) == [-1, 2, 3]
    texts = {id: str(value) for _, id, value in told}
    assert texts["good"] == "4"
    assert "n" in texts["bad"]
    assert "nope" in texts["unknown"]
    assert "square" in texts["unknown"], "the model is told what there is"
    assert "no negative numbers" in texts["raises"]
    prompt = model_of(agent).calls[1].prompt
    sent = {p["toolCallId"]: p["output"] for m in prompt if m["role"] == "tool" for p in m["content"]}
    assert list(sent) == [id for _, id, _ in told]
    for id, output in sent.items():
        assert str(output["value"]) == texts[id]
    assert result.text == "done"
    assert {r.tool_call_id for r in result.tool_results} >= {"good", "last"}


@pytest.mark.anyio
@pytest.mark.parametrize("function", ["async", "plain"])
async def test_none_is_a_result(function: str) -> None:
    """R4.8: a tool that returns None has answered: process_tool_result is called and the model is told null."""

    @tool(name="quiet")
    async def quiet_async() -> None:
        """Say nothing."""

    @tool(name="quiet")
    def quiet() -> None:
        """Say nothing."""

    seen: list[Any] = []
    hooks = Hooks(process_tool_result=lambda result, ctx: seen.append(result.result))
    agent = agent_with(
        quiet if function == "plain" else quiet_async,
        calls=[tool_call("quiet", id="c")],
        output_processors=[hooks],
    )
    chunks, result = await play(agent)
    assert outcomes(chunks) == [("tool-result", "c", None)]
    assert seen == [None]
    assert len(result.steps) == 2
    (sent,) = [m for m in model_of(agent).calls[1].prompt if m["role"] == "tool"]
    assert sent["content"][0]["output"] == {"type": "json", "value": None}


@pytest.mark.anyio
async def test_a_result_is_json_before_any_hook_sees_it() -> None:
    """R4.8: own tools' results are made JSON-serialisable first: hook, client, model and result get the same."""
    import datetime
    import json

    @tool
    def fetch() -> Any:
        """Fetch."""
        return {"at": datetime.date(2026, 1, 2), "n": (1, 2), "tags": {"x"}, "bytes": b"abc"}

    seen: list[Any] = []
    hooks = Hooks(process_tool_result=lambda result, ctx: seen.append(result.result))
    agent = agent_with(fetch, calls=[tool_call("fetch", id="c")], output_processors=[hooks])
    chunks, result = await play(agent)
    (value,) = seen
    assert json.loads(json.dumps(value)) == value
    assert (value["at"], value["n"], value["tags"]) == ("2026-01-02", [1, 2], ["x"])
    assert outcomes(chunks) == [("tool-result", "c", value)]
    assert result.tool_results[0].result == value


@pytest.mark.anyio
async def test_arguments_are_checked_when_the_call_runs() -> None:
    """R4.7: what a processor made of the arguments is what is validated and run."""
    got: list[int] = []

    @tool
    def take(n: int) -> int:
        """Take."""
        got.append(n)
        return n

    def mend(chunk: Chunk, ctx: Any) -> Chunk:
        return chunk.replace(args={"n": 7}) if isinstance(chunk, ToolCall) else chunk

    hooks = Hooks(process_output_stream=mend)
    agent = agent_with(take, calls=[tool_call("take", {"n": "x"}, id="c")], output_processors=[hooks])
    chunks, _ = await play(agent)
    assert got == [7]
    assert outcomes(chunks) == [("tool-result", "c", 7)]


@pytest.mark.anyio
async def test_a_base_exception_that_is_no_cancellation_of_ours_is_an_error_of_the_tool() -> None:
    """R4.8: a tool that is cancelled from within, or raises CancelledError, fails; the run neither hangs nor ends."""

    @tool
    async def gives_up() -> str:
        """Give up."""
        raise asyncio.CancelledError("my own")

    @tool
    async def fine() -> str:
        """Fine."""
        return "ok"

    agent = agent_with(gives_up, fine, calls=[tool_call("gives_up", id="1"), tool_call("fine", id="2")])
    async with asyncio.timeout(2):
        chunks, result = await play(agent)
    assert [(kind, id) for kind, id, _ in outcomes(chunks)] == [("tool-error", "1"), ("tool-result", "2")]
    assert result.text == "done"


# ------------------------------------------------------------------------------------------------------- their context


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_tool_gets_its_context(kind: str) -> None:
    """R9.1, R10.5: call id, request context and writer are handed in; the model is not asked for them."""
    seen: list[Any] = []

    @tool(name="look")
    async def look_async(query: str, ctx: ToolContext) -> str:
        """Look."""
        seen.append((ctx.tool_call_id, ctx.request_context.get("tenant"), ctx.cancelled))
        return query

    @tool(name="look")
    def look(query: str, ctx: ToolContext) -> str:
        """Look."""
        seen.append((ctx.tool_call_id, ctx.request_context.get("tenant"), ctx.cancelled))
        return query

    made = look_async if kind == "async" else look
    assert list(made.parameters["properties"]) == ["query"]
    agent = agent_with(made, calls=[tool_call("look", {"query": "q"}, id="c7")])
    await agent.generate("hi", request_context=RequestContext(tenant="acme"))
    assert seen == [("c7", "acme", False)]


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["awaited", "not awaited", "thread"])
async def test_a_tools_data_goes_out_at_once_through_the_processors(kind: str) -> None:
    """R9.1, R9.2: a tool's chunks pass process_output_stream before its result, in order, and are stored (R8.4)."""

    @tool(name="work")
    async def work_async(ctx: ToolContext) -> str:
        """Work."""
        for n in range(3):
            sending = ctx.writer.custom({"type": "data-progress", "data": n})
            if kind == "awaited":
                await sending
        return "done"

    @tool(name="work")
    def work(ctx: ToolContext) -> str:
        """Work."""
        for n in range(3):
            ctx.writer.custom({"type": "data-progress", "data": n})
        return "done"

    class Watch(Processor):
        id = "watch"
        process_data_parts = True

        def __init__(self) -> None:
            self.seen: list[Any] = []

        def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
            if isinstance(chunk, DataChunk):
                self.seen.append(chunk.data)
            return chunk

    watch = Watch()
    agent = agent_with(
        work if kind == "thread" else work_async, calls=[tool_call("work", id="c")], output_processors=[watch]
    )
    chunks, result = await play(agent)
    kinds = [c.type for c in chunks if c.type in ("tool-call", "data-progress", "tool-result")]
    assert kinds == ["tool-call", "data-progress", "data-progress", "data-progress", "tool-result"]
    assert watch.seen == [0, 1, 2]
    assert [p.type for p in result.messages[0].content.parts if p.type.startswith("data-")] == [
        "data-progress"
    ] * 3


@pytest.mark.anyio
async def test_awaiting_a_tools_chunk_waits_until_it_has_passed() -> None:
    """R9.1: when ``await writer.custom`` returns, the processors have had the chunk."""
    order: list[str] = []

    @tool
    async def work(ctx: ToolContext) -> str:
        """Work."""
        await ctx.writer.custom({"type": "data-x", "data": 1})
        order.append("tool goes on")
        return "done"

    class Watch(Processor):
        id = "watch"
        process_data_parts = True

        async def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
            if isinstance(chunk, DataChunk):
                await asyncio.sleep(0)
                order.append("hook has it")
            return chunk

    await agent_with(work, calls=[tool_call("work")], output_processors=[Watch()]).generate("hi")
    assert order == ["hook has it", "tool goes on"]


@pytest.mark.anyio
async def test_a_tools_data_never_races_a_hook() -> None:
    """R9.1: chunks of several tools are handed to the run's task: no hook is ever entered while another one runs."""
    inside = 0
    most = 0

    class Watch(Processor):
        id = "watch"
        process_data_parts = True

        async def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            inside -= 1
            return chunk

    @tool
    async def work(n: int, ctx: ToolContext) -> int:
        """Work."""
        for step in range(5):
            ctx.writer.custom({"type": "data-x", "data": [n, step]})
            await asyncio.sleep(0)
        return n

    @tool
    def work_in_thread(n: int, ctx: ToolContext) -> int:
        """Work."""
        for step in range(5):
            ctx.writer.custom({"type": "data-x", "data": [n, step]})
        return n

    calls = [
        tool_call("work", {"n": 0}),
        tool_call("work", {"n": 1}),
        tool_call("work_in_thread", {"n": 2}),
        tool_call("work_in_thread", {"n": 3}),
    ]
    chunks, _ = await play(agent_with(work, work_in_thread, calls=calls, output_processors=[Watch()]))
    data = [c.data for c in chunks if isinstance(c, DataChunk)]
    assert most == 1
    assert len(data) == 20
    for n in range(4):
        assert [step for who, step in data if who == n] == list(range(5)), (
            "each tool's chunks keep their order"
        )


@pytest.mark.anyio
async def test_a_wrong_chunk_is_the_tools_error() -> None:
    """R9.1: a type without the ``data-`` prefix is an error; it fails the call, not the run."""

    @tool
    async def work(ctx: ToolContext) -> str:
        """Work."""
        await ctx.writer.custom({"type": "progress", "data": 1})
        return "never"

    chunks, result = await play(agent_with(work, calls=[tool_call("work", id="c")]))
    ((kind, _, error),) = outcomes(chunks)
    assert kind == "tool-error"
    assert "data-progress" in error
    assert result.text == "done"


@pytest.mark.anyio
async def test_a_writer_kept_after_the_tool_ended_sends_nothing() -> None:
    """R9.1: what a tool sends when it has ended goes nowhere, and awaiting it does not hang."""
    writers: list[Any] = []

    @tool
    async def work(ctx: ToolContext) -> str:
        """Work."""
        writers.append(ctx.writer)
        return "done"

    async def late(result: Any, ctx: Any) -> None:
        await writers[0].custom({"type": "data-late", "data": 1})

    agent = agent_with(work, calls=[tool_call("work")], output_processors=[Hooks(process_output_result=late)])
    async with asyncio.timeout(2):
        chunks, _ = await play(agent)
    assert not [c for c in chunks if c.type == "data-late"]


# ------------------------------------------------------------------------------------------------------------ stopping


def _closing_tool() -> tuple[Tool, asyncio.Event, asyncio.Event]:
    started, closed = asyncio.Event(), asyncio.Event()

    @tool(name="slow")
    async def slow() -> str:
        """Be slow."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()
        return "never"

    return slow, started, closed


@pytest.mark.anyio
async def test_a_block_closes_running_tools() -> None:
    """R5.1: an abort while tools run cancels them; the tripwire comes when they are closed."""
    slow, started, closed = _closing_tool()

    @tool
    async def tell(ctx: ToolContext) -> str:
        """Tell."""
        await started.wait()
        await ctx.writer.custom({"type": "data-x", "data": "bad"})
        return "told"

    class Guard(Processor):
        id = "guard"
        process_data_parts = True

        def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
            if isinstance(chunk, DataChunk):
                ctx.abort("no")
            return chunk

    agent = agent_with(slow, tell, calls=[tool_call("slow"), tool_call("tell")], output_processors=[Guard()])
    async with asyncio.timeout(2):
        chunks, result = await play(agent)
    assert closed.is_set()
    assert chunks[-1].type == "tripwire"
    assert not [c for c in chunks if isinstance(c, DataChunk)]
    assert result.tripwire is not None


@pytest.mark.anyio
async def test_an_error_in_a_hook_closes_running_tools() -> None:
    """R5.4: so does an exception."""
    slow, started, closed = _closing_tool()

    @tool
    async def tell(ctx: ToolContext) -> str:
        """Tell."""
        await started.wait()
        await ctx.writer.custom({"type": "data-x", "data": 1})
        return "told"

    class Broken(Processor):
        id = "broken"
        process_data_parts = True

        def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
            if isinstance(chunk, DataChunk):
                raise RuntimeError("broken")
            return chunk

    agent = agent_with(slow, tell, calls=[tool_call("slow"), tool_call("tell")], output_processors=[Broken()])
    with pytest.raises(RuntimeError, match="broken"):
        await agent.generate("hi")
    assert closed.is_set()


@pytest.mark.anyio
async def test_a_tool_in_a_thread_learns_that_the_run_was_stopped() -> None:
    """R5.5, R4: a thread cannot be cancelled, but ``ctx.cancelled`` turns true so that it can end by itself."""
    started, told = threading.Event(), threading.Event()

    @tool
    def slow(ctx: ToolContext) -> str:
        """Be slow."""
        started.set()
        for _ in range(500):
            if ctx.cancelled:
                told.set()
                break
            threading.Event().wait(0.01)
        return "ended"

    agent = agent_with(slow, calls=[tool_call("slow")])
    async with agent.stream("hi") as stream:
        async for chunk in stream:
            if chunk.type == "tool-call":
                break
        await asyncio.to_thread(started.wait, 5)
        await stream.cancel()
        result = await stream.result()
    assert await asyncio.to_thread(told.wait, 5)
    assert result.finish_reason == "aborted"


# ---------------------------------------------------------------------------------------------------------- repeatable


@pytest.mark.anyio
@pytest.mark.parametrize(("repeatable", "runs"), [(True, 2), (False, 1)])
async def test_a_step_in_which_an_unrepeatable_tool_ran_is_not_retried(repeatable: bool, runs: int) -> None:
    """R7.1: a retry request after a ``repeatable=False`` tool has run in that step is a plain abort with retry=True."""
    ran: list[int] = []

    @tool(repeatable=repeatable)
    def pay() -> str:
        """Pay."""
        ran.append(1)
        return "paid"

    class Once(Processor):
        id = "once"

        def process_tool_result(self, result: Any, ctx: Any) -> None:
            if ctx.retry_count == 0:
                ctx.abort("again", retry=True)

    model = ScriptedModel([tool_call("pay")], [tool_call("pay")], [text("done")])
    agent = Agent(id="a", model=model, tools=[pay], output_processors=[Once()], max_processor_retries=2)
    result = await agent.generate("hi")
    assert len(ran) == runs
    if repeatable:
        assert result.text == "done"
        assert result.tripwire is None
    else:
        assert result.tripwire is not None
        assert result.tripwire.retry is True
        assert len(model.calls) == 1


@pytest.mark.anyio
async def test_an_unrepeatable_tool_that_did_not_run_forbids_nothing() -> None:
    """R7.1: only a tool that has run counts, and only in that step: one refused for its arguments has not run."""

    @tool(repeatable=False)
    def pay(amount: int) -> str:
        """Pay."""
        raise AssertionError("must not run")

    class Once(Processor):
        id = "once"
        process_tool_errors = True

        def process_tool_result(self, result: Any, ctx: Any) -> None:
            if ctx.retry_count == 0:
                ctx.abort("again", retry=True)

    model = ScriptedModel([tool_call("pay", {"amount": "lots"})], [text("fine")])
    agent = Agent(id="a", model=model, tools=[pay], output_processors=[Once()], max_processor_retries=2)
    result = await agent.generate("hi")
    assert result.text == "fine"
    assert result.tripwire is None


@pytest.mark.anyio
async def test_tools_of_a_rejected_step_do_not_run() -> None:
    """R7.3, R0.4: the calls of an attempt that process_output_step sends back are never made."""
    ran: list[str] = []

    @tool
    def act(what: str) -> str:
        """Act."""
        ran.append(what)
        return what

    class Judge(Processor):
        id = "judge"

        def process_output_step(self, output: Any, ctx: Any) -> None:
            if output.tool_calls and output.tool_calls[0].args["what"] == "bad":
                ctx.abort("not that", retry=True)

    model = ScriptedModel(
        [tool_call("act", {"what": "bad"})], [tool_call("act", {"what": "good"})], [text("done")]
    )
    agent = Agent(id="a", model=model, tools=[act], output_processors=[Judge()], max_processor_retries=1)
    await agent.generate("hi")
    assert ran == ["good"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, ["one", "two"]),
        ({"active_tools": ["two"]}, ["two"]),
        ({"active_tools": []}, []),
        ({"tool_choice": "none"}, []),
    ],
)
async def test_only_active_tools_are_sent_and_run(options: dict[str, Any], sent: list[str]) -> None:
    """R4.2, R10.5: tool_choice none sends no tools; an inactive tool that is called all the same does not run."""
    ran: list[str] = []

    def make(name: str) -> Callable[[], str]:
        def run() -> str:
            """Run."""
            ran.append(name)
            return name

        return run

    tools = {"one": make("one"), "two": make("two")}
    model = ScriptedModel([tool_call("one")], [text("done")])
    agent = Agent(id="a", model=model, tools=tools)
    await agent.generate("hi", **options)  # type: ignore[arg-type]
    assert [spec.name for spec in model.calls[0].tools] == sent
    if "tool_choice" not in options:  # whether a call nobody asked for runs then, the spec leaves open
        assert ran == (["one"] if "one" in sent else [])
