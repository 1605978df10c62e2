"""A model that says what the test tells it to (spec R10.6)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from copy import deepcopy
from typing import Any, TypeAlias

from interlock.core.chunks import (
    Chunk,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    Usage,
)
from interlock.core.errors import ModelError, UsageError
from interlock.core.forms import core_message
from interlock.core.model import ModelRequest, ToolSpec
from interlock.core.prompt import prompt_text
from interlock.core.record import Record

USAGE = Usage(input_tokens=10, output_tokens=5, total_tokens=15)


class Block(Record, kw_only=True):
    """A text or reasoning block of a script."""

    kind: str
    deltas: tuple[str, ...]
    id: str | None = None


def text(*deltas: str, id: str | None = None) -> Block:
    """A block of text that arrives in these pieces."""
    return Block(kind="text", deltas=deltas, id=id)


def reasoning(*deltas: str, id: str | None = None) -> Block:
    """A block of reasoning that arrives in these pieces."""
    return Block(kind="reasoning", deltas=deltas, id=id)


class ScriptedToolCall(Record, kw_only=True):
    """A tool call of a script."""

    name: str
    args: Any
    id: str | None = None


def tool_call(name: str, args: Any = None, id: str | None = None) -> ScriptedToolCall:
    """A tool call; without an id it gets ``call-1``, ``call-2``, ..."""
    return ScriptedToolCall(name=name, args={} if args is None else args, id=id)


def error(
    status: int | None, message: str, *, retryable: bool | None = None, code: str | None = None
) -> ModelError:
    """The call fails here, as a provider's rejection would.

    Args:
        status: the HTTP status.
        message: what the provider says.
        retryable: by default for 408, 409, 429 and 5xx.
        code: the provider's error code.
    """
    if retryable is None:
        retryable = status is not None and (status in (408, 409, 429) or status >= 500)
    return ModelError(message, status=status, retryable=retryable, code=code)


Scripted: TypeAlias = Block | ScriptedToolCall | Exception | Chunk
Script: TypeAlias = Sequence[Scripted]


class ScriptedCall(Record, kw_only=True):
    """A call the model received: ``model.calls[i]``.

    Attributes:
        prompt: the messages, in prompt form (``{role, content}``).
        prompt_text: everything readable in the prompt.
        tools: the tools sent, as specs with name, description and parameters.
        settings: the model settings.
    """

    prompt: list[dict[str, Any]]
    prompt_text: str
    tools: list[ToolSpec]
    settings: dict[str, Any]
    request: ModelRequest


class ScriptedModel:
    """A language model that follows a script.

    Args:
        *calls: for each call a list of ``text(...)``, ``reasoning(...)``, ``tool_call(...)``, ``error(...)`` or
            chunks. A finish is added where the script has none: reason ``tool-calls`` after a tool call, else
            ``stop``; usage 10 in, 5 out.
        repeat_last: go on with the last list when the script has run out, instead of failing.
        model_id: the name it gives.
        native_structured_output: whether it says that its provider keeps to a schema; else it is told in words.

    >>> import asyncio
    >>> from interlock import Agent
    >>> model = ScriptedModel([text("Hel", "lo")])
    >>> asyncio.run(Agent(id="a", model=model).generate("Hi")).text
    'Hello'
    >>> model.calls[0].prompt_text
    'Hi'
    """

    provider = "scripted"

    def __init__(
        self,
        *calls: Iterable[Scripted],
        repeat_last: bool = False,
        model_id: str = "scripted",
        native_structured_output: bool = False,
    ) -> None:
        self.native_structured_output = native_structured_output
        self.model_id = model_id
        self.repeat_last = repeat_last
        self.calls: list[ScriptedCall] = []
        self._scripts = [_checked(call) for call in calls]
        self._next = 0

    def rewind(self) -> None:
        """Start the script again and forget the calls."""
        self._next = 0
        self.calls.clear()

    def assert_used(self) -> None:
        """Fail if the script was not used up.

        Raises:
            AssertionError: says what was left.
        """
        left = self._scripts[self._next :]
        if left:
            raise AssertionError(
                f"{len(left)} of {len(self._scripts)} scripted calls were not made: {left!r:.300}"
            )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Follow the script for one call."""
        self.calls.append(
            ScriptedCall(
                prompt=[core_message(message) for message in request.prompt],
                prompt_text=prompt_text(request.prompt),
                tools=list(request.tools),
                settings=request.settings,
                request=request,
            )
        )
        for chunk in self._script_of_this_call():
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    def _script_of_this_call(self) -> list[Chunk | Exception]:
        index = self._next
        if index >= len(self._scripts):
            if not self.repeat_last or not self._scripts:
                raise UsageError(
                    f"ScriptedModel: call {index + 1} is beyond the script of {len(self._scripts)}; add a list, or "
                    "give repeat_last=True"
                )
            index = len(self._scripts) - 1
        self._next += self._next < len(self._scripts)
        return _chunks(self._scripts[index], call_number=len(self.calls))


def _checked(call: Any) -> list[Scripted]:
    if isinstance(call, str | Record | Exception) or not isinstance(call, Iterable):
        raise UsageError(f"ScriptedModel: each call is a list, such as [text('Hi')], not {call!r:.60}")
    items: list[Any] = list(call)  # pyright: ignore[reportUnknownArgumentType]
    for item in items:
        if not isinstance(item, Block | ScriptedToolCall | Exception | Chunk):
            raise UsageError(
                f"ScriptedModel: {item!r:.60} is no part of a script; write text(...), reasoning(...), "
                "tool_call(...), error(...) or a chunk"
            )
    return items


def _chunks(items: Script, *, call_number: int) -> list[Chunk | Exception]:
    made: list[Chunk | Exception] = []
    for number, item in enumerate(items, 1):
        match item:
            case Block(kind="text"):
                block = item.id or f"text-{number}"
                made += [
                    TextStart(id=block),
                    *(TextDelta(id=block, text=d) for d in item.deltas),
                    TextEnd(id=block),
                ]
            case Block():
                block = item.id or f"reasoning-{number}"
                made += [
                    ReasoningStart(id=block),
                    *(ReasoningDelta(id=block, text=d) for d in item.deltas),
                    ReasoningEnd(id=block),
                ]
            case ScriptedToolCall():
                made.append(
                    ToolCall(
                        tool_call_id=item.id or f"call-{call_number}-{number}",
                        tool_name=item.name,
                        args=deepcopy(item.args),
                    )
                )
            case Chunk():
                made.append(deepcopy(item))
            case _:
                made.append(item)
    if not any(isinstance(chunk, Finish | Exception) for chunk in made):
        calls = any(isinstance(chunk, ToolCall) and not chunk.provider_executed for chunk in made)
        made.append(Finish(finish_reason="tool-calls" if calls else "stop", usage=USAGE.replace()))
    return made
