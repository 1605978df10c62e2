"""The tool calls of a choice: told apart, and their arguments kept until the choice is finished."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import json

from interlock.sse.shapes import Json, list_of, object_of

KINDS = {"function": "arguments", "custom": "input"}
"""The kinds of tools, and what their arguments are called."""


class Call:
    """A tool call.

    Attributes:
        index: its number in the choice, if it came with one.
        legacy: of the form before tool calls, of which there can be one.
        custom: of a custom tool: what it gets is a text, not JSON.
        id: its id, once it is known.
        name: the tool's, once it is known.
        ambiguous: the index alone does not tell it from others.
    """

    __slots__ = ("_arguments", "ambiguous", "custom", "id", "index", "legacy", "name")

    def __init__(self, index: int | None, *, legacy: bool = False) -> None:
        self.index = index
        self.legacy = legacy
        self.custom = False
        self.id = ""
        self.name = ""
        self.ambiguous = index is None
        self._arguments: list[str] = []

    def keep(self, arguments: Any) -> None:
        """A piece of its arguments; some providers give them whole, as an object."""
        self._arguments.append(arguments if isinstance(arguments, str) else json.encode(arguments).decode())

    def take(self) -> str:
        """The arguments that were kept; given once."""
        kept = "".join(self._arguments)
        self._arguments.clear()
        return kept

    def delta(self, arguments: str) -> Json:
        """A delta that brings these arguments."""
        if self.legacy:
            return {"function_call": {"arguments": arguments}}
        call: Json = {} if self.index is None else {"index": self.index}
        if self.ambiguous and self.id:
            call["id"] = self.id
        for_it: Json = (
            {"custom": {"input": arguments}} if self.custom else {"function": {"arguments": arguments}}
        )
        return {"tool_calls": [{**call, **for_it}]}


class Slot(NamedTuple):
    """Where a piece of a call's arguments stands in a delta."""

    call: Call
    holder: Json
    key: str

    @property
    def filled(self) -> bool:
        """Whether there is one."""
        return bool(self.holder.get(self.key))

    @property
    def fits(self) -> bool:
        """Whether it is of the call's kind; one item may have a place for each."""
        return self.call.custom == (self.key == "input")

    def take(self) -> None:
        """Keep the piece with its call; the delta has none then."""
        self.call.keep(self.holder[self.key])
        self.call.custom = self.key == "input"
        self.holder[self.key] = ""


class Calls:
    """The calls of one choice, in the order they began."""

    __slots__ = ("_by_index", "_calls")

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._by_index: dict[int | None, Call] = {}

    def __iter__(self) -> Iterator[Call]:
        return iter(self._calls)

    def in_delta(self, delta: Json) -> Iterator[Slot]:
        """The calls a delta speaks of.

        Raises:
            Unreadable: a call of another form.
        """
        for item in list_of(delta.get("tool_calls"), "tool_calls"):
            piece = object_of(item, "a tool call")
            for kind, key in KINDS.items():  # some gateways have an empty ``custom`` beside each function
                if piece.get(kind) is None:
                    continue
                holder = object_of(piece[kind], f"a tool call's {kind}")
                yield Slot(
                    self._call_of(piece.get("index"), piece.get("id"), holder.get("name")), holder, key
                )
        if delta.get("function_call") is not None:
            holder = object_of(delta["function_call"], "a function call")
            yield Slot(self._legacy_call(), holder, "arguments")

    def _call_of(self, index: Any, id: Any, name: Any) -> Call:
        """The call a piece belongs to. Some providers leave the index out, or number every call 0."""
        index = index if isinstance(index, int) else None
        id, name = (given if isinstance(given, str) else "" for given in (id, name))
        same = self._by_index.get(index)
        known = next((call for call in self._calls if id and call.id == id), None) or same
        begins = bool(known and id and name and known.id and id != known.id)
        if known is None or begins:
            known = Call(index)
            self._calls.append(known)
            if same is not None:
                same.ambiguous = known.ambiguous = True
        self._by_index[index] = known
        known.id = known.id or id
        known.name = known.name or name
        return known

    def _legacy_call(self) -> Call:
        known = next((call for call in self._calls if call.legacy), None)
        if known is None:
            known = Call(None, legacy=True)
            self._calls.append(known)
        return known
