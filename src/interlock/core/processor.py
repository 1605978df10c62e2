"""Processors: the nine hooks, by lane, and what else a processor has (spec R2, R4).

All hooks are optional and each may be ``def`` or ``async def``; these classes serve mostly as documentation. Only
overridden hooks are ever called. Subclass the lane you need and a type checker sees a processor in the wrong list;
``Processor`` has all lanes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar, cast

from interlock.core.chunks import Chunk, ToolResult
from interlock.core.messages import Message
from interlock.core.record import Record
from interlock.core.step import (
    CachedResponse,
    InputChange,
    LLMRequest,
    LLMResponse,
    OutputResult,
    OutputStep,
    Retry,
    StepChange,
    StepInput,
)

if TYPE_CHECKING:
    from interlock.core.context import HookContext
    from interlock.core.message_list import MessageList
    from interlock.core.result import RunOutcome

T = TypeVar("T")
MaybeAwaitable: TypeAlias = T | Awaitable[T]
Lane: TypeAlias = Literal["input", "output", "error"]

MessagesReturn: TypeAlias = "Sequence[Message] | MessageList | None"


class ProcessorViolation(Record, kw_only=True):
    """Something a processor objected to, blocked or not (spec R2.6). ``detail`` is the abort's metadata."""

    processor_id: str
    message: str
    detail: Any = None


class _IdAsName:
    """The name of a processor that gives none. No data descriptor: a class or an object may set its own."""

    def __get__(self, processor: BaseProcessor | None, owner: type[BaseProcessor]) -> str:
        return owner.id if processor is None else processor.id


class BaseProcessor:
    """What processors of every lane have.

    Attributes:
        id: key of its state; named in traces and tripwires. Unique within a list.
        name: for people; the id by default.
        description: for people.
        processor_index: its place in the combined list; set by the runtime.
        process_data_parts: whether process_output_stream gets ``data-*`` chunks too.
        process_tool_errors: whether process_tool_result gets failed calls too.
        observes: its process_output_step only looks: text need not wait for it (release policy ``auto``).
        is_framework: one of the library's own (memory): it judges nothing, so input need not have passed it.
        own_retries: how many retries it may be granted in a call that sets no ``max_processor_retries``.
        on_error: ``"closed"``: an exception in a hook ends the run. ``"open"``: it becomes a violation and the
            hook's return counts as unchanged.
    """

    id: str = ""
    name: str = cast(str, _IdAsName())
    description: str | None = None
    processor_index: int | None = None
    process_data_parts: bool = False
    process_tool_errors: bool = False
    observes: bool = False
    is_framework: ClassVar[bool] = False
    own_retries: int = 0
    on_error: Literal["closed", "open"] = "closed"

    lanes: ClassVar[tuple[Lane, ...]] = ()

    def on_violation(self, violation: ProcessorViolation) -> MaybeAwaitable[Any]:
        """Told of each violation of this processor; override it or assign a callable. What it raises is logged."""

    def on_run_end(self, outcome: RunOutcome, ctx: HookContext) -> MaybeAwaitable[Any]:
        """Called exactly once on every exit of a run, for clean-up (spec R1.5). What it raises is logged."""


class InputProcessor(BaseProcessor):
    """Processors of ``input_processors``: before the model, and beside its call."""

    lanes: ClassVar[tuple[Lane, ...]] = ("input",)

    def process_input(
        self, messages: list[Message], ctx: HookContext
    ) -> MaybeAwaitable[MessagesReturn | InputChange]:
        """Once, before the loop (spec R4.1).

        Returns:
            None: no change. The MessageList, changed in place. A list of messages. An InputChange.
        """

    def process_input_step(
        self, step: StepInput, ctx: HookContext
    ) -> MaybeAwaitable[MessagesReturn | StepChange]:
        """Before each call of the model (spec R4.2). Changes last for this step.

        Returns:
            None: no change. A StepChange. The MessageList. A list of messages.
        """

    def process_llm_request(
        self, request: LLMRequest, ctx: HookContext
    ) -> MaybeAwaitable[LLMRequest | CachedResponse | None]:
        """The final prompt of one call (spec R4.3); what is returned is written nowhere else.

        Returns:
            None: no change. A new request. A CachedResponse, which stands for the call.
        """

    def process_llm_response(self, response: LLMResponse, ctx: HookContext) -> MaybeAwaitable[None]:
        """The complete stream of a step (spec R4.4)."""


class OutputProcessor(BaseProcessor):
    """Processors of ``output_processors``: what the model and the tools produce."""

    lanes: ClassVar[tuple[Lane, ...]] = ("output",)

    def process_output_stream(
        self, chunk: Chunk, ctx: HookContext
    ) -> MaybeAwaitable[Chunk | Sequence[Chunk] | None]:
        """Each chunk as it arrives (spec R4.6).

        Returns:
            The chunk to send on, or several in order, or None to drop it.
        """

    def process_output_step(self, output: OutputStep, ctx: HookContext) -> MaybeAwaitable[MessagesReturn]:
        """Each complete response, before any tool runs (spec R4.7).

        Returns:
            None: no change. The MessageList. A list of messages.
        """

    def process_tool_result(
        self, result: ToolResult, ctx: HookContext
    ) -> MaybeAwaitable[ToolResult | MessagesReturn]:
        """Each tool result (spec R4.8).

        Returns:
            None: no change. ``result.replace(result=...)``. The MessageList. A list of messages.
        """

    def process_output_result(self, result: OutputResult, ctx: HookContext) -> MaybeAwaitable[MessagesReturn]:
        """Once, the final answer (spec R4.9).

        Returns:
            None: no change. The MessageList. A list of response messages.
        """


class ErrorProcessor(BaseProcessor):
    """Processors of ``error_processors``: what to do when the provider rejects a call."""

    lanes: ClassVar[tuple[Lane, ...]] = ("error",)

    def process_api_error(self, error: Exception, ctx: HookContext) -> MaybeAwaitable[Retry | None]:
        """A call of the model has finally failed (spec R4.5).

        Returns:
            None: not mine. ``Retry()``: the message list may have been changed, ask again.
        """


class Processor(InputProcessor, OutputProcessor, ErrorProcessor):
    """A processor that may stand in any list."""

    lanes: ClassVar[tuple[Lane, ...]] = ("input", "output", "error")
