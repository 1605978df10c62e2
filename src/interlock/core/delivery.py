"""Release policies: when a chunk goes to the client (spec R7.5, R0).

``live``: at once. ``step``: a step's chunks when process_output_step has accepted it. ``run``: after
process_output_result. Held chunks leave as the messages then have them: a part edited meanwhile goes out as one
delta of its final text, an added one as a block of its own, a removed one not at all. On a tripwire, an error or a
cancellation what is held never leaves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Literal, TypeAlias

from interlock.core.chunks import (
    Chunk,
    DataChunk,
    File,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    Start,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolError,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)
from interlock.core.ledger import Ledger
from interlock.core.messages import (
    DataPart,
    FilePart,
    Mark,
    Part,
    ReasoningPart,
    SourcePart,
    TextPart,
    ToolInvocationPart,
)

Sink: TypeAlias = Callable[[Chunk], Awaitable[object] | None]
"""Takes a chunk for the client at once; what it returns is awaited before the next one: room in the buffer."""
ReleasePolicy: TypeAlias = Literal["live", "step", "run"]
Held: TypeAlias = tuple[Chunk, Mark | None]


class Delivery:
    """The way to the client.

    Args:
        sink: takes a chunk for the client; None when nobody reads.
        policy: when chunks go out.
        ledger: the messages, to release held chunks as they then stand.
        renewed: gives a held step-finish with its steps as they then stand.

    Attributes:
        released: pieces of text that have left, of the whole run, rejected attempts included.
        first_held: the mark of the first part that is held, if any.
        step_start_sent: whether the attempt's step-start has left.
    """

    __slots__ = (
        "_held",
        "_ledger",
        "_renewed",
        "_sent",
        "_sink",
        "_step_from",
        "first_held",
        "policy",
        "released",
        "started",
        "step_start_sent",
    )  # fmt: skip

    def __init__(
        self,
        sink: Sink | None,
        policy: ReleasePolicy,
        ledger: Ledger,
        renewed: Callable[[StepFinish], StepFinish],
    ) -> None:
        self.policy: ReleasePolicy = policy
        self.released: list[str] = []
        self._step_from = 0
        self.first_held: Mark | None = None
        self.step_start_sent = False
        self.started = False
        self._sink = sink
        self._ledger = ledger
        self._renewed = renewed
        self._held: list[Held] | None = None
        self._sent: set[Mark] = set()

    async def start(self) -> None:
        """Send the run's start, once."""
        if not self.started:
            self.started = True
            await self._out(Start())

    def send(self, chunk: Chunk, mark: Mark | None = None) -> Awaitable[object] | None:
        """Send a chunk, or hold it as the policy says.

        Returns:
            What has to be awaited before the next chunk, if anything.
        """
        if self._held is not None:
            return self._hold(chunk, mark)
        if type(chunk) is TextDelta:
            self.released.append(chunk.text)
        elif type(chunk) is StepStart:
            self.step_start_sent = True
        return None if self._sink is None else self._sink(chunk)

    def _hold(self, chunk: Chunk, mark: Mark | None) -> None:
        assert self._held is not None
        if type(chunk) is StepFinish and chunk.finish_reason == "retry":
            return  # the client has not seen the attempt that it withdraws
        self._held.append((chunk, mark))
        if mark is not None and self.first_held is None:
            self.first_held = mark

    async def send_now(self, chunk: Chunk) -> None:
        """Send a chunk past what is held."""
        await self.start()
        await self._out(chunk)

    async def send_last(self, chunk: Chunk) -> None:
        """Send the run's last chunk."""
        await self._out(chunk)

    async def _out(self, chunk: Chunk) -> None:
        held, self._held = self._held, None
        pending = self.send(chunk)
        self._held = held
        if pending is not None:
            await pending

    @property
    def step_released(self) -> str:
        """The text of the attempt under way that has left."""
        return "".join(self.released[self._step_from :])

    def note_sent(self, mark: Mark | None) -> None:
        """A part the client has without having been held (custom data)."""
        if mark is not None and self.policy != "live":
            self._sent.add(mark)

    # ------------------------------------------------------------------------------------------------------- holding

    def open_step(self) -> None:
        """A new attempt at a step begins."""
        self._step_from = len(self.released)
        self.step_start_sent = False
        if self.policy != "live" and self._held is None:
            self._held = []

    def close_step(self) -> None:
        """The step is over: what is released from here on is none of its text."""
        self._step_from = len(self.released)

    async def accept_step(self) -> None:
        """process_output_step has accepted the step."""
        if self.policy == "step":
            await self._release()

    async def accept_run(self) -> None:
        """process_output_result has accepted the answer."""
        if self.policy == "run":
            await self._release()

    def drop_held(self) -> None:
        """Nothing that is held will ever leave."""
        if self._held is not None:
            self._held = None
        self.first_held = None

    def drop_step(self, steps_before: int) -> None:
        """Drop what is held of the attempt under way: everything after the last accepted step's end.

        Args:
            steps_before: how many step-finish chunks of accepted steps are held before it.
        """
        self._step_from = len(self.released)
        if self._held is None:
            return
        kept: list[Held] = []
        for held in self._held:
            if steps_before == 0:
                break
            kept.append(held)
            if isinstance(held[0], StepFinish):
                steps_before -= 1
        self._held = kept
        self.first_held = next((mark for _, mark in kept if mark is not None), None)

    def held_step_finishes(self) -> int:
        """How many step-finish chunks are held."""
        return sum(isinstance(chunk, StepFinish) for chunk, _ in self._held or ())

    # ------------------------------------------------------------------------------------------------------ releasing

    async def _release(self) -> None:
        held, self._held, self.first_held = self._held or [], None, None
        self._ledger.sync()
        for chunk in _as_they_stand(held, self._ledger, self._sent):
            await self._out(self._renewed(chunk) if isinstance(chunk, StepFinish) else chunk)


def _as_they_stand(held: list[Held], ledger: Ledger, sent: set[Mark]) -> Iterator[Chunk]:
    """The held chunks as the messages now have them."""
    parts = {part.mark: part for part in ledger.response_parts() if part.mark is not None}
    known = {mark for _, mark in held if mark is not None}
    steps = {mark.step for mark in known}
    added = _added_parts(parts, known | sent, steps)
    last_use = {mark: index for index, (_, mark) in enumerate(held)}
    originals = _original_texts(held)
    inputs = {part.tool_call_id: part for part in parts.values() if isinstance(part, ToolInvocationPart)}
    calls = {chunk.tool_call_id: chunk for chunk, _ in held if isinstance(chunk, ToolCall)}
    rewritten: set[Any] = set()
    front = added.pop(None, [])
    for index, (chunk, mark) in enumerate(held):
        if front and mark is not None:
            for part in front:
                yield from _new_block(part)
            front = []
        if isinstance(chunk, ToolInputStart | ToolInputDelta | ToolInputEnd):
            yield from _input_chunk(chunk, inputs, calls, rewritten)
        elif mark is None:
            yield chunk
        elif (part := parts.get(mark)) is not None:
            yield from _part_chunk(chunk, part, originals.get(mark, ""), rewritten)
        if mark is not None and last_use[mark] == index:
            for part in added.pop(mark, ()):
                yield from _new_block(part)
    for rest in (front, *added.values()):
        for part in rest:
            yield from _new_block(part)


def _added_parts(parts: dict[Mark, Part], known: set[Mark], steps: set[int]) -> dict[Mark | None, list[Part]]:
    """Parts that hooks added to the held steps, under the mark of the known part they stand behind."""
    added: dict[Mark | None, list[Part]] = {}
    behind: Mark | None = None
    for mark, part in parts.items():
        if mark in known:
            behind = mark
        elif mark.step in steps:
            added.setdefault(behind, []).append(part)
    return added


def _original_texts(held: list[Held]) -> dict[Mark, str]:
    pieces: dict[Mark, list[str]] = {}
    for chunk, mark in held:
        if mark is not None and isinstance(chunk, TextDelta | ReasoningDelta):
            pieces.setdefault(mark, []).append(chunk.text)
    return {mark: "".join(texts) for mark, texts in pieces.items()}


def _part_chunk(chunk: Chunk, part: Part, original: str, rewritten: set[Any]) -> Iterator[Chunk]:
    match chunk, part:
        case ((TextDelta() | ReasoningDelta()), (TextPart() | ReasoningPart())):
            if part.text == original:
                yield chunk
            elif part.mark not in rewritten:
                rewritten.add(part.mark)
                yield chunk.replace(text=part.text)
        case ((TextStart() | ReasoningStart()), (TextPart() | ReasoningPart())):
            yield chunk
        case ((TextEnd() | ReasoningEnd()), (TextPart() | ReasoningPart())):
            if not original and part.text and part.mark not in rewritten:
                rewritten.add(part.mark)
                delta = TextDelta if isinstance(chunk, TextEnd) else ReasoningDelta
                yield delta(id=chunk.id, text=part.text)
            yield chunk
        case ToolCall(), ToolInvocationPart():
            yield chunk if chunk.args == part.args else chunk.replace(args=part.args)
        case ToolResult(), ToolInvocationPart():
            yield (
                chunk if chunk.result == part.result or chunk.is_error else chunk.replace(result=part.result)
            )
        case ToolError(), ToolInvocationPart():
            yield chunk if chunk.error == part.error_text else chunk.replace(error=part.error_text or "")
        case (Source(), SourcePart()) | (File(), FilePart()):
            yield from _new_block(part)
        case _:
            yield from _new_block(part)


def _input_chunk(
    chunk: ToolInputStart | ToolInputDelta | ToolInputEnd,
    inputs: dict[str, ToolInvocationPart],
    calls: dict[str, ToolCall],
    rewritten: set[Any],
) -> Iterator[Chunk]:
    """Streamed arguments of a call that is still made; of changed arguments nothing but the accepted call goes out."""
    part, call = inputs.get(chunk.tool_call_id), calls.get(chunk.tool_call_id)
    if part is None or call is None:
        return
    if part.args == call.args or not isinstance(chunk, ToolInputDelta):
        yield chunk
    elif chunk.tool_call_id not in rewritten:
        rewritten.add(chunk.tool_call_id)
        yield chunk.replace(args_text=_json(part.args))


def _json(value: Any) -> str:
    from msgspec import json

    return json.encode(value).decode()


def _new_block(part: Part) -> Iterator[Chunk]:
    """The chunks that bring a part to the client whole."""
    serial = part.mark.serial if part.mark else 0
    match part:
        case TextPart(type="text"):
            block = part.id or f"added-{serial}"
            yield TextStart(id=block)
            yield TextDelta(id=block, text=part.text)
            yield TextEnd(id=block)
        case ReasoningPart(type="reasoning"):
            block = part.id or f"added-{serial}"
            yield ReasoningStart(id=block)
            yield ReasoningDelta(id=block, text=part.text)
            yield ReasoningEnd(id=block)
        case ToolInvocationPart():
            yield ToolCall(
                tool_call_id=part.tool_call_id,
                tool_name=part.tool_name,
                args=part.args,
                provider_executed=part.provider_executed,
            )
        case SourcePart():
            yield source_chunk(part)
        case FilePart():
            yield File(mime_type=part.mime_type, data=part.data, provider_metadata=part.provider_metadata)
        case DataPart():
            yield DataChunk(type=part.type, data=part.data, id=part.id)
        case _:
            return


def source_chunk(part: SourcePart) -> Source:
    """A source part as a chunk."""
    fields = part.source
    return Source(
        id=str(fields.get("id") or ""),
        source_type=str(fields.get("sourceType") or "url"),
        url=fields.get("url"),
        title=fields.get("title"),
        media_type=fields.get("mimeType"),
        filename=fields.get("filename"),
        provider_metadata=part.provider_metadata,
    )
