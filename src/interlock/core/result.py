"""What a run leaves (spec R5.3, R10.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar, runtime_checkable

from interlock.core.chunks import File, Source, StepRecord, ToolCall, ToolResult, TripWireInfo, Usage
from interlock.core.errors import TripWireError
from interlock.core.messages import Message
from interlock.core.processor import ProcessorViolation
from interlock.core.record import FrozenRecord, Record

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    Answer = TypeVarWithDefault("Answer", default=Any)
else:
    Answer = TypeVar("Answer")


class RunResult(Record, Generic[Answer], kw_only=True):
    """The result of a run, of ``generate`` and ``stream`` alike; of the type of its object, where one was asked for.

    Attributes:
        text: the text of all accepted steps, joined; never what was blocked.
        messages: the response's messages.
        all_messages: the whole list: context, remembered, input, response.
        steps: every step, rejected and blocked ones marked with their tripwire and without text.
        usage: of every call made; always numbers.
        finish_reason: the model's; ``other`` after a tripwire, ``aborted`` after a cancellation.
        tripwire: why a processor blocked the run, or None.
        violations: everything processors objected to, blocked or not, in order.
        released_text: what had left for the client, also under ``live`` before a block.
        object: what the answer's text says, validated: of the type given as ``structured_output``, else None.
    """

    text: str
    messages: list[Message]
    all_messages: list[Message]
    steps: list[StepRecord]
    tool_calls: list[ToolCall]
    tool_results: list[ToolResult]
    reasoning: str
    sources: list[Source]
    files: list[File]
    usage: Usage
    finish_reason: str
    tripwire: TripWireInfo | None = None
    violations: list[ProcessorViolation] = []
    released_text: str = ""
    object: Answer | None = None
    run_id: str = ""

    def raise_for_tripwire(self) -> Self:
        """Raise if a processor blocked the run.

        Returns:
            This result.

        Raises:
            TripWireError: with reason, processor_id and metadata.
        """
        if self.tripwire is not None:
            raise TripWireError(
                self.tripwire.reason, processor_id=self.tripwire.processor_id, metadata=self.tripwire.metadata
            )
        return self


class MemoryChange(FrozenRecord, frozen=True, kw_only=True):
    """A change of working memory, saved with the turn that made it.

    Attributes:
        scope: whose working memory: the thread's, or its resource's.
        value: a text, which replaces what there was; or an object, which is merged into it (None deletes a key).
    """

    scope: Literal["thread", "resource"]
    value: Any


class Turn(Record, kw_only=True):
    """What a run wants saved, in one transaction: new messages only (spec R8), and what its model calls used."""

    thread_id: str
    resource_id: str | None
    messages: list[Message]
    unfinished: bool = False
    run_id: str = ""
    usage: Usage = Usage()
    memory_changes: list[MemoryChange] = []


class RunOutcome(Record, kw_only=True):
    """How a run ended, as ``on_run_end`` gets it.

    Attributes:
        error: set when ``kind`` is ``error`` or ``cancelled``.
        saved: the turn as it was saved; None when nothing was.
    """

    kind: Literal["finished", "tripwire", "error", "cancelled"]
    result: RunResult
    error: BaseException | None = None
    saved: Turn | None = None


@runtime_checkable
class TurnEditor(Protocol):
    """A framework processor that has a say in what is saved: what it keeps elsewhere, it takes out."""

    def edit_turn(self, turn: Turn) -> Turn:
        """The turn to save. The messages are shared with the run's result: change copies."""
        ...
