"""The tool calls of a choice: told apart, and their arguments kept until the choice is finished."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import json

from interlock.sse.shapes import Json, list_of, object_of


class Call:
    """A tool call.

    Attributes:
        index: its number in the choice, if it came with one.
        legacy: of the form before tool calls, of which there can be one.
        id: its id, once it is known.
        name: the tool's, once it is known.
        ambiguous: the index alone does not tell it from others.
    """

    __slots__ = ("_arguments", "ambiguous", "id", "index", "legacy", "name")

    def __init__(self, index: int | None, *, legacy: bool = False) -> None:
        self.index = index
        self.legacy = legacy
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
        function = {"arguments": arguments}
        if self.legacy:
            return {"function_call": function}
        call: Json = {} if self.index is None else {"index": self.index}
        if self.ambiguous and self.id:
            call["id"] = self.id
        return {"tool_calls": [{**call, "function": function}]}


class Calls:
    """The calls of one choice, in the order they began."""

    __slots__ = ("_by_index", "_calls")

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._by_index: dict[int | None, Call] = {}

    def __iter__(self) -> Iterator[Call]:
        return iter(self._calls)

    def in_delta(self, delta: Json) -> Iterator[tuple[Call, Json]]:
        """The calls a delta speaks of, each with the object its arguments stand in.

        Raises:
            Unreadable: a call of another form.
        """
        for item in list_of(delta.get("tool_calls"), "tool_calls"):
            piece = object_of(item, "a tool call")
            if piece.get("function") is None:
                continue
            function = object_of(piece["function"], "a tool call's function")
            yield self._call_of(piece.get("index"), piece.get("id"), function.get("name")), function
        if delta.get("function_call") is not None:
            yield self._legacy_call(), object_of(delta["function_call"], "a function call")

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
