"""A tool's result as plain JSON values (R4.8)."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import uuid
from typing import Any, NamedTuple

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.jsonable import jsonable


class Colour(enum.Enum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class Word(enum.StrEnum):
    A = "a"


@dataclasses.dataclass
class Point:
    x: int
    at: datetime.date


class Row(msgspec.Struct):
    a: int
    b: list[Any]


class Model(pydantic.BaseModel):
    when: datetime.datetime
    colour: Colour


class Pair(NamedTuple):
    left: int
    right: Any


class Plain:
    def __init__(self) -> None:
        self.name = "n"
        self.call = print


class Opaque:
    __slots__ = ()

    def __str__(self) -> str:
        return "opaque"


DAY = datetime.date(2026, 1, 2)
MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    "value", ["", "text", 0, 1, -5, True, False, None, 1.5, [], {}, [1, [None]], {"a": {"b": [1]}}]
)
def test_json_values_stay(value: Any) -> None:
    """R4.8: what is JSON already is what it was, in type too; None is a result."""
    made = jsonable(value)
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ((1, (2,)), [1, [2]]),
        ({3}, [3]),
        (frozenset({3}), [3]),
        (DAY, "2026-01-02"),
        (datetime.time(3, 4), "03:04:00"),
        (uuid.UUID(int=1), str(uuid.UUID(int=1))),
        (decimal.Decimal("1.10"), "1.10"),
        (b"abc", "YWJj"),
        (Colour.RED, "red"),
        (Number.ONE, 1),
        (Word.A, "a"),
        (Point(1, DAY), {"x": 1, "at": "2026-01-02"}),
        (Row(1, [DAY]), {"a": 1, "b": ["2026-01-02"]}),
        (Model(when=MOMENT, colour=Colour.RED), {"when": "2026-01-02T03:04:05Z", "colour": "red"}),
        ({1: "a", None: "b", DAY: "c"}, {"1": "a", "None": "b", "2026-01-02": "c"}),
        (float("nan"), None),
        (float("inf"), None),
        (Opaque(), "opaque"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (ValueError("no"), "ValueError: no"),
        ({"deep": [Point(1, DAY), (Colour.RED,)]}, {"deep": [{"x": 1, "at": "2026-01-02"}, ["red"]]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_values_become_json(value: Any, made: Any) -> None:
    """R4.8: dates as ISO text, models and dataclasses as objects, the rest as its text; nothing raises."""
    assert jsonable(value) == made
    assert json.loads(json.dumps(jsonable(value))) == made


def test_a_named_tuple_is_a_list_or_an_object() -> None:
    """R4.8: either is JSON; its values are made JSON too."""
    assert jsonable(Pair(1, DAY)) in ([1, "2026-01-02"], {"left": 1, "right": "2026-01-02"})


def test_functions_are_left_out() -> None:
    """R4.8: of an object as JSON.stringify does: a key goes, a place in a list stays empty."""
    assert jsonable({"a": print, "b": 1}) == {"b": 1}
    assert jsonable([print, 1]) == [None, 1]
    assert jsonable(Plain()) == {"name": "n"}


def test_circles_end() -> None:
    """R4.8: a reference to something that contains it does not loop; the same thing twice is no circle."""
    circle: dict[str, Any] = {"a": 1}
    circle["self"] = circle
    circle["list"] = [circle]
    assert jsonable(circle) == {"a": 1, "self": "[Circular]", "list": ["[Circular]"]}
    shared = [1]
    assert jsonable([shared, shared]) == [[1], [1]]


def test_deep_nesting_does_not_raise() -> None:
    """R4.8: a tool cannot bring the run down with what it returns."""
    deep: list[Any] = []
    for _ in range(50):
        deep = [deep]
    assert json.dumps(jsonable(deep))


def test_the_original_is_not_changed_or_shared() -> None:
    """R6: a tool may keep and return the same object again and again."""
    original = {"list": [1]}
    made = jsonable(original)
    made["list"].append(2)
    assert original == {"list": [1]}


_anything = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.dates(), st.binary(max_size=3),
        st.just(print), st.builds(Opaque), st.just(Colour.RED), st.decimals(allow_nan=True), st.complex_numbers(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers(), st.none()), inner, max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip


@given(_anything)
def test_anything_becomes_json_that_stays_itself(value: Any) -> None:
    """R4.8: the result is always JSON-serialisable, and making it so twice changes nothing."""
    made = jsonable(value)
    text = json.dumps(made, allow_nan=False)
    assert jsonable(made) == made
    assert json.loads(text) == made
