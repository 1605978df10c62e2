"""``replace``: a changed copy of any chunk, part or subject (R10.6)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from interlock import UsageError
from interlock.chunks import DataChunk, TextDelta, ToolResult, Usage
from interlock.core import chunks, messages, model, result, step
from interlock.core.record import FrozenRecord, Record


class Open(Record):
    a: int
    b: list[int] = []


class Closed(FrozenRecord, frozen=True):
    a: int


def test_replace_gives_a_changed_copy() -> None:
    """R10.6: the original stays."""
    original = Open(1, [1])
    changed = original.replace(a=2)
    assert (changed.a, changed.b) == (2, [1])
    assert type(changed) is Open
    assert original.a == 1
    assert Closed(1).replace(a=2) == Closed(2)


def test_replace_without_fields_is_a_copy() -> None:
    """R10.6: equal, and another object."""
    original = TextDelta(text="a", id="1")
    copy = original.replace()
    assert copy == original
    assert copy is not original


@pytest.mark.parametrize(
    ("record", "known"),
    [
        (Open(1), "a, b"),
        (Closed(1), "a"),
        (TextDelta(text="a"), "text"),
        (ToolResult(tool_call_id="c", tool_name="t"), "result"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_unknown_field_is_told(record: Any, known: str) -> None:
    """R10.6: with the name of the class, the field that is not there and those that are."""
    with pytest.raises(UsageError, match=rf"{type(record).__name__}\.replace.*reslut.*{known}"):
        record.replace(reslut=1)


def test_a_records_type_is_no_field() -> None:
    """R10.6: a chunk's type is its class; to change it, another chunk is returned. A data chunk's type is free."""
    with pytest.raises(UsageError, match="type"):
        TextDelta(text="a").replace(type="text-end")
    assert DataChunk(type="data-a").replace(type="data-b").type == "data-b"


def test_open_records_can_be_changed_in_place_and_frozen_ones_not() -> None:
    """R3.1, R4.3: chunks and parts are open, the prompt and usage are frozen."""
    delta = TextDelta(text="a")
    delta.text = "b"
    assert delta.text == "b"
    with pytest.raises(AttributeError):
        Usage().input_tokens = 1  # type: ignore[misc]


def test_defaults_are_not_shared() -> None:
    """R6: two records never share a default list or dict."""
    one, two = Open(1), Open(1)
    one.b.append(1)
    assert two.b == []


STRUCTS = sorted(
    {
        value
        for module in (chunks, messages, model, result, step)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct)
    },
    key=lambda cls: cls.__name__,
)


@pytest.mark.parametrize("cls", STRUCTS, ids=lambda cls: cls.__name__)
def test_every_data_type_has_replace(cls: Any) -> None:
    """R10.6: chunks and subjects have ``.replace(**fields)``."""
    assert callable(cls.replace)


@pytest.mark.parametrize("cls", STRUCTS, ids=lambda cls: cls.__name__)
def test_no_mutable_default_is_shared(cls: Any) -> None:
    """R6: a default list or dict is made anew for each instance, for every data type."""
    for default in cls.__struct_defaults__:
        assert not isinstance(default, list | dict), "msgspec copies only empty literals; give a factory"
