"""Every mistake is told in words that help: processor, hook, what was given, what to write (R2, R3, R10, R11)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from interlock import (
    Agent,
    CachedResponse,
    Chain,
    InputChange,
    InputProcessor,
    OutputProcessor,
    Parallel,
    Processor,
    StepChange,
    UsageError,
    When,
    tool,
)
from interlock.chunks import TextDelta
from interlock.memory import Memory
from interlock.testing import ScriptedModel, text, tool_call

Action = Callable[[], Any]


class Hooked(Processor):
    """A processor whose hooks and attributes are given by name."""

    def __init__(self, id: Any, **members: Any) -> None:
        self.id = id
        for name, member in members.items():
            setattr(self, name, member)


class OnlyInput(InputProcessor):
    id = "only-input"

    def process_input(self, messages: Any, ctx: Any) -> None:
        return None


class OnlyOutput(OutputProcessor):
    id = "only-output"

    def process_output_step(self, output: Any, ctx: Any) -> None:
        return None


class Empty(Processor):
    id = "empty-one"


class NoId(Processor):
    def process_input(self, messages: Any, ctx: Any) -> None:
        return None


def nothing(subject: Any, ctx: Any) -> None:
    """A hook that does nothing."""


def agent(**options: Any) -> Agent:
    """An agent with a tool, for one tool call and an answer."""

    @tool
    def echo(value: int) -> int:
        return value

    model = ScriptedModel([tool_call("echo", {"value": 1}, id="c1")], [text("ok")], repeat_last=True)
    defaults: dict[str, Any] = {"id": "agent-x", "model": model, "tools": [echo]}
    return Agent(**{**defaults, **options})


def call(given: Any = "hi", **options: Any) -> Action:
    """A call with these options."""
    return lambda: agent().generate_sync(given, **options)


def hook(name: str, function: Any, id: str = "guilty") -> Action:
    """A run with a processor that has this hook."""
    lane = {"process_api_error": "error"}.get(
        name, "output" if "output" in name or "tool" in name else "input"
    )
    return lambda: agent(**{f"{lane}_processors": [Hooked(id, **{name: function})]}).generate_sync("hi")


def returning(name: str, value: Any) -> Action:
    """A run with a processor whose hook returns this."""
    return hook(name, lambda subject, ctx: value)


def setting_up(**options: Any) -> Action:
    """The making of an agent with these options."""
    return lambda: agent(**options)


async def _later(value: Any) -> Any:
    return value


def _write(chunk: Any) -> Any:
    async def write(messages: Any, ctx: Any) -> None:
        await ctx.writer.custom(chunk)

    return write


SET_UP: dict[str, tuple[Action, list[str]]] = {
    # R2.1, R2.4, R2.5, R2.7: processors
    "a class": (setting_up(input_processors=[OnlyInput]), ["input_processors", "OnlyInput", "OnlyInput()"]),
    "no processor": (setting_up(output_processors=["text"]), ["output_processors", "str", "Processor"]),
    "a function": (setting_up(output_processors=[nothing]), ["output_processors", "function", "Processor"]),
    "None": (setting_up(error_processors=[None]), ["error_processors", "NoneType"]),
    "no id": (setting_up(input_processors=[NoId()]), ["input_processors", "NoId", "id ="]),
    "an id that is no text": (
        setting_up(input_processors=[Hooked(7, process_input=nothing)]),
        ["input_processors", "Hooked", "id"],
    ),
    "no hook at all": (
        setting_up(output_processors=[Empty()]),
        ["empty-one", "output_processors", "process_output_stream", "process_output_step", "process_tool_result",
         "process_output_result"],
    ),
    "no hook of an input list": (
        setting_up(input_processors=[Empty()]),
        ["empty-one", "input_processors", "process_input", "process_input_step", "process_llm_request",
         "process_llm_response"],
    ),
    "no hook of the error list": (
        setting_up(error_processors=[OnlyOutput()]), ["only-output", "error_processors", "process_api_error"]
    ),
    "the wrong list": (
        setting_up(output_processors=[OnlyInput()]),
        ["only-input", "output_processors", "process_output_step", "belongs in input_processors"],
    ),
    "the wrong list, the other way": (
        setting_up(input_processors=[OnlyOutput()]), ["only-output", "input_processors", "process_input"]
    ),
    "an id twice": (
        setting_up(input_processors=[OnlyInput(), OnlyInput()]), ["only-input", "input_processors", "same id"]
    ),
    "an object twice": (
        setting_up(input_processors=[given := OnlyInput(), given]), ["only-input", "input_processors", "same id"]
    ),
    "an id twice in a chain": (
        setting_up(input_processors=[OnlyInput(), Chain(OnlyInput())]), ["only-input", "same id"]
    ),
    "on_error": (
        setting_up(input_processors=[Hooked("odd", process_input=nothing, on_error="loud")]),
        ["odd", "on_error", "'loud'", "closed", "open"],
    ),
    "a hook that cannot be called": (
        setting_up(input_processors=[Hooked("odd", process_input="text")]), ["odd", "process_input", "str"]
    ),
    # R10.1, R10.5: the agent
    "a list that is none": (setting_up(input_processors="text"), ["agent-x", "input_processors", "str", "list"]),
    "one processor without a list": (
        setting_up(input_processors=OnlyInput()), ["agent-x", "input_processors", "OnlyInput", "list"]
    ),
    "release": (setting_up(release="now"), ["agent-x", "release", "'now'", "auto", "live", "step", "run"]),
    "max_steps of 0": (setting_up(max_steps=0), ["agent-x", "max_steps", "0"]),
    "max_steps as text": (setting_up(max_steps="3"), ["agent-x", "max_steps", "'3'"]),
    "max_steps as a truth": (setting_up(max_steps=True), ["agent-x", "max_steps", "True"]),
    "negative retries": (setting_up(max_processor_retries=-1), ["agent-x", "max_processor_retries", "-1"]),
    "half a retry": (setting_up(max_processor_retries=0.5), ["agent-x", "max_processor_retries", "0.5"]),
    "a tool that is none": (setting_up(tools=["text"]), ["agent-x", "tool", "'text'"]),
    "tools as text": (setting_up(tools="echo"), ["agent-x", "tools", "str"]),
    "two tools of a name": (
        setting_up(tools=[tool(name="same")(lambda: 1), tool(name="same")(lambda: 2)]), ["agent-x", "same"]
    ),
    "an unknown provider": (setting_up(model="no-such-provider/x"), ["no-such-provider"]),
    "a model that is none": (setting_up(model=7), ["model", "7"]),
    "settings that are none": (setting_up(model_settings="hot"), ["agent-x", "model_settings", "str"]),
    "options that are none": (setting_up(provider_options=[1]), ["agent-x", "provider_options", "list"]),
    "instructions that are none": (setting_up(instructions=[7]), ["agent-x", "instructions", "int"]),
    # R10.3: compositions
    "a chain of nothing": (Chain, ["Chain", "at least one"]),
    "a condition that is none": (lambda: When("x", OnlyInput()), ["When", "str", "ctx"]),  # type: ignore[arg-type]
    "parallel streams": (
        lambda: Parallel(Hooked("streamer", process_output_stream=nothing)),
        ["streamer", "process_output_stream"],
    ),
    "an unknown member to keep": (lambda: Parallel(OnlyInput(), keep="who"), ["keep", "'who'"]),
    # R8
    "a store that is none": (lambda: Memory(5), ["Memory", "not 5"]),  # type: ignore[arg-type]
}  # fmt: skip

AT_THE_CALL: dict[str, tuple[Action, list[str]]] = {
    # R10.2, R10.5
    "an unknown option": (call(max_step=3), ["agent-x", "max_step", "max_steps"]),
    "a wrong processor": (call(output_processors=[OnlyInput()]), ["only-input", "output_processors"]),
    "an id twice": (call(input_processors=[OnlyInput(), OnlyInput()]), ["only-input", "same id"]),
    "a list that is none": (call(error_processors="text"), ["agent-x", "error_processors", "str"]),
    "a function that gives no list": (
        call(input_processors=lambda context: "text"), ["input_processors", "str", "list"]
    ),
    "an async function that gives no list": (
        call(output_processors=lambda context: _later(None)), ["output_processors", "NoneType", "list"]
    ),
    "a function that gives a wrong processor": (
        call(output_processors=lambda context: [OnlyInput()]), ["only-input", "output_processors"]
    ),
    "release": (call(release="later"), ["agent-x", "release", "'later'"]),
    "max_steps": (call(max_steps=-2), ["agent-x", "max_steps", "-2"]),
    "max_processor_retries": (call(max_processor_retries="2"), ["agent-x", "max_processor_retries", "'2'"]),
    "request_context": (call(request_context="acme"), ["agent-x", "request_context", "str"]),
    "memory without a thread": (call(memory={"resource": "r"}), ["agent-x", "memory", "thread"]),
    "memory as text": (call(memory="t1"), ["agent-x", "memory", "'t1'", "thread"]),
    "a resource that is no text": (call(memory={"thread": "t", "resource": 7}), ["agent-x", "resource", "7"]),
    "tools": (call(tools=[7]), ["agent-x", "tool", "7"]),
    "tool_choice": (call(tool_choice="sometimes"), ["agent-x", "tool_choice", "'sometimes'", "required"]),
    "active_tools": (call(active_tools="echo"), ["agent-x", "active_tools", "'echo'", "list"]),
    "model_settings": (call(model_settings="hot"), ["agent-x", "model_settings", "str"]),
    "provider_options": (call(provider_options=[1]), ["agent-x", "provider_options", "list"]),
    "prepare_step": (call(prepare_step="text"), ["prepare_step", "str"]),
    "instructions": (call(instructions=[7]), ["agent-x", "instructions", "int"]),
    "system": (call(system=[7]), ["agent-x", "system", "int"]),
    "context": (call(context=""), ["empty"]),
    # R11
    "an empty text": (call(""), ["empty"]),
    "a list with an empty text": (call(["a", ""]), ["empty"]),
    "an empty list": (call([]), ["empty"]),
    "None": (call(None), ["NoneType"]),
    "a number": (call(7), ["int"]),
    "bytes": (call(b"hi"), ["bytes"]),
    "a list of numbers": (call([7]), ["message", "int"]),
    "an unknown role": (call([{"role": "boss", "content": "x"}]), ["'boss'", "user", "assistant"]),
    "no role": (call([{"content": "x"}]), ["role", "None"]),
    "empty content": (call([{"role": "user", "content": ""}]), ["user", "empty"]),
    "no content": (call([{"role": "user"}]), ["content", "NoneType"]),
    "no parts": (call([{"role": "user", "content": []}]), ["user", "empty"]),
    "an unknown part": (call([{"role": "user", "content": [{"type": "smell", "x": 1}]}]), ["'smell'", "text"]),
    "an unknown part of a UI message": (
        call([{"role": "user", "id": "1", "parts": [{"type": "smell"}]}]), ["'smell'"]
    ),
    "a part that is none": (call([{"role": "user", "content": ["text"]}]), ["part", "str"]),
    "a file without data": (
        call([{"role": "user", "content": [{"type": "file", "mediaType": "a/b"}]}]), ["file", "data"]
    ),
    "a file without a type": (call([{"role": "user", "content": [{"type": "file", "data": "QQ=="}]}]), ["mediaType"]),
    "a result without its call": (
        call([{"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c9", "result": 1}]}]), ["'c9'"]
    ),
    "only system messages": (call([{"role": "system", "content": "be brief"}]), ["nothing", "system"]),
}  # fmt: skip

IN_A_HOOK: dict[str, tuple[Action, list[str]]] = {
    # R3.3, R3.4: returns
    **{
        f"{name} returns {type(value).__name__}": (
            returning(name, value),
            ["guilty", name, f"a {type(value).__name__}", *words],
        )
        for name, value, words in (
            ("process_input", "hello", ["MessageList", "InputChange", "None"]),
            ("process_input", {"messages": []}, ["InputChange"]),
            ("process_input", StepChange(), ["InputChange"]),
            ("process_input_step", "hello", ["StepChange", "MessageList"]),
            ("process_input_step", {"model": "x"}, ["StepChange"]),
            ("process_llm_request", "hello", ["LLMRequest", "CachedResponse"]),
            ("process_llm_request", {"prompt": 1}, ["LLMRequest"]),
            ("process_output_stream", "hello", ["Chunk"]),
            ("process_output_stream", {"type": "text-delta"}, ["Chunk"]),
            ("process_output_stream", True, ["Chunk"]),
            ("process_output_step", "hello", ["MessageList"]),
            ("process_tool_result", "hello", ["ToolResult", "MessageList"]),
            ("process_tool_result", {"result": 1}, ["ToolResult"]),
            ("process_output_result", "hello", ["MessageList"]),
        )
    },
    "a list of texts": (returning("process_input", ["hello"]), ["guilty", "process_input", "list of str"]),
    "an input change of texts": (
        returning("process_input", InputChange(messages=["hello"])), ["guilty", "process_input", "messages"]  # type: ignore[list-item]
    ),
    "an input change without messages": (
        returning("process_input", InputChange(messages="hello")), ["guilty", "process_input"]  # type: ignore[arg-type]
    ),
    "a system message that is none": (
        returning("process_input", InputChange(messages=[], system_messages=[7])), ["guilty", "process_input", "int"]  # type: ignore[list-item]
    ),
    "cached chunks that are none": (
        returning("process_llm_request", CachedResponse(chunks=["hello"])), ["guilty", "process_llm_request", "chunks"]  # type: ignore[list-item]
    ),
    "a list with a wrong chunk": (
        returning("process_output_stream", [TextDelta(text="x"), "hello"]), ["guilty", "process_output_stream", "list"]
    ),
    # R4.2
    "tool_choice": (
        returning("process_input_step", StepChange(tool_choice="maybe")),
        ["guilty", "process_input_step", "tool_choice", "'maybe'", "required"],
    ),
    "active_tools": (
        returning("process_input_step", StepChange(active_tools="echo")), ["guilty", "process_input_step", "'echo'"]
    ),
    "tools": (returning("process_input_step", StepChange(tools=["x"])), ["guilty", "process_input_step", "'x'"]),
    "model_settings": (
        returning("process_input_step", StepChange(model_settings=3)), ["guilty", "model_settings", "int"]  # type: ignore[arg-type]
    ),
    "provider_options": (
        returning("process_input_step", StepChange(provider_options="x")), ["guilty", "provider_options", "str"]  # type: ignore[arg-type]
    ),
    "step messages": (
        returning("process_input_step", StepChange(messages="x")), ["guilty", "process_input_step", "messages"]  # type: ignore[arg-type]
    ),
    "a wrong model": (returning("process_input_step", StepChange(model="no-such-provider/x")), ["no-such-provider"]),
    "both messages and message_list": (
        hook("process_input_step", lambda step, ctx: StepChange(messages=[], message_list=ctx.message_list)),
        ["guilty", "process_input_step", "messages", "message_list"],
    ),
    "a prepare_step that returns text": (
        call(prepare_step=lambda step, ctx: "hello"), ["prepare_step", "a str", "StepChange"]
    ),
    # R3.2, R9.1: what is called in a hook
    "data without the prefix": (hook("process_input", _write({"type": "note", "data": 1})), ["data-note"]),
    "data without a type": (hook("process_input", _write({"data": 1})), ["data-"]),
    "data that is none": (hook("process_input", _write("hello")), ["data-", "str"]),
    "an unknown source": (
        hook("process_input", lambda messages, ctx: ctx.message_list.add("x", "mars")), ["'mars'", "input"]
    ),
    "an unknown message": (
        hook("process_input", lambda messages, ctx: ctx.message_list.replace(messages[0].replace(id="m9"))), ["'m9'"]
    ),
    "an unknown call": (
        hook("process_output_step", lambda out, ctx: ctx.message_list.update_tool_invocation("c9", result=1)), ["'c9'"]
    ),
    "an empty message added": (hook("process_input", lambda messages, ctx: ctx.message_list.add("")), ["empty"]),
    "an unknown field of a chunk": (
        hook("process_output_stream", lambda chunk, ctx: chunk.replace(txt="x")), ["txt", "replace"]
    ),
    "an unknown field of a result": (
        hook("process_tool_result", lambda result, ctx: result.replace(value=1)), ["value", "result"]
    ),
}  # fmt: skip


def _check(action: Action, words: list[str]) -> UsageError:
    with pytest.raises(UsageError) as caught:
        action()
    said = str(caught.value)
    missing = [word for word in words if word not in said]
    assert not missing, f"the error does not say {missing}: {said!r}"
    return caught.value


@pytest.mark.parametrize("mistake", SET_UP)
def test_a_mistake_at_set_up_is_told_at_once(mistake: str) -> None:
    """What cannot work is refused when the agent, or the composition, is made (R2.4, R2.5, R2.7, R10)."""
    _check(*SET_UP[mistake])


@pytest.mark.parametrize("mistake", AT_THE_CALL)
def test_a_mistake_in_a_call_is_told(mistake: str) -> None:
    """What a call gives is refused with what was given and what to write (R10.2, R10.5, R11)."""
    _check(*AT_THE_CALL[mistake])


@pytest.mark.parametrize("mistake", IN_A_HOOK)
def test_a_mistake_in_a_hook_names_processor_and_hook(mistake: str) -> None:
    """The error, or its note, names processor and hook, and the text what was given and what may be (R3.3, R5.4)."""
    error = _check(*IN_A_HOOK[mistake])
    told = "\n".join([str(error), *getattr(error, "__notes__", [])])
    assert "guilty" in told or "prepare_step" in told
    assert "process_" in told or "prepare_step" in told


@pytest.mark.parametrize(
    "given", ["", [], None, [{"role": "boss", "content": "x"}], [{"role": "user", "content": ""}]]
)
def test_refused_input_reaches_no_hook(given: Any) -> None:
    """Input that cannot be sent is refused before any hook runs, and before the model is called (R11)."""
    called: list[str] = []
    watching = Hooked("w", process_input=lambda messages, ctx: called.append("input"))
    refused = agent(input_processors=[watching])
    for run in (refused.generate_sync, lambda given: asyncio.run(_read(refused, given))):
        with pytest.raises(UsageError):
            run(given)
    assert called == []


async def _read(made: Agent, given: Any) -> None:
    async with made.stream(given) as stream:
        async for _ in stream:
            pass


@pytest.mark.parametrize("mistake", ["an unknown option", "a wrong processor", "an empty text", "max_steps"])
def test_a_stream_refuses_before_it_is_entered(mistake: str) -> None:
    """stream() itself raises for what it can know: nobody has to read the stream to learn of it (R2.4, R10.2)."""
    wrong: dict[str, dict[str, Any]] = {
        "an unknown option": {"max_step": 3},
        "a wrong processor": {"output_processors": [OnlyInput()]},
        "max_steps": {"max_steps": 0},
    }
    with pytest.raises(UsageError):
        agent().stream("" if mistake == "an empty text" else "hi", **wrong.get(mistake, {}))


@pytest.mark.parametrize(
    "name", ["process_input", "process_output_step", "process_tool_result", "process_output_stream"]
)
def test_an_error_never_shows_the_value(name: str) -> None:
    """What a hook returned wrongly may hold what a guard removes: the error gives its type only (R0.3)."""
    error = _check(returning(name, "my secret"), ["str"])
    assert "secret" not in str(error)


def test_a_usage_error_is_an_interlock_error_and_a_value_error() -> None:
    """It can be caught as either (errors.py)."""
    from interlock import InterlockError

    assert issubclass(UsageError, InterlockError)
    assert issubclass(UsageError, ValueError)
