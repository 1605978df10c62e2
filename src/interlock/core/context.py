"""ctx: what is always there in a hook (spec R4)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from interlock.core.calling import flush_data
from interlock.core.chunks import Chunk, DataChunk, PartialObject, StepRecord, Usage
from interlock.core.errors import TripWire, UsageError
from interlock.core.messages import Message, SystemMessage
from interlock.core.processor import BaseProcessor, ProcessorViolation
from interlock.core.request_context import RequestContext
from interlock.core.shapes import described, is_mapping

if TYPE_CHECKING:
    from interlock.core.message_list import MessageList
    from interlock.core.run import Run


class Latch:
    """Remembers the first abort, so that it counts even if the hook swallowed it (spec R5.1)."""

    __slots__ = ("trip",)

    def __init__(self) -> None:
        self.trip: TripWire | None = None


class HookContext:
    """What a processor can see and do in every hook. One object per processor, list and run.

    Attributes:
        state: this processor's dict for the run: the same object in all its hooks, lists, steps and retries.
    """

    __slots__ = ("_index", "_latch", "_processor", "_run", "state")

    def __init__(
        self, run: Run, processor: BaseProcessor, state: dict[str, Any], *, latch: Latch, index: int = -1
    ) -> None:
        self._run = run
        self._processor = processor
        self._latch = latch
        self._index = index
        self.state = state

    # ------------------------------------------------------------------------------------------------------- stopping

    def abort(self, reason: str | None = None, *, retry: bool = False, metadata: Any = None) -> NoReturn:
        """Stop the run (spec R5.1), or, with ``retry``, ask the step again with the reason as feedback (R7.1).

        It counts when it is called, even if what it raises is swallowed. A retry is granted in any hook inside a
        step and in process_output_result, as long as ``max_processor_retries`` is not used up; from process_input,
        with no retries set, or after a tool that is not repeatable has run, the run ends. Reason and metadata
        reach the client.

        Args:
            reason: in words; by default names the processor.
            retry: ask the model again instead, as long as retries are left.
            metadata: anything JSON-like to travel with the tripwire.

        Raises:
            TripWire: always.
        """
        trip = TripWire(
            reason or f"stopped by processor {self._processor.id}",
            processor_id=self._processor.id,
            retry=retry,
            metadata=metadata,
        )
        self._run.note_violation(self._processor, trip.reason, metadata)
        if self._latch.trip is None:
            self._latch.trip = trip
            self._run.signal()
        raise self._latch.trip

    @property
    def may_retry(self) -> bool:
        """Whether ``abort(retry=True)`` would be granted here: retries are left, and no tool forbids one (R7.1)."""
        return self._run.may_retry(self._processor.id)

    def set_object(self, value: Any) -> None:
        """Say what ``result.object`` is, should the run end normally; an ``object-result`` chunk tells it.

        Args:
            value: the answer's object. A retry forgets it.
        """
        self._run.object = value

    def count_usage(self, usage: Usage) -> None:
        """Add the tokens of a call that the processor made itself: a run's usage is of every call (R5.3)."""
        self._run.usage = self._run.usage + usage

    def violation(self, message: str, detail: Any = None) -> None:
        """Record that something was objected to without stopping the run (spec R2.6).

        Args:
            message: what; it must not hold the text that was objected to.
            detail: more, JSON-like.
        """
        self._run.note_violation(self._processor, message, detail)
        self._run.signal()

    @property
    def cancelled(self) -> bool:
        """True once the run was stopped: work in threads should then end by itself."""
        return self._run.cancelled or self._latch.trip is not None

    # --------------------------------------------------------------------------------------------------- what is known

    @property
    def retry_count(self) -> int:
        """Accepted retries of the run so far; in process_api_error, error retries of this step (spec R4.5, R7.1)."""
        return self._run.retries_seen

    @property
    def request_context(self) -> RequestContext:
        """The call's RequestContext."""
        return self._run.options.request_context

    @property
    def tracing_context(self) -> Any:
        """The tracing span of the run, when tracing is configured."""
        return self._run.options.tracing_context

    @property
    def thread_id(self) -> str | None:
        """The memory thread of the call."""
        return self._run.options.thread_id

    @property
    def resource_id(self) -> str | None:
        """The memory resource of the call."""
        return self._run.options.resource_id

    @property
    def message_list(self) -> MessageList:
        """The live conversation."""
        self._run.ledger.sync()
        return self._run.message_list

    @property
    def messages(self) -> list[Message]:
        """The messages of the current stage, as a plain list of the live messages (spec R3.1)."""
        return self._run.stage_messages()

    @property
    def system_messages(self) -> list[SystemMessage]:
        """The untagged system messages."""
        return self._run.message_list.system_messages

    @property
    def step_number(self) -> int:
        """The step under way, from 0."""
        return max(self._run.step_number, 0)

    @property
    def attempt(self) -> object:
        """The attempt at a step that is under way: an object that no other attempt of the run has."""
        return self._run.attempt

    @property
    def steps(self) -> list[StepRecord]:
        """Accepted steps; from process_llm_response on, the current one too."""
        return self._run.seen_steps()

    @property
    def stream_parts(self) -> list[Chunk]:
        """The chunks this processor's process_output_stream got so far in the run, this one included."""
        return self._run.stream_parts.get(id(self._processor), [])

    @property
    def writer(self) -> HookWriter:
        """Sends custom data chunks to the client (spec R9)."""
        return HookWriter(self._run, self._index)

    def stands_at(self, index: int) -> None:
        """For the runtime: this processor's place among the stream hooks."""
        self._index = index

    def keep_stream_parts(self) -> list[Chunk]:
        """For the runtime: start to keep what process_output_stream gets."""
        return self._run.stream_parts.setdefault(id(self._processor), [])

    def stop_with(self, trip: TripWire) -> NoReturn:
        """For compositions: make a member's abort this one's."""
        if self._latch.trip is None:
            self._latch.trip = trip
        self._run.signal()
        raise self._latch.trip

    def member(self, processor: BaseProcessor, latch: Latch) -> HookContext:
        """For compositions: a member's own context, with an abort of its own to be looked at."""
        return HookContext(
            self._run, processor, self._run.state_of(processor.id), latch=latch, index=self._index
        )


def data_chunk(given: Any) -> DataChunk:
    """A custom data chunk from what a writer was given (spec R9.1).

    Raises:
        UsageError: it has no type, or one without the ``data-`` prefix.
    """
    if isinstance(given, DataChunk):
        chunk = given
    elif is_mapping(given) and isinstance(given.get("type"), str):
        chunk = DataChunk(
            type=given["type"],
            data=given.get("data"),
            transient=bool(given.get("transient")),
            id=given.get("id"),
        )
    else:
        raise UsageError(
            f"writer.custom takes {{'type': 'data-...', 'data': ...}} or a DataChunk, not {described(given)}"
        )
    if not chunk.type.startswith("data-") or chunk.type == "data-":
        raise UsageError(
            f"a custom chunk's type begins with 'data-'; write 'data-{chunk.type.removeprefix('data-')}'"
        )
    return chunk


class Sending:
    """A chunk on its way. Awaiting it waits until it has passed the processors; not awaiting it is fine too."""

    __slots__ = ("_flush",)

    def __init__(self, flush: Callable[[], Any]) -> None:
        self._flush = flush

    def __await__(self) -> Generator[Any, None, None]:
        return self._flush().__await__()


class HookWriter:
    """A hook's writer: its chunks go out before the chunk being processed."""

    __slots__ = ("_index", "_run")

    def __init__(self, run: Run, index: int) -> None:
        self._run = run
        self._index = index

    def custom(self, chunk: Any, message_id: str | None = None) -> Sending:
        """Send a custom chunk; see :class:`interlock.Writer`."""
        made = data_chunk(chunk)
        self._run.post_data(made, self._index, message_id)
        return Sending(partial(flush_data, self._run))

    def object(self, value: Any) -> Sending:
        """Send what is known so far of the answer's object, as an ``object`` chunk; held as the text is.

        Args:
            value: plain JSON values.
        """
        self._run.post_object(PartialObject(value))
        return Sending(partial(flush_data, self._run))


__all__ = ["HookContext", "HookWriter", "Latch", "ProcessorViolation", "Sending", "data_chunk"]
