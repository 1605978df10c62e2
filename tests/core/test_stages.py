"""The hooks of each stage: what they are given, what they may return, what is made of it (R3.3, R4.1 to R4.9)."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from harness_runs import Hooks, Recorder, check_last, echo_tool, in_both_modes, make_agent, play
from interlock import (
    CachedResponse,
    InputChange,
    LLMRequest,
    Message,
    MessageList,
    ModelError,
    Retry,
    StepChange,
    UsageError,
    tool,
)
from interlock.chunks import Finish, TextDelta, ToolCall, ToolResult, Usage
from interlock.core.ledger import Ledger
from interlock.messages import Content, TextPart
from interlock.testing import ScriptedModel, error, text, tool_call

pytestmark = pytest.mark.anyio


def _message(said: str, id: str = "new", role: Any = "user") -> Message:
    return Message(id=id, role=role, content=Content(parts=[TextPart(text=said)]))


def _texts(messages: Any) -> list[str]:
    return [message.text for message in messages]


# ----------------------------------------------------------------------------------------- lists of messages (R3.3)

INPUT_FORMS: dict[str, tuple[Any, list[str]]] = {
    "nothing": (lambda messages: None, ["a", "b", "c"]),
    "unchanged": (lambda messages: messages, ["a", "b", "c"]),
    "one removed": (lambda messages: [messages[0], messages[2]], ["a", "c"]),
    "one added": (lambda messages: [messages[0], _message("x"), *messages[1:]], ["a", "x", "b", "c"]),
    "one changed": (
        lambda messages: [messages[0], messages[1].replace(content=_message("B").content), messages[2]],
        ["a", "B", "c"],
    ),
    "another order": (lambda messages: messages[::-1], ["c", "b", "a"]),
    "a tuple": (lambda messages: tuple(messages[:1]), ["a"]),
    "all of it": (lambda messages: [messages[2], _message("x"), messages[0]], ["c", "x", "a"]),
}


@in_both_modes
@pytest.mark.parametrize("hook", ["process_input", "process_input_step"])
@pytest.mark.parametrize("form", INPUT_FORMS)
async def test_a_returned_list_is_the_truth(form: str, hook: str, mode: str) -> None:
    """Absent messages go, changed ones are replaced, new ones added, and the list's order is the prompt's (R3.3)."""
    change, expected = INPUT_FORMS[form]
    seen_next: list[list[str]] = []

    def first(subject: Any, ctx: Any) -> Any:
        return change(ctx.messages)

    def second(subject: Any, ctx: Any) -> None:
        seen_next.append(_texts(ctx.messages))

    model = ScriptedModel([text("ok")])
    agent = make_agent(model, Hooks("one", **{hook: first}), Hooks("two", **{hook: second}))
    seen = await play(agent, ["a", "b", "c"], mode=mode)
    assert seen_next == [expected]
    assert model.calls[0].prompt_text.split("\n") == expected
    assert _texts(seen.result.all_messages) == [*expected, "ok"]


@in_both_modes
async def test_unchanged_messages_keep_what_they_are(mode: str) -> None:
    """A message that comes back unchanged keeps id, source, order and created_at (R3.5)."""
    before: list[Any] = []

    def back(messages: Any, ctx: Any) -> Any:
        before.extend((m.id, m.created_at) for m in messages)
        return list(messages)

    agent = make_agent(
        ScriptedModel([text("ok")]),
        Hooks("b", process_input=back, process_input_step=lambda step, ctx: step.messages),
    )
    seen = await play(agent, ["a", "b"], mode=mode)
    assert [(m.id, m.created_at) for m in seen.result.all_messages[:2]] == before
    assert all(moment is not None for _, moment in before)


@in_both_modes
async def test_an_empty_list_from_an_input_hook_removes_all(mode: str) -> None:
    """[] from process_input removes every message (R3.3)."""
    seen_next: list[int] = []
    model = ScriptedModel([text("ok")])
    agent = make_agent(
        model,
        Hooks("e", process_input=lambda messages, ctx: []),
        Hooks("n", process_input_step=lambda step, ctx: seen_next.append(len(step.messages))),
    )
    await play(agent, "gone", mode=mode)
    assert seen_next == [0]
    assert "gone" not in model.calls[0].prompt_text


@in_both_modes
@pytest.mark.parametrize("hook", ["process_output_step", "process_tool_result", "process_output_result"])
async def test_an_empty_list_from_an_output_hook_changes_nothing(hook: str, mode: str) -> None:
    """[] from an output hook means no change (R3.3)."""
    agent = make_agent(
        ScriptedModel([text("a"), tool_call("echo", {"value": 1})], [text("b")]),
        Hooks("e", **{hook: lambda subject, ctx: []}),
        tools=[echo_tool()],
    )
    seen = await play(agent, "q", mode=mode)
    assert seen.result.text == "ab"
    assert _texts(seen.result.all_messages) == ["q", "ab"]
    assert len(seen.result.tool_results) == 1


@in_both_modes
@pytest.mark.parametrize("hook", ["process_output_step", "process_output_result"])
@pytest.mark.parametrize("form", ["in place", "list", "message list"])
async def test_an_answer_can_be_edited(form: str, hook: str, mode: str) -> None:
    """Text edited in process_output_step or _result is the text of result, steps, messages and client (R0.1, R3.3)."""

    def edit(subject: Any, ctx: Any) -> Any:
        answer = ctx.messages[-1]
        if form == "list":
            parts = [part.replace(text="edited") for part in answer.content.parts]
            changed = answer.replace(content=answer.content.replace(parts=parts))
            return [*ctx.messages[:-1], changed]
        answer.content.parts[0].text = "edited"
        return ctx.message_list if form == "message list" else None

    agent = make_agent(ScriptedModel([text("or", "iginal")]), Hooks("e", **{hook: edit}), release="run")
    seen = await play(agent, mode=mode)
    result = seen.result
    assert result.text == result.messages[0].text == result.steps[0].text == result.released_text == "edited"
    if mode == "stream":
        assert seen.shown == "edited"
        assert "original" not in repr(seen.chunks)


@in_both_modes
async def test_input_change_replaces_the_untagged_system_messages(mode: str) -> None:
    """InputChange changes messages and the untagged system messages; tagged ones stay; for the whole run (R3.3)."""

    def tag(messages: Any, ctx: Any) -> Any:
        ctx.message_list.add_system("tagged", tag="t")

    change = Hooks(
        "c",
        process_input=lambda messages, ctx: InputChange(
            messages=messages[1:], system_messages=["new", "rules"]
        ),
    )
    keep = Hooks("k", process_input=lambda messages, ctx: InputChange(messages=messages))
    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("ok")])
    agent = make_agent(
        model, Hooks("t", process_input=tag), change, keep, tools=[echo_tool()], instructions="old rules"
    )
    await play(agent, ["a", "b"], mode=mode)
    for call in model.calls:
        systems = [message["content"] for message in call.prompt if message["role"] == "system"]
        assert systems == ["new", "rules", "tagged"]
    assert "a" not in model.calls[0].prompt_text.split("\n")


# --------------------------------------------------------------------------------------------------- wrong returns

WRONG: dict[str, list[Any]] = {
    "process_input": ["text", 1, True, {"messages": []}, ["text"], [None], Retry(), StepChange()],
    "process_input_step": ["text", 1, {"model": None}, ["text"], Retry(), InputChange(messages=[])],
    "process_llm_request": ["text", {"prompt": []}, [], (), StepChange(), Retry(), False],
    "process_api_error": [True, "retry", {"retry": True}, Retry],
    "process_output_step": ["text", 1, {"text": "x"}, ["text"], StepChange(), True],
    "process_tool_result": ["text", 1, {"result": 1}, ["text"], True],
    "process_output_result": ["text", 1, {"text": "x"}, ["text"], True],
}


@in_both_modes
@pytest.mark.parametrize(
    ("hook", "wrong"), [(hook, wrong) for hook, values in WRONG.items() for wrong in values]
)
async def test_a_wrong_return_names_everything(hook: str, wrong: Any, mode: str) -> None:
    """Anything else is an error naming processor, hook, what was returned and what may be (R3.3)."""
    script = (
        [[error(400, "no")]]
        if hook == "process_api_error"
        else [[tool_call("echo", {"value": 1})], [text("ok")]]
    )
    agent = make_agent(
        ScriptedModel(*script), Hooks("wrong-one", **{hook: lambda s, ctx: wrong}), tools=[echo_tool()]
    )
    seen = await play(agent, mode=mode)
    assert isinstance(seen.error, UsageError), seen.error
    said = str(seen.error)
    assert "'wrong-one'" in said
    assert hook in said
    assert type(wrong).__name__ in said
    assert "None" in said, "it says what may be returned"
    check_last(seen, "error")


@in_both_modes
@pytest.mark.parametrize(
    "hook",
    [
        "process_input",
        "process_input_step",
        "process_output_step",
        "process_tool_result",
        "process_output_result",
    ],
)
async def test_another_message_list_is_refused(hook: str, mode: str) -> None:
    """Returning a MessageList that is not the run's is an error naming processor and hook (R3.4)."""
    other = MessageList(Ledger(lambda: "id", lambda: datetime.datetime.now(datetime.UTC)))
    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("ok")])
    agent = make_agent(model, Hooks("lister", **{hook: lambda s, ctx: other}), tools=[echo_tool()])
    seen = await play(agent, mode=mode)
    assert isinstance(seen.error, UsageError)
    for word in ("lister", hook, "MessageList"):
        assert word in str(seen.error)


@in_both_modes
async def test_two_messages_of_one_id_are_refused(mode: str) -> None:
    """A returned list that names a message twice cannot be reconciled: an error, not a loss (R3.3)."""
    twice = Hooks("twice", process_input=lambda messages, ctx: [*messages, *messages])
    seen = await play(make_agent(ScriptedModel(), twice), mode=mode)
    assert isinstance(seen.error, UsageError)
    assert "twice" in str(seen.error)


# ---------------------------------------------------------------------------------------------- process_input_step


@in_both_modes
async def test_a_step_change_goes_to_the_next_and_lasts_for_the_step(mode: str) -> None:
    """Changes replace, chain to the next processor, and the next step starts from the originals (R4.2)."""
    seen: list[Any] = []

    @tool
    def other() -> str:
        """Another tool."""
        return "o"

    def first(step: Any, ctx: Any) -> StepChange | None:
        if ctx.step_number:
            return None
        return StepChange(
            tools=[other, step.tools["echo"]],
            tool_choice="required",
            active_tools=["echo"],
            model_settings={"temperature": 0},
            provider_options={"p": {"x": 1}},
            structured_output={"type": "object"},
            system_messages=["changed"],
            messages=[*step.messages, _message("added")],
        )

    def second(step: Any, ctx: Any) -> None:
        seen.append(
            (sorted(step.tools), step.tool_choice, step.active_tools, step.model_settings, step.provider_options,
             step.structured_output and step.structured_output.schema.json,
             [m.content for m in step.system_messages], _texts(step.messages)[:2])
        )  # fmt: skip

    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("ok")], native_structured_output=True)
    agent = make_agent(
        model,
        Hooks("one", process_input_step=first),
        Hooks("two", process_input_step=second),
        tools=[echo_tool()],
        instructions="rules",
        model_settings={"top_p": 1},
        provider_options={"q": {}},
    )
    await play(agent, "q", mode=mode)
    assert seen == [
        (
            ["echo", "other"], "required", ["echo"], {"temperature": 0}, {"p": {"x": 1}}, {"type": "object"},
            ["changed"], ["q", "added"],
        ),
        (["echo"], "auto", None, {"top_p": 1}, {"q": {}}, None, ["rules"], ["q", "added"]),
    ]  # fmt: skip
    requests = [call.request for call in model.calls]
    assert [[spec.name for spec in request.tools] for request in requests] == [["echo"], ["echo"]]
    assert [request.tool_choice for request in requests] == ["required", "auto"]
    assert [request.settings for request in requests] == [{"temperature": 0}, {"top_p": 1}]
    assert [request.structured_output for request in requests] == [{"type": "object"}, None]
    assert requests[0].provider_options == {"p": {"x": 1}}


@in_both_modes
async def test_the_subject_is_the_hooks_own(mode: str) -> None:
    """Editing the subject's containers in place changes neither this nor a later step (R4.2: changes are returned)."""

    def edit(step: Any, ctx: Any) -> None:
        step.tools.clear()
        step.model_settings["temperature"] = 9
        step.provider_options["x"] = 1

    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("ok")])
    settings: dict[str, Any] = {"top_p": 1}
    agent = make_agent(
        model, Hooks("e", process_input_step=edit), tools=[echo_tool()], model_settings=settings
    )
    seen = await play(agent, mode=mode)
    assert seen.result.tool_results[0].result == 1
    assert settings == agent.model_settings == {"top_p": 1}
    assert model.calls[1].settings.get("temperature") in (None, 9)


@in_both_modes
async def test_another_model_for_one_step(mode: str) -> None:
    """StepChange.model lasts for the step; process_llm_request and the call see it (R4.2)."""
    seen: list[Any] = []
    strong = ScriptedModel([tool_call("echo", {"value": 1})])
    weak = ScriptedModel([text("ok")])
    agent = make_agent(
        weak,
        Hooks(
            "m",
            process_input_step=lambda step, ctx: None if ctx.step_number else StepChange(model=strong),
            process_llm_request=lambda request, ctx: seen.append(request.model),
        ),
        tools=[echo_tool()],
    )
    await play(agent, mode=mode)
    assert seen == [strong, weak]
    assert len(strong.calls) == len(weak.calls) == 1


@in_both_modes
async def test_tool_choice_none_sends_no_tools(mode: str) -> None:
    """tool_choice none sends no tools; a call the model makes all the same is not run (R4.2)."""
    ran: list[Any] = []
    model = ScriptedModel([text("ok")])
    change = Hooks("n", process_input_step=lambda step, ctx: StepChange(tool_choice="none"))
    await play(make_agent(model, change, tools=[echo_tool(ran)]), mode=mode)
    assert model.calls[0].tools == []


@in_both_modes
async def test_a_call_of_a_tool_that_is_not_active_is_an_unknown_one(mode: str) -> None:
    """active_tools restricts what is sent and what runs (R4.2, R0.4)."""
    ran: list[Any] = []
    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("ok")])
    seen = await play(make_agent(model, tools=[echo_tool(ran)]), mode=mode, active_tools=[])
    assert ran == []
    assert model.calls[0].tools == []
    assert model.calls[1].prompt[-1]["content"][0]["output"]["type"] == "error-text"
    assert seen.result.text == "ok"


@in_both_modes
async def test_messages_and_message_list_together_are_refused(mode: str) -> None:
    """A StepChange with both messages and message_list is an error naming processor and hook (R3.4, R4.2)."""

    def both(step: Any, ctx: Any) -> StepChange:
        return StepChange(messages=step.messages, message_list=ctx.message_list)

    seen = await play(make_agent(ScriptedModel(), Hooks("both", process_input_step=both)), mode=mode)
    assert isinstance(seen.error, UsageError)
    for word in ("both", "process_input_step", "messages", "message_list"):
        assert word in str(seen.error)


@in_both_modes
async def test_system_messages_of_a_step_do_not_stay(mode: str) -> None:
    """Untagged system messages start every step from their originals; tagged ones stay (R4.2)."""

    def add(step: Any, ctx: Any) -> Any:
        if ctx.step_number == 0:
            ctx.message_list.add_system("for this step").add_system("for good", tag="t")
            return ctx.message_list
        return None

    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("ok")])
    agent = make_agent(model, Hooks("a", process_input_step=add), tools=[echo_tool()], instructions="rules")
    await play(agent, mode=mode)
    systems = [[m["content"] for m in call.prompt if m["role"] == "system"] for call in model.calls]
    assert systems == [["rules", "for this step", "for good"], ["rules", "for good"]]


# --------------------------------------------------------------------------------------------- process_llm_request

PROMPT_EDITS: dict[str, Any] = {
    "the prompt's items": lambda request: request.prompt.__setitem__(0, request.prompt[1]),
    "a message's role": lambda request: setattr(request.prompt[0], "role", "user"),
    "a message's content": lambda request: setattr(request.prompt[0], "content", "x"),
    "a part's text": lambda request: setattr(request.prompt[1].content[0], "text", "x"),
    "the parts": lambda request: request.prompt[1].content.append("x"),
    "a call's arguments": lambda request: request.prompt[2].content[0].input.update(value=2),
    "a call's inner list": lambda request: request.prompt[2].content[0].input["value"].append(2),
    "a result": lambda request: request.prompt[3].content[0].value.clear(),
    "the request": lambda request: setattr(request, "prompt", ()),
    "the request's model": lambda request: setattr(request, "model", None),
}


@in_both_modes
@pytest.mark.parametrize("edit", PROMPT_EDITS)
async def test_the_prompt_is_frozen(edit: str, mode: str) -> None:
    """An in-place change of the prompt raises, and ends the run as any exception in a hook (R4.3, R5.4)."""

    def change(request: Any, ctx: Any) -> None:
        if ctx.step_number == 1:
            PROMPT_EDITS[edit](request)

    model = ScriptedModel([tool_call("echo", {"value": [1]})], [text("ok")])
    agent = make_agent(
        model, Hooks("edits", process_llm_request=change), tools=[echo_tool()], instructions="rules"
    )
    seen = await play(agent, mode=mode)
    assert isinstance(seen.error, TypeError | AttributeError)
    assert any("edits" in note and "process_llm_request" in note for note in seen.error.__notes__)
    assert len(model.calls) == 1


@in_both_modes
async def test_a_request_is_changed_for_one_call_only(mode: str) -> None:
    """A returned request goes to the next processor and to this call, and is written nowhere else (R4.3)."""
    seen: list[str] = []

    def censor(request: Any, ctx: Any) -> Any:
        return request.map_text(lambda said: said.replace("secret", "***")) if ctx.step_number == 0 else None

    look = Hooks("l", process_llm_request=lambda request, ctx: seen.append(request.prompt[-1].text))
    model = ScriptedModel([tool_call("echo", {"value": "secret"})], [text("ok")])
    agent = make_agent(model, Hooks("c", process_llm_request=censor), look, tools=[echo_tool()])
    result = (await play(agent, "my secret", mode=mode)).result
    assert seen[0] == "my ***"
    assert "secret" not in model.calls[0].prompt_text
    assert model.calls[1].prompt_text.count("secret") >= 2
    assert result.all_messages[0].text == "my secret"


@in_both_modes
async def test_what_a_request_hook_breaks_is_repaired(mode: str) -> None:
    """A prompt left with an orphaned result, or beginning with the assistant, is well formed when sent (R3.8)."""

    def drop_first(request: Any, ctx: Any) -> LLMRequest | None:
        return request.replace(prompt=request.prompt[1:]) if ctx.step_number else None

    def drop_call(request: Any, ctx: Any) -> LLMRequest | None:
        kept = tuple(message for message in request.prompt if message.role != "assistant")
        return request.replace(prompt=kept) if ctx.step_number else None

    for hook, roles in ((drop_first, ["user", "assistant", "tool"]), (drop_call, ["user"])):
        model = ScriptedModel([tool_call("echo", {"value": 1})], [text("ok")])
        await play(
            make_agent(model, Hooks("d", process_llm_request=hook), tools=[echo_tool()]), "q", mode=mode
        )
        assert [message["role"] for message in model.calls[1].prompt] == roles


@in_both_modes
async def test_the_model_cannot_be_changed_there(mode: str) -> None:
    """A request with another model is an error that says where to change it (R4.3, R4.2)."""
    swap = Hooks("s", process_llm_request=lambda request, ctx: request.replace(model=ScriptedModel()))
    seen = await play(make_agent(ScriptedModel([text("x")]), swap), mode=mode)
    assert isinstance(seen.error, UsageError)
    assert "process_input_step" in str(seen.error)


# ----------------------------------------------------------------------------------------------------- CachedResponse


def _cached(*chunks: Any) -> Any:
    return lambda request, ctx: CachedResponse(chunks=list(chunks))


@in_both_modes
async def test_a_cached_response_stands_for_the_call(mode: str) -> None:
    """No provider call; its chunks pass the output processors; usage is zero; reason stop if it has none (R4.3)."""
    got: list[Any] = []
    shout = Hooks(
        "s",
        process_output_stream=lambda c, ctx: (
            c.replace(text=c.text.upper()) if isinstance(c, TextDelta) else c
        ),
        process_llm_response=lambda response, ctx: got.append(response),
    )
    model = ScriptedModel()
    agent = make_agent(model, Hooks("c", process_llm_request=_cached(TextDelta(id="t", text="kept"))), shout)
    seen = await play(agent, mode=mode)
    assert model.calls == []
    assert seen.result.text == "KEPT"
    assert seen.result.usage == Usage()
    assert seen.result.finish_reason == "stop"
    assert got[0].from_cache is True
    check_last(seen, "finish")


@in_both_modes
async def test_a_cached_finish_keeps_its_reason_but_costs_nothing(mode: str) -> None:
    """The finish of a cached response gives the reason; the usage stays zero (R4.3)."""
    finish = Finish(finish_reason="length", usage=Usage(input_tokens=7, total_tokens=7))
    cache = Hooks("c", process_llm_request=_cached(TextDelta(id="t", text="kept"), finish))
    seen = await play(make_agent(ScriptedModel(), cache), mode=mode)
    assert seen.result.finish_reason == "length"
    assert seen.result.usage.total_tokens == 0
    assert seen.result.steps[0].usage.total_tokens == 0


@in_both_modes
async def test_a_cached_tool_call_runs(mode: str) -> None:
    """Cached chunks take the normal way through (d) to (h): tools run, the loop goes on (R4.3)."""
    ran: list[Any] = []

    def cache(request: Any, ctx: Any) -> Any:
        if ctx.step_number == 0:
            return CachedResponse(chunks=[ToolCall(tool_call_id="c", tool_name="echo", args={"value": 1})])
        return None

    model = ScriptedModel([text("ok")])
    agent = make_agent(model, Hooks("c", process_llm_request=cache), tools=[echo_tool(ran)])
    seen = await play(agent, mode=mode)
    assert ran == [1]
    assert seen.result.text == "ok"
    assert len(model.calls) == 1


@in_both_modes
async def test_the_first_cached_response_counts_and_later_hooks_still_run(mode: str) -> None:
    """Later process_llm_request still run; a later CachedResponse does not count; an abort does (R4.3)."""
    one = Hooks("one", process_llm_request=_cached(TextDelta(id="t", text="first")))
    two = Hooks("two", process_llm_request=_cached(TextDelta(id="t", text="second")))
    recorder = Recorder("later", hooks=["process_llm_request"])
    seen = await play(make_agent(ScriptedModel(), one, two, recorder), mode=mode)
    assert seen.result.text == "first"
    assert recorder.hooks == ["process_llm_request"]
    stop = Hooks("stop", process_llm_request=lambda request, ctx: ctx.abort("no"))
    seen = await play(make_agent(ScriptedModel(), one, stop), mode=mode)
    assert seen.result.tripwire is not None
    assert seen.result.text == ""


@in_both_modes
async def test_a_cache_made_of_raw_chunks_gives_the_same_answer(mode: str) -> None:
    """raw_chunks replayed through the same processors give the same text, calls and reason, each time (R4.3, R4.4)."""

    class Cache(Hooks):
        kept: Any = None

        def process_llm_request(self, request: Any, ctx: Any) -> Any:
            return CachedResponse(chunks=self.kept) if self.kept else None

        def process_llm_response(self, response: Any, ctx: Any) -> None:
            if not response.from_cache:
                self.kept = response.raw_chunks

    def double(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, TextDelta):
            chunk.text *= 2
        return chunk

    model = ScriptedModel([text("a", "b")])
    agent = make_agent(model, Cache("cache"), Hooks("d", process_output_stream=double))
    runs = [await play(agent, mode=mode) for _ in range(3)]
    assert [run.result.text for run in runs] == ["aabb"] * 3
    assert [run.types for run in runs] == [runs[0].types] * 3
    assert len(model.calls) == 1


# ------------------------------------------------------------------------------------------------ process_api_error


@in_both_modes
async def test_a_retry_may_change_the_messages(mode: str) -> None:
    """The hook gets the error, may change the list, and the step is asked again with (a) to (d) (R4.5)."""
    got: list[Any] = []

    def repair(problem: Any, ctx: Any) -> Retry:
        got.append((problem.status, str(problem), ctx.retry_count, ctx.step_number))
        ctx.message_list.remove_by_ids([ctx.messages[0].id])
        return Retry()

    recorder = Recorder("again", hooks=["process_input", "process_input_step", "process_llm_request"])
    model = ScriptedModel([error(400, "too long")], [text("ok")])
    seen = await play(
        make_agent(model, Hooks("r", process_api_error=repair), recorder), ["a", "b"], mode=mode
    )
    assert seen.result.text == "ok"
    assert got == [(400, "too long (400)", 0, 0)]
    assert [call.prompt_text for call in model.calls] == ["a\nb", "b"]
    assert recorder.hooks == ["process_input", *["process_input_step", "process_llm_request"] * 2]


@in_both_modes
async def test_the_first_retry_ends_the_round(mode: str) -> None:
    """Processors are asked in order until one returns Retry (R4.5)."""
    asked: list[str] = []

    def make(name: str, answer: Any) -> Hooks:
        return Hooks(name, process_api_error=lambda problem, ctx: (asked.append(name), answer)[1])

    model = ScriptedModel([error(400, "no")], [text("ok")])
    await play(make_agent(model, make("a", None), make("b", Retry()), make("c", Retry())), mode=mode)
    assert asked == ["a", "b"]


@in_both_modes
async def test_an_error_nobody_handles_surfaces(mode: str) -> None:
    """Not asked or not granted: the original error surfaces (R4.5)."""
    original = error(400, "no")
    for processors in ([], [Hooks("n", process_api_error=lambda problem, ctx: None)]):
        seen = await play(make_agent(ScriptedModel([original]), *processors), mode=mode)
        assert seen.error is original
    capped = make_agent(
        ScriptedModel([error(400, "1")], [error(400, "2")]),
        Hooks("r", process_api_error=lambda problem, ctx: Retry()),
        max_processor_retries=1,
    )
    seen = await play(capped, mode=mode)
    assert isinstance(seen.error, ModelError)
    assert seen.error.message == "2"


@in_both_modes
@pytest.mark.parametrize("cap", [None, 0, 2])
async def test_error_retries_end_at_the_cap(cap: int | None, mode: str) -> None:
    """Granted while the step has had fewer than the cap, 10 by default; then asked once more (R4.5, R7.2)."""
    counts: list[int] = []

    def handle(problem: Any, ctx: Any) -> Retry:
        counts.append(ctx.retry_count)
        return Retry()

    model = ScriptedModel([error(400, "no")], repeat_last=True)
    agent = make_agent(model, Hooks("h", process_api_error=handle), max_processor_retries=cap)
    seen = await play(agent, mode=mode)
    assert isinstance(seen.error, ModelError)
    limit = 10 if cap is None else cap
    assert counts == list(range(limit + 1))
    assert len(model.calls) == limit + 1


@in_both_modes
async def test_an_error_inside_the_stream_is_asked_about_too(mode: str) -> None:
    """An error after half an answer goes to process_api_error; the half is withdrawn, and not in the retry (R4.5)."""
    model = ScriptedModel([TextDelta(id="t", text="half"), error(500, "cut")], [text("whole")])
    agent = make_agent(model, Hooks("h", process_api_error=lambda problem, ctx: Retry()))
    seen = await play(agent, mode=mode)
    assert seen.result.text == "whole"
    assert "half" not in model.calls[1].prompt_text
    assert "half" not in repr(seen.result.messages)
    assert [step.text for step in seen.result.steps] == ["whole"], "a failed call is no step (R5.3)"
    if mode == "stream":
        assert seen.types[1:6] == ["step-start", "text-start", "text-delta", "text-end", "step-finish"]
        assert seen.chunks[5].finish_reason == "retry"  # type: ignore[attr-defined]


# ----------------------------------------------------------------------------------------------- process_output_step


@in_both_modes
async def test_process_output_step_gets_the_response(mode: str) -> None:
    """text, tool_calls, finish_reason, usage, provider_metadata, as the messages hold them (R4.7)."""
    got: list[Any] = []
    script = [
        text("a", id="t"),
        tool_call("echo", {"value": 1}, id="c1"),
        text("b", id="u"),
        Finish(
            finish_reason="tool-calls",
            usage=Usage(input_tokens=1, output_tokens=2),
            provider_metadata={"p": {"x": 1}},
        ),
    ]
    agent = make_agent(
        ScriptedModel(script, [text("ok")]),
        Hooks("g", process_output_step=lambda output, ctx: got.append(output)),
        tools=[echo_tool()],
    )
    await play(agent, mode=mode)
    output = got[0]
    assert output.text == "ab", "the text of a step is all its text blocks joined (R0)"
    assert [(call.tool_call_id, call.args) for call in output.tool_calls] == [("c1", {"value": 1})]
    assert output.finish_reason == "tool-calls"
    assert (output.usage.input_tokens, output.usage.output_tokens, output.usage.total_tokens) == (1, 2, 3)
    assert output.provider_metadata == {"p": {"x": 1}}


@in_both_modes
async def test_what_one_output_step_changes_the_next_sees(mode: str) -> None:
    """text of the next processor's subject is the edited one (R1, R4.7)."""
    got: list[str] = []

    def edit(output: Any, ctx: Any) -> None:
        ctx.messages[-1].content.parts[0].text += "!"

    agent = make_agent(
        ScriptedModel([text("a")]),
        Hooks("e", process_output_step=edit),
        Hooks("g", process_output_step=lambda output, ctx: got.append(output.text)),
        Hooks("r", process_output_result=lambda result, ctx: got.append(result.text)),
    )
    await play(agent, mode=mode)
    assert got == ["a!", "a!"]


@in_both_modes
async def test_a_call_removed_in_process_output_step_is_not_made(mode: str) -> None:
    """The calls that run are those the message list then holds, with its arguments (R4.7, R0.4)."""
    ran: list[Any] = []

    def change(output: Any, ctx: Any) -> None:
        parts = ctx.messages[-1].content.parts
        parts[:] = [part for part in parts if getattr(part, "tool_call_id", "") != "bad"]
        for part in parts:
            if getattr(part, "tool_call_id", "") == "edit":
                part.args = {"value": "edited"}

    calls = [tool_call("echo", {"value": 1}, id="bad"), tool_call("echo", {"value": "given"}, id="edit")]
    model = ScriptedModel(calls, [text("ok")])
    seen = await play(
        make_agent(model, Hooks("c", process_output_step=change), tools=[echo_tool(ran)]), mode=mode
    )
    assert ran == ["edited"]
    assert [call.tool_call_id for call in seen.result.tool_calls] == ["edit"]
    if mode == "stream":
        sent = [(c.tool_call_id, c.args) for c in seen.chunks if isinstance(c, ToolCall)]
        assert sent == [("edit", {"value": "edited"})], "auto holds the step (R7.5)"


@in_both_modes
async def test_removing_the_only_call_ends_the_loop(mode: str) -> None:
    """Without a call left there is no further step (R4.7, R1.2h)."""

    def remove(output: Any, ctx: Any) -> Any:
        answer = ctx.messages[-1]
        answer.content.parts[:] = [part for part in answer.content.parts if part.type == "text"]

    model = ScriptedModel([text("a"), tool_call("echo", {"value": 1})])
    seen = await play(
        make_agent(model, Hooks("r", process_output_step=remove), tools=[echo_tool()]), mode=mode
    )
    assert len(model.calls) == 1
    assert seen.result.text == "a"


@in_both_modes
async def test_a_call_answered_in_process_output_step_is_not_run(mode: str) -> None:
    """Its answer passes process_tool_result and goes out as its tool-result; the first answer stays (R4.7)."""
    ran: list[Any] = []
    heard: list[Any] = []

    def answer(value: str) -> Any:
        return lambda output, ctx: (
            ctx.message_list.update_tool_invocation("c1", result=value) if output.tool_calls else None
        )

    agent = make_agent(
        ScriptedModel(
            [tool_call("echo", {"value": 1}, id="c1"), tool_call("echo", {"value": 2}, id="c2")], [text("ok")]
        ),
        Hooks("one", process_output_step=answer("first")),
        Hooks("two", process_output_step=answer("second")),
        Hooks(
            "h", process_tool_result=lambda result, ctx: heard.append((result.tool_call_id, result.result))
        ),
        tools=[echo_tool(ran)],
    )
    seen = await play(agent, mode=mode)
    assert ran == [2]
    assert heard == [("c1", "first"), ("c2", 2)]
    assert [result.result for result in seen.result.tool_results] == ["first", 2]
    assert seen.result.text == "ok"
    if mode == "stream":
        assert [chunk.result for chunk in seen.chunks if isinstance(chunk, ToolResult)] == ["first", 2]


@in_both_modes
async def test_system_messages_changed_in_process_output_step_do_not_stay(mode: str) -> None:
    """Changes to system messages there last for no later step (R4.7)."""
    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("ok")])
    add = Hooks("a", process_output_step=lambda output, ctx: ctx.message_list.add_system("extra") and None)
    await play(make_agent(model, add, tools=[echo_tool()], instructions="rules"), mode=mode)
    assert "extra" not in model.calls[1].prompt_text
    assert "rules" in model.calls[1].prompt_text


# ------------------------------------------------------------------------------------------------ process_tool_result


@in_both_modes
@pytest.mark.parametrize("way", ["returned", "message list", "in place"])
@pytest.mark.parametrize("provider", [False, True])
async def test_a_tool_result_can_be_replaced(provider: bool, way: str, mode: str) -> None:
    """Model, storage, the client's chunk and the next processor all have the changed result (R4.8)."""
    heard: list[Any] = []

    def replace(result: Any, ctx: Any) -> Any:
        if way == "returned":
            return result.replace(result="clean")
        if way == "message list":
            ctx.message_list.update_tool_invocation(result.tool_call_id, result="clean")
            return ctx.message_list
        ctx.message_list.update_tool_invocation(result.tool_call_id, result="clean")
        return None

    if provider:
        script: list[list[Any]] = [
            [
                ToolCall(tool_call_id="c", tool_name="search", args={"q": 1}, provider_executed=True),
                ToolResult(tool_call_id="c", tool_name="search", result="dirty", provider_executed=True),
                text("ok"),
            ]
        ]
    else:
        script = [[tool_call("echo", {"value": "dirty"}, id="c")], [text("ok")]]
    model = ScriptedModel(*script)
    agent = make_agent(
        model,
        Hooks("r", process_tool_result=replace),
        Hooks("h", process_tool_result=lambda result, ctx: heard.append(result)),
        tools=[echo_tool()],
    )
    seen = await play(agent, mode=mode)
    assert [(each.result, bool(each.provider_executed)) for each in heard] == [("clean", provider)]
    assert heard[0].args == ({"q": 1} if provider else {"value": "dirty"})
    assert [result.result for result in seen.result.tool_results] == ["clean"]
    part: Any = seen.result.messages[0].content.parts[0]
    assert part.result == "clean"
    if mode == "stream":
        assert [chunk.result for chunk in seen.chunks if isinstance(chunk, ToolResult)] == ["clean"]
    if not provider:
        assert model.calls[1].prompt[-1]["content"][0]["output"] == {"type": "text", "value": "clean"}


@in_both_modes
async def test_results_are_json_before_a_hook_sees_them(mode: str) -> None:
    """Own tools' results are made JSON-serialisable first; None is a result (R4.8)."""
    heard: list[Any] = []

    @tool
    def dated() -> Any:
        return {"at": datetime.date(2026, 1, 2), "many": (1, 2), "call": print}

    @tool
    def nothing() -> None:
        return None

    model = ScriptedModel([tool_call("dated"), tool_call("nothing")], [text("ok")])
    look = Hooks("l", process_tool_result=lambda result, ctx: heard.append(result.result))
    seen = await play(make_agent(model, look, tools=[dated, nothing]), mode=mode)
    assert heard == [{"at": "2026-01-02", "many": [1, 2]}, None]
    assert len(seen.result.tool_results) == 2
    assert seen.result.text == "ok"


@in_both_modes
async def test_failed_tools_are_for_those_who_ask(mode: str) -> None:
    """process_tool_errors = True: the hook gets is_error and the error text, and may replace it (R4.8)."""
    heard: list[Any] = []

    @tool
    def fails() -> None:
        raise ValueError("password is swordfish")

    def mask(result: Any, ctx: Any) -> Any:
        heard.append((result.is_error, result.result))
        return result.replace(result="it failed")

    plain = Recorder("plain", hooks=["process_tool_result"])
    asks = Hooks("asks", process_tool_result=mask, process_tool_errors=True)
    model = ScriptedModel(
        [tool_call("fails"), tool_call("fails", {"x": 1}), tool_call("unknown")], [text("ok")]
    )
    seen = await play(make_agent(model, asks, plain, tools=[fails]), mode=mode)
    assert plain.log == []
    assert [is_error for is_error, _ in heard] == [True, True, True]
    assert heard[0][1] == "password is swordfish"
    assert "swordfish" not in model.calls[1].prompt_text + repr(seen.chunks) + repr(seen.result)
    outputs = [part["output"] for part in model.calls[1].prompt[-1]["content"]]
    assert outputs == [{"type": "error-text", "value": "it failed"}] * 3
    if mode == "stream":
        assert seen.types.count("tool-error") == 3


@in_both_modes
async def test_one_invalid_call_never_stops_the_others(mode: str) -> None:
    """Unreadable arguments, bad ones, an unknown tool: each is its own call's result; chunks in call order (R4.8)."""
    ran: list[Any] = []
    calls = [
        ToolCall(tool_call_id="c1", tool_name="echo", args=None, invalid="not JSON"),
        tool_call("echo", {"value": "good"}, id="c2"),
        tool_call("nowhere", id="c3"),
        tool_call("echo", {}, id="c4"),
    ]
    model = ScriptedModel(calls, [text("ok")])
    seen = await play(make_agent(model, tools=[echo_tool(ran)]), mode=mode)
    assert ran == ["good"]
    outputs = {part["toolCallId"]: part["output"]["type"] for part in model.calls[1].prompt[-1]["content"]}
    assert outputs == {"c1": "error-text", "c2": "text", "c3": "error-text", "c4": "error-text"}
    if mode == "stream":
        ends = [(c.type, c.tool_call_id) for c in seen.chunks if c.type in ("tool-result", "tool-error")]  # type: ignore[attr-defined]
        assert ends == [
            ("tool-error", "c1"),
            ("tool-result", "c2"),
            ("tool-error", "c3"),
            ("tool-error", "c4"),
        ]


# --------------------------------------------------------------------------------------------- process_llm_response


@in_both_modes
async def test_what_process_llm_response_returns_means_nothing(mode: str) -> None:
    """It returns nothing; whatever it gives back is ignored (R4.4, D31)."""
    returns = Hooks("r", process_llm_response=lambda response, ctx: "anything")
    assert (await play(make_agent(ScriptedModel([text("a")]), returns), mode=mode)).result.text == "a"


# -------------------------------------------------------------------------------------------- process_output_result


@in_both_modes
async def test_a_message_added_to_the_final_answer_is_part_of_it(mode: str) -> None:
    """What process_output_result adds is a response message: in result, client (release run) and order (R3.3, R0.1)."""

    def add(result: Any, ctx: Any) -> Any:
        return [*ctx.messages, _message("P.S.", "ps", "assistant")]

    agent = make_agent(ScriptedModel([text("a")]), Hooks("a", process_output_result=add))
    seen = await play(agent, "q", mode=mode, release="run")
    assert _texts(seen.result.messages) == ["a", "P.S."]
    assert seen.result.text == seen.result.released_text == "aP.S."
    assert _texts(seen.result.all_messages) == ["q", "a", "P.S."]
    if mode == "stream":
        assert seen.shown == "aP.S."


@in_both_modes
async def test_the_question_cannot_be_lost_there(mode: str) -> None:
    """process_output_result reconciles the response only: what it was not shown stays (R3.1, R3.3)."""
    keep = Hooks("k", process_output_result=lambda result, ctx: [_message("new", "n", "assistant")])
    seen = await play(make_agent(ScriptedModel([text("a")]), keep), "q", mode=mode)
    assert _texts(seen.result.all_messages) == ["q", "new"]
    assert seen.result.text == "new"


@in_both_modes
@pytest.mark.parametrize(
    "hook", ["process_input", "process_input_step", "process_output_step", "process_output_result"]
)
async def test_the_plain_list_itself_is_the_hooks_own(hook: str, mode: str) -> None:
    """messages is a plain list: adding to it or emptying it without returning it changes nothing (R3.1, R3.3)."""

    def spoil(subject: Any, ctx: Any) -> None:
        for given in (subject, getattr(subject, "messages", None), ctx.messages):
            if isinstance(given, list):
                given.append(_message("stray"))
                given.clear()

    model = ScriptedModel([text("ok")])
    seen = await play(make_agent(model, Hooks("s", **{hook: spoil})), "q", mode=mode)
    assert model.calls[0].prompt_text == "q"
    assert _texts(seen.result.all_messages) == ["q", "ok"]


@in_both_modes
async def test_ctx_steps_and_result_records_are_the_hooks_own(mode: str) -> None:
    """Editing what ctx.steps or result.steps gave does not change the run's record (R4: records are derived)."""

    def spoil(result: Any, ctx: Any) -> None:
        for steps in (result.steps, ctx.steps):
            steps[0].text = "forged"
            steps.clear()

    seen = await play(
        make_agent(ScriptedModel([text("ok")]), Hooks("s", process_output_result=spoil)), mode=mode
    )
    assert [step.text for step in seen.result.steps] == ["ok"]
    assert seen.result.text == "ok"
