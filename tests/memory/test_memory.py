"""What of a turn is saved (R8), and what never is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from interlock import Agent, ModelError, ModelRequest, Processor, UsageError, tool
from interlock.chunks import Chunk, TextDelta, TextStart
from interlock.core.messages import Message, ToolInvocationPart
from interlock.core.stored import message_to_row
from interlock.memory import ConversationStore, Memory
from interlock.testing import ScriptedModel, error, text, tool_call

THREAD: Any = {"thread": "t", "resource": "r"}
KEPT: list[ConversationStore] = []


@pytest.fixture(autouse=True)
async def kept(store: ConversationStore) -> AsyncIterator[None]:
    """What is saved is the same in every kind of store."""
    KEPT[:] = [store]
    yield
    KEPT.clear()


class Hooks(Processor):
    """A processor made of functions."""

    def __init__(self, id: str = "hooks", **hooks: Any) -> None:
        self.id = id
        for name, function in hooks.items():
            setattr(self, name, function)


@tool
def look(query: str = "q") -> str:
    """Look something up."""
    return f"found {query}"


async def stored(memory: Memory) -> list[Message]:
    """The thread."""
    return await memory.messages("t", resource="r")


async def play(model: Any, *processors: Any, **options: Any) -> list[Message]:
    """Run with memory and look at what was saved; a failure of the provider or a hook is passed over."""
    memory = Memory(KEPT[0])
    inputs = [p for p in processors if hasattr(p, "is_input")]
    outputs = [p for p in processors if not hasattr(p, "is_input")]
    agent = Agent(id="a", model=model, tools=[look], memory=memory)
    with contextlib.suppress(ModelError, RuntimeError):
        await agent.generate(
            "question", memory=THREAD, input_processors=inputs, output_processors=outputs, **options
        )
    return await stored(memory)


def on_input(**hooks: Any) -> Hooks:
    """A processor for the input list."""
    made = Hooks(**hooks)
    made.is_input = True  # type: ignore[attr-defined]
    return made


def aborts(subject: Any, ctx: Any) -> None:
    """Block."""
    ctx.abort("no")


def fails(subject: Any, ctx: Any) -> None:
    """Fail."""
    raise RuntimeError("broken")


# ------------------------------------------------------------------------------------------------------ a finished turn


@pytest.mark.anyio
async def test_a_turn_is_saved_as_it_finally_stands() -> None:
    """R8.1, R0.1: new messages only, with the final content after every processor, in the recorded row form."""

    def edit(result: Any, ctx: Any) -> None:
        ctx.messages[-1].content.parts[-1].text = "final"

    def redact(messages: Any, ctx: Any) -> None:
        messages[-1].content.parts[0].text = "[QUESTION]"

    model = ScriptedModel([text("a"), tool_call("look", {"query": "x"}, id="c")], [text("b")])
    saved = await play(model, on_input(process_input=redact), Hooks(process_output_result=edit))
    assert [(m.role, m.text) for m in saved] == [("user", "[QUESTION]"), ("assistant", "afinal")]
    row = message_to_row(saved[1])
    assert row["threadId"] == "t"
    assert row["resourceId"] == "r"
    assert [part["type"] for part in row["content"]["parts"]] == [
        "text",
        "tool-invocation",
        "step-start",
        "text",
    ]
    assert row["content"]["parts"][1]["toolInvocation"] == {
        "state": "result",
        "toolCallId": "c",
        "toolName": "look",
        "args": {"query": "x"},
        "result": "found x",
    }


@pytest.mark.anyio
async def test_times_increase_in_list_order() -> None:
    """R3.3: new messages get increasing times in list order, also across turns; those of stored ones never change."""
    memory = Memory(KEPT[0])

    def add(messages: Any, ctx: Any) -> list[Message]:
        first = messages[-1].replace(id="first", created_at=None)
        return [*messages[:-1], first, messages[-1]]

    agent = Agent(id="a", model=ScriptedModel([text("ok")], repeat_last=True), memory=memory)
    await agent.generate("one", memory=THREAD, input_processors=[Hooks(process_input=add)])
    before = {m.id: m.created_at for m in await stored(memory)}
    await agent.generate(["two", "three"], memory=THREAD)
    after = await stored(memory)
    times = [m.created_at for m in after]
    assert None not in times
    assert times == sorted(set(times)), "strictly increasing"  # type: ignore[type-var]
    assert {m.id: m.created_at for m in after if m.id in before} == before
    assert [m.id for m in after][:1] == ["first"]


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["in place", "list"])
async def test_in_place_and_returned_edits_are_saved_alike(way: str) -> None:
    """R8.3: in-place edits and returned lists are equivalent."""

    def edit(output: Any, ctx: Any) -> Any:
        last = ctx.messages[-1]
        if way == "in place":
            last.content.parts[0].text = "[GONE]"
            return None
        parts = [last.content.parts[0].replace(text="[GONE]"), *last.content.parts[1:]]
        return [*ctx.messages[:-1], last.replace(content=last.content.replace(parts=parts))]

    saved = await play(ScriptedModel([text("secret")]), Hooks(process_output_step=edit))
    assert [m.text for m in saved] == ["question", "[GONE]"]


@pytest.mark.anyio
async def test_system_messages_and_feedback_are_never_saved() -> None:
    """R8.3: neither system messages of any origin, nor the reason a retry was asked for, nor the rejected attempt."""

    def add_system(messages: Any, ctx: Any) -> None:
        ctx.message_list.add_system("untagged system").add_system("tagged system", tag="x")

    def judge(output: Any, ctx: Any) -> None:
        if "wretched" in output.text:
            ctx.abort("feedback reason", retry=True)

    model = ScriptedModel([text("wretched")], [text("good")])
    saved = await play(
        model,
        on_input(process_input=add_system),
        Hooks(process_output_step=judge),
        instructions="instructions",
        system="call system",
        max_processor_retries=1,
    )
    assert "feedback reason" in model.calls[1].prompt_text
    assert [(m.role, m.text) for m in saved] == [("user", "question"), ("assistant", "good")]
    everything = repr([message_to_row(m) for m in saved])
    for hidden in ("system", "instructions", "feedback", "wretched"):
        assert hidden not in everything


@pytest.mark.anyio
async def test_custom_data_is_saved_unless_transient() -> None:
    """R8.4: custom chunks are saved as parts of the assistant's message, from whichever hook."""

    def send(name: str) -> Any:
        def hook(subject: Any, ctx: Any) -> Any:
            if name != "process_output_stream" or isinstance(subject, TextDelta):
                ctx.writer.custom({"type": "data-kept", "data": name})
                ctx.writer.custom({"type": "data-lost", "data": name, "transient": True})
            return subject if name == "process_output_stream" else None

        return hook

    names = ["process_output_stream", "process_output_step", "process_tool_result", "process_output_result"]
    model = ScriptedModel([text("a"), tool_call("look")], [text("b")])
    saved = await play(
        model, on_input(process_input=send("process_input")), Hooks(**{n: send(n) for n in names})
    )
    (answer,) = [m for m in saved if m.role == "assistant"]
    kept = [part for part in answer.content.parts if part.type.startswith("data-")]
    assert {part.type for part in kept} == {"data-kept"}
    assert {part.data for part in kept} == {"process_input", *names}  # type: ignore[attr-defined]
    assert answer.content.parts[0].type == "data-kept", "data sent before the answer stands in front (R3.6)"


@pytest.mark.anyio
async def test_read_only_memory_saves_nothing() -> None:
    """R8: it remembers, and saves nothing."""
    writing = Memory(KEPT[0])
    model = ScriptedModel([text("ok")], repeat_last=True)
    await Agent(id="a", model=model, memory=writing).generate("one", memory=THREAD)
    reading = Memory(writing.store, read_only=True)
    await Agent(id="a", model=model, memory=reading).generate("two", memory=THREAD)
    assert "one" in model.calls[1].prompt_text
    assert [m.text for m in await stored(writing)] == ["one", "ok"]


# ---------------------------------------------------------------------------------------------------- blocked or failed


@pytest.mark.anyio
@pytest.mark.parametrize("end", [aborts, fails])
@pytest.mark.parametrize(
    "hook",
    ["process_input", "process_input_step", "process_llm_request", "process_llm_response"],
)
async def test_nothing_is_saved_after_a_block_on_the_input_side(hook: str, end: Any) -> None:
    """R8.2: after a tripwire, or an exception in a hook, nothing of the turn is saved."""
    assert await play(ScriptedModel([text("a")]), on_input(**{hook: end})) == []


@pytest.mark.anyio
@pytest.mark.parametrize("end", [aborts, fails])
@pytest.mark.parametrize("hook", ["process_output_stream", "process_output_step", "process_output_result"])
async def test_nothing_is_saved_after_a_block_on_the_output_side(hook: str, end: Any) -> None:
    """R8.2: not even the user's message, as long as no tool of an accepted step has run."""
    assert await play(ScriptedModel([text("a")]), Hooks(**{hook: end})) == []


@pytest.mark.anyio
@pytest.mark.parametrize("end", [aborts, fails])
async def test_accepted_steps_whose_tools_ran_are_saved(end: Any) -> None:
    """R8.2: if tools of accepted steps ran, the user's messages and those steps are saved whole, text included."""

    def second_only(output: Any, ctx: Any) -> None:
        if ctx.step_number == 1:
            end(output, ctx)

    model = ScriptedModel([text("first"), tool_call("look", id="c")], [text("blocked")])
    saved = await play(model, Hooks(process_output_step=second_only))
    assert [(m.role, m.text) for m in saved] == [("user", "question"), ("assistant", "first")]
    assert "blocked" not in repr(saved)
    (call,) = [p for p in saved[1].content.parts if isinstance(p, ToolInvocationPart)]
    assert call.state == "result"


@pytest.mark.anyio
async def test_after_a_block_of_the_result_only_calls_are_saved() -> None:
    """R8.2: after process_output_result: calls with results only, so that the next turn knows what was done."""
    model = ScriptedModel([text("first"), tool_call("look", id="c")], [text("blocked")])
    saved = await play(model, Hooks(process_output_result=aborts))
    assert [(m.role, m.text) for m in saved] == [("user", "question"), ("assistant", "")]
    assert [p.type for p in saved[1].content.parts] == ["tool-invocation"]


@pytest.mark.anyio
async def test_a_step_whose_tools_only_ran_in_a_blocked_step_saves_nothing() -> None:
    """R8.2: a block in process_tool_result of the first step: no step is accepted, nothing is saved."""
    model = ScriptedModel([text("first"), tool_call("look", id="c")])
    assert await play(model, Hooks(process_tool_result=aborts)) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("release", "answers"), [("live", ["first", "partial"]), ("step", ["first"]), ("run", ["first"])]
)
async def test_a_failed_turn_is_saved_as_unfinished(release: str, answers: list[str]) -> None:
    """R8.2: after a provider's failure the user's messages, the accepted steps and the text already released are
    saved, marked unfinished.
    """
    broken = [*_half_a_text("partial"), error(400, "gone")]
    model = ScriptedModel([text("first"), tool_call("look", id="c")], broken)
    saved = await play(model, release=release)
    assert saved[0].text == "question"
    assert "".join(m.text for m in saved[1:]) == "".join(answers)
    assert saved[-1].content.metadata == {"unfinished": True}
    assert not [m for m in saved[:-1] if m.content.metadata]


def _half_a_text(piece: str) -> list[Chunk]:
    from interlock.chunks import TextStart

    return [TextStart(id="t"), TextDelta(id="t", text=piece)]


@pytest.mark.anyio
async def test_a_failure_before_anything_was_said_keeps_the_question() -> None:
    """R8.2: the user's message is saved and marked."""
    saved = await play(ScriptedModel([error(400, "no")]))
    assert [(m.text, m.content.metadata) for m in saved] == [("question", {"unfinished": True})]


class Slow:
    """A model that says three words and waits for nothing in particular before the last."""

    provider, model_id = "test", "slow"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        yield TextStart(id="t")
        for word in ("one ", "two "):
            yield TextDelta(id="t", text=word)
        await asyncio.Event().wait()


@pytest.mark.anyio
async def test_a_cancelled_turn_is_saved_as_unfinished() -> None:
    """R8.2, R5.5: the question and what had left, when the listener goes in the middle of a text."""
    memory = Memory(KEPT[0])
    agent = Agent(id="a", model=Slow(), memory=memory, release="live")
    async with agent.stream("question", memory=THREAD) as stream:
        async for piece in stream.text_stream:
            if piece == "two ":
                break
    saved = await stored(memory)
    assert [m.text for m in saved] == ["question", "one two "]
    assert [m.content.metadata for m in saved] == [None, {"unfinished": True}]
    assert (await stream.result()).released_text == "one two "


@pytest.mark.anyio
async def test_whenever_the_listener_goes_what_left_is_stored() -> None:
    """R8.2, R0: also when it goes while the finished turn is being saved: that turn is saved all the same."""
    memory = Memory(KEPT[0])
    model = ScriptedModel([text("one ", "two ", "three")], repeat_last=True)
    agent = Agent(id="a", model=model, memory=memory, release="live")
    for number in range(40):
        thread: Any = {"thread": f"t{number}", "resource": "r"}
        async with agent.stream("question", memory=thread) as stream:
            for _ in range(number % 20):
                await asyncio.sleep(0 if number < 20 else 0.0005)
        saved = await memory.messages(thread["thread"], resource="r")
        said = "".join(message.text for message in saved[1:])
        assert said == (await stream.result()).released_text
        whole = said == "one two three"
        assert not saved or saved[-1].content.metadata in (
            [None, {"unfinished": True}] if whole else [{"unfinished": True}]
        )


@pytest.mark.anyio
async def test_an_unfinished_turn_can_be_gone_on_with() -> None:
    """R8.2, R3.8: the next turn's prompt is well formed and has what the user saw."""
    memory = Memory(KEPT[0])
    model = ScriptedModel([*_half_a_text("partial"), error(400, "gone")], [text("ok")])  # type: ignore[list-item]
    agent = Agent(id="a", model=model, memory=memory, release="live")
    with pytest.raises(ModelError):
        await agent.generate("question", memory=THREAD)
    await agent.generate("go on", memory=THREAD)
    assert model.calls[1].prompt_text.split("\n") == ["question", "partial", "go on"]


# -------------------------------------------------------------------------------------------------------- configuration


@pytest.mark.anyio
@pytest.mark.parametrize("options", [{"store": object()}, {"last_messages": -1}])
async def test_a_wrong_memory_is_told_at_set_up(options: Any) -> None:
    """R10: mistakes are told at once."""
    with pytest.raises(UsageError, match="Memory"):
        Memory(**options)


@pytest.mark.anyio
async def test_memory_is_a_context_manager() -> None:
    """The same form works for stores that have to be closed."""
    async with Memory(KEPT[0]) as memory:
        assert await memory.messages("t") == []
