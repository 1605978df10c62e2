"""The state of one run, and what every stage of it shares."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from interlock.core.attempt import Attempt
from interlock.core.chain import Chain
from interlock.core.chunks import (
    Chunk,
    DataChunk,
    PartialObject,
    StepFinish,
    StepRecord,
    Usage,
)
from interlock.core.context import HookContext, Latch
from interlock.core.delivery import Delivery, ReleasePolicy, Sink
from interlock.core.edges import Edges
from interlock.core.errors import TripWire
from interlock.core.ledger import Ledger
from interlock.core.message_list import MessageList
from interlock.core.messages import (
    Message,
    SystemMessage,
    ToolInvocationPart,
)
from interlock.core.model import LanguageModel
from interlock.core.pipeline import Pipeline
from interlock.core.processor import BaseProcessor, ProcessorViolation
from interlock.core.record import Record
from interlock.core.request_context import RequestContext
from interlock.core.result import RunOutcome, RunResult
from interlock.core.step import StepInput
from interlock.core.step_records import step_record, tripwire_info
from interlock.core.tool import Tool
from interlock.core.transcript import Transcript

DEFAULT_ERROR_RETRIES = 10
"""The cap of retries when error processors are set and no value is (spec R7.2)."""


class RunOptions(Record, kw_only=True):
    """What a call asks for, defaults filled in."""

    model: LanguageModel
    tools: dict[str, Tool]
    tool_choice: Any = "auto"
    active_tools: list[str] | None = None
    model_settings: dict[str, Any] = {}
    provider_options: dict[str, Any] = {}
    structured_output: Any = None
    request_context: RequestContext
    tracing_context: Any = None
    thread_id: str | None = None
    resource_id: str | None = None
    max_steps: int = 5
    max_processor_retries: int | None = None
    release: ReleasePolicy = "live"
    save_unfinished: bool = True


class Run:
    """One run.

    Attributes:
        alert: something has to be looked at before the run goes on: an abort, a violation to tell, data to send.
        untold: violations that ``on_violation`` has not been told yet.
        outbox: what writers posted and is not sent yet, each with the stream hook it starts at.
        stage: the hook's name whose stage this is; decides what ``ctx.messages`` shows.
        attempts: every attempt at a step that the result lists.
        attempt: the one under way, or the last one.
    """

    def __init__(self, pipeline: Pipeline, options: RunOptions, edges: Edges, sink: Sink | None) -> None:
        self.pipeline = pipeline
        self.options = options
        self.edges = edges
        self._id: str | None = None
        self.ledger = Ledger(edges.new_id, edges.now)
        self.message_list = MessageList(self.ledger)
        self.delivery = Delivery(sink, options.release, self.ledger, self._renewed)
        self.keeps_response = bool(pipeline.calls["process_llm_response"])
        self.transcript = Transcript(self.ledger, self.delivery, keep_clean=self.keeps_response)
        self.latch = Latch()
        self.alert = False
        self.cancelled = False
        self.failed_in_hook = False
        self.input_passed = all(call.processor.is_framework for call in pipeline.calls["process_input"])
        self.outcome: RunOutcome | None = None
        self.stage = "process_input"
        self.base_system: list[SystemMessage] = []
        self.attempts: list[Attempt] = []
        self.attempt: Attempt | None = None
        self.retry_count = 0
        self.error_retries = 0
        self.usage = Usage()
        self.blocked: TripWire | None = None
        self.object: Any = UNSET
        self.violations: list[ProcessorViolation] = []
        self.untold: list[tuple[BaseProcessor, ProcessorViolation]] = []
        self.outbox: list[tuple[DataChunk | PartialObject, int]] = []
        self._states: dict[str, dict[str, Any]] = {}
        self.stream_parts: dict[int, list[Chunk]] = {}
        self.contexts = [
            HookContext(self, member.processor, self.state_of(member.processor.id), latch=self.latch)
            for member in pipeline.members
        ]
        for call in pipeline.calls["process_output_stream"]:
            self.contexts[call.member].stands_at(call.index)
        self.chain = Chain(self, pipeline.calls["process_output_stream"])

    @property
    def id(self) -> str:
        """The run's id, made when somebody asks."""
        if self._id is None:
            self._id = self.edges.new_id()
        return self._id

    def state_of(self, processor_id: str) -> dict[str, Any]:
        """A processor's state (spec R6)."""
        return self._states.setdefault(processor_id, {})

    # ----------------------------------------------------------------------------------------- what processors bring up

    def signal(self) -> None:
        """Something has to be looked at before the run goes on."""
        self.alert = True

    def note_violation(self, processor: BaseProcessor, message: str, detail: Any) -> None:
        """Record a violation; ``on_violation`` is told at the next look."""
        violation = ProcessorViolation(processor_id=processor.id, message=message, detail=detail)
        self.violations.append(violation)
        self.untold.append((processor, violation))

    def post_data(self, chunk: DataChunk, index: int = -1, message_id: str | None = None) -> None:
        """Take a data chunk from a writer. One from a stream hook starts behind that hook (spec R9.2)."""
        from_stream = index >= 0 and self.stage == "process_output_stream"
        if message_id is not None:
            chunk = chunk.replace(message_id=message_id)
        self._post(chunk, index + 1 if from_stream else 0)

    def post_object(self, chunk: PartialObject) -> None:
        """Take a partial object from a writer: it is made of what has passed the stream's hooks."""
        self._post(chunk, len(self.chain.hooks))

    def _post(self, chunk: DataChunk | PartialObject, start: int) -> None:
        if self.latch.trip is None and self.outcome is None:
            self.outbox.append((chunk, start))
            self.alert = True

    # --------------------------------------------------------------------------------------------------- what is seen

    @property
    def step_number(self) -> int:
        """The number of the step under way; -1 before the first."""
        return self.ledger.step

    @property
    def retries_seen(self) -> int:
        """What ``ctx.retry_count`` shows in this stage."""
        return self.error_retries if self.stage == "process_api_error" else self.retry_count

    def stage_messages(self) -> list[Message]:
        """What ``ctx.messages`` shows in this stage (spec R3.1)."""
        if self.stage == "process_output_result":
            return self.ledger.messages("response")
        return self.ledger.messages()

    def seen_steps(self) -> list[StepRecord]:
        """What ``ctx.steps`` shows: accepted steps, and the current one once its response is complete."""
        return [
            self.record(each)
            for each in self.attempts
            if each.accepted or (each is self.attempt and each.complete and each.tripwire is None)
        ]

    def all_steps(self) -> list[StepRecord]:
        """Every step of the result, rejected ones included."""
        return [self.record(attempt) for attempt in self.attempts]

    def _renewed(self, chunk: StepFinish) -> StepFinish:
        """A held step-finish as the messages now have its steps: what was edited since must not leave in it."""
        steps = self.all_steps()[: len(chunk.steps)]
        return chunk.replace(steps=steps, text=steps[-1].text if steps else "")

    def record(self, attempt: Attempt) -> StepRecord:
        """A step as the message list now has it."""
        return step_record(self.ledger, attempt)

    # ----------------------------------------------------------------------------------------------------------- steps

    def open_attempt(self) -> Attempt:
        """Begin an attempt at the next step, from the originals of everything (spec R4.2)."""
        number = sum(attempt.accepted for attempt in self.attempts)
        options = self.options
        if number != self.ledger.step:
            self.error_retries = 0
        self.ledger.step = number
        self.message_list.restore_system(self.base_system)
        self.attempt = Attempt(
            number,
            StepInput(
                model=options.model,
                tools=dict(options.tools),
                tool_choice=options.tool_choice,
                active_tools=None if options.active_tools is None else list(options.active_tools),
                provider_options=dict(options.provider_options),
                model_settings=dict(options.model_settings),
                structured_output=options.structured_output,
                messages=[],
                system_messages=[],
            ),
        )
        return self.attempt

    @property
    def retry_cap(self) -> int:
        """How many retries a run may have (spec R7.1, R7.2)."""
        given = self.options.max_processor_retries
        if given is not None:
            return given
        return DEFAULT_ERROR_RETRIES if self.pipeline.has_error_processors else 0

    def may_retry(self, processor_id: str) -> bool:
        """Whether this processor's request to take the step again would be granted now (spec R7.1)."""
        attempt = self.attempt
        if attempt is None or attempt.unrepeatable_ran:
            return False
        cap = self.retry_cap
        if self.options.max_processor_retries is None:
            members = (member.processor for member in self.pipeline.members)
            cap = max([cap, *(each.own_retries for each in members if each.id == processor_id)])
        return self.retry_count < cap

    def own_calls(self, attempt: Attempt) -> list[ToolInvocationPart]:
        """The step's calls of tools that run here, as the message list now has them."""
        return [
            part
            for part in self.ledger.response_parts(attempt.number)
            if isinstance(part, ToolInvocationPart) and not part.provider_executed
        ]

    # ------------------------------------------------------------------------------------------------------- the end

    def result(self) -> RunResult:
        """What the run leaves, as things stand."""
        self.transcript.sync()
        steps = self.all_steps()
        return RunResult(
            text=self.ledger.response_text(),
            messages=self.ledger.messages("response"),
            all_messages=self.ledger.messages(),
            steps=steps,
            tool_calls=[call for step in steps for call in step.tool_calls],
            tool_results=[result for step in steps for result in step.tool_results],
            reasoning="".join(step.reasoning for step in steps),
            sources=[source for step in steps for source in step.sources],
            files=[file for step in steps for file in step.files],
            usage=self.usage,
            finish_reason=self._finish_reason(),
            tripwire=tripwire_info(self.blocked) if self.blocked else None,
            violations=self.violations,
            released_text="".join(self.delivery.released),
            run_id=self.id,
        )

    def _finish_reason(self) -> str:
        if self.blocked is not None:
            return "other"
        if self.cancelled:
            return "aborted"
        accepted = [attempt for attempt in self.attempts if attempt.accepted]
        return accepted[-1].finish_reason if accepted else "unknown"

    def close(self) -> None:
        """Let go of what refers back to the run, so that it is freed at once and not by the garbage collector.

        A context that somebody kept can still be read; what it sends goes nowhere.
        """
        self.ledger.before_read = None
        self.delivery.renewed = _as_it_is
        self.contexts.clear()
        self.chain.close()


def _as_it_is(chunk: StepFinish) -> StepFinish:
    return chunk
