"""The list behind a message list: marks, reconciling what a hook returns, withdrawing a step (R3.3, R3.5, R7.3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.ledger import Ledger, MessageSource
from interlock.core.message_list import MessageList
from interlock.core.messages import (
    Content,
    DataPart,
    Message,
    Part,
    StepStartPart,
    TextPart,
    ToolInvocationPart,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


# ------------------------------------------------------------------------------------------------------------ helpers


def new_ledger() -> Ledger:
    """A ledger with a clock that ticks and ids that count."""
    ids, ticks = count(1), count(1)
    return Ledger(lambda: f"new-{next(ids)}", lambda: START + timedelta(seconds=next(ticks)))


def a_message(id: str, text: str = "x", role: Any = "user", **fields: Any) -> Message:
    """A message of one text part."""
    return Message(id=id, role=role, content=Content(parts=[TextPart(text=text)]), **fields)


def filled(*sources: MessageSource) -> Ledger:
    """A ledger of messages m0, m1, ... of these sources, each at a time of its own."""
    ledger = new_ledger()
    for index, source in enumerate(sources):
        role = "assistant" if source == "response" else "user"
        message = a_message(f"m{index}", f"text {index}", role, created_at=START - timedelta(hours=9 - index))
        MessageList(ledger).add(message, source)
    ledger.settle()
    return ledger


def answer(ledger: Ledger) -> Message:
    """The answer's message."""
    return ledger.messages("response")[-1]


def steps(ledger: Ledger) -> list[tuple[str, int | None]]:
    """Each response part with the step it belongs to."""
    return [
        (getattr(part, "text", part.type), part.mark.step if part.mark else None)
        for part in ledger.response_parts()
    ]


def texts(ledger: Ledger, step: int) -> list[str]:
    """The texts of a step."""
    return [part.text for part in ledger.response_parts(step) if isinstance(part, TextPart)]


def two_steps() -> Ledger:
    """A question and an answer of two steps, two parts each."""
    ledger = filled("input")
    for step in (0, 1):
        ledger.step = step
        ledger.append_part(TextPart(text=f"a{step}"))
        ledger.append_part(TextPart(text=f"b{step}"))
    ledger.settle()
    return ledger


# ---------------------------------------------------------------------------------------------------------- the answer


def test_an_answer_is_one_message_with_borders_between_its_steps() -> None:
    """R3.6: the answer goes on in the run's own last message; step-start stands only between two steps of it."""
    ledger = two_steps()
    assert [part.type for part in answer(ledger).content.parts] == [
        "text",
        "text",
        "step-start",
        "text",
        "text",
    ]
    assert len(ledger.messages()) == 2


def test_an_answer_never_continues_a_message_that_is_not_the_runs() -> None:
    """R3.6: an assistant message that was given as input, or by a hook, is not written into."""
    ledger = filled("input", "response")
    ledger.step = 0
    ledger.append_part(TextPart(text="mine"))
    assert [m.text for m in ledger.messages()] == ["text 0", "text 1", "mine"]


def test_an_answer_starts_a_new_message_behind_one_that_came_in_between() -> None:
    """R3.6: only the *last* message is continued."""
    ledger = filled("input")
    ledger.step = 0
    ledger.append_part(TextPart(text="one"))
    MessageList(ledger).add("and now?", "input")
    ledger.append_part(TextPart(text="two"))
    assert [m.text for m in ledger.messages()] == ["text 0", "one", "and now?", "two"]


def test_a_first_step_has_no_border_in_front() -> None:
    """R3.6: nor has an answer whose first step said nothing."""
    ledger = filled("input")
    ledger.step = 1
    ledger.append_part(TextPart(text="a"))
    assert [part.type for part in answer(ledger).content.parts] == ["text"]


# --------------------------------------------------------------------------------------------------------------- marks


def test_an_edit_in_place_keeps_the_mark() -> None:
    """Rule 1: a part that is edited is still the same part of the same step."""
    ledger = two_steps()
    part = answer(ledger).content.parts[0]
    mark = part.mark
    part.text = "edited"  # type: ignore[attr-defined]
    ledger.settle()
    assert answer(ledger).content.parts[0].mark == mark
    assert texts(ledger, 0) == ["edited", "b0"]


def test_a_part_put_in_the_place_of_another_inherits_its_mark() -> None:
    """Rule 1: a replacement belongs to the step of what it replaces, whatever step is under way."""
    ledger = two_steps()
    parts = answer(ledger).content.parts
    mark = parts[0].mark
    parts[0] = TextPart(text="other")
    ledger.settle()
    assert parts[0].mark == mark
    assert texts(ledger, 0) == ["other", "b0"]


@pytest.mark.parametrize("place", [0, 1, 4, 5])
def test_an_added_part_belongs_to_the_step_under_way(place: int) -> None:
    """R3.3: what a hook adds belongs to the step under way; the others keep their marks, wherever it stands."""
    ledger = two_steps()
    parts = answer(ledger).content.parts
    before = [(part, part.mark) for part in parts]
    parts.insert(place, TextPart(text="added"))
    ledger.settle()
    assert ("added", 1) in steps(ledger)
    assert all(part.mark == mark for part, mark in before)
    assert len({part.mark for part in parts}) == len(parts)


def test_a_part_that_stands_twice_gets_a_mark_of_its_own() -> None:
    """Rule 1: marks are unique: a copy that a hook adds is another part of the same step."""
    ledger = two_steps()
    parts = answer(ledger).content.parts
    parts.append(parts[0].replace())
    ledger.settle()
    assert len({part.mark for part in parts}) == len(parts)
    assert texts(ledger, 0) == ["a0", "b0", "a0"]


def test_marks_of_moved_parts_move_along() -> None:
    """Rule 1: a reversed answer keeps every part in its step."""
    ledger = two_steps()
    answer(ledger).content.parts.reverse()
    ledger.settle()
    assert texts(ledger, 0) == ["b0", "a0"]
    assert texts(ledger, 1) == ["b1", "a1"]


def test_marks_are_no_part_of_a_parts_value() -> None:
    """Marks are hidden: two parts of the same fields are equal."""
    ledger = two_steps()
    assert answer(ledger).content.parts[0] == TextPart(text="a0")


# ---------------------------------------------------------------------------------------------------------- withdrawal


def test_withdrawing_removes_the_steps_parts_and_its_border() -> None:
    """R7.3: the rejected response leaves the list, accepted earlier steps stay, and no border dangles."""
    ledger = two_steps()
    ledger.withdraw(1)
    assert [part.type for part in answer(ledger).content.parts] == ["text", "text"]
    assert answer(ledger).text == "a0b0"


def test_withdrawing_the_only_step_removes_the_message() -> None:
    """R7.3: nothing is left of it; the next attempt starts afresh."""
    ledger = filled("input")
    ledger.step = 0
    ledger.append_part(TextPart(text="bad"))
    ledger.withdraw(0)
    assert ledger.messages("response") == []
    ledger.append_part(TextPart(text="good"))
    assert [part.type for part in answer(ledger).content.parts] == ["text"]


@pytest.mark.parametrize("way", ["part", "message", "replacement", "copy"])
def test_withdrawing_takes_along_what_hooks_added_to_the_step(way: str) -> None:
    """R3.3, R7.3: what a hook adds to a response belongs to the step under way and goes with it."""
    ledger = two_steps()
    message = answer(ledger)
    shown = ledger.messages()
    if way == "part":
        message.content.parts.append(TextPart(text="added"))
    elif way == "message":
        ledger.reconcile(shown, [*shown, a_message("extra", "added", "assistant")], "response")
    elif way == "replacement":
        message.content.parts[-1] = TextPart(text="added")
    else:
        parts = [*(part.replace() for part in message.content.parts), TextPart(text="added")]
        copy = message.replace(content=message.content.replace(parts=parts))
        ledger.reconcile(shown, [shown[0], copy], "response")
    ledger.withdraw(1)
    assert [m.text for m in ledger.messages("response")] == ["a0b0"]


def test_withdrawing_leaves_other_messages_alone() -> None:
    """R7.3: input, memory and context stay, even without parts."""
    ledger = filled("memory", "input", "context")
    ledger.messages()[0].content.parts.clear()
    ledger.withdraw(0)
    ledger.withdraw(-1)
    assert [m.id for m in ledger.messages()] == ["m0", "m1", "m2"]


def test_text_after_a_withdrawn_step_gets_its_border_again() -> None:
    """R3.6: the second attempt at a later step is separated like the first was."""
    ledger = two_steps()
    ledger.withdraw(1)
    ledger.append_part(TextPart(text="again"))
    assert [part.type for part in answer(ledger).content.parts] == ["text", "text", "step-start", "text"]


# ------------------------------------------------------------------------------------------------ what remains of a run


def test_keep_calls_only_leaves_calls_with_results() -> None:
    """R5.3: after a block in process_output_result only calls with their results stay, steps still apart."""
    ledger = filled("input")
    ledger.step = 0
    ledger.append_part(TextPart(text="secret"))
    ledger.append_part(ToolInvocationPart(tool_call_id="1", tool_name="t", state="result", result="r"))
    ledger.append_part(DataPart(type="data-x", data="secret"))
    ledger.append_part(ToolInvocationPart(tool_call_id="2", tool_name="t", state="call"))
    ledger.step = 1
    ledger.append_part(
        ToolInvocationPart(tool_call_id="3", tool_name="t", state="output-error", error_text="e")
    )
    ledger.step = 2
    ledger.append_part(TextPart(text="secret"))
    ledger.keep_calls_only()
    (message,) = ledger.messages("response")
    kept = [getattr(part, "tool_call_id", part.type) for part in message.content.parts]
    assert kept == ["1", "step-start", "3"]


def test_keep_calls_only_removes_an_answer_without_calls() -> None:
    """R5.3: of a plain answer nothing stays; the question does."""
    ledger = two_steps()
    ledger.keep_calls_only()
    assert [m.id for m in ledger.messages()] == ["m0"]


def test_open_calls_are_dropped_before_saving() -> None:
    """R8.2: a call without a result is not kept; text beside it is."""
    ledger = filled("input")
    ledger.step = 0
    ledger.append_part(TextPart(text="a"))
    ledger.append_part(ToolInvocationPart(tool_call_id="1", tool_name="t", state="call"))
    ledger.append_part(ToolInvocationPart(tool_call_id="2", tool_name="t", state="partial-call"))
    ledger.drop_open_calls()
    assert [part.type for part in answer(ledger).content.parts] == ["text"]


def test_data_goes_in_front_of_what_is_held() -> None:
    """R3.6: data sent past held parts stands in front of them, in the order it was sent."""
    ledger = two_steps()
    parts = answer(ledger).content.parts
    sent = {part.mark for part in parts[:3] if part.mark is not None}
    for kind in ("data-1", "data-2"):
        part = DataPart(type=kind)
        assert ledger.insert_unsent(part, sent)
        assert part.mark is not None
        sent.add(part.mark)
    types = [part.type for part in answer(ledger).content.parts]
    assert types == ["text", "text", "step-start", "data-1", "data-2", "text", "text"]
    assert [part.type for part in ledger.response_parts(1)][-4:] == ["data-1", "data-2", "text", "text"]


def test_a_call_is_found_by_its_id_the_latest_first() -> None:
    """R3.2: two steps may use one id (old rows do): the latest counts."""
    ledger = filled("input")
    for step in (0, 1):
        ledger.step = step
        ledger.append_part(ToolInvocationPart(tool_call_id="c", tool_name=f"t{step}"))
    found = ledger.find_call("c")
    assert found is not None
    assert found.tool_name == "t1"
    assert ledger.find_call("nope") is None


# ----------------------------------------------------------------------------------------------------------- reconcile


def test_an_unchanged_list_changes_nothing() -> None:
    """R3.5: a message that comes back unchanged keeps id, source, order, created_at, and is the same object."""
    ledger = filled("memory", "input", "context", "response")
    before = [(e.message, e.source, e.message.created_at) for e in ledger]
    ledger.reconcile(ledger.messages(), ledger.messages(), "input")
    assert [(e.message, e.source, e.message.created_at) for e in ledger] == before
    assert all(e.message is message for e, (message, _, _) in zip(ledger, before, strict=True))


def test_only_shown_messages_are_reconciled() -> None:
    """R3.3: a stage's list says nothing about messages the stage did not show; they keep their places."""
    ledger = filled("input", "response", "input", "response")
    ledger.reconcile(ledger.messages("response"), [], "response")
    assert [m.id for m in ledger.messages()] == ["m0", "m2"]


def test_an_unchanged_part_of_the_list_keeps_others_between_it() -> None:
    """R3.5: what is shown without its neighbours comes back into its own places."""
    ledger = filled("input", "response", "input", "response")
    ledger.reconcile(ledger.messages("response"), ledger.messages("response"), "response")
    assert [m.id for m in ledger.messages()] == ["m0", "m1", "m2", "m3"]


def test_the_returned_order_is_the_order() -> None:
    """R3.3: the list's order is the order of this run's prompt; created_at of what was there never changes."""
    ledger = filled("memory", "input", "input")
    created = {m.id: m.created_at for m in ledger.messages()}
    ledger.reconcile(ledger.messages(), list(reversed(ledger.messages())), "input")
    assert [m.id for m in ledger.messages()] == ["m2", "m1", "m0"]
    assert {m.id: m.created_at for m in ledger.messages()} == created


def test_a_new_message_gets_the_stages_source_and_a_time() -> None:
    """R3.3: new ones are added with the stage's source, where the list has them."""
    ledger = filled("memory", "input")
    old, new = ledger.messages()
    ledger.reconcile([old, new], [old, a_message("fresh", "f"), new], "input")
    assert [(e.message.id, e.source) for e in ledger] == [
        ("m0", "memory"),
        ("fresh", "input"),
        ("m1", "input"),
    ]
    assert ledger.messages()[1].created_at is not None


def test_a_changed_copy_takes_the_messages_place() -> None:
    """R3.3, R3.5: changed ones replace; id, source and created_at stay, also if the copy claims another time."""
    ledger = filled("memory", "input")
    old, new = ledger.messages()
    created = old.created_at
    copy = old.replace(content=Content(parts=[TextPart(text="[GONE]")]), created_at=START + timedelta(days=9))
    ledger.reconcile([old, new], [copy, new], "input")
    first = ledger.entries[0]
    assert (first.message.text, first.source, first.message.created_at) == ("[GONE]", "memory", created)


_sources = st.lists(st.sampled_from(["memory", "input", "context"]), min_size=1, max_size=5)


@st.composite
def _returned(draw: Any) -> list[list[tuple[str, int]]]:
    """What several hooks return, one after the other: each an order, with drops, copies and additions."""
    return draw(
        st.lists(
            st.lists(
                st.tuples(st.sampled_from(["keep", "copy", "edit", "add"]), st.integers(0, 20)), max_size=8
            ),
            min_size=1,
            max_size=4,
        )
    )


@given(_sources, _returned())
def test_any_returned_lists_keep_ids_sources_and_times(
    sources: Any, hooks: list[list[tuple[str, int]]]
) -> None:
    """R3.3, R3.5: whatever permutation with copies, edits, drops and additions hooks return one after the other: the
    list is what was returned, in that order; who was there keeps id, source and created_at; who is new gets the
    stage's source and a time of its own, which nobody else has before.
    """
    ledger = filled(*sources)
    known = {e.message.id: (e.source, e.message.created_at) for e in ledger}
    for number, ops in enumerate(hooks):
        there = ledger.messages()
        returned: list[Message] = []
        used: set[str] = set()
        expected: list[tuple[str, str]] = []
        for op, place in ops:
            if op == "add":
                message = a_message(f"added-{number}-{len(returned)}", "new")
                known[message.id] = ("input", None)
            else:
                if not there or there[place % len(there)].id in used:
                    continue
                message = there[place % len(there)]
                if op != "keep":
                    message = message.replace(
                        content=message.content.replace(
                            parts=[part.replace() for part in message.content.parts]
                        )
                    )
                if op == "edit":
                    message.content.parts[0].text += "!"  # type: ignore[attr-defined]
                    message.created_at = None
            used.add(message.id)
            returned.append(message)
            expected.append((message.id, message.text))
        ledger.reconcile(there, returned, "input")
        assert [(m.id, m.text) for m in ledger.messages()] == expected
        for entry in ledger:
            source, created = known[entry.message.id]
            assert entry.source == source
            assert entry.message.created_at is not None
            if created is None:
                known[entry.message.id] = (source, entry.message.created_at)
            else:
                assert entry.message.created_at == created


@given(
    st.lists(
        st.tuples(st.sampled_from(["edit", "drop", "add", "copy", "swap", "replace"]), st.integers(0, 9)),
        max_size=6,
    )
)
def test_withdrawing_is_exact_after_any_edits(ops: list[tuple[str, int]]) -> None:
    """R7.3: after any in-place edits, drops, moves and additions, withdrawing the step under way leaves exactly the
    earlier step as it then stands, and nothing that was added during the later one.
    """
    ledger = two_steps()
    parts: list[Part] = answer(ledger).content.parts
    for op, place in ops:
        if op == "add" or not parts:
            parts.insert(place % (len(parts) + 1), TextPart(text="added"))
            ledger.settle()
            continue
        index = place % len(parts)
        part = parts[index]
        match op:
            case "edit" if isinstance(part, TextPart):
                part.text += "!"
            case "drop":
                del parts[index]
            case "copy":
                parts[index] = part.replace()
            case "swap":
                parts[0], parts[index] = parts[index], parts[0]
            case "replace" if isinstance(part, TextPart):
                parts[index] = TextPart(text=part.text)
            case _:
                pass
        ledger.settle()
    expected = [part for part in parts if getattr(part, "text", "1")[:2] in ("a0", "b0")]
    ledger.withdraw(1)
    left = [part for m in ledger.messages("response") for part in m.content.parts]
    assert left == expected
    assert not any(isinstance(part, StepStartPart) for part in left)
