"""process_output_stream: what each processor sees, may return, and what becomes of it (R4.6, R9)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_runs import Hooks, Recorder, check_last, echo_tool, in_both_modes, make_agent, play
from interlock import Processor, ToolContext, UsageError, tool
from interlock.chunks import (
    Chunk,
    DataChunk,
    File,
    Finish,
    OtherChunk,
    ReasoningDelta,
    ResponseMetadata,
    Source,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolResult,
)
from interlock.testing import ScriptedModel, reasoning, text, tool_call

pytestmark = pytest.mark.anyio


def _on(kind: type[Chunk], change: Any, id: str = "p") -> Hooks:
    """A processor that does ``change(chunk)`` with chunks of a kind and lets the others pass."""
    return Hooks(
        id, process_output_stream=lambda chunk, ctx: change(chunk) if isinstance(chunk, kind) else chunk
    )


# ---------------------------------------------------------------------------------------------- returns of the hook


@in_both_modes
async def test_none_drops_the_chunk(mode: str) -> None:
    """A dropped chunk reaches no later processor, client, result or message; the stream goes on (R4.6)."""
    later = Recorder("later", hooks=["process_output_stream"])
    drop = _on(TextDelta, lambda chunk: None if chunk.text == "bad" else chunk)
    seen = await play(make_agent(ScriptedModel([text("a", "bad", "b")]), drop, later), mode=mode)
    assert seen.result.text == "ab"
    assert seen.result.messages[0].text == "ab"
    assert later.log.count(("process_output_stream", "text-delta")) == 2
    if mode == "stream":
        assert seen.shown == "ab"


@in_both_modes
async def test_several_chunks_go_on_in_order(mode: str) -> None:
    """A list of chunks goes to the later processors one by one, in order; an empty list drops (R4.6)."""
    split = _on(TextDelta, lambda chunk: [chunk.replace(text=letter) for letter in chunk.text])
    mark = _on(TextDelta, lambda chunk: chunk.replace(text=f"{chunk.text}."), "mark")
    seen = await play(make_agent(ScriptedModel([text("ab", "", "c")]), split, mark), mode=mode)
    assert seen.result.text == "a.b.c."
    if mode == "stream":
        assert [chunk.text for chunk in seen.chunks if isinstance(chunk, TextDelta)] == ["a.", "b.", "c."]


@in_both_modes
async def test_the_same_chunk_changed_in_place_counts(mode: str) -> None:
    """A hook may change the chunk it got and return it (R4.6)."""

    def change(chunk: Any) -> Any:
        chunk.text = chunk.text.upper()
        return chunk

    seen = await play(make_agent(ScriptedModel([text("a", "b")]), _on(TextDelta, change)), mode=mode)
    assert seen.result.text == "AB"


@in_both_modes
@pytest.mark.parametrize("several", [False, True])
async def test_a_replacement_without_an_id_inherits_its_blocks(several: bool, mode: str) -> None:
    """A new chunk put in the place of another takes the id of that block, also each of several (R4.6)."""
    seen_later: list[str] = []

    def look(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, TextDelta):
            seen_later.append(chunk.id)
        return chunk

    def fresh(chunk: Any) -> Any:
        return [TextDelta(text="a"), TextDelta(text="!")] if several else TextDelta(text="a!")

    agent = make_agent(
        ScriptedModel([text("x", id="block")]),
        _on(TextDelta, fresh),
        Hooks("look", process_output_stream=look),
    )
    seen = await play(agent, mode=mode)
    assert seen.result.text == "a!"
    assert seen_later == ["block"] * (2 if several else 1)
    if mode == "stream":
        assert {chunk.id for chunk in seen.chunks if isinstance(chunk, TextDelta)} == {"block"}


@in_both_modes
@pytest.mark.parametrize(
    "wrong", ["text", {"type": "text-delta"}, True, 1, [TextDelta(text="x"), "text"], [None]]
)
async def test_anything_else_is_a_mistake_of_the_processor(wrong: Any, mode: str) -> None:
    """A return that is no chunk is an error naming processor, hook and what was returned (R3.3, R4.6)."""
    seen = await play(
        make_agent(ScriptedModel([text("a")]), _on(TextDelta, lambda chunk: wrong, "wrong")), mode=mode
    )
    assert isinstance(seen.error, UsageError)
    for word in ("wrong", "process_output_stream", type(wrong).__name__):
        assert word in str(seen.error)
    check_last(seen, "error")


@in_both_modes
async def test_a_sync_hook_may_give_an_awaitable(mode: str) -> None:
    """A plain def that gives a coroutine is awaited, and its abort counts (R2.2, R5.1)."""

    async def later(chunk: Any) -> Any:
        await asyncio.sleep(0)
        return chunk.replace(text=chunk.text * 2)

    seen = await play(make_agent(ScriptedModel([text("a", "b")]), _on(TextDelta, later)), mode=mode)
    assert seen.result.text == "aabb"


@in_both_modes
async def test_an_exception_of_an_awaitable_names_the_processor(mode: str) -> None:
    """What a coroutine given by a plain def raises gets the note of processor and hook, too (R5.4)."""

    async def fail(chunk: Any) -> Any:
        raise ValueError("boom")

    seen = await play(make_agent(ScriptedModel([text("a")]), _on(TextDelta, fail, "failing")), mode=mode)
    assert isinstance(seen.error, ValueError)
    assert any(
        "failing" in note and "process_output_stream" in note for note in getattr(seen.error, "__notes__", [])
    )


@in_both_modes
async def test_an_awaitable_that_fails_open_lets_its_chunk_pass(mode: str) -> None:
    """on_error="open" holds for a coroutine given by a plain def as well (R2.7)."""

    async def fail(chunk: Any) -> Any:
        raise ValueError("boom")

    processor = _on(TextDelta, fail)
    processor.on_error = "open"
    seen = await play(make_agent(ScriptedModel([text("a")]), processor), mode=mode)
    assert seen.result.text == "a"
    assert len(seen.result.violations) == 1


# -------------------------------------------------------------------------------------------- what is shown to it

EVERYTHING = [
    ResponseMetadata(id="r"),
    *[reasoning("hm"), text("a")],
    Source(id="s", url="https://x"),
    File(mime_type="image/png", data="QUJD"),
    OtherChunk(type="something-new", payload={"a": 1}),
    tool_call("echo", {"value": 1}),
]


@in_both_modes
async def test_it_sees_what_model_and_tools_produce(mode: str) -> None:
    """Everything of model and tools is shown; not start, response-metadata, nor the run's own finish (R4.6)."""
    recorder = Recorder(hooks=["process_output_stream"])
    agent = make_agent(ScriptedModel(EVERYTHING, [text("b")]), recorder, tools=[echo_tool()])
    seen = await play(agent, mode=mode)
    block = ["text-start", "text-delta", "text-end"]
    assert [detail for _, detail in recorder.log] == [
        "step-start",
        *["reasoning-start", "reasoning-delta", "reasoning-end", *block, "source", "file", "something-new"],
        *["tool-call", "finish", "tool-result", "step-finish"],
        *["step-start", *block, "finish", "step-finish"],
    ]
    if mode == "stream":
        assert "something-new" in seen.types, "a chunk of an unknown type passes untouched"


@in_both_modes
async def test_it_does_not_see_how_a_run_ends(mode: str) -> None:
    """error, tripwire and abort are not shown (R4.6)."""
    from interlock.testing import error

    for script, stop in ([error(400, "no")], None), ([text("a")], lambda result, ctx: ctx.abort("no")):
        recorder = Recorder(hooks=["process_output_stream"])
        extra = [Hooks("stop", process_output_result=stop)] if stop else []
        await play(make_agent(ScriptedModel(script), recorder, *extra), mode=mode)
        assert {detail for _, detail in recorder.log} <= {
            "step-start", "text-start", "text-delta", "text-end", "finish", "step-finish",
        }  # fmt: skip


@in_both_modes
@pytest.mark.parametrize("kind", ["step-start", "step-finish", "finish"])
@pytest.mark.parametrize("several", [False, True])
async def test_a_dropped_frame_is_hidden_from_the_client_only(kind: str, several: bool, mode: str) -> None:
    """Dropping step-start, step-finish or the model's finish hides them and changes nothing else (R4.6)."""
    hide = Hooks(
        "h",
        process_output_stream=lambda chunk, ctx: ([] if several else None) if chunk.type == kind else chunk,
    )
    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("done")])
    plain = await play(make_agent(model, tools=[echo_tool()]), mode=mode)
    model.rewind()
    seen = await play(make_agent(model, hide, tools=[echo_tool()]), mode=mode)
    result = seen.result
    assert result.text == "done"
    assert result.finish_reason == "stop"
    assert result.usage == plain.result.usage
    assert [step.finish_reason for step in result.steps] == ["tool-calls", "stop"]
    if mode == "stream":
        gone = () if kind == "finish" else (kind,)
        assert seen.types == [each for each in plain.types if each not in gone]


@in_both_modes
async def test_what_is_returned_for_finish_changes_nothing(mode: str) -> None:
    """A changed finish changes neither reason nor usage (R4.6)."""
    change = _on(Finish, lambda chunk: chunk.replace(finish_reason="length", usage=None))
    seen = await play(make_agent(ScriptedModel([text("a")]), change), mode=mode)
    assert seen.result.finish_reason == "stop"
    assert seen.result.usage.total_tokens == 15
    check_last(seen, "finish")


@in_both_modes
async def test_text_may_be_released_in_front_of_the_finish(mode: str) -> None:
    """A processor that held text may send it with the model's finish: [delta, finish] (R4.6)."""

    class Holds(Processor):
        id = "holds"

        def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
            if isinstance(chunk, TextDelta):
                ctx.state["held"] = ctx.state.get("held", "") + chunk.text
                return None
            if isinstance(chunk, Finish):
                return [TextDelta(id="late", text=ctx.state["held"].upper()), chunk]
            return chunk

    seen = await play(make_agent(ScriptedModel([text("a", "b")]), Holds()), mode=mode)
    assert seen.result.text == "AB"
    assert seen.result.messages[0].text == "AB"


# --------------------------------------------------------------------------------------------- what leaves is the truth


@in_both_modes
async def test_a_changed_call_is_the_call(mode: str) -> None:
    """A changed tool-call changes what runs, what is stored and what the model is shown (R4.6)."""
    ran: list[Any] = []
    change = _on(ToolCall, lambda chunk: chunk.replace(args={"value": "safe"}))
    model = ScriptedModel([tool_call("echo", {"value": "secret"})], [text("done")])
    seen = await play(make_agent(model, change, tools=[echo_tool(ran)]), mode=mode)
    assert ran == ["safe"]
    assert "secret" not in repr(seen.result) + model.calls[1].prompt_text + repr(seen.chunks)


@in_both_modes
async def test_a_dropped_call_is_not_made(mode: str) -> None:
    """A dropped tool-call does not run and is in no message; the others are made (R4.6, R0.4)."""
    ran: list[Any] = []
    drop = _on(ToolCall, lambda chunk: None if chunk.args["value"] == "bad" else chunk)
    calls = [tool_call("echo", {"value": "bad"}), tool_call("echo", {"value": "good"})]
    model = ScriptedModel(calls, [text("done")])
    seen = await play(make_agent(model, drop, tools=[echo_tool(ran)]), mode=mode)
    assert ran == ["good"]
    assert [call.args for call in seen.result.tool_calls] == [{"value": "good"}]
    assert "bad" not in model.calls[1].prompt_text


@in_both_modes
async def test_without_its_only_call_the_loop_ends(mode: str) -> None:
    """When every call was dropped there is no further step, whatever the finish reason (R1.2h, R4.6)."""
    model = ScriptedModel([text("a"), tool_call("echo", {"value": 1})])
    seen = await play(make_agent(model, _on(ToolCall, lambda chunk: None), tools=[echo_tool()]), mode=mode)
    assert len(model.calls) == 1
    assert seen.result.text == "a"


@in_both_modes
async def test_a_changed_tool_result_is_changed_everywhere(mode: str) -> None:
    """What leaves the chain for a tool-result is what model, messages and result have (R4.6)."""
    change = _on(ToolResult, lambda chunk: chunk.replace(result="clean"))
    model = ScriptedModel([tool_call("echo", {"value": "dirty"}, id="c")], [text("done")])
    seen = await play(
        make_agent(model, change, _on(ToolCall, lambda c: c, "other"), tools=[echo_tool()]), mode=mode
    )
    assert [result.result for result in seen.result.tool_results] == ["clean"]
    content = model.calls[1].prompt[-1]["content"]
    assert content[0]["output"] == {"type": "text", "value": "clean"}
    if mode == "stream":
        assert [chunk.result for chunk in seen.chunks if isinstance(chunk, ToolResult)] == ["clean"]


@in_both_modes
async def test_a_dropped_tool_result_is_hidden_from_the_client_only(mode: str) -> None:
    """The model still gets the result of a dropped tool-result chunk (R4.6)."""
    model = ScriptedModel([tool_call("echo", {"value": "kept"})], [text("done")])
    seen = await play(make_agent(model, _on(ToolResult, lambda chunk: None), tools=[echo_tool()]), mode=mode)
    assert [result.result for result in seen.result.tool_results] == ["kept"]
    assert model.calls[1].prompt[-1]["content"][0]["output"]["value"] == "kept"
    assert "tool-result" not in seen.types


@in_both_modes
@pytest.mark.parametrize(
    ("kind", "drop"), [("reasoning", ReasoningDelta), ("source", Source), ("file", File), ("text", TextDelta)]
)
async def test_a_dropped_part_is_in_no_message(kind: str, drop: Any, mode: str) -> None:
    """Dropped reasoning, text, sources and files leave no part behind, not even an empty one (R4.6)."""
    model = ScriptedModel(EVERYTHING[:-1])
    seen = await play(make_agent(model, _on(drop, lambda chunk: None)), mode=mode)
    kinds = [part.type for part in seen.result.messages[0].content.parts]
    assert kind not in kinds
    assert len(kinds) == 3


@in_both_modes
async def test_a_chunk_turned_into_data_is_stored_as_data(mode: str) -> None:
    """A chunk may be turned into a data-* chunk; it is then sent and stored as one (R4.6, D21)."""
    turn = _on(
        TextDelta, lambda chunk: DataChunk(type="data-text", data=chunk.text) if chunk.text == "b" else chunk
    )
    later = Recorder("later", hooks=["process_output_stream"])
    seen = await play(make_agent(ScriptedModel([text("a", "b", "c")]), turn, later), mode=mode)
    assert seen.result.text == "ac"
    assert [part.type for part in seen.result.messages[0].content.parts] == ["text", "data-text"]
    assert "data-text" not in {detail for _, detail in later.log}, "it has no process_data_parts"
    if mode == "stream":
        assert "data-text" in seen.types


# ----------------------------------------------------------------------------------------------------- framing


@in_both_modes
async def test_a_block_the_model_left_open_is_closed_before_the_chain(mode: str) -> None:
    """Processors see the end of a block that the model forgot to close (R4.6)."""
    recorder = Recorder(hooks=["process_output_stream"])
    model = ScriptedModel([TextStart(id="t"), TextDelta(id="t", text="a")])
    seen = await play(make_agent(model, recorder), mode=mode)
    frame = ["text-start", "text-delta", "text-end"]
    assert [detail for _, detail in recorder.log] == ["step-start", *frame, "finish", "step-finish"]
    if mode == "stream":
        assert seen.types == ["start", "step-start", *frame, "step-finish", "finish"]


@in_both_modes
async def test_framing_is_repaired_where_chunks_leave_the_chain(mode: str) -> None:
    """Later processors see what earlier ones returned; the client gets a repaired frame (R4.6)."""
    drop = Hooks(
        "d",
        process_output_stream=lambda chunk, ctx: None if isinstance(chunk, TextStart | TextEnd) else chunk,
    )
    later = Recorder("later", hooks=["process_output_stream"])
    seen = await play(make_agent(ScriptedModel([text("a", "b")]), drop, later), mode=mode)
    assert [detail for _, detail in later.log] == [
        "step-start",
        "text-delta",
        "text-delta",
        "finish",
        "step-finish",
    ]
    assert seen.result.text == "ab"
    if mode == "stream":
        assert seen.types[2:-2] == ["text-start", "text-delta", "text-delta", "text-end"]


# ---------------------------------------------------------------------------------------------------- data parts


@in_both_modes
async def test_data_is_shown_to_those_who_ask_for_it(mode: str) -> None:
    """data-* chunks come to process_output_stream of processors with process_data_parts only (R4.6, R9.2)."""
    asks = Recorder("asks", hooks=["process_output_stream"])
    asks.process_data_parts = True
    not_asking = Recorder("not", hooks=["process_output_stream"])

    async def write(messages: Any, ctx: Any) -> None:
        await ctx.writer.custom({"type": "data-x", "data": 1})

    agent = make_agent(ScriptedModel([text("a")]), Hooks("w", process_input=write), asks, not_asking)
    await play(agent, mode=mode)
    assert ("process_output_stream", "data-x") in asks.log
    assert ("process_output_stream", "data-x") not in not_asking.log


@in_both_modes
async def test_data_from_a_stream_hook_goes_to_those_after_it(mode: str) -> None:
    """Emitted in process_output_stream it is shown to the processors after the emitter, before the chunk (R9.2)."""
    seen: list[tuple[str, str]] = []

    def look(name: str, emits: bool = False) -> Hooks:
        async def hook(chunk: Any, ctx: Any) -> Any:
            if chunk.type in ("data-x", "text-delta"):
                seen.append((name, chunk.type))
            if emits and isinstance(chunk, TextDelta):
                await ctx.writer.custom({"type": "data-x", "data": 1})
            return chunk

        return Hooks(name, process_output_stream=hook, process_data_parts=True)

    agent = make_agent(ScriptedModel([text("t")]), look("a"), look("b", emits=True), look("c"))
    run = await play(agent, mode=mode)
    assert seen == [("a", "text-delta"), ("b", "text-delta"), ("c", "data-x"), ("c", "text-delta")]
    if mode == "stream":
        assert run.types[2:5] == ["text-start", "data-x", "text-delta"]


@in_both_modes
async def test_data_from_another_hook_goes_to_all(mode: str) -> None:
    """Emitted elsewhere it is shown to all with process_data_parts, the emitter too (R9.2)."""

    class Emits(Processor):
        id = "emits"
        process_data_parts = True

        async def process_output_step(self, output: Any, ctx: Any) -> None:
            await ctx.writer.custom({"type": "data-x", "data": 1})

        def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
            ctx.state.setdefault("types", []).append(chunk.type)
            return chunk

        def on_run_end(self, outcome: Any, ctx: Any) -> None:
            ends.append(ctx.state["types"])

    ends: list[list[str]] = []
    await play(make_agent(ScriptedModel([text("t")]), Emits()), mode=mode)
    assert ends[0].count("data-x") == 1


@in_both_modes
async def test_a_tools_data_is_shown_before_its_result(mode: str) -> None:
    """A tool's writer hands its chunk to the run's task; it is shown before the tool's result (R9.1, R9.2)."""

    @tool
    async def works(context: ToolContext) -> str:
        await context.writer.custom({"type": "data-progress", "data": 50})
        return "done"

    @tool
    def works_in_a_thread(context: ToolContext) -> str:
        context.writer.custom({"type": "data-progress", "data": 50})
        return "done"

    for each in (works, works_in_a_thread):
        recorder = Recorder(hooks=["process_output_stream"])
        recorder.process_data_parts = True
        agent = make_agent(ScriptedModel([tool_call(each.name)], [text("ok")]), recorder, tools=[each])
        seen = await play(agent, mode=mode)
        types = [detail for _, detail in recorder.log]
        assert types.index("data-progress") < types.index("tool-result")
        assert "data-progress" in [part.type for part in seen.result.messages[0].content.parts]


@in_both_modes
async def test_data_can_be_dropped_and_changed_like_any_chunk(mode: str) -> None:
    """What leaves the chain counts for data too (R9.2, R4.6)."""

    async def write(messages: Any, ctx: Any) -> None:
        for n in range(3):
            await ctx.writer.custom({"type": "data-x", "data": n})

    def judge(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, DataChunk):
            return None if chunk.data == 1 else chunk.replace(data=chunk.data + 10)
        return chunk

    judge_data = Hooks("j", process_output_stream=judge, process_data_parts=True)
    seen = await play(
        make_agent(ScriptedModel([text("a")]), Hooks("w", process_input=write), judge_data), mode=mode
    )
    data = [part.data for part in seen.result.messages[0].content.parts if part.type == "data-x"]  # type: ignore[attr-defined]
    assert data == [10, 12]
    if mode == "stream":
        assert [chunk.data for chunk in seen.chunks if isinstance(chunk, DataChunk)] == [10, 12]


@in_both_modes
@pytest.mark.parametrize("wrong", [{"type": "x", "data": 1}, {"data": 1}, "data-x", None, {"type": "data-"}])
async def test_data_without_the_prefix_is_an_error(wrong: Any, mode: str) -> None:
    """A type that does not begin with data- is an error in the hook that wrote it (R9.1)."""

    async def write(messages: Any, ctx: Any) -> None:
        await ctx.writer.custom(wrong)

    seen = await play(make_agent(ScriptedModel(), Hooks("writes", process_input=write)), mode=mode)
    assert isinstance(seen.error, UsageError)
    assert "data-" in str(seen.error)
    assert any("writes" in note for note in seen.error.__notes__)


@in_both_modes
async def test_an_abort_on_data_stops_the_hook_that_wrote_it(mode: str) -> None:
    """A processor that aborts on a data chunk stops the run while another hook writes it (R5.1, R9.2)."""
    went_on: list[Any] = []

    async def write(messages: Any, ctx: Any) -> None:
        await ctx.writer.custom({"type": "data-bad", "data": 1})
        went_on.append("after")

    stop = _on(DataChunk, lambda chunk: None, "unused")
    stop.process_output_stream = lambda chunk, ctx: ctx.abort("no") if isinstance(chunk, DataChunk) else chunk  # type: ignore[method-assign]
    stop.process_data_parts = True
    model = ScriptedModel([text("a")])
    seen = await play(make_agent(model, Hooks("w", process_input=write), stop), mode=mode)
    assert seen.result.tripwire is not None
    assert seen.result.tripwire.processor_id == "unused"
    assert model.calls == []
    assert "data-bad" not in seen.types


def test_a_silent_stream_hook_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """A hook that returns nothing at all drops every chunk; a log line says so by name (R4.6, design)."""
    agent = make_agent(
        ScriptedModel([text("a")]), Hooks("forgets", process_output_stream=lambda chunk, ctx: None)
    )
    result = agent.generate_sync("hi")
    assert result.text == ""
    assert "forgets" in caplog.text


@in_both_modes
async def test_each_step_start_is_shown_once(mode: str) -> None:
    """A model that yields its own step-start does not double it; its warnings and request are the step's (R4.6, R4)."""
    recorder = Recorder(hooks=["process_output_stream"])
    model = ScriptedModel([StepStart(request={"body": 1}, warnings=["w"]), text("a"), StepStart()])
    seen = await play(make_agent(model, recorder), mode=mode)
    assert [detail for _, detail in recorder.log].count("step-start") == 1
    assert (seen.result.steps[0].request, seen.result.steps[0].warnings) == ({"body": 1}, ["w"])
