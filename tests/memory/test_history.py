"""MessageHistory: what was said before, in front of what is said now (R1, R3.5, R8)."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Agent, Processor
from interlock.core.messages import Content, Message, TextPart
from interlock.memory import InMemoryStore, Memory
from interlock.testing import ScriptedModel, text

THREAD: Any = {"thread": "t", "resource": "r"}


class Hooks(Processor):
    """A processor made of functions."""

    id = "hooks"

    def __init__(self, **hooks: Any) -> None:
        for name, function in hooks.items():
            setattr(self, name, function)


async def remembering(*turns: str, **options: Any) -> tuple[Agent, ScriptedModel, Memory]:
    """An agent after these turns, each answered with "ok"."""
    memory = Memory(InMemoryStore(), **options)
    model = ScriptedModel([text("ok")], repeat_last=True)
    agent = Agent(id="a", model=model, memory=memory)
    for turn in turns:
        await agent.generate(turn, memory=THREAD)
    return agent, model, memory


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("last", "prompt"),
    [
        (20, ["one", "ok", "two", "ok", "now"]),
        (None, ["one", "ok", "two", "ok", "now"]),
        (2, ["two", "ok", "now"]),
        (0, ["now"]),
    ],
)
async def test_the_last_messages_are_in_the_prompt(last: int | None, prompt: list[str]) -> None:
    """R8: last_messages says how many, the newest; None for all, 0 for none."""
    agent, model, _ = await remembering("one", "two", last_messages=last)
    await agent.generate("now", memory=THREAD)
    assert model.calls[-1].prompt_text.split("\n") == prompt


@pytest.mark.anyio
async def test_an_odd_number_may_cut_between_question_and_answer() -> None:
    """R3.8: a prompt that would begin with an assistant message gets its opening."""
    agent, model, _ = await remembering("one", last_messages=1)
    await agent.generate("now", memory=THREAD)
    assert [m["role"] for m in model.calls[-1].prompt] == ["user", "assistant", "user"]
    assert model.calls[-1].prompt_text.split("\n") == [".", "ok", "now"]


@pytest.mark.anyio
async def test_processors_see_what_is_remembered() -> None:
    """R1: memory runs before the user's processors on input; R3.2: get.remembered tells it from the input."""
    agent, _, _ = await remembering("one")
    seen: list[Any] = []

    def look(messages: Any, ctx: Any) -> None:
        seen.append([m.text for m in messages])
        seen.append([m.text for m in ctx.message_list.get.remembered.db()])
        seen.append([m.text for m in ctx.message_list.get.input.db()])

    await agent.generate("now", memory=THREAD, input_processors=[Hooks(process_input=look)])
    assert seen == [["one", "ok", "now"], ["one", "ok"], ["now"]]


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["edit", "drop", "clear", "copies", "system"])
async def test_edits_of_remembered_messages_last_for_the_run_only(way: str) -> None:
    """R3.5: remembered messages that a hook edits or drops change for this run only; storage keeps them."""
    agent, model, memory = await remembering("my pin is 1234")

    def change(messages: Any, ctx: Any) -> Any:
        old = ctx.message_list.get.remembered.db()
        match way:
            case "edit":
                for message in old:
                    message.content.parts[0].text = "[GONE]"
            case "drop":
                return [message for message in messages if message not in old]
            case "clear":
                ctx.message_list.clear("memory")
            case "copies":
                gone = Content(parts=[TextPart(text="[GONE]")])
                return [m.replace(content=gone) if m in old else m for m in messages]
            case _:
                ctx.message_list.remove_by_ids([m.id for m in old])
        return None

    await agent.generate("now", memory=THREAD, input_processors=[Hooks(process_input=change)])
    assert "1234" not in model.calls[-1].prompt_text
    stored = await memory.messages("t", resource="r")
    assert [m.text for m in stored] == ["my pin is 1234", "ok", "now", "ok"]
    await agent.generate("again", memory=THREAD)
    assert "1234" in model.calls[-1].prompt_text


@pytest.mark.anyio
async def test_a_message_that_the_call_brings_again_is_not_doubled() -> None:
    """R3.2: a client that sends its whole conversation along does not double what is remembered."""
    agent, model, memory = await remembering("one")
    known = await memory.messages("t", resource="r")
    now = Message(id="now", role="user", content=Content(parts=[TextPart(text="now")]))
    await agent.generate([*known, now], memory=THREAD)
    assert model.calls[-1].prompt_text.split("\n") == ["one", "ok", "now"]
    assert [m.text for m in await memory.messages("t", resource="r")] == ["one", "ok", "now", "ok"]


@pytest.mark.anyio
async def test_without_a_thread_nothing_is_remembered_or_saved() -> None:
    """R8: memory is on when the call names a thread."""
    agent, model, memory = await remembering("one")
    await agent.generate("now")
    assert model.calls[-1].prompt_text == "now"
    assert len(await memory.messages("t", resource="r")) == 2


@pytest.mark.anyio
async def test_overridden_lists_do_not_switch_memory_off() -> None:
    """R10.2: what the framework adds stays and runs around the call's own lists, [] included."""
    agent, model, memory = await remembering("one")
    await agent.generate("now", memory=THREAD, input_processors=[], output_processors=[])
    assert model.calls[-1].prompt_text.split("\n") == ["one", "ok", "now"]
    assert len(await memory.messages("t", resource="r")) == 4
