"""The agent: the composition root. It reads configuration, checks it, and starts runs."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack

from interlock.core.conduct import conduct
from interlock.core.delivery import Sink
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
from interlock.core.run import Edges, Run, RunOptions
from interlock.core.shapes import described, is_mapping, is_sequence
from interlock.core.stages import checked_names, checked_tool_choice
from interlock.core.step import StepChange, StepInput
from interlock.core.tool import Tool, tool_set
from interlock.memory import Memory
from interlock.models.router import ModelChoice, resolve_model
from interlock.stream import Ending, RunStream
from interlock.toolbox import run_tools

log = logging.getLogger("interlock")

P = TypeVar("P", bound=BaseProcessor)
ProcessorList: TypeAlias = Sequence[P] | Callable[[RequestContext], Sequence[P] | Awaitable[Sequence[P]]]
Release: TypeAlias = Literal["auto", "live", "step", "run"]
_UUID_BITS = ~((0xF << 76) | (0x3 << 62))
_UUID_VERSION = (4 << 76) | (2 << 62)
RELEASES = ("auto", "live", "step", "run")
PrepareStep: TypeAlias = Callable[[StepInput, Any], StepChange | Awaitable[StepChange | None] | None]


class CallOptions(TypedDict, total=False):
    """What ``generate`` and ``stream`` take beside the input (spec R10.2, R10.5).

    Attributes:
        input_processors, output_processors, error_processors: replace the agent's for this call; ``[]`` disables.
        max_processor_retries: the cap of retries of this call.
        instructions: replace the agent's.
        system: more system messages for this call.
        context: messages in the prompt that are never saved.
        memory: ``{"thread": ..., "resource": ...}``.
        request_context: a RequestContext or a mapping.
        max_steps: the most steps the run may take.
        tools, tool_choice, active_tools, model_settings, provider_options, structured_output: for every step.
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
    structured_output: Any
    prepare_step: PrepareStep | None
    release: Release
    save_unfinished: bool
    tracing_context: Any


class Agent:
    """A model, its tools and the processors around its loop.

    Args:
        id: a name for logs and traces.
        model: a model, a router id such as ``"openai/gpt-5"`` or ``"local/smollm2"``, a mapping with ``id`` and
            ``url``, a pydantic-ai ``Model``, or a list of these, each the fallback of those before it.
        instructions: the system message, or several.
        tools: functions made with :func:`interlock.tool`, as a list or by name.
        input_processors: processors before the model; a list, or a function of the request context.
        output_processors: processors on what the model and the tools produce; likewise.
        error_processors: processors for rejected calls; likewise.
        max_processor_retries: how many retries a run may have; unset: none, or 10 with error processors.
        memory: where conversations are kept.
        release: when chunks go to the client: ``live`` at once, ``step`` when process_output_step has accepted the
            step, ``run`` after process_output_result; ``auto`` takes ``step`` when a process_output_step judges.
        max_steps: the most steps a run may take.
        model_settings: temperature, max_output_tokens, max_retries, timeout (seconds), ... for every step.
        provider_options: options by provider name.

    Raises:
        UsageError: anything that cannot work; the text says what was given and what to write instead.

    >>> from interlock.testing import ScriptedModel, text
    >>> Agent(id="a", model=ScriptedModel([text("Hi!")])).generate_sync("Hello").text
    'Hi!'
    """

    def __init__(
        self,
        *,
        id: str,
        model: ModelChoice,
        instructions: Any = None,
        tools: Any = None,
        input_processors: ProcessorList[InputProcessor] = (),
        output_processors: ProcessorList[OutputProcessor] = (),
        error_processors: ProcessorList[ErrorProcessor] = (),
        max_processor_retries: int | None = None,
        memory: Memory | None = None,
        release: Release = "auto",
        max_steps: int = 5,
        model_settings: Mapping[str, Any] | None = None,
        provider_options: Mapping[str, Any] | None = None,
    ) -> None:
        where = f"Agent {id!r}"
        self.id = id
        self.model = resolve_model(model)
        self.tools: dict[str, Tool] = tool_set(tools, where=where)
        if memory is not None and not isinstance(memory, Memory):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"{where}: memory must be a Memory, not {described(memory)}; the thread is named with each call: "
                "generate(..., memory={'thread': ..., 'resource': ...})"
            )
        self.memory = memory
        self.release: Release = _checked_release(release, where)
        self.max_steps = _checked_steps(max_steps, where)
        self.max_processor_retries = _checked_retries(max_processor_retries, where)
        self.model_settings = _checked_mapping(model_settings, "model_settings", where)
        self.provider_options = _checked_mapping(provider_options, "provider_options", where)
        self._instructions = system_messages(instructions, tag=None, where=f"{where}: instructions")
        self._lists: dict[Lane, Any] = {
            "input": _checked_list(input_processors, "input", where),
            "output": _checked_list(output_processors, "output", where),
            "error": _checked_list(error_processors, "error", where),
        }
        self._told_release = False
        # a wrong processor is told at once, even beside a list that depends on the request
        Pipeline({lane: given for lane, given in self._lists.items() if not callable(given)})
        self._pipelines: dict[bool, Pipeline] = {}

    def __repr__(self) -> str:
        return f"<Agent {self.id}>"

    # ------------------------------------------------------------------------------------------------------- running

    def stream(self, input: Any, **options: Unpack[CallOptions]) -> RunStream:
        """Start a run and read it as it happens.

        Args:
            input: a string, a list of strings, or messages (role/content dicts, stored or UI messages).
            **options: see :class:`CallOptions`.

        Returns:
            A stream: use it with ``async with``.

        Raises:
            UsageError: the input or an option cannot work.
        """
        call = _Call(self, input, options)
        return RunStream(call.run)

    async def generate(self, input: Any, **options: Unpack[CallOptions]) -> RunResult:
        """Run to the end.

        Args:
            input: as for :meth:`stream`.
            **options: see :class:`CallOptions`.

        Returns:
            The result; after a block its ``tripwire`` is set and its text empty.

        Raises:
            UsageError: the input or an option cannot work.
            ModelError: the provider failed.
            Exception: what a hook raised, with a note of processor and hook.
        """
        return await _Call(self, input, options).run(None, Ending())

    def generate_sync(self, input: Any, **options: Unpack[CallOptions]) -> RunResult:
        """``generate`` for code without an event loop. In one (Jupyter) it runs in a thread of its own and waits.

        Args:
            input: as for :meth:`stream`.
            **options: see :class:`CallOptions`.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.generate(input, **options))
        return _in_own_thread(lambda: asyncio.run(self.generate(input, **options)))

    # ------------------------------------------------------------------------------------------------- for a call's use

    async def pipeline(self, call: _Call) -> Pipeline:
        """The processors of a call, compiled; once and for all where nothing about them depends on the call."""
        plain = (
            call.prepare_step is None and not call.overridden and not any(map(callable, self._lists.values()))
        )
        with_memory = call.thread_id is not None and self.memory is not None
        if plain and with_memory in self._pipelines:
            return self._pipelines[with_memory]
        lists: dict[Lane, list[BaseProcessor]] = {}
        for lane, own in self._lists.items():
            given = call.overridden.get(lane, own)
            lists[lane] = list(await _evaluated(given, lane, call.request_context))
        if call.prepare_step is not None:
            lists["input"].append(_PrepareStep(call.prepare_step))
        if with_memory and self.memory is not None:
            lists["input"] = [*self.memory.input_processors(), *lists["input"]]
            lists["output"] = [*lists["output"], *self.memory.output_processors()]
        pipeline = Pipeline(lists)
        if plain:
            self._pipelines[with_memory] = pipeline
        return pipeline

    def policy(self, release: Release, pipeline: Pipeline) -> Literal["live", "step", "run"]:
        """The release policy of a call (spec R7.5)."""
        if release != "auto":
            return release
        chosen: Literal["live", "step"] = "step" if pipeline.must_hold_steps else "live"
        if not self._told_release:
            self._told_release = True
            log.info("agent %r: release policy auto is %r here", self.id, chosen)
        return chosen

    @property
    def instructions(self) -> list[Any]:
        """The agent's system messages."""
        return list(self._instructions)


class _PrepareStep(InputProcessor):
    """The caller's ``prepare_step``, as the last input processor."""

    id = "prepare_step"

    def __init__(self, function: PrepareStep) -> None:
        self.process_input_step = function  # type: ignore[method-assign,assignment]


class _Call:
    """One call's options, checked before anything runs."""

    def __init__(self, agent: Agent, given: Any, options: CallOptions) -> None:
        where = f"Agent {agent.id!r}"
        unknown = [name for name in options if name not in CallOptions.__annotations__]
        if unknown:
            known = ", ".join(CallOptions.__annotations__)
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
        self.prepare_step = options.get("prepare_step")
        self.release: Release = _checked_release(options.get("release", agent.release), where)
        self.overridden: dict[Lane, Any] = {}
        for lane in ("input", "output", "error"):
            processors = options.get(f"{lane}_processors")
            if processors is not None:
                self.overridden[lane] = _checked_list(processors, lane, where)
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
            save_unfinished = agent.memory.save_unfinished if agent.memory is not None else True
        self.options = RunOptions(
            model=agent.model,
            tools=agent.tools if tools is None else tool_set(tools, where=where),
            tool_choice=checked_tool_choice(options.get("tool_choice"), where),
            active_tools=checked_names(options.get("active_tools"), where),
            model_settings=agent.model_settings | _checked_mapping(settings, "model_settings", where),
            provider_options=agent.provider_options | _checked_mapping(provider, "provider_options", where),
            structured_output=options.get("structured_output"),
            request_context=self.request_context,
            tracing_context=options.get("tracing_context"),
            thread_id=self.thread_id,
            resource_id=self.resource_id,
            max_steps=_checked_steps(options.get("max_steps", agent.max_steps), where),
            max_processor_retries=(
                agent.max_processor_retries if retries is None else _checked_retries(retries, where)
            ),
            save_unfinished=save_unfinished,
        )

    async def run(self, sink: Sink | None, ending: Ending) -> RunResult:
        """Do the run; ``ending`` learns the result even if it is cancelled."""
        ending.begun = True
        agent = self.agent
        pipeline = await agent.pipeline(self)
        self.options.release = agent.policy(self.release, pipeline)
        edges = _EDGES if agent.memory is None else _EDGES.replace(recorder=agent.memory)
        run = Run(pipeline, self.options, edges, sink)
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


_EDGES = Edges(now=_now, new_id=new_id, run_tools=run_tools, resolve_model=resolve_model)


# --------------------------------------------------------------------------------------------------------------- checks


def _checked_list(given: Any, lane: Lane, where: str) -> Any:
    if callable(given):
        return given
    if not is_sequence(given):
        raise UsageError(
            f"{where}: {lane}_processors must be a list of processors or a function of the request context, "
            f"not {type(given).__name__}"
        )
    return tuple(given)


async def _evaluated(given: Any, lane: Lane, context: RequestContext) -> Sequence[BaseProcessor]:
    if not callable(given):
        return given
    made = given(context)
    if inspect.isawaitable(made):
        made = await made
    return _checked_list(made, lane, f"the function given as {lane}_processors")


def _checked_release(given: Any, where: str) -> Release:
    if given not in RELEASES:
        raise UsageError(f"{where}: release must be one of {', '.join(RELEASES)}, not {given!r}")
    return given


def _checked_steps(given: Any, where: str) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise UsageError(f"{where}: max_steps must be a whole number from 1, not {given!r}")
    return given


def _checked_retries(given: Any, where: str) -> int | None:
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


def _checked_mapping(given: Any, name: str, where: str) -> dict[str, Any]:
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
    if resource is not None and not isinstance(resource, str):
        raise UsageError(f"{where}: memory's resource must be a string, not {resource!r}")
    return given["thread"], resource


def _in_own_thread(function: Callable[[], RunResult]) -> RunResult:
    outcome: list[RunResult | BaseException] = []

    def work() -> None:
        try:
            outcome.append(function())
        except BaseException as problem:
            outcome.append(problem)

    thread = threading.Thread(target=work, name="interlock generate_sync")
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
