"""What left the chain is the truth: its framing is repaired, it becomes the messages, it goes to the client (R4.6).

Rules kept here:

1. A delta never stands outside an open block; an end without a block is left out.
2. Parts stand in the order the client saw them begin; data sent before the answer in front (spec R3.6).
3. Text is joined when somebody looks, never once per delta: a stream of any length costs linear time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from interlock.core.blocks import Block, Blocks
from interlock.core.chunks import (
    Chunk,
    DataChunk,
    File,
    Finish,
    Metadata,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
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
from interlock.core.jsonable import jsonable
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

if TYPE_CHECKING:
    from interlock.core.delivery import Delivery
    from interlock.core.ledger import Ledger

_Framed: TypeAlias = TextStart | TextDelta | TextEnd | ReasoningStart | ReasoningDelta | ReasoningEnd
Taker: TypeAlias = "Callable[[Transcript, Any], Awaitable[object] | None]"


class Transcript:
    """Writes what leaves the chain into the ledger and hands it to delivery.

    Args:
        ledger: the run's messages.
        delivery: the way to the client.
        keep_clean: whether to keep the step's chunks for process_llm_response.
    """

    def __init__(self, ledger: Ledger, delivery: Delivery, *, keep_clean: bool) -> None:
        self.ledger = ledger
        self.delivery = delivery
        self.clean: list[Chunk] | None = [] if keep_clean else None
        self._texts = Blocks(TextStart, TextEnd, TextPart)
        self._reasonings = Blocks(ReasoningStart, ReasoningEnd, ReasoningPart)
        self._tool_inputs: dict[str, str] = {}
        self._early: list[DataPart] = []
        self._response_over = False
        self._late = False
        ledger.before_read = self.sync

    def take(self, chunk: Chunk) -> Awaitable[object] | None:
        """Record a chunk and deliver it.

        Returns:
            What has to be awaited before the next chunk, if anything: a text delta, which is nearly every chunk,
            costs no coroutine while the client keeps up.
        """
        if type(chunk) is TextDelta:
            block = self._texts.last
            if block is not None and block.id == chunk.id:
                block.pieces.append(chunk.text)
                if chunk.provider_metadata is not None:
                    _merge(block.part, chunk.provider_metadata)
                if self.clean is not None:
                    self.clean.append(chunk)
                return self.delivery.send(chunk, block.mark)
        taker = _TAKERS.get(type(chunk))
        return self._pass(chunk, None) if taker is None else taker(self, chunk)

    async def _take(self, chunk: Chunk) -> None:
        pending = self.take(chunk)
        if pending is not None:
            await pending

    def _pass(self, chunk: Chunk, mark: Mark | None) -> Awaitable[object] | None:
        if self.clean is not None and not isinstance(chunk, StepStart):
            self.clean.append(chunk)
        return self.delivery.send(chunk, mark)

    async def _passed(self, chunk: Chunk, mark: Mark | None) -> None:
        pending = self._pass(chunk, mark)
        if pending is not None:
            await pending

    # ------------------------------------------------------------------------------------------------ text, reasoning

    def _of(self, chunk: _Framed) -> Blocks:
        return self._texts if isinstance(chunk, TextStart | TextDelta | TextEnd) else self._reasonings

    async def _start(self, chunk: TextStart | ReasoningStart) -> None:
        blocks = self._of(chunk)
        chunk_id = chunk.id or self.ledger.new_id()
        if chunk_id in blocks.open:
            return
        if chunk.id != chunk_id:
            chunk = chunk.replace(id=chunk_id)
        part = self._continued(chunk_id) if blocks is self._texts else None
        if part is None:
            part = blocks.part(text="", id=chunk_id)
            self.append(part)
        if chunk.provider_metadata is not None:
            _merge(part, chunk.provider_metadata)
        blocks.open[chunk_id] = block = Block(chunk_id, part)
        await self._passed(chunk, block.mark)

    def _continued(self, block_id: str) -> TextPart | None:
        """The part just before, if it is a text part of this id and step: the block goes on in it."""
        tail = self.ledger.own_tail()
        last = tail.message.content.parts[-1] if tail and tail.message.content.parts else None
        if (
            isinstance(last, TextPart)
            and last.id == block_id
            and last.mark
            and last.mark.step == self.ledger.step
        ):
            return last
        return None

    async def _delta(self, chunk: TextDelta | ReasoningDelta) -> None:
        blocks = self._of(chunk)
        block = blocks.open.get(chunk.id)
        if block is None:
            block = await self._opened(chunk, blocks)
        if blocks.is_behind(block):
            block = await self._reopened(chunk.id, blocks)
        blocks.last = block
        block.pieces.append(chunk.text)
        if chunk.provider_metadata is not None:
            _merge(block.part, chunk.provider_metadata)
        await self._passed(chunk, block.mark)

    async def _opened(self, delta: TextDelta | ReasoningDelta, blocks: Blocks) -> Block:
        """The block for a delta that has none: the only open one if it has no id, else a new one."""
        if not delta.id and len(blocks.open) == 1:
            (block_id,) = blocks.open
        else:
            block_id = delta.id or self.ledger.new_id()
            await self._take(blocks.start(id=block_id))
        delta.id = block_id
        return blocks.open[block_id]

    async def _reopened(self, block_id: str, blocks: Blocks) -> Block:
        """The block as a new one, behind the one that has got text meanwhile: the client reads in this order.

        Guards judged it in this order, too: joined in another one, it could be what they removed.
        """
        await self._take(blocks.end(id=block_id))
        await self._take(blocks.start(id=block_id))
        return blocks.open[block_id]

    async def _end(self, chunk: TextEnd | ReasoningEnd) -> None:
        blocks = self._of(chunk)
        if not chunk.id and len(blocks.open) == 1:
            chunk = chunk.replace(id=next(iter(blocks.open)))
        block = blocks.open.pop(chunk.id, None)
        if block is None:
            return
        block.close()
        if chunk.provider_metadata is not None:
            _merge(block.part, chunk.provider_metadata)
        await self._passed(chunk, block.mark)

    def sync(self) -> None:
        """Bring the text of open blocks into their parts."""
        for blocks in (self._texts, self._reasonings):
            for block in blocks.open.values():
                block.join()

    # -------------------------------------------------------------------------------------------------------- tools

    async def _tool_input_start(self, chunk: ToolInputStart) -> None:
        if chunk.tool_call_id not in self._tool_inputs:
            self._tool_inputs[chunk.tool_call_id] = chunk.tool_name
            await self._passed(chunk, None)

    async def _tool_input_delta(self, chunk: ToolInputDelta) -> None:
        if chunk.tool_call_id not in self._tool_inputs:
            await self._take(ToolInputStart(tool_call_id=chunk.tool_call_id, tool_name=chunk.tool_name or ""))
        await self._passed(chunk, None)

    async def _tool_input_end(self, chunk: ToolInputEnd) -> None:
        if self._tool_inputs.pop(chunk.tool_call_id, None) is not None:
            await self._passed(chunk, None)

    async def _tool_call(self, chunk: ToolCall) -> None:
        if self.ledger.has_call(chunk.tool_call_id):
            return  # one call is made once, however often a hook returns it
        if chunk.tool_call_id in self._tool_inputs:
            await self._take(ToolInputEnd(tool_call_id=chunk.tool_call_id))
        part = ToolInvocationPart(
            tool_call_id=chunk.tool_call_id,
            tool_name=chunk.tool_name,
            args=chunk.args,
            invalid=chunk.invalid,
            provider_executed=chunk.provider_executed,
            provider_metadata=chunk.provider_metadata,
        )
        self.append(part)
        await self._passed(chunk, part.mark)

    async def _tool_result(self, chunk: ToolResult) -> None:
        part = self.ledger.find_call(chunk.tool_call_id)
        if part is None:
            return  # its call was dropped: there is nothing it could answer
        if chunk.is_error:
            part.state, part.error_text = "output-error", str(chunk.result)
        else:
            part.state, part.result, part.error_text = "result", chunk.result, None
        await self._passed(chunk, part.mark)

    async def _tool_error(self, chunk: ToolError) -> None:
        part = self.ledger.find_call(chunk.tool_call_id)
        if part is not None:
            part.state, part.error_text = "output-error", chunk.error
            await self._passed(chunk, part.mark)

    # -------------------------------------------------------------------------------------------------------- others

    async def _source(self, chunk: Source) -> None:
        part = SourcePart(source=source_fields(chunk), provider_metadata=chunk.provider_metadata)
        self.append(part)
        await self._passed(chunk, part.mark)

    async def _file(self, chunk: File) -> None:
        part = FilePart(mime_type=chunk.mime_type, data=chunk.data, provider_metadata=chunk.provider_metadata)
        self.append(part)
        await self._passed(chunk, part.mark)

    async def _data(self, chunk: DataChunk) -> None:
        if not chunk.transient:
            self._record_data(
                DataPart(type=chunk.type, data=jsonable(chunk.data), id=chunk.id), chunk.message_id
            )
        await self.delivery.send_now(chunk)

    def _record_data(self, part: DataPart, message_id: str | None) -> None:
        if message_id is not None and self.ledger.append_to(message_id, part):
            return
        if self.delivery.holding and self.ledger.insert_unsent(part, self.delivery.sent):
            pass  # the client gets it before what is held
        elif self.ledger.own_tail() is not None:
            self.ledger.append_part(part)
        else:
            part.mark = self.ledger.new_mark(part)
            self._early.append(part)
        self.delivery.note_sent(part.mark)

    async def _step_finish(self, chunk: StepFinish) -> None:
        """The step's end closes what is open, and tells the text that hooks added after the response, too."""
        await self.close_blocks()
        if self._late and chunk.finish_reason != "retry":
            self.ledger.drop_empty_blocks()
            chunk = self.delivery.renewed(chunk)
        await self._passed(chunk, None)

    async def _finish(self, chunk: Finish) -> None:
        await self.close_blocks()
        if self.clean is not None:
            self.clean.append(Finish(finish_reason=chunk.finish_reason))

    def append(self, part: Part) -> None:
        """Add a part to the answer, after the data that was sent before it began."""
        self.flush_early()
        self._late = self._late or self._response_over
        self.ledger.append_part(part)

    def flush_early(self) -> None:
        """Give data that was sent before the answer its place in front of it."""
        early, self._early = self._early, []
        for part in early:
            self.ledger.append_part(part, keep_mark=True)

    # --------------------------------------------------------------------------------------------------- end of a step

    def open_chunks(self) -> list[Chunk]:
        """The ends of the blocks that are still open."""
        ends: list[Chunk] = [*self._texts.ends(), *self._reasonings.ends()]
        ends += [ToolInputEnd(tool_call_id=call_id) for call_id in self._tool_inputs]
        return ends

    async def close_blocks(self) -> None:
        """Close what is still open, behind the chain."""
        if not (self._texts.open or self._reasonings.open or self._tool_inputs):
            return
        for chunk in self.open_chunks():
            await self._take(chunk)

    def step_complete(self) -> None:
        """The response is over: drop blocks that stayed empty, mark what hooks added."""
        self._response_over = True
        self.sync()
        self.flush_early()
        self.ledger.drop_empty_blocks()
        self.ledger.settle()

    def forget_step(self, step: int) -> None:
        """The step's attempt is withdrawn."""
        self._texts.clear()
        self._reasonings.clear()
        self._tool_inputs.clear()
        self._early = [part for part in self._early if part.mark is None or part.mark.step != step]
        self.ledger.withdraw(step)
        self.restart()

    def restart(self) -> None:
        """A new response begins."""
        self._response_over = self._late = False
        if self.clean is not None:
            self.clean = []


def source_fields(chunk: Source) -> dict[str, Any]:
    """A source as stored: ``{sourceType, id, url, title, ...}``."""
    fields: dict[str, Any] = {"sourceType": chunk.source_type, "id": chunk.id}
    for name, value in (
        ("url", chunk.url),
        ("title", chunk.title),
        ("mimeType", chunk.media_type),
        ("filename", chunk.filename),
    ):
        if value is not None:
            fields[name] = value
    return fields


def _merge(part: Part, metadata: Metadata) -> None:
    """Later metadata wins, provider by provider."""
    merged = dict(part.provider_metadata or {})
    for provider, values in metadata.items():
        known = merged.get(provider)
        merged[provider] = (
            {**known, **values} if isinstance(known, dict) and isinstance(values, dict) else values
        )
    part.provider_metadata = merged


_T = Transcript
_TAKERS: dict[type[Chunk], Taker] = {
    TextStart: _T._start,  # pyright: ignore[reportPrivateUsage]
    TextEnd: _T._end,  # pyright: ignore[reportPrivateUsage]
    ReasoningStart: _T._start,  # pyright: ignore[reportPrivateUsage]
    TextDelta: _T._delta,  # pyright: ignore[reportPrivateUsage]
    ReasoningDelta: _T._delta,  # pyright: ignore[reportPrivateUsage]
    ReasoningEnd: _T._end,  # pyright: ignore[reportPrivateUsage]
    ToolInputStart: _T._tool_input_start,  # pyright: ignore[reportPrivateUsage]
    ToolInputDelta: _T._tool_input_delta,  # pyright: ignore[reportPrivateUsage]
    ToolInputEnd: _T._tool_input_end,  # pyright: ignore[reportPrivateUsage]
    ToolCall: _T._tool_call,  # pyright: ignore[reportPrivateUsage]
    ToolResult: _T._tool_result,  # pyright: ignore[reportPrivateUsage]
    ToolError: _T._tool_error,  # pyright: ignore[reportPrivateUsage]
    Source: _T._source,  # pyright: ignore[reportPrivateUsage]
    File: _T._file,  # pyright: ignore[reportPrivateUsage]
    DataChunk: _T._data,  # pyright: ignore[reportPrivateUsage]
    StepFinish: _T._step_finish,  # pyright: ignore[reportPrivateUsage]
    Finish: _T._finish,  # pyright: ignore[reportPrivateUsage]
}
