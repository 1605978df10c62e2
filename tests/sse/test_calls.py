"""Tool calls of a choice: told apart whatever the provider numbers, their arguments kept."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.sse.calls import Calls
from interlock.sse.shapes import Unreadable


def piece(index: int | None, id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    """A delta with a piece of a call."""
    return {"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}


def kept(*deltas: dict[str, Any]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Ids, names and arguments of the calls in these deltas, and how new arguments would be told."""
    calls = Calls()
    for delta in deltas:
        for slot in calls.in_delta(delta):
            if slot.filled:
                slot.take()
    return [(call.id, call.name, call.take(), call.delta("x")) for call in calls]


def test_calls_by_index() -> None:
    """Pieces with one index are one call, also where its id comes again; a delta needs the index alone."""
    assert kept(
        piece(0, "a", "look", ""),
        piece(1, "b", "save", "{"),
        piece(0, None, None, "{}"),
        piece(1, "b", None, "}"),
    ) == [
        ("a", "look", "{}", {"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]}),
        ("b", "save", "{}", {"tool_calls": [{"index": 1, "function": {"arguments": "x"}}]}),
    ]


@pytest.mark.parametrize("index", [0, None])
def test_calls_by_id(index: int | None) -> None:
    """Where the index tells nothing, another id with a name begins another call, and deltas tell the id."""
    number = {} if index is None else {"index": index}
    assert kept(
        piece(index, "a", "look", "{"),
        piece(index, "", None, "}"),
        piece(index, "b", "look", "[]"),
    ) == [
        ("a", "look", "{}", {"tool_calls": [{**number, "id": "a", "function": {"arguments": "x"}}]}),
        ("b", "look", "[]", {"tool_calls": [{**number, "id": "b", "function": {"arguments": "x"}}]}),
    ]


def test_the_form_before_tool_calls_and_arguments_as_objects() -> None:
    """There is one call of that form. An object is kept as the JSON it is."""
    assert kept(
        {"function_call": {"name": "look", "arguments": "{"}}, {"function_call": {"arguments": "}"}}
    ) == [("", "", "{}", {"function_call": {"arguments": "x"}})]
    assert [each[2] for each in kept(piece(0, "a", "look", {"q": 1}))] == ['{"q":1}']
    assert kept({"tool_calls": None, "function_call": None}, {"tool_calls": [{"index": 0}]}) == []


def test_custom_tools() -> None:
    """Their input is a text, told as it came: not as a function's arguments. An empty ``custom`` beside a function,
    which some gateways send, is nothing.
    """
    custom = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "run", "input": "ls"}}
    more = {"index": 0, "custom": {"input": " -l"}}
    assert kept({"tool_calls": [custom]}, {"tool_calls": [more]}) == [
        ("a", "run", "ls -l", {"tool_calls": [{"index": 0, "custom": {"input": "x"}}]})
    ]
    both = {"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}, "custom": {}}
    assert kept({"tool_calls": [both]}) == [
        ("a", "look", "{}", {"tool_calls": [{"index": 0, "function": {"arguments": "x"}}]})
    ]
    ((_, function), (_, empty)) = (
        (slot.take() if slot.filled else None, slot) for slot in Calls().in_delta({"tool_calls": [both]})
    )
    assert (function.fits, empty.fits) == (True, False)


def test_arguments_are_given_once() -> None:
    """What was taken is not there any more."""
    calls = Calls()
    delta = piece(0, "a", "look", "{}")
    (slot,) = calls.in_delta(delta)
    assert slot.filled
    slot.take()
    assert delta == piece(0, "a", "look", "")
    assert not slot.filled
    assert (slot.call.take(), slot.call.take()) == ("{}", "")


@pytest.mark.parametrize(
    "delta",
    [
        {"tool_calls": "x"},
        {"tool_calls": ["x"]},
        {"tool_calls": [{"function": "x"}]},
        {"tool_calls": [{"custom": "x"}]},
        {"function_call": "x"},
    ],
)
def test_calls_of_another_form(delta: dict[str, Any]) -> None:
    """They cannot be guarded: they are told."""
    with pytest.raises(Unreadable):
        list(Calls().in_delta(delta))
