"""Tools: schema and description from a typed function, arguments checked, context injected (R4.8, R10.5)."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from typing import Annotated, Any, Literal

import pydantic
import pytest

from interlock import Tool, ToolContext, UsageError, tool
from interlock.core.tool import tool_set


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(pydantic.BaseModel):
    street: str
    zip: int = 0


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class _Writer:
    async def custom(self, chunk: Any, message_id: str | None = None) -> None:
        """Send nothing."""


CONTEXT = ToolContext("c1", {"tenant": "acme"}, _Writer(), cancelled=lambda: False)


@tool
def book(
    city: str,
    nights: int = 1,
    colour: Colour | None = None,
    kind: Literal["room", "suite"] = "room",
    tags: list[str] | None = None,
) -> dict[str, Any]:
    """Book a hotel.

    It is paid at once.

    Args:
        city: where to stay,
            in plain words.
        nights (int): how many nights.
        kind: what to book.

    Returns:
        The booking.
    """
    return {"city": city, "nights": nights, "colour": colour, "kind": kind, "tags": tags}


# -------------------------------------------------------------------------------------------------------------- schema


def test_name_description_and_schema_come_from_the_function() -> None:
    """R10.5: the model sees the function's name, its docstring and its annotations as JSON schema."""
    spec = book.spec
    assert spec.name == "book"
    assert spec.description == "Book a hotel."
    properties = spec.parameters["properties"]
    assert spec.parameters["type"] == "object"
    assert spec.parameters["required"] == ["city"]
    assert list(properties) == ["city", "nights", "colour", "kind", "tags"]
    assert properties["city"]["type"] == "string"
    assert properties["nights"]["default"] == 1
    assert properties["kind"]["enum"] == ["room", "suite"]
    assert properties["city"]["description"] == "where to stay, in plain words."
    assert properties["nights"]["description"] == "how many nights."
    assert "description" not in properties["tags"]
    assert spec.parameters["additionalProperties"] is False


def test_sphinx_descriptions_are_read_too() -> None:
    """R10.5: ``:param name:`` lines describe arguments."""

    @tool
    def look(query: str, limit: int = 3) -> str:
        """Look something up.

        :param query: what to look for
        :param int limit: how many
        """
        return query

    properties = look.parameters["properties"]
    assert properties["query"]["description"] == "what to look for"
    assert properties["limit"]["description"] == "how many"


def test_a_description_in_the_annotation_is_kept() -> None:
    """R10.5: constraints and descriptions given with Annotated reach the schema and are checked."""

    @tool
    def look(query: Annotated[str, pydantic.Field(description="what to find", min_length=2)]) -> str:
        """Look something up."""
        return query

    assert look.parameters["properties"]["query"]["description"] == "what to find"
    assert look.parameters["properties"]["query"]["minLength"] == 2
    with pytest.raises(ValueError, match="query"):
        look.bind({"query": "x"}, CONTEXT)


def test_options_override_what_is_read() -> None:
    """R10.5: name and description can be given; a schema given is used as it is."""
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}

    @tool(name="other.name-1", description="Other.", repeatable=False, parameters=schema)
    def look(**anything: Any) -> str:
        """Look."""
        return str(anything)

    assert (look.name, look.description, look.repeatable) == ("other.name-1", "Other.", False)
    assert look.parameters == schema
    assert look.bind({"q": 1, "more": 2}, CONTEXT) == {"q": 1, "more": 2}
    with pytest.raises(ValueError, match="q"):
        look.bind({}, CONTEXT)


def test_a_tool_without_a_docstring_has_an_empty_description() -> None:
    """R10.5: nothing is made up."""

    @tool
    def bare(n):  # type: ignore[no-untyped-def]
        return n

    assert bare.description == ""
    assert list(bare.parameters["properties"]) == ["n"]
    assert bare.bind({"n": {"any": "thing"}}, CONTEXT) == {"n": {"any": "thing"}}


def test_tools_are_repeatable_unless_declared_otherwise() -> None:
    """R7.1: the default allows a retry."""
    assert book.repeatable is True


def test_a_decorated_tool_is_known_as_async_or_not() -> None:
    """R1.2g: async functions, and objects with an async ``__call__``, are awaited; the others run in a thread."""

    class Caller:
        async def __call__(self, n: int) -> int:
            """Call."""
            return n

    @tool
    async def later(n: int) -> int:
        """Later."""
        return n

    assert later.is_async
    assert not book.is_async
    caller = Tool(Caller(), name="caller")
    assert caller.is_async
    assert list(caller.parameters["properties"]) == ["n"]


@pytest.mark.parametrize("bad", ["", "1st", "with space", "ümlaut!", "a/b"])
def test_a_name_no_provider_takes_is_refused(bad: str) -> None:
    """R10.5: mistakes are told at once: an unusable name, with what to write instead."""
    with pytest.raises(UsageError, match="name"):
        Tool(lambda: None, name=bad or "<lambda>")


def test_nameless_parameters_are_refused() -> None:
    """R10.5: the model cannot name ``*args``, ``**kwargs`` or positional-only parameters."""

    def stars(*args: int) -> None:
        """Stars."""

    def double(**kwargs: int) -> None:
        """Double."""

    def positional(a: int, /) -> None:
        """Positional."""

    for function in (stars, double, positional):
        with pytest.raises(UsageError, match="parameter"):
            tool(function)


def test_an_annotation_that_cannot_be_read_is_told() -> None:
    """R10.5: the error names the tool."""

    def broken(n: DoesNotExist) -> None:  # type: ignore[name-defined]  # noqa: F821
        """Break."""

    with pytest.raises(UsageError, match="broken"):
        tool(broken)


# ---------------------------------------------------------------------------------------------------------- arguments


def test_arguments_are_converted() -> None:
    """R4.8: the function gets values of its annotated types, defaults filled in."""
    bound = book.bind({"city": "Oslo", "colour": "red", "nights": "2"}, CONTEXT)
    assert bound == {"city": "Oslo", "nights": 2, "colour": Colour.RED, "kind": "room", "tags": None}


def test_nested_values_become_objects() -> None:
    """R4.8: models and dataclasses inside arguments are built."""

    @tool
    def send(to: Address, at: Point, when: datetime.date) -> None:
        """Send."""

    bound = send.bind({"to": {"street": "s"}, "at": {"x": 1}, "when": "2026-01-02"}, CONTEXT)
    assert bound == {"to": Address(street="s"), "at": Point(1), "when": datetime.date(2026, 1, 2)}


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({}, "city"),
        ({"city": 5}, "city"),
        ({"city": "Oslo", "nights": "many"}, "nights"),
        ({"city": "Oslo", "kind": "tent"}, "kind"),
        ({"city": "Oslo", "stars": 5}, "stars"),
        (["Oslo"], "object"),
        ("Oslo", "object"),
        (None, "object"),
    ],
)
def test_bad_arguments_are_told_to_the_model(args: Any, told: str) -> None:
    """R4.8: arguments that do not fit are a ValueError that names tool and argument, for the model to read."""
    with pytest.raises(ValueError, match=told) as problem:
        book.bind(args, CONTEXT)
    assert "book" in str(problem.value)
    assert "pydantic.dev" not in str(problem.value)


def test_arguments_named_like_a_models_own_methods_work() -> None:
    """R10.5: a parameter may be called ``copy``, ``json``, ``schema`` or begin with an underscore-free ``model_``."""

    @tool
    def odd(copy: str, json: str, schema: str, model_name: str) -> None:
        """Be odd."""

    args = {"copy": "1", "json": "2", "schema": "3", "model_name": "4"}
    assert odd.bind(args, CONTEXT) == args


def test_defaults_are_not_shared_between_calls() -> None:
    """R6: a mutable default changed by one call is not seen by the next."""

    @tool
    def collect(item: str, into: list[str] = []) -> list[str]:  # noqa: B006
        """Collect."""
        into.append(item)
        return into

    first = collect.bind({"item": "a"}, CONTEXT)
    first["into"].append("leak")
    assert collect.bind({"item": "b"}, CONTEXT)["into"] == []


def test_the_context_is_injected_and_not_asked_for() -> None:
    """R9.1: a parameter annotated ToolContext is passed in, whatever its name; the model cannot set it."""

    @tool
    def look(query: str, whatever: ToolContext) -> str:
        """Look."""
        return query

    assert list(look.parameters["properties"]) == ["query"]
    assert look.bind({"query": "q"}, CONTEXT) == {"query": "q", "whatever": CONTEXT}
    with pytest.raises(ValueError, match="whatever"):
        look.bind({"query": "q", "whatever": 1}, CONTEXT)


def test_an_optional_context_is_injected_too() -> None:
    """R9.1: so that a function can be called without one in a test."""

    @tool
    def look(query: str, ctx: ToolContext | None = None) -> str:
        """Look."""
        return query

    assert list(look.parameters["properties"]) == ["query"]
    assert look.bind({"query": "q"}, CONTEXT)["ctx"] is CONTEXT


def test_a_tool_can_be_called_as_the_function_it_was() -> None:
    """R10.5: the function stays reachable, unchanged."""
    assert book.function("Oslo")["city"] == "Oslo"


# ------------------------------------------------------------------------------------------------------------ tool sets


def plain(n: int) -> int:
    """Be plain."""
    return n


def test_lists_and_mappings_of_tools_and_functions() -> None:
    """R10.5: tools are given as a list or by name; a plain function becomes a tool; a key renames, and only the key."""
    assert list(tool_set([book, plain], where="x")) == ["book", "plain"]
    named = tool_set({"reserve": book, "p": plain}, where="x")
    assert {key: made.name for key, made in named.items()} == {"reserve": "reserve", "p": "p"}
    assert named["reserve"].description == book.description
    assert named["reserve"].parameters == book.parameters
    assert book.name == "book"
    assert tool_set(None, where="x") == {}
    assert tool_set([], where="x") == {}


def test_renaming_keeps_everything_else() -> None:
    """R7.1: a renamed tool is as repeatable as it was, and keeps a schema that was given."""
    schema = {"type": "object", "properties": {}}
    made = Tool(lambda: None, name="a", description="d", repeatable=False, parameters=schema)
    renamed = tool_set({"b": made}, where="x")["b"]
    assert (renamed.name, renamed.description, renamed.repeatable, renamed.parameters) == (
        "b",
        "d",
        False,
        schema,
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([1], "@tool"),
        (["book"], "@tool"),
        ([None], "@tool"),
        ({"a": 1}, "@tool"),
        ("book", "list"),
        (book, "list"),
        (5, "list"),
        ([book, book], "same name"),
    ],
)
def test_what_is_no_tool_set_is_refused(given: Any, told: str) -> None:
    """R10.5: the error says where and what to write instead."""
    with pytest.raises(UsageError, match=told) as problem:
        tool_set(given, where="Agent 'x'")
    assert "Agent 'x'" in str(problem.value)
