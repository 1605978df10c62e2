"""Tool calls in pieces, as well- and badly-behaved providers send them."""

from __future__ import annotations

from typing import Any

import pytest
from completions import call, calls_of, read
from fault_server import delta

from interlock.core.chunks import ToolCall, ToolInputDelta, ToolInputEnd, ToolInputStart
from interlock.core.errors import ModelError


def test_a_call_in_pieces() -> None:
    """A call opens with its name, gives its arguments in pieces and ends with the call itself."""
    assert read(call(0, "a", "f", ""), call(0, None, None, '{"x"'), call(0, None, None, ": 1}"))[:-1] == [
        ToolInputStart(tool_call_id="a", tool_name="f"),
        ToolInputDelta(tool_call_id="a", args_text='{"x"', tool_name="f"),
        ToolInputDelta(tool_call_id="a", args_text=": 1}", tool_name="f"),
        ToolInputEnd(tool_call_id="a"),
        ToolCall(tool_call_id="a", tool_name="f", args={"x": 1}),
    ]


@pytest.mark.parametrize(
    "events",
    [
        [call(0, "a", "f", '{"x": 1}'), call(0, "b", "g", '{"y"'), call(0, None, None, ": 2}")],
        [call(None, "a", "f", '{"x": 1}'), call(None, "b", "g", '{"y"'), call(None, None, None, ": 2}")],
        [call(0, "a", "f", '{"x"'), call(1, "b", "g", {"y": 2}), call(0, "a", "f", ": 1}")],
        [call(0, "a", None, '{"x"'), call(0, None, "f", ": 1}"), call(1, "b", "g", '{"y": 2}')],
    ],
    ids=["every index 0", "no index", "object, repeated id", "name comes late"],
)
def test_irregular_calls(events: list[Any]) -> None:
    """Calls are told apart as providers number them, well or badly."""
    assert calls_of(*events) == [("f", {"x": 1}), ("g", {"y": 2})]


@pytest.mark.parametrize("arguments", ["", " ", None])
def test_no_arguments(arguments: str | None) -> None:
    """A call without arguments has an empty object of them."""
    assert calls_of(call(0, "a", "f", arguments)) == [("f", {})]


@pytest.mark.parametrize(
    ("reason", "why"), [("tool_calls", "not valid JSON"), ("length", "cut off at the token")]
)
def test_malformed_arguments(reason: str, why: str) -> None:
    """Arguments that are no JSON make a call without any, which says why and quotes them."""
    made = next(c for c in read(call(0, "a", "f", '{"x": '), delta(reason)) if isinstance(c, ToolCall))
    assert made.args is None
    assert made.invalid is not None
    assert why in made.invalid
    assert '{"x":' in made.invalid


def test_missing_id_is_made_up() -> None:
    """A call without an id gets one that no other call has."""
    ids = [
        c.tool_call_id for _ in range(2) for c in read(call(0, None, "f", "{}")) if isinstance(c, ToolCall)
    ]
    assert len(set(ids)) == 2
    assert all(ids)


def test_nameless_call() -> None:
    """A call that never got a name is an error."""
    with pytest.raises(ModelError, match="without naming it"):
        read(call(0, "a", None, "{}"))


def test_signatures_of_calls() -> None:
    """What a provider attaches to a call (Google's thought signatures) is the call's provider metadata."""
    extra = {"google": {"thought_signature": "abc"}}
    piece = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}
    made = next(c for c in read(delta(tool_calls=[piece])) if isinstance(c, ToolCall))
    assert made.provider_metadata == {"acme": {"extraContent": extra}}
