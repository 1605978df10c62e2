"""Schemas of answers: types and JSON schemas, and the reading of texts by them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import Any, Required, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from interlock import UsageError
from interlock.schema import MOST_PROBLEMS, Mismatch, Schema, hides_text


class City(BaseModel):
    """A pydantic model."""

    name: str
    founded: date | None = None


@dataclass
class Point:
    """A dataclass."""

    x: int
    y: int


class Pair(TypedDict):
    """A TypedDict."""

    left: str
    right: int


class Loose(TypedDict, total=False):
    """A TypedDict whose keys may be missing."""

    left: Required[str]
    right: int


class Tree(BaseModel):
    """A model that refers to itself: its JSON schema is a reference at its root."""

    label: str
    children: list[Tree] = []


PAIR = {
    "type": "object",
    "properties": {"left": {"type": "string"}, "right": {"type": "integer"}},
    "required": ["left", "right"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (City, '{"name": "Rome", "founded": "0001-02-03"}', City(name="Rome", founded=date(1, 2, 3))),
        (Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (Pair, '{"left": "a", "right": 1}', {"left": "a", "right": 1}),
        (PAIR, '{"left": "a", "right": 1}', {"left": "a", "right": 1}),
        (Loose, '{"left": "a"}', {"left": "a"}),
        (list[int], "[1, 2]", [1, 2]),
        (Tree, '{"label": "a", "children": [{"label": "b"}]}', Tree(label="a", children=[Tree(label="b")])),
    ],
)
def test_a_fitting_text_is_an_object_of_the_type(schema: Any, text: str, value: Any) -> None:
    """Models, dataclasses, TypedDicts and other types give their own kind, JSON schemas plain values (R10.5)."""
    assert Schema(schema).read(text) == value


@pytest.mark.parametrize(
    "text",
    [
        '{"left": "a", "right": 1}',
        '\n  {"left": "a", "right": 1}\n',
        '```json\n{"left": "a", "right": 1}\n```',
        'Here it is:\n```\n{"left": "a", "right": 1}\n```\nAnything else?',
        'Here it is: {"left": "a", "right": 1}. Anything else?',
    ],
)
def test_json_among_words_is_found(text: str) -> None:
    """Models that are only told the schema put words and fences around it."""
    assert Schema(Pair).read(text) == Schema(PAIR).read(text) == {"left": "a", "right": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("  \n", "it is empty"),
        ("I do not know.", "it holds no readable JSON"),
        ('{"left": "a", ', "it holds no readable JSON"),
        ('{"left": NaN, "right": 1}', "it holds no readable JSON"),
        ('{"left": "a"}', "right"),
        ('{"left": "a", "right": "secret"}', "right"),
        ("[1]", "object|dictionary|valid"),
    ],
)
@pytest.mark.parametrize("schema", [Pair, PAIR])
def test_a_text_that_does_not_fit_says_where(schema: Any, text: str, said: str) -> None:
    """What is wrong is told by place and rule, never by the value that stands there (R0.3)."""
    with pytest.raises(Mismatch, match=said) as raised:
        Schema(schema).read(text)
    assert "secret" not in str(raised.value)


def test_many_faults_are_told_in_short() -> None:
    """A long list helps no model."""
    schema = Schema({"type": "array", "items": {"type": "integer"}})
    with pytest.raises(Mismatch) as raised:
        schema.read(json.dumps(["x"] * 9))
    assert str(raised.value).endswith("and 4 more")
    assert str(raised.value).count("integer") == MOST_PROBLEMS


@pytest.mark.parametrize("given_", ["city", 3, None, True, [City], City(name="Rome"), len, lambda: 1])
def test_what_is_no_schema_is_refused(given_: Any) -> None:
    """The text says what to give instead (R2.4's manner)."""
    with pytest.raises(UsageError, match=r"structured_output: "):
        Schema(given_)


@pytest.mark.parametrize(
    "given_", [{"type": "objct"}, {"$ref": "https://example.com/s.json"}, {"properties": 3}, {"pattern": "("}]
)
def test_what_is_no_json_schema_is_refused(given_: Any) -> None:
    """Nothing is looked up outside: a schema refers to its own parts only."""
    with pytest.raises(UsageError, match="no JSON schema"):
        Schema(given_)


@pytest.mark.parametrize(
    ("schema", "key"), [(list[City], "elements"), (int, "value"), (City | Point, "value")]
)
def test_what_is_no_object_is_wrapped_for_providers(schema: Any, key: str) -> None:
    """Providers take objects only; the one property then holds the answer, and the definitions stay at the root."""
    made: Schema[Any] = Schema(schema)
    wrapped, inside = made.wrapped()
    assert inside == key
    assert wrapped["type"] == "object"
    assert "$defs" not in wrapped["properties"][key]
    outer = Schema(wrapped)
    value = {"elements": [{"name": "Rome"}], "value": 3 if schema is int else {"x": 1, "y": 2}}[key]
    assert outer.read(json.dumps({key: value})) == {key: value}
    assert made.read(json.dumps({key: value}), inside=key) == made.check(value)
    with pytest.raises(Mismatch, match=key):
        made.read(json.dumps({"other": value}), inside=key)


@pytest.mark.parametrize("schema", [City, Point, Pair, PAIR, Tree, dict[str, int]])
def test_objects_are_not_wrapped(schema: Any) -> None:
    """Also a type that refers to itself is an object."""
    made: Schema[Any] = Schema(schema)
    assert made.wrapped() == (made.json, None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("Sure: ", None),
        ("{", {}),
        ('{"left": "a', {"left": "a"}),
        ('{"left": "a", "ri', {"left": "a"}),
        ('```json\n{"left": "a"', {"left": "a"}),
        ('```json\n{"left": "a"}\n```', {"left": "a"}),
        ('"text"', None),
        ("3", None),
        ("{unquoted", None),
    ],
)
def test_partial(text: str, value: Any) -> None:
    """As much as an unfinished text says; nothing where it says no object yet."""
    assert Schema(PAIR).partial(text) == value


def test_a_wrapped_partial_object_is_what_is_inside() -> None:
    """The wrapping is the provider's business."""
    schema: Schema[Any] = Schema(list[int])
    assert schema.partial('{"elements": [1, 2', inside="elements") == [1, 2]
    assert schema.partial('{"eleme', inside="elements") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(value=st.dictionaries(st.text(), JSON) | st.lists(JSON), data=st.data())
def test_every_prefix_is_read_or_said_to_be_unreadable(value: Any, data: st.DataObject) -> None:
    """Any text of JSON, cut anywhere: a partial object or None, never an exception; whole, it is the value."""
    text = json.dumps(value, ensure_ascii=False)
    schema: Schema[Any] = Schema({})
    cut = data.draw(st.integers(0, len(text)))
    partial = schema.partial(text[:cut])
    assert partial is None or isinstance(partial, dict | list)
    assert schema.partial(text) == value == schema.read(text)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (r'{"left": "a\u0040b.c", "right": 1}', True),
        (r'{"left": "\u0073ecret", "right": 1}', True),
        (r'{"left": "caf\u00e9", "right": 1}', True),
        (r'{"left": "\\\u0041", "right": 1}', True),
        (r'{"left": "\\u0041", "right": 1}', False),
        (r'{"left": "\u003cb\u003e \u0026 \n\t\u0000\"", "right": 1}', False),
        (r'{"left": "\ud83d\ude00", "right": 1}', False),
    ],
)
def test_what_escapes_hide_from_guards_is_in_no_object(text: str, hidden: bool) -> None:
    """R0.3: a guard that reads the text has not seen what only the escapes spell; so it is not taken."""
    schema = Schema(PAIR)
    assert hides_text(text) is hidden
    assert (schema.partial(text) is None) is hidden
    if hidden:
        with pytest.raises(Mismatch, match="escapes"):
            schema.read(text)
    else:
        assert schema.read(text) == json.loads(text)


@given(st.text())
def test_any_text_is_read_or_does_not_fit(text: str) -> None:
    """No text of a model breaks the reading."""
    schema = Schema(Pair)
    schema.partial(text)
    with pytest.raises(Mismatch):
        schema.read(text)
