"""What a run leaves (spec R5.3, R10.6)."""

from __future__ import annotations

from typing import Any, Literal

from interlock.core.chunks import File, Source, StepRecord, ToolCall, ToolResult, TripWireInfo, Usage
from interlock.core.errors import TripWireError
from interlock.core.messages import Message
from interlock.core.processor import ProcessorViolation
from interlock.core.record import Record


class RunResult(Record, kw_only=True):
    """The result of a run, of ``generate`` and ``stream`` alike.

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
        object: the structured output; not filled in this version, which hands the schema to the model only.
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
    object: Any = None
    run_id: str = ""

    def raise_for_tripwire(self) -> RunResult:
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


class RunOutcome(Record, kw_only=True):
    """How a run ended, as ``on_run_end`` gets it. ``error`` is set when ``kind`` is ``error`` or ``cancelled``."""

    kind: Literal["finished", "tripwire", "error", "cancelled"]
    result: RunResult
    error: BaseException | None = None


class Turn(Record, kw_only=True):
    """What a run wants saved, in one transaction: new messages only (spec R8), and what its model calls used."""

    thread_id: str
    resource_id: str | None
    messages: list[Message]
    unfinished: bool = False
    run_id: str = ""
    usage: Usage = Usage()
