"""MessageList: the live conversation as processors work on it (R3.2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from interlock import Agent, Processor, UsageError
from interlock.core.ledger import Ledger
from interlock.core.message_list import MessageList
from interlock.core.messages import (
    Content,
    Message,
    SystemMessage,
    TextPart,
    ToolInvocationPart,
)
from interlock.testing import ScriptedModel, text

START = datetime(2026, 1, 1, tzinfo=UTC)


def new_list() -> MessageList:
    """An empty list."""
    ids, ticks = count(1), count(1)
    return MessageList(Ledger(lambda: f"new-{next(ids)}", lambda: START + timedelta(seconds=next(ticks))))


def message(id: str, text: str = "x", role: Any = "user") -> Message:
    """A message of one text."""
    return Message(id=id, role=role, content=Content(parts=[TextPart(text=text)]))


def full() -> MessageList:
    """One message of each source."""
    conversation = new_list()
    conversation.add(message("c", "context"), "context")
    conversation.add(message("i", "input"), "input")
    conversation.add(message("m", "remembered"), "memory")
    conversation.add(message("r", "response", "assistant"), "response")
    return conversation


def ids(view: Any) -> list[str]:
    """The ids in a view."""
    return [each.id for each in view.db()]


# --------------------------------------------------------------------------------------------------------------- views


def test_views_by_source() -> None:
    """R3.2: get.input, get.response, get.remembered and get.all."""
    get = full().get
    assert ids(get.input) == ["i"]
    assert ids(get.response) == ["r"]
    assert ids(get.remembered) == ["m"]
    assert ids(get.context) == ["c"]
    assert set(ids(get.all)) == {"c", "m", "i", "r"}


def test_what_was_said_before_stands_before_what_is_said_now() -> None:
    """R3.2: remembered messages go in front of the input, in their own order."""
    conversation = new_list()
    conversation.add("now", "input")
    conversation.add([message("m1", "one"), message("m2", "two")], "memory")
    assert [m.text for m in conversation.get.all.db()] == ["one", "two", "now"]


def test_the_db_view_is_live() -> None:
    """R3.1: an in-place change of a message's parts changes the conversation; the list itself is a plain copy."""
    conversation = full()
    view = conversation.get.all.db()
    view[0].content.parts[0].text = "edited"  # type: ignore[attr-defined]
    view.clear()
    assert len(conversation.get.all.db()) == 4
    assert "edited" in [m.text for m in conversation.get.all.db()]


def test_formats() -> None:
    """R3.2: db, ui and core."""
    conversation = new_list().add("hi")
    conversation.add({"role": "assistant", "content": "hello"}, "response")
    assert [type(m) for m in conversation.get.all.db()] == [Message, Message]
    assert [(m["role"], m["parts"]) for m in conversation.get.all.ui()] == [
        ("user", [{"type": "text", "text": "hi"}]),
        ("assistant", [{"type": "text", "text": "hello"}]),
    ]
    assert conversation.get.all.core() == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
    ]


# ------------------------------------------------------------------------------------------------------------ changing


@pytest.mark.parametrize(
    "given",
    [
        "hi",
        ["hi"],
        {"role": "user", "content": "hi"},
        [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}],
        message("own", "hi"),
    ],
)
def test_add_takes_what_generate_takes(given: Any) -> None:
    """R3.2, R11: every form of input; the message gets an id and a time, and add gives the list back."""
    conversation = new_list()
    assert conversation.add(given) is conversation
    (added,) = conversation.get.input.db()
    assert (added.text, added.role) == ("hi", "user")
    assert added.id
    assert added.created_at is not None


def test_adding_a_known_id_replaces() -> None:
    """R3.2: one whose id is in the list already replaces that message, in its place and with its source."""
    conversation = full()
    before = ids(conversation.get.all)
    conversation.add(message("m", "another"), "input")
    assert ids(conversation.get.all) == before
    assert ids(conversation.get.remembered) == ["m"]
    assert conversation.get.remembered.db()[0].text == "another"


def test_adding_a_system_message_adds_a_system_message() -> None:
    """R3.1: system messages are never among the messages."""
    conversation = new_list().add([{"role": "system", "content": "be kind"}, "hi"])
    assert [m.content for m in conversation.system_messages] == ["be kind"]
    assert [m.role for m in conversation.get.all.db()] == ["user"]


@pytest.mark.parametrize("given", ["", [], 5, None, {"role": "narrator", "content": "x"}])
def test_add_refuses_what_generate_refuses(given: Any) -> None:
    """R11: with the same words."""
    conversation = new_list()
    with pytest.raises(UsageError):
        conversation.add(given)
    assert conversation.get.all.db() == []


def test_add_refuses_an_unknown_source() -> None:
    """R3.2: the error names the sources there are."""
    with pytest.raises(UsageError, match=r"somewhere.*response"):
        new_list().add("hi", "somewhere")  # type: ignore[arg-type]


def test_remove_by_ids() -> None:
    """R3.2: removes these and gives them back; unknown ids are nothing to remove."""
    conversation = full()
    removed = conversation.remove_by_ids(["m", "r", "nope"])
    assert {m.id for m in removed} == {"m", "r"}
    assert set(ids(conversation.get.all)) == {"c", "i"}
    assert [m.id for m in conversation.remove_by_ids("i")] == ["i"]
    assert conversation.remove_by_ids([]) == []


def test_replace() -> None:
    """R3.2, R3.5: puts a message in the place of the one with its id; source and time stay."""
    conversation = full()
    created = conversation.get.remembered.db()[0].created_at
    conversation.replace(message("m", "another"))
    (remembered,) = conversation.get.remembered.db()
    assert (remembered.id, remembered.text, remembered.created_at) == ("m", "another", created)
    with pytest.raises(UsageError, match="nope"):
        conversation.replace(message("nope"))


def test_clear() -> None:
    """R3.2: all messages, or those of one source."""
    conversation = full()
    assert [m.id for m in conversation.clear("memory")] == ["m"]
    assert set(ids(conversation.get.all)) == {"c", "i", "r"}
    assert len(conversation.clear()) == 3
    assert conversation.get.all.db() == []


def test_clear_keeps_system_messages() -> None:
    """R3.1: they are no messages of the list."""
    conversation = full().add_system("be kind")
    conversation.clear()
    assert len(conversation.system_messages) == 1


# ---------------------------------------------------------------------------------------------------------- tool calls


def with_call() -> MessageList:
    """A list with one open call."""
    part = ToolInvocationPart(tool_call_id="c", tool_name="t")
    return new_list().add(Message(id="a", role="assistant", content=Content(parts=[part])), "response")


def call_of(conversation: MessageList) -> ToolInvocationPart:
    """The call."""
    part = conversation.get.response.db()[0].content.parts[0]
    assert isinstance(part, ToolInvocationPart)
    return part


@pytest.mark.parametrize("result", [None, "text", {"a": 1}, [1], 0, False])
def test_update_tool_invocation(result: Any) -> None:
    """R3.2, R4.8: gives a call its result; None is one."""
    conversation = with_call()
    conversation.update_tool_invocation("c", result=result)
    assert (call_of(conversation).state, call_of(conversation).result) == ("result", result)


def test_a_second_update_replaces_outside_of_process_output_step() -> None:
    """R4.8: in process_tool_result the last one counts; a failed call becomes an answered one."""
    conversation = with_call()
    call_of(conversation).state = "output-error"
    call_of(conversation).error_text = "e"
    conversation.update_tool_invocation("c", result=1)
    conversation.update_tool_invocation("c", result=2)
    assert (call_of(conversation).state, call_of(conversation).result) == ("result", 2)
    assert call_of(conversation).error_text is None


def test_update_makes_the_result_json() -> None:
    """R4.8: what a hook answers with is storable."""
    conversation = with_call()
    conversation.update_tool_invocation("c", result={"at": START.date(), "n": (1,)})
    assert call_of(conversation).result == {"at": "2026-01-01", "n": [1]}


def test_update_of_an_unknown_call_is_told() -> None:
    """R3.2: the error names the id."""
    with pytest.raises(UsageError, match="nope"):
        with_call().update_tool_invocation("nope", result=1)


# ----------------------------------------------------------------------------------------------------- system messages


@pytest.mark.parametrize(
    "given",
    [
        "be kind",
        ["be kind"],
        SystemMessage(content="be kind"),
        {"role": "system", "content": "be kind"},
        [{"role": "system", "content": "be kind"}],
        Message(id="s", role="system", content=Content(parts=[TextPart(text="be kind")])),
    ],
    ids=["text", "list", "object", "dict", "dicts", "message"],
)
def test_add_system_takes_every_form(given: Any) -> None:
    """R3.2: a text, a message, a dict or a list of these."""
    conversation = new_list().add_system(given)
    assert [(m.content, m.tag) for m in conversation.system_messages] == [("be kind", None)]


def test_tagged_ones_are_apart() -> None:
    """R3.1: system_messages are the untagged ones; in the prompt the tagged ones follow, as they came."""
    conversation = (
        new_list().add_system("t1", tag="b").add_system("u1").add_system("t2", tag="a").add_system("u2")
    )
    assert [m.content for m in conversation.system_messages] == ["u1", "u2"]
    assert [m.content for m in conversation.tagged_system_messages("a")] == ["t2"]
    assert [m.content for m in conversation.prompt_system()] == ["u1", "u2", "t1", "t2"]


def test_the_same_tagged_message_counts_once() -> None:
    """R3.2: a tagged message stays from step to step; a hook that adds it at each step does not multiply it."""
    conversation = new_list()
    for _ in range(3):
        conversation.add_system("remember", tag="memory")
    assert [m.content for m in conversation.prompt_system()] == ["remember"]


def test_clear_system() -> None:
    """R3.2: those with a tag, or the untagged ones."""
    conversation = new_list().add_system("u").add_system("a", tag="a").add_system("b", tag="b")
    assert [m.content for m in conversation.clear_system("a").prompt_system()] == ["u", "b"]
    assert [m.content for m in conversation.clear_system().prompt_system()] == ["b"]


def test_replace_system() -> None:
    """R3.2, R3.3: puts these in the place of the untagged ones; tagged ones stay."""
    conversation = new_list().add_system(["u1", "u2"]).add_system("t", tag="t")
    conversation.replace_system(["new"])
    assert [m.content for m in conversation.prompt_system()] == ["new", "t"]
    conversation.replace_system([])
    assert [m.content for m in conversation.prompt_system()] == ["t"]


@pytest.mark.parametrize("given", [5, [5], {"role": "system"}, [None]])
def test_what_is_no_system_message_is_refused(given: Any) -> None:
    """R3.2: the error says where."""
    with pytest.raises(UsageError, match="add_system"):
        new_list().add_system(given)


@pytest.mark.anyio
async def test_the_live_list_in_a_run() -> None:
    """R3.2: ctx.message_list is the same object in every hook; what one does the next one and the model see."""
    lists: list[MessageList] = []

    class Swap(Processor):
        id = "swap"

        def process_input(self, messages: Any, ctx: Any) -> MessageList:
            lists.append(ctx.message_list)
            ctx.message_list.clear("input")
            return ctx.message_list.add("other words")

        def process_output_step(self, output: Any, ctx: Any) -> None:
            lists.append(ctx.message_list)
            assert [m.text for m in ctx.message_list.get.response.db()] == ["ok"]

    class After(Processor):
        id = "after"

        def process_input(self, messages: Any, ctx: Any) -> None:
            lists.append(ctx.message_list)
            assert [m.text for m in messages] == ["other words"]

    model = ScriptedModel([text("ok")])
    swap = Swap()
    await Agent(id="a", model=model, input_processors=[swap, After()], output_processors=[swap]).generate(
        "hi"
    )
    assert model.calls[0].prompt_text == "other words"
    assert all(each is lists[0] for each in lists)
    assert len(lists) == 3
