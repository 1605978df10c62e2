"""ctx: what is always there in a hook (R4), messages per stage (R3.1), state (R6)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness_runs import ALL_HOOKS, Hooks, Recorder, echo_tool, in_both_modes, make_agent, play
from interlock import RequestContext, Retry, TripWire, UsageError
from interlock.chunks import ToolCall, ToolResult
from interlock.memory import Memory
from interlock.testing import ScriptedModel, error, text, tool_call

pytestmark = pytest.mark.anyio


def _looking(look: Any, hooks: Any = ALL_HOOKS) -> tuple[Recorder, list[tuple[str, Any]]]:
    """A processor that notes ``look(ctx)`` in every hook; the notes."""
    notes: list[tuple[str, Any]] = []

    def act(name: str, subject: Any, ctx: Any) -> Any:
        notes.append((name, look(ctx)))
        return Retry() if name == "process_api_error" else None

    return Recorder("looking", act=act, hooks=hooks), notes


def _by_hook(notes: list[tuple[str, Any]]) -> dict[str, list[Any]]:
    table: dict[str, list[Any]] = {}
    for name, note in notes:
        table.setdefault(name, []).append(note)
    return table


def _two_steps() -> ScriptedModel:
    return ScriptedModel(
        [text("one"), tool_call("echo", {"value": 1}, id="c1")], [text("two")], repeat_last=True
    )


# ------------------------------------------------------------------------------------------------------------- abort


async def test_abort_never_returns() -> None:
    """ctx.abort raises TripWire, a BaseException, with what was given (R5.1)."""
    caught: list[TripWire] = []

    def hook(messages: Any, ctx: Any) -> None:
        try:
            ctx.abort("why", retry=True, metadata=[1])
        except TripWire as trip:
            caught.append(trip)
            raise

    await make_agent(ScriptedModel(), Hooks("p", process_input=hook)).generate("hi")
    (trip,) = caught
    assert not isinstance(trip, Exception)
    assert (trip.reason, trip.retry, trip.metadata, trip.processor_id) == ("why", True, [1], "p")


@in_both_modes
@pytest.mark.parametrize("reason", [None, ""])
async def test_the_default_reason_names_the_processor(reason: str | None, mode: str) -> None:
    """Without a reason, or with an empty one, the reason names the processor; retry and metadata are off (R5.1)."""
    stop = Hooks("the-guard", process_input=lambda messages, ctx: ctx.abort(reason))
    trip = (await play(make_agent(ScriptedModel(), stop), mode=mode)).result.tripwire
    assert trip is not None
    assert "the-guard" in trip.reason
    assert (trip.retry, trip.metadata) == (False, None)


# ----------------------------------------------------------------------------------------------------------- messages


@in_both_modes
async def test_messages_are_those_of_the_stage(mode: str) -> None:
    """No system messages on input; response messages only at the end; else with the latest response (R3.1)."""
    recorder, notes = _looking(lambda ctx: [(message.role, message.text) for message in ctx.messages])
    agent = make_agent(_two_steps(), recorder, tools=[echo_tool()], instructions="rules")
    await play(agent, "q", mode=mode, context="context")
    table = _by_hook(notes)
    given = [("user", "context"), ("user", "q")]
    one, both = [*given, ("assistant", "one")], [*given, ("assistant", "onetwo")]
    assert table["process_input"] == [given]
    assert table["process_input_step"] == [given, one]
    assert table["process_output_step"] == [one, both]
    assert table["process_tool_result"] == [one]
    assert table["process_output_result"] == [[("assistant", "onetwo")]]
    assert table["process_output_stream"][-1] == both


@in_both_modes
async def test_the_subject_has_the_same_messages(mode: str) -> None:
    """process_input's messages and process_input_step's step.messages are the stage's, as plain lists (R3.1)."""
    seen: list[Any] = []
    agent = make_agent(
        ScriptedModel([text("ok")]),
        Hooks(
            "p",
            process_input=lambda messages, ctx: seen.append((messages, ctx.messages)),
            process_input_step=lambda step, ctx: seen.append((step.messages, ctx.messages)),
        ),
    )
    await play(agent, ["a", "b"], mode=mode)
    for subject, of_ctx in seen:
        assert type(subject) is list
        assert [message.id for message in subject] == [message.id for message in of_ctx]
        assert all(one is other for one, other in zip(subject, of_ctx, strict=True)), "the live messages"


@in_both_modes
async def test_system_messages_are_the_untagged_ones_in_every_hook(mode: str) -> None:
    """Tagged system messages are in the prompt only, after instructions and untagged ones (R3.1)."""
    recorder, notes = _looking(lambda ctx: [message.content for message in ctx.system_messages])

    def add(messages: Any, ctx: Any) -> Any:
        ctx.message_list.add_system("tagged", tag="t")
        ctx.message_list.add_system("untagged")
        return ctx.message_list

    model = _two_steps()
    agent = make_agent(
        model, Hooks("a", process_input=add), recorder, tools=[echo_tool()], instructions="rules"
    )
    await play(agent, mode=mode)
    assert {tuple(note) for _, note in notes} == {("rules", "untagged")}
    for call in model.calls:
        systems = [message["content"] for message in call.prompt if message["role"] == "system"]
        assert systems == ["rules", "untagged", "tagged"]


@in_both_modes
async def test_an_in_place_change_is_seen_by_all_and_kept(mode: str) -> None:
    """A change of content.parts in place is seen by every later processor, by the model, and is saved (R3.1)."""
    later: list[str] = []
    memory = Memory()
    model = ScriptedModel([text("ok")])
    agent = make_agent(
        model,
        Hooks(
            "edits",
            process_input=lambda messages, ctx: setattr(messages[0].content.parts[0], "text", "edited"),
        ),
        Hooks("sees", process_input=lambda messages, ctx: later.append(messages[0].text)),
        memory=memory,
    )
    await play(agent, "given", mode=mode, memory={"thread": "t"})
    assert later == ["edited"]
    assert model.calls[0].prompt_text == "edited"
    assert (await memory.messages("t"))[0].text == "edited"


@in_both_modes
async def test_the_views_of_the_message_list(mode: str) -> None:
    """get.input, get.response, get.remembered, get.all tell the sources apart, in three formats (R3.2)."""
    seen: list[Any] = []

    def look(result: Any, ctx: Any) -> None:
        views = ctx.message_list.get
        seen.append(
            [
                [m.text for m in view.db()]
                for view in (views.input, views.response, views.remembered, views.all)
            ]
        )
        seen.append([message["role"] for message in views.all.ui()])
        seen.append([message["role"] for message in views.all.core()])

    memory = Memory()
    agent = make_agent(
        ScriptedModel([text("a1")], [text("a2")]), Hooks("l", process_output_result=look), memory=memory
    )
    await play(agent, "q1", mode=mode, memory={"thread": "t"})
    seen.clear()
    await play(agent, "q2", mode=mode, memory={"thread": "t"}, context="c")
    views, ui, core = seen
    assert views[:3] == [["q2"], ["a2"], ["q1", "a1"]]
    assert sorted(views[3]) == ["a1", "a2", "c", "q1", "q2"]
    assert len(ui) == len(core) == 5


# ------------------------------------------------------------------------------------------------------------- steps


@in_both_modes
async def test_steps_are_the_accepted_ones_and_later_the_current_one_too(mode: str) -> None:
    """ctx.steps: accepted steps; from process_llm_response on, process_tool_result included, this one too (R4)."""
    recorder, notes = _looking(lambda ctx: (ctx.step_number, len(ctx.steps)))
    model = ScriptedModel([error(400, "no")], *[[tool_call("echo", {"value": 1})], [text("two")]])
    await play(make_agent(model, recorder, tools=[echo_tool()]), mode=mode)
    table = _by_hook(notes)
    assert table["process_input"] == [(0, 0)]
    assert table["process_api_error"] == [(0, 0)]
    assert table["process_input_step"] == [(0, 0), (0, 0), (1, 1)]
    assert table["process_llm_request"] == [(0, 0), (0, 0), (1, 1)]
    assert table["process_llm_response"] == table["process_output_step"] == [(0, 1), (1, 2)]
    assert table["process_tool_result"] == [(0, 1)]
    assert table["process_output_result"] == [(1, 2)]


@in_both_modes
async def test_rejected_attempts_are_not_in_steps(mode: str) -> None:
    """A rejected attempt is in result.steps only, never in ctx.steps, not while it is withdrawn either (R4, R5.3)."""
    counts: list[tuple[str, int]] = []

    def judge(output: Any, ctx: Any) -> None:
        counts.append((output.text, len(ctx.steps)))
        if output.text == "bad":
            ctx.abort(retry=True)

    def look(chunk: Any, ctx: Any) -> Any:
        if chunk.type == "step-finish":
            counts.append((chunk.finish_reason, len(ctx.steps)))
        return chunk

    model = ScriptedModel([text("bad")], [text("good")])
    processor = Hooks("j", process_output_step=judge, process_output_stream=look)
    seen = await play(make_agent(model, processor, max_processor_retries=1), mode=mode)
    assert counts == [("bad", 1), ("retry", 0), ("good", 1), ("stop", 1)]
    assert len(seen.result.steps) == 2


@in_both_modes
async def test_a_step_record_has_what_the_step_had(mode: str) -> None:
    """text, reasoning, tool_calls, tool_results, usage, finish_reason of the step, as the messages hold them (R4)."""
    from interlock.testing import reasoning

    records: list[Any] = []
    agent = make_agent(
        ScriptedModel(
            [reasoning("hm"), text("one"), tool_call("echo", {"value": 5}, id="c1")], [text("two")]
        ),
        Hooks("p", process_output_result=lambda result, ctx: records.extend(ctx.steps)),
        tools=[echo_tool()],
    )
    await play(agent, mode=mode)
    first, second = records
    assert (first.text, first.reasoning, first.finish_reason, first.step_number) == (
        "one",
        "hm",
        "tool-calls",
        0,
    )
    assert [call.args for call in first.tool_calls] == [{"value": 5}]
    assert [result.result for result in first.tool_results] == [5]
    assert first.usage.total_tokens == 15
    assert (second.text, second.finish_reason, second.step_number) == ("two", "stop", 1)


@in_both_modes
async def test_provider_executed_results_come_before_the_step_counts(mode: str) -> None:
    """process_tool_result of a provider tool runs while the response arrives: no current step in ctx.steps (R4)."""
    counts: list[int] = []
    script = [
        ToolCall(tool_call_id="c", tool_name="search", args={}, provider_executed=True),
        ToolResult(tool_call_id="c", tool_name="search", result=1, provider_executed=True),
        text("done"),
    ]
    look = Hooks("p", process_tool_result=lambda result, ctx: counts.append(len(ctx.steps)))
    await play(make_agent(ScriptedModel(script), look), mode=mode)
    assert counts == [0]


# ------------------------------------------------------------------------------------------------------------- state


@in_both_modes
async def test_state_is_one_dict_for_the_whole_call(mode: str) -> None:
    """The same dict in all hooks, lists, steps and retries of a call, a fresh one for the next call (R6)."""
    recorder, notes = _looking(lambda ctx: id(ctx.state) if ctx.state.setdefault("kept", ctx.state) else 0)

    def judge(output: Any, ctx: Any) -> None:
        if ctx.retry_count == 1:
            ctx.abort(retry=True)

    agent = make_agent(
        ScriptedModel(
            [error(400, "no")],
            [text("bad")],
            [tool_call("echo", {"value": 1})],
            [text("ok")],
            repeat_last=True,
        ),
        recorder,
        Hooks("judge", process_output_step=judge),
        tools=[echo_tool()],
        max_processor_retries=5,
    )
    await play(agent, mode=mode)
    assert {name for name, _ in notes} == set(ALL_HOOKS)
    assert len({note for _, note in notes}) == 1
    first = recorder.contexts["process_input"].state
    notes.clear()
    await play(agent, mode=mode)
    assert recorder.contexts["process_input"].state is not first
    assert len({note for _, note in notes}) == 1


@in_both_modes
async def test_state_does_not_leak_between_processors(mode: str) -> None:
    """Processors of different ids have different dicts (R6)."""
    seen: list[Any] = []
    one = Hooks("one", process_input=lambda messages, ctx: ctx.state.update(secret=1))
    two = Hooks("two", process_input=lambda messages, ctx: seen.append(dict(ctx.state)))
    await play(make_agent(ScriptedModel([text("ok")]), one, two), mode=mode)
    assert seen == [{}]


@in_both_modes
async def test_state_of_a_stream_read_twice_at_once(mode: str) -> None:
    """Two runs of the same agent that overlap have a state each (R6)."""
    gate = asyncio.Barrier(2)
    seen: list[Any] = []

    async def meet(messages: Any, ctx: Any) -> None:
        ctx.state["me"] = messages[0].text
        await gate.wait()
        seen.append((messages[0].text, ctx.state["me"]))

    agent = make_agent(ScriptedModel([text("ok")], repeat_last=True), Hooks("p", process_input=meet))
    await asyncio.gather(play(agent, "a", mode=mode), play(agent, "b", mode=mode))
    assert sorted(seen) == [("a", "a"), ("b", "b")]


# ------------------------------------------------------------------------------------------------------ other things


@in_both_modes
async def test_retry_count_starts_at_zero_and_counts_the_run(mode: str) -> None:
    """retry_count is 0 at first and one more after each accepted retry, in every hook from then on (R7.1)."""
    recorder, notes = _looking(
        lambda ctx: ctx.retry_count, [h for h in ALL_HOOKS if h != "process_api_error"]
    )

    def judge(output: Any, ctx: Any) -> None:
        if output.text == "bad":
            ctx.abort(retry=True)

    agent = make_agent(
        ScriptedModel([text("bad")], [tool_call("echo", {"value": 1})], [text("ok")]),
        recorder,
        Hooks("j", process_output_step=judge),
        tools=[echo_tool()],
        max_processor_retries=3,
    )
    await play(agent, mode=mode)
    table = _by_hook(notes)
    assert table["process_input"] == [0]
    assert table["process_input_step"] == [0, 1, 1]
    assert table["process_llm_request"] == [0, 1, 1]
    assert table["process_output_step"] == [0, 1, 1]
    assert table["process_tool_result"] == [1]
    assert table["process_output_result"] == [1]


@in_both_modes
@pytest.mark.parametrize("given", [{"tenant": "acme"}, RequestContext(tenant="acme")])
async def test_request_context_is_the_calls(given: Any, mode: str) -> None:
    """Every hook and tool gets the call's request context, the same object; a mapping becomes one (R4, R10.5)."""
    recorder, notes = _looking(lambda ctx: (ctx.request_context["tenant"], id(ctx.request_context)))
    await play(make_agent(_two_steps(), recorder, tools=[echo_tool()]), mode=mode, request_context=given)
    assert len({note for _, note in notes}) == 1
    assert notes[0][1][0] == "acme"


@in_both_modes
async def test_what_one_hook_puts_into_the_request_context_the_next_sees(mode: str) -> None:
    """The request context is the way to hand things from one processor to another (R4)."""
    seen: list[Any] = []
    write = Hooks("w", process_input=lambda messages, ctx: ctx.request_context.set("found", 1))
    read = Hooks("r", process_output_result=lambda result, ctx: seen.append(ctx.request_context.get("found")))
    await play(make_agent(ScriptedModel([text("ok")]), write, read), mode=mode)
    assert seen == [1]


@in_both_modes
async def test_a_processor_cannot_tell_the_mode(mode: str) -> None:
    """ctx has no trace of stream or generate (R10.4)."""
    recorder, _ = _looking(lambda ctx: None)
    await play(make_agent(_two_steps(), recorder, tools=[echo_tool()]), mode=mode)
    names = [name for name in dir(recorder.contexts["process_input"]) if not name.startswith("_")]
    assert not [name for name in names if name in ("mode", "streaming", "is_stream", "generate")]
    for name in ("abort", "retry_count", "request_context", "tracing_context", "state", "message_list", "messages",
                 "system_messages", "step_number", "steps", "writer", "stream_parts", "cancelled"):  # fmt: skip
        assert name in names


@in_both_modes
async def test_tracing_context_is_passed_through(mode: str) -> None:
    """tracing_context is what the call gave, or None (R4)."""
    recorder, notes = _looking(lambda ctx: ctx.tracing_context, ["process_input", "process_output_result"])
    span = object()
    agent = make_agent(ScriptedModel([text("ok")], repeat_last=True), recorder)
    await play(agent, mode=mode, tracing_context=span)
    await play(agent, mode=mode)
    assert [note for _, note in notes] == [span, span, None, None]


@in_both_modes
async def test_a_message_list_knows_its_sources(mode: str) -> None:
    """message_list.add with an unknown source, and replace of an unknown id, are mistakes that say so (R3.2)."""

    def add(messages: Any, ctx: Any) -> None:
        with pytest.raises(UsageError, match="no-such-source"):
            ctx.message_list.add("x", "no-such-source")
        with pytest.raises(UsageError, match="missing"):
            ctx.message_list.replace(messages[0].replace(id="missing"))
        with pytest.raises(UsageError, match="no-call"):
            ctx.message_list.update_tool_invocation("no-call", result=1)

    assert (
        await play(make_agent(ScriptedModel([text("ok")]), Hooks("p", process_input=add)), mode=mode)
    ).result.text == "ok"


@in_both_modes
async def test_a_message_list_can_be_changed_in_place(mode: str) -> None:
    """add, remove_by_ids, clear, add_system, clear_system, replace_system work on the live list (R3.2)."""

    def change(messages: Any, ctx: Any) -> Any:
        conversation = ctx.message_list
        removed = conversation.remove_by_ids([messages[0].id])
        assert [message.text for message in removed] == ["a"]
        conversation.add("c")
        conversation.add_system("tagged", tag="x").add_system("gone", tag="y").clear_system("y")
        conversation.replace_system(["new rules"])
        return conversation

    model = ScriptedModel([text("ok")])
    agent = make_agent(model, Hooks("p", process_input=change), instructions="old rules")
    await play(agent, ["a", "b"], mode=mode)
    assert model.calls[0].prompt_text == "new rules\ntagged\nb\nc"
