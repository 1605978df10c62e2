"""Tool calls of a streamed chat completion, put together from their pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import msgspec

from interlock.core.chunks import Chunk, ToolCall, ToolInputDelta, ToolInputEnd, ToolInputStart
from interlock.core.errors import ModelError
from interlock.models.openai_errors import excerpt
from interlock.models.openai_events import Function, ToolDelta, arguments_of
from interlock.models.openai_messages import EXTRA


class _Call:
    """A tool call whose arguments are arriving."""

    __slots__ = ("arguments", "extra", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments = ""
        self.extra: Any = None


class CallReader:
    """Puts together the calls of one answer, which may arrive in turns.

    Args:
        provider: under whose name provider metadata is filed.

    Attributes:
        any_made: whether a call was complete.
    """

    def __init__(self, *, provider: str) -> None:
        self.any_made = False
        self._provider = provider
        self._calls: list[_Call] = []
        self._by_index: dict[int | None, _Call] = {}

    def read(self, piece: ToolDelta) -> Iterator[Chunk]:
        """The chunks of one piece."""
        function = piece.function or Function()
        call = self._call_of(piece, function)
        call.id = call.id or piece.id or ""
        call.extra = piece.extra_content or call.extra
        if not call.name and function.name:
            call.name = function.name
            call.id = call.id or f"call_{uuid4().hex}"
            yield ToolInputStart(tool_call_id=call.id, tool_name=call.name)
            if call.arguments:
                yield ToolInputDelta(tool_call_id=call.id, args_text=call.arguments, tool_name=call.name)
        text = arguments_of(function)
        call.arguments += text
        if text and call.name:
            yield ToolInputDelta(tool_call_id=call.id, args_text=text, tool_name=call.name)

    def _call_of(self, piece: ToolDelta, function: Function) -> _Call:
        """The call this piece belongs to. Some providers leave the index out, or number every call 0."""
        known = next((call for call in self._calls if piece.id and call.id == piece.id), None)
        known = known or self._by_index.get(piece.index)
        begins = bool(known and piece.id and function.name and known.id and piece.id != known.id)
        if known is None or begins:
            known = _Call()
            self._calls.append(known)
        self._by_index[piece.index] = known
        return known

    def end(self, *, cut_off: bool) -> Iterator[Chunk]:
        """The calls, complete, in the order they began.

        Args:
            cut_off: the answer ended at the token limit, which explains arguments that cannot be read.

        Raises:
            ModelError: one of them never got a name.
        """
        calls, self._calls, self._by_index = self._calls, [], {}
        for call in calls:
            if not call.name:
                raise ModelError(
                    "the model called a tool without naming it", retryable=True, body=call.arguments or None
                )
            self.any_made = True
            yield ToolInputEnd(tool_call_id=call.id)
            args, invalid = _parsed(call.arguments, cut_off=cut_off)
            yield ToolCall(
                tool_call_id=call.id,
                tool_name=call.name,
                args=args,
                invalid=invalid,
                provider_metadata={self._provider: {EXTRA: call.extra}} if call.extra else None,
            )


def _parsed(arguments: str, *, cut_off: bool) -> tuple[Any, str | None]:
    """The arguments, or why they cannot be read."""
    if not arguments.strip():
        return {}, None
    try:
        return msgspec.json.decode(arguments), None
    except (msgspec.DecodeError, UnicodeEncodeError) as problem:
        why = "cut off at the token limit" if cut_off else "not valid JSON"
        return None, f"the arguments are {why} ({problem}): {excerpt(arguments)}"
