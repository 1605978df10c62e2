"""What generate and stream take, checked before anything runs (spec R10.2, R10.5)."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar

from interlock.core.conduct import conduct
from interlock.core.delivery import Sink
from interlock.core.edges import Edges
from interlock.core.errors import UsageError
from interlock.core.given import given_messages, refuse_nothing
from interlock.core.message_list import system_messages
from interlock.core.messages import Message
from interlock.core.pipeline import Pipeline
from interlock.core.processor import (
    BaseProcessor,
    ErrorProcessor,
    InputProcessor,
    Lane,
    OutputProcessor,
)
from interlock.core.request_context import RequestContext
from interlock.core.result import RunResult
from interlock.core.run import Run, RunOptions
from interlock.core.shapes import described, is_mapping, is_sequence
from interlock.core.stages import checked_names, checked_tool_choice
from interlock.core.step import StepChange, StepInput
from interlock.core.tool import tool_set
from interlock.models.router import resolve_model
from interlock.processors.partial_objects import PartialObjects
from interlock.processors.structured_output import (
    PROCESSOR_ID,
    resolve_structured_output,
)
from interlock.stream import Ending
from interlock.toolbox import run_tools

if TYPE_CHECKING:
    from interlock.agent import Agent

P = TypeVar("P", bound=BaseProcessor)
ProcessorList: TypeAlias = Sequence[P] | Callable[[RequestContext], Sequence[P] | Awaitable[Sequence[P]]]
Release: TypeAlias = Literal["auto", "live", "step", "run"]
_UUID_BITS = ~((0xF << 76) | (0x3 << 62))
_UUID_VERSION = (4 << 76) | (2 << 62)
RELEASES = ("auto", "live", "step", "run")
PrepareStep: TypeAlias = Callable[[StepInput, Any], StepChange | Awaitable[StepChange | None] | None]


class CommonOptions(TypedDict, total=False):
    """What ``generate`` and ``stream`` take beside the input and ``structured_output`` (spec R10.2, R10.5).

    Attributes:
        input_processors, output_processors, error_processors: replace the agent's for this call; ``[]`` disables.
        max_processor_retries: the cap of retries of this call.
        instructions: replace the agent's.
        system: more system messages for this call.
        context: messages in the prompt that are never saved.
        memory: ``{"thread": ..., "resource": ..., "options": {...}}``; options of the Memory, for this call.
        request_context: a RequestContext or a mapping.
        max_steps: the most steps the run may take.
        tools, tool_choice, active_tools, model_settings, provider_options: for every step.
        prepare_step: called as the last process_input_step.
        release: ``auto``, ``live``, ``step`` or ``run``: when chunks go to the client.
        save_unfinished: whether an unfinished turn is saved, marked as such.
        tracing_context: a span to trace under.
    """

    input_processors: ProcessorList[InputProcessor]
    output_processors: ProcessorList[OutputProcessor]
    error_processors: ProcessorList[ErrorProcessor]
    max_processor_retries: int | None
    instructions: Any
    system: Any
    context: Any
    memory: Mapping[str, Any] | None
    request_context: RequestContext | Mapping[str, Any] | None
    max_steps: int
    tools: Any
    tool_choice: Any
    active_tools: Sequence[str] | None
    model_settings: Mapping[str, Any]
    provider_options: Mapping[str, Any]
    prepare_step: PrepareStep | None
    release: Release
    save_unfinished: bool
    tracing_context: Any


class CallOptions(CommonOptions, total=False):
    """What ``generate`` and ``stream`` take beside the input (spec R10.2, R10.5): all of CommonOptions, and one more.

    Attributes:
        structured_output: what the answer has to be: a pydantic model, a dataclass, a TypedDict, a JSON schema, or a
            StructuredOutput with options; ``result.object`` is then of that type.
    """

    structured_output: Any


OPTIONS = (*CommonOptions.__annotations__, "structured_output")


class Call:
    """One call's options, checked before anything runs, and the run they lead to."""

    def __init__(self, agent: Agent, given: Any, options: Mapping[str, Any]) -> None:
        where = f"Agent {agent.id!r}"
        unknown = [name for name in options if name not in OPTIONS]
        if unknown:
            known = ", ".join(OPTIONS)
            raise UsageError(f"{where}: unknown option {', '.join(unknown)}; the options are {known}")
        self.agent = agent
        self.messages = given_messages(given, new_id=new_id)
        refuse_nothing(self.messages)
        context = options.get("context")
        self.context = [] if context is None else given_messages(context, new_id=new_id)
        own = options.get("instructions")
        self.instructions = (
            agent.instructions
            if own is None
            else system_messages(own, tag=None, where=f"{where}: instructions")
        )
        self.system = system_messages(options.get("system"), tag="call", where=f"{where}: system")
        self.request_context = _checked_context(options.get("request_context"), where)
        self.thread_id, self.resource_id = _checked_memory(options.get("memory"), where)
        if self.thread_id is not None and agent.memory is None:
            raise UsageError(
                f"{where}: memory names a thread, but the agent has no memory; give Agent(memory=Memory())"
            )
        named: Any = options.get("memory") or {}
        changes = named.get("options")
        self.memory = agent.memory
        if changes and self.memory is not None:
            self.memory = self.memory.for_call(checked_mapping(changes, "memory's options", where))
        self.prepare_step = options.get("prepare_step")
        self.release: Release = checked_release(options.get("release", agent.release), where)
        self.overridden: dict[Lane, Any] = {}
        for lane in ("input", "output", "error"):
            processors = options.get(f"{lane}_processors")
            if processors is not None:
                self.overridden[lane] = checked_list(processors, lane, where)
        if self.overridden:
            Pipeline({lane: given for lane, given in self.overridden.items() if not callable(given)})
        if self.prepare_step is not None and not callable(self.prepare_step):
            raise UsageError(
                f"{where}: prepare_step must be a function of (step, ctx), not {described(self.prepare_step)}"
            )
        tools = options.get("tools")
        settings, provider = options.get("model_settings"), options.get("provider_options")
        retries = options.get("max_processor_retries")
        save_unfinished = options.get("save_unfinished")
        if save_unfinished is None:
            save_unfinished = self.memory.save_unfinished if self.memory is not None else True
        self.options = RunOptions(
            model=agent.model,
            tools=agent.tools if tools is None else tool_set(tools, where=where),
            tool_choice=checked_tool_choice(options.get("tool_choice"), where),
            active_tools=checked_names(options.get("active_tools"), where),
            model_settings=agent.model_settings | checked_mapping(settings, "model_settings", where),
            provider_options=agent.provider_options | checked_mapping(provider, "provider_options", where),
            structured_output=resolve_structured_output(options.get("structured_output"), where),
            request_context=self.request_context,
            tracing_context=options.get("tracing_context"),
            thread_id=self.thread_id,
            resource_id=self.resource_id,
            max_steps=checked_steps(options.get("max_steps", agent.max_steps), where),
            max_processor_retries=(
                agent.max_processor_retries if retries is None else checked_retries(retries, where)
            ),
            save_unfinished=save_unfinished,
        )

    async def run(self, sink: Sink | None, ending: Ending) -> RunResult:
        """Do the run; ``ending`` learns the result even if it is cancelled."""
        ending.begun = True
        agent = self.agent
        pipeline = await agent.pipeline(self)
        self.options.release = agent.policy(self.release, pipeline)
        edges = _EDGES if self.memory is None else _EDGES.replace(recorder=self.memory.recorder(agent.model))
        readers: dict[int, Callable[[str], Any]] = {}
        may_structure = any(
            call.processor.id == PROCESSOR_ID for call in pipeline.calls["process_input_step"]
        )
        if may_structure and sink is not None:
            sink = PartialObjects(sink, readers).put
        run = Run(pipeline, self.options, edges, sink)
        if may_structure:
            run.state_of(PROCESSOR_ID)["readers"] = readers
        self._fill(run)
        try:
            return await conduct(run, asyncio.CancelledError() if ending.cancelled_early else None)
        finally:
            if run.outcome is not None:
                ending.result = run.outcome.result

    def _fill(self, run: Run) -> None:
        conversation = run.message_list
        if self.instructions:
            conversation.add_system(self.instructions)
        if self.system:
            conversation.add_system(self.system)
        if self.context:
            conversation.place(_copies(self.context), "context")
        conversation.place(_copies(self.messages), "input")


def _copies(messages: Sequence[Message]) -> Iterator[Message]:
    """The run's own messages: what hooks edit in place must not be the caller's objects."""
    for message in messages:
        content = message.content
        parts = [part.replace() for part in content.parts]
        metadata = dict(content.metadata) if content.metadata else None
        yield message.replace(content=content.replace(parts=parts, metadata=metadata))


def new_id() -> str:
    """A new id: a random UUID (version 4), made without the cost of a UUID object. It is no secret."""
    digits = f"{random.getrandbits(128) & _UUID_BITS | _UUID_VERSION:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _now() -> datetime:
    return datetime.now(UTC)


_EDGES = Edges(
    now=_now,
    new_id=new_id,
    run_tools=run_tools,
    resolve_model=resolve_model,
    resolve_schema=resolve_structured_output,
)


# --------------------------------------------------------------------------------------------------------------- checks


def checked_list(given: Any, lane: Lane, where: str) -> Any:
    """A lane's processors as a tuple, or the function that gives them."""
    if callable(given):
        return given
    if not is_sequence(given):
        raise UsageError(
            f"{where}: {lane}_processors must be a list of processors or a function of the request context, "
            f"not {type(given).__name__}"
        )
    return tuple(given)


async def evaluated(given: Any, lane: Lane, context: RequestContext) -> Sequence[BaseProcessor]:
    """A lane's processors of this call: what a function of the request context gives is asked for now."""
    if not callable(given):
        return given
    made = given(context)
    if inspect.isawaitable(made):
        made = await made
    return checked_list(made, lane, f"the function given as {lane}_processors")


def checked_release(given: Any, where: str) -> Release:
    """A release policy, or UsageError."""
    if given not in RELEASES:
        raise UsageError(f"{where}: release must be one of {', '.join(RELEASES)}, not {given!r}")
    return given


def checked_steps(given: Any, where: str) -> int:
    """How many steps a run may take, or UsageError."""
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise UsageError(f"{where}: max_steps must be a whole number from 1, not {given!r}")
    return given


def checked_retries(given: Any, where: str) -> int | None:
    """How many retries a run may have, or UsageError."""
    if given is not None and (not isinstance(given, int) or isinstance(given, bool) or given < 0):
        raise UsageError(
            f"{where}: max_processor_retries must be a whole number from 0, or None, not {given!r}"
        )
    return given


def _checked_context(given: Any, where: str) -> RequestContext:
    if given is None:
        return RequestContext()
    if isinstance(given, RequestContext):
        return given
    if is_mapping(given):
        return RequestContext(given)
    raise UsageError(
        f"{where}: request_context must be a RequestContext or a mapping, not {type(given).__name__}"
    )


def checked_mapping(given: Any, name: str, where: str) -> dict[str, Any]:
    """An option that maps names to values, or UsageError."""
    if given is None:
        return {}
    if not is_mapping(given):
        raise UsageError(f"{where}: {name} must be a mapping of names to values, not {described(given)}")
    return dict(given)


def _checked_memory(given: Any, where: str) -> tuple[str | None, str | None]:
    if given is None:
        return None, None
    if not is_mapping(given) or not isinstance(given.get("thread"), str) or not given["thread"]:
        raise UsageError(f"{where}: memory must be {{'thread': ..., 'resource': ...}}, not {given!r}")
    resource: Any = given.get("resource")
    if resource is not None and not (isinstance(resource, str) and resource):
        raise UsageError(
            f"{where}: memory's resource must be a string that is not empty, or None, not {resource!r}"
        )
    return given["thread"], resource
