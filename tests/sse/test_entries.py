"""Events that leave: as they came, changed, in parts, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.sse.entries import Entry, added, frame_of
from interlock.sse.texts import Piece

FRAME = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}


def entry(*choices: dict[str, Any], decided: dict[str, str] | None = None, **more: Any) -> Entry:
    """An event with these choices, its contents decided as given; else as they came."""
    event = {**FRAME, "choices": list(choices), **more}
    made = Entry([b"id: 7\n", b"data: " + json.dumps(event).encode() + b"\n", b"\n"], event)
    for choice in choices:
        delta = choice.get("delta", {})
        if isinstance(delta.get("content"), str):
            piece = Piece(delta, "content")
            piece.out = (decided or {}).get(piece.text, piece.text)
            piece.done = True
            made.pieces.append((choice, piece))
    return made


def choice(content: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
    """A choice of an event."""
    return {"index": index, "delta": {} if content is None else {"content": content}, **more}


def data(out: bytes) -> Any:
    """What an event's data say."""
    (line,) = [line for line in out.split(b"\n") if line.startswith(b"data:")]
    return json.loads(line[5:])


def test_an_event_that_does_not_change_is_the_same_to_the_byte() -> None:
    """Also one with other things in it; lines without an event are themselves."""
    event = entry(choice("a", extra=1.50), usage={"total": 1})
    assert event.decided
    assert event.rendered(guarded=True) == b"".join(event.lines)
    assert Entry([b": ping\n"]).rendered(guarded=True) == b": ping\n"


def test_an_event_that_changes_keeps_everything_else() -> None:
    """Ids, unknown fields, other choices and the lines around the data."""
    out = entry(
        choice("12", native="x"), choice("b", 1), decided={"12": "[PIN]"}, usage={"total": 1}
    ).rendered(guarded=True)
    assert out.startswith(b"id: 7\ndata: ")
    assert data(out) == {
        **FRAME,
        "choices": [choice("[PIN]", native="x"), choice("b", 1)],
        "usage": {"total": 1},
    }


@pytest.mark.parametrize(
    ("event", "stays"),
    [
        (entry(choice("12"), decided={"12": ""}), False),
        (entry(choice("12"), decided={"12": ""}, obfuscation="abc"), False),
        (entry(choice("12", finish_reason="stop"), decided={"12": ""}), True),
        (entry(choice("12"), choice("b", 1), decided={"12": ""}), True),
        (entry(choice("12"), decided={"12": ""}, usage={"total": 1}), True),
        (entry({"index": 0, "delta": {"content": "12", "role": "assistant"}}, decided={"12": ""}), True),
        (entry({"index": 0, "delta": {"content": "12", "annotations": [1]}}, decided={"12": ""}), True),
    ],
)
def test_an_event_of_which_nothing_is_left_does_not_leave(event: Entry, stays: bool) -> None:
    """It would say nothing; where anything else is in it, it does."""
    assert bool(event.rendered(guarded=True)) is stays


@pytest.mark.parametrize(
    ("delta", "stays"),
    [
        ({"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}, False),
        ({"function_call": {"arguments": ""}}, False),
        ({"tool_calls": [{"index": 0, "id": "c", "function": {"arguments": ""}}]}, True),
        ({"tool_calls": [{"index": 0, "function": {"name": "look", "arguments": ""}}]}, True),
        ({"function_call": {"name": "look", "arguments": ""}}, True),
    ],
)
def test_a_call_whose_arguments_were_taken(delta: dict[str, Any], stays: bool) -> None:
    """Its head leaves, what had nothing but arguments does not."""
    event = entry({"index": 0, "delta": delta})
    event.changed = True
    assert bool(event.rendered(guarded=True)) is stays


@pytest.mark.parametrize(
    ("logprobs", "stays"),
    [
        ({"content": [{"token": "a"}, {"token": "b"}], "refusal": None}, True),
        ({"content": []}, True),
        ({"content": [{"token": "ab", "bytes": [97, 98]}]}, True),
        ({"content": [{"token": "x"}]}, False),
        ({"content": [{"token": "ab"}, {"token": "", "bytes": [49, 50]}]}, False),
        ({"tokens": ["ab"]}, False),
        ({"content": ["ab"]}, False),
        (["ab"], False),
    ],
)
def test_log_probabilities_stay_where_they_say_what_the_text_says(logprobs: Any, stays: bool) -> None:
    """Elsewhere they could hold a removed span (R0.3). Without guards nothing can be removed."""
    event = entry(choice("ab", logprobs=logprobs))
    assert data(event.rendered(guarded=False))["choices"][0]["logprobs"] == logprobs
    assert data(event.rendered(guarded=True))["choices"][0]["logprobs"] == (logprobs if stays else None)
    changed = entry(choice("ab", logprobs=logprobs), decided={"ab": "[X]"})
    assert data(changed.rendered(guarded=True))["choices"][0]["logprobs"] is None


def test_what_is_decided_of_a_waiting_event_leaves_in_one_of_its_own() -> None:
    """With the answer's frame and the event's lines; each text once; then the rest is all the event has to say."""
    event = entry({"index": 2, "delta": {"role": "assistant", "content": "ab12"}}, usage={"total": 1})
    ((_, piece),) = event.pieces
    piece.out, piece.done = "ab", False
    assert not event.decided
    out = event.take_part()
    assert out.startswith(b"id: 7\n")
    delta = {"role": "assistant", "content": "ab"}
    assert data(out) == {**FRAME, "choices": [{"index": 2, "delta": delta, "finish_reason": None}]}
    assert event.take_part() == b""
    piece.out, piece.done = "[PIN]", True
    assert data(event.rendered(guarded=True))["choices"][0]["delta"]["content"] == "[PIN]"


def test_an_event_that_is_added() -> None:
    """It repeats what every event of the answer says."""
    frame = frame_of({**FRAME, "choices": [], "usage": 1, "provider": "p"})
    assert frame == {**FRAME, "provider": "p"}
    out = added(frame, 3, {"content": "x"}).rendered(guarded=True)
    only = {"index": 3, "delta": {"content": "x"}, "logprobs": None, "finish_reason": None}
    assert data(out) == {**frame, "choices": [only]}
    assert out.endswith(b"\n\n")
