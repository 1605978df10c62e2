"""Where the texts of a run are, and what every guard does with a find, whatever kind of guard it is (spec R0)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from msgspec import json

from interlock.core.chunks import (
    Chunk,
    DataChunk,
    Source,
    ToolCall,
    ToolError,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)
from interlock.core.context import HookContext
from interlock.core.errors import UsageError
from interlock.core.jsonable import jsonable
from interlock.core.messages import (
    DataPart,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    SourcePart,
    TextPart,
    ToolInvocationPart,
)
from interlock.core.processor import Processor
from interlock.core.record import Record
from interlock.core.shapes import is_dict, is_sequence

log = logging.getLogger("interlock")

T = TypeVar("T")
Channel: TypeAlias = Literal[
    "input", "text", "reasoning", "tool-arguments", "tool-results", "data", "sources"
]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
Strategy: TypeAlias = Literal["redact", "block", "filter", "warn", "detect"]


class Detection(Record, kw_only=True):
    """One find of a guard.

    Attributes:
        rule: the rule's name.
        channel: where it was found.
        offset: characters from the start of that text.
        length: characters.
        replacement: what stands there now; None where the text was left as it is.
        text: what was found, only if the guard was told to report it.
        reason: a judge's, where it gave one.
        scores: a judge's, where it gave some.
    """

    rule: str
    channel: str
    offset: int
    length: int
    replacement: str | None = None
    text: str | None = None
    reason: str | None = None
    scores: dict[str, float] | None = None

    @property
    def message(self) -> str:
        """The find in words, without its text."""
        return self.reason or f"{self.rule} found in {self.channel}"

    @property
    def detail(self) -> dict[str, Any]:
        """What violations and tripwires carry of it; never the text."""
        detail: dict[str, Any] = {"rule": self.rule, "channel": self.channel, "offset": self.offset}
        return detail if self.scores is None else {**detail, "scores": self.scores}


class ChannelGuard(Processor):
    """What guards of every kind have: their channels, their strategy, and how they tell of finds.

    Args:
        id: the processor's id.
        strategy: what a find leads to.
        channels: which texts are guarded.
        on_detection: told of each find.
        report_text: whether finds carry the text that was found.
        error_strategy: what a failed check leads to.
    """

    def __init__(
        self,
        *,
        id: str,
        strategy: Strategy,
        channels: Sequence[Channel],
        on_detection: Callable[[Detection], object] | None,
        report_text: bool,
        error_strategy: Literal["strict", "warn"],
    ) -> None:
        self.id = id
        self._check_option("strategy", strategy, get_args(Strategy))
        self._check_option("error_strategy", error_strategy, ("strict", "warn"))
        unknown = [channel for channel in channels if channel not in CHANNELS]
        if unknown or isinstance(channels, str):
            raise UsageError(
                f"{type(self).__name__} {id!r}: channels are {', '.join(CHANNELS)}; not {channels!r}"
            )
        self.strategy: Strategy = strategy
        self.channels = frozenset(channels)
        self.on_detection = on_detection
        self.report_text = report_text
        self.error_strategy = error_strategy
        self.process_data_parts = "data" in self.channels
        self.process_tool_errors = "tool-results" in self.channels
        left_out = [channel for channel in CHANNELS if channel not in self.channels]
        if left_out:
            self.description = f"does not guard: {', '.join(left_out)}"
            log.info("%s %r does not guard %s", type(self).__name__, id, ", ".join(left_out))

    def _check_option(self, name: str, value: object, known: Sequence[str]) -> None:
        if value not in known:
            raise UsageError(
                f"{type(self).__name__} {self.id!r}: {name} must be one of {', '.join(known)}, not {value!r}"
            )

    def _tell(self, detection: Detection, ctx: HookContext) -> None:
        """Tell of a find; raises under ``block``."""
        if self.on_detection is not None:
            self.on_detection(detection)
        if self.strategy == "block":
            ctx.abort(detection.message, metadata={**detection.detail, "strategy": "block"})
        if self.strategy != "detect":
            ctx.violation(detection.message, detection.detail)

    def _check_failed(
        self, problem: object, ctx: HookContext, *, closed: bool | None = None, cause: str | None = None
    ) -> None:
        """A check could not be made; raises unless that is to be passed over (spec R5.4)."""
        said = f"a check could not be made: {problem}"
        detail = {"check_failed": True} if cause is None else {"check_failed": True, "cause": cause}
        if self.error_strategy == "strict" if closed is None else closed:
            ctx.abort(said, metadata=detail)
        ctx.violation(said, detail)

    def _messages_brought(self, messages: list[Message], ctx: HookContext) -> list[Message]:
        """What this call brought; remembered messages were judged when they came."""
        if "input" not in self.channels:
            return []
        here = {message.id for message in messages}
        brought = (*ctx.message_list.get.input.db(), *ctx.message_list.get.context.db())
        return [message for message in brought if message.id in here]


# ---------------------------------------------------------------------------------------------- the texts of a subject

Texts: TypeAlias = Generator[tuple[Channel, list[str]], list[str], T]
"""Visits the texts of something.

Yields a channel and texts that are one text together, and is sent what stands for each.
"""


def visit(texts: Texts[T], guarded: Callable[[list[str], Channel], list[str]]) -> T:
    """Every text of a subject through a guard. Returns the subject as it then is."""
    sent: list[str] | None = None
    while True:
        try:
            channel, found = next(texts) if sent is None else texts.send(sent)
        except StopIteration as done:
            return done.value
        sent = guarded(found, channel)


async def visit_async(texts: Texts[T], guarded: Callable[[list[str], Channel], Awaitable[list[str]]]) -> T:
    """Every text of a subject through a guard that has to wait. Returns the subject as it then is."""
    sent: list[str] | None = None
    while True:
        try:
            channel, found = next(texts) if sent is None else texts.send(sent)
        except StopIteration as done:
            return done.value
        sent = await guarded(found, channel)


def texts_in_value(value: Any, channel: Channel) -> Texts[Any]:
    """Every string in a value, as JSON would show it; the value itself where nothing changes.

    The keys of objects are texts too, each told once. Where keys become the same they are numbered: nothing is lost.
    """
    plain = jsonable(value)
    guarded: Any = yield from _strings(plain, channel, {})
    return value if guarded == plain else guarded


def _strings(value: Any, channel: Channel, keys: dict[str, str]) -> Texts[Any]:
    if isinstance(value, str):
        (new,) = yield channel, [value]
        return new
    if is_dict(value):
        for key in value:
            if key not in keys:
                (keys[key],) = yield channel, [key]
        changed: dict[str, Any] = {}
        for key, name in _names(value, keys).items():
            changed[name] = yield from _strings(value[key], channel, keys)
        return changed
    if is_sequence(value):
        items: list[Any] = []
        for inner in value:
            items.append((yield from _strings(inner, channel, keys)))
        return items
    return value


def _names(given: Iterable[str], stand_for: Mapping[str, str]) -> dict[str, str]:
    """What the keys of one object are called then, no two the same; one that stays keeps its name."""
    taken = {key for key in given if stand_for[key] == key}
    names: dict[str, str] = {}
    for key in given:
        name, number = stand_for[key], 1
        while name in taken and name != key:
            number += 1
            name = f"{stand_for[key]} ({number})"
        taken.add(name)
        names[key] = name
    return names


_CONTENT: dict[type[Part], tuple[str, ...]] = {
    ReasoningPart: ("text",),
    ToolInvocationPart: ("args", "result", "error_text", "invalid"),
    FilePart: ("filename",),
    DataPart: ("data",),
}
"""What is guarded of an input message's parts, beside its text."""
_TOLD = ("title", "url", "filename")
"""What is guarded of a source."""


def texts_in_message(message: Message) -> Texts[None]:
    """A message's text parts, which are one text, and what else its parts hold; changed in place."""
    parts = [part for part in message.content.parts if isinstance(part, TextPart)]
    old = [part.text for part in parts]
    new = yield "input", old
    for part, text in zip(parts, new, strict=True):
        part.text = text
    if message.content.content is not None:  # the fallback for old rows; the same text is not judged twice
        if message.content.content == "".join(old):
            message.content.content = "".join(new)
        else:
            message.content.content = yield from texts_in_value(message.content.content, "input")
    for part in message.content.parts:
        for name in _CONTENT.get(type(part), ()):
            setattr(part, name, (yield from texts_in_value(getattr(part, name), "input")))
        if isinstance(part, SourcePart):
            for key in _TOLD:
                if key in part.source:
                    told: Any = yield from texts_in_value(part.source[key], "input")
                    part.source = {**part.source, key: told}


def texts_in_chunk(
    chunk: Chunk, channels: AbstractSet[Channel], *, streaming: bool
) -> Texts[list[Chunk]] | None:
    """The whole texts that a chunk of the output holds; visited, they give the chunks to send. None: it holds none.

    Args:
        chunk: any but the deltas of text and reasoning.
        channels: those that are guarded.
        streaming: the model is still at it: an answer to a call is the provider's own.
    """
    match chunk:
        case ToolInputStart() | ToolInputDelta() | ToolInputEnd() if "tool-arguments" in channels:
            return _nothing()  # streamed arguments wait for the call they lead to
        case ToolCall() if "tool-arguments" in channels:
            return _call(chunk)
        case DataChunk() if "data" in channels:
            return _fields(chunk, {"data": "data"})
        case Source() if "sources" in channels:
            return _fields(chunk, dict.fromkeys(_TOLD, "sources"))
        case ToolResult() if (
            streaming and "tool-arguments" in channels
        ):  # its result has passed process_tool_result
            return _fields(chunk, {"args": "tool-arguments"})
        case ToolError() if streaming:
            told: dict[str, Channel] = {"args": "tool-arguments", "error": "tool-results"}
            return _fields(chunk, {name: each for name, each in told.items() if each in channels})
        case _:
            return None


def _nothing() -> Texts[list[Chunk]]:
    return []
    yield  # a generator like the others


def _fields(chunk: Chunk, channels: dict[str, Channel]) -> Texts[list[Chunk]]:
    changed: dict[str, Any] = {}
    for name, channel in channels.items():
        changed[name] = yield from texts_in_value(getattr(chunk, name), channel)
    return [chunk.replace(**changed)]


def _call(chunk: ToolCall) -> Texts[list[Chunk]]:
    """The call with its final arguments, told as one delta before it."""
    args: Any = yield from texts_in_value(chunk.args, "tool-arguments")
    invalid: Any = yield from texts_in_value(chunk.invalid, "tool-arguments")
    call = chunk.replace(args=args, invalid=invalid)
    return [
        ToolInputStart(
            tool_call_id=call.tool_call_id,
            tool_name=call.tool_name,
            provider_executed=call.provider_executed,
        ),
        ToolInputDelta(
            tool_call_id=call.tool_call_id,
            args_text=json.encode(call.args).decode(),
            tool_name=call.tool_name,
        ),
        ToolInputEnd(tool_call_id=call.tool_call_id),
        call,
    ]
