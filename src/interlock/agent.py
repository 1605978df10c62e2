"""The agent: the composition root. It reads configuration, checks it, and starts runs."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar, Unpack, overload

from interlock.call_options import (
    RELEASES,
    Call,
    CallOptions,
    CommonOptions,
    PrepareStep,
    ProcessorList,
    Release,
    checked_list,
    checked_mapping,
    checked_release,
    checked_retries,
    checked_steps,
    evaluated,
)
from interlock.core.errors import UsageError
from interlock.core.message_list import system_messages
from interlock.core.pipeline import Pipeline
from interlock.core.processor import (
    BaseProcessor,
    ErrorProcessor,
    InputProcessor,
    Lane,
    OutputProcessor,
)
from interlock.core.result import RunResult
from interlock.core.shapes import described
from interlock.core.tool import Tool, tool_set
from interlock.memory import Memory
from interlock.models.router import ModelChoice, resolve_model
from interlock.processors.structured_output import StructuredAnswer, StructuredOutput, may_structure
from interlock.stream import Ending, RunStream

log = logging.getLogger("interlock")

A = TypeVar("A")


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
        self.release: Release = checked_release(release, where)
        self.max_steps = checked_steps(max_steps, where)
        self.max_processor_retries = checked_retries(max_processor_retries, where)
        self.model_settings = checked_mapping(model_settings, "model_settings", where)
        self.provider_options = checked_mapping(provider_options, "provider_options", where)
        self._instructions = system_messages(instructions, tag=None, where=f"{where}: instructions")
        self._lists: dict[Lane, Any] = {
            "input": checked_list(input_processors, "input", where),
            "output": checked_list(output_processors, "output", where),
            "error": checked_list(error_processors, "error", where),
        }
        self._told_release = False
        # a wrong processor is told at once, even beside a list that depends on the request
        Pipeline({lane: given for lane, given in self._lists.items() if not callable(given)})
        self._pipelines: dict[tuple[bool, bool], Pipeline] = {}

    def __repr__(self) -> str:
        return f"<Agent {self.id}>"

    # ------------------------------------------------------------------------------------------------------- running

    @overload
    def stream(
        self,
        input: Any,
        *,
        structured_output: type[A] | StructuredOutput[A],
        **options: Unpack[CommonOptions],
    ) -> RunStream[A]: ...

    @overload
    def stream(self, input: Any, **options: Unpack[CallOptions]) -> RunStream[Any]: ...

    def stream(self, input: Any, **options: Any) -> RunStream[Any]:
        """Start a run and read it as it happens.

        Args:
            input: a string, a list of strings, or messages (role/content dicts, stored or UI messages).
            **options: see :class:`CallOptions`.

        Returns:
            A stream: use it with ``async with``.

        Raises:
            UsageError: the input or an option cannot work.
        """
        call = Call(self, input, options)
        return RunStream(call.run)

    @overload
    async def generate(
        self,
        input: Any,
        *,
        structured_output: type[A] | StructuredOutput[A],
        **options: Unpack[CommonOptions],
    ) -> RunResult[A]: ...

    @overload
    async def generate(self, input: Any, **options: Unpack[CallOptions]) -> RunResult[Any]: ...

    async def generate(self, input: Any, **options: Any) -> RunResult[Any]:
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
        return await Call(self, input, options).run(None, Ending())

    @overload
    def generate_sync(
        self,
        input: Any,
        *,
        structured_output: type[A] | StructuredOutput[A],
        **options: Unpack[CommonOptions],
    ) -> RunResult[A]: ...

    @overload
    def generate_sync(self, input: Any, **options: Unpack[CallOptions]) -> RunResult[Any]: ...

    def generate_sync(self, input: Any, **options: Any) -> RunResult[Any]:
        """``generate`` for code without an event loop. In one (Jupyter) it runs in a thread of its own and waits.

        Args:
            input: as for :meth:`stream`.
            **options: see :class:`CallOptions`.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._generate_and_close(input, options))
        return _in_own_thread(lambda: asyncio.run(self._generate_and_close(input, options)))

    async def _generate_and_close(self, input: Any, options: Any) -> RunResult[Any]:
        """A run in an event loop that ends with it: so do the connections of its memory."""
        try:
            return await self.generate(input, **options)
        finally:
            if self.memory is not None:
                await self.memory.close()

    # ------------------------------------------------------------------------------------------------- for a call's use

    async def pipeline(self, call: Call) -> Pipeline:
        """The processors of a call, compiled; once and for all where nothing about them depends on the call."""
        plain = (
            call.prepare_step is None
            and not call.overridden
            and call.memory is self.memory
            and not any(map(callable, self._lists.values()))
        )
        with_memory = call.thread_id is not None and call.memory is not None
        structured = call.options.structured_output is not None
        if plain and (with_memory, structured) in self._pipelines:
            return self._pipelines[with_memory, structured]
        lists: dict[Lane, list[BaseProcessor]] = {}
        for lane, own in self._lists.items():
            given = call.overridden.get(lane, own)
            lists[lane] = list(await evaluated(given, lane, call.request_context))
        if call.prepare_step is not None:
            lists["input"].append(_PrepareStep(call.prepare_step))
        structured = structured or any(may_structure(each) for each in lists["input"])
        if with_memory and call.memory is not None:
            placed = set(_framework_ids([*lists["input"], *lists["output"]]))
            before = [each for each in call.memory.input_processors() if each.id not in placed]
            after = [each for each in call.memory.output_processors() if each.id not in placed]
            lists["input"] = [*before, *lists["input"]]
            lists["output"] = [*lists["output"], *after]
        if structured:
            answer = StructuredAnswer()
            lists["input"].append(answer)
            lists["output"].append(answer)
        pipeline = Pipeline(lists)
        if plain:
            self._pipelines[with_memory, call.options.structured_output is not None] = pipeline
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


def _framework_ids(processors: Sequence[BaseProcessor]) -> Iterator[str]:
    """The framework's own processors that the user placed by hand, in compositions too."""
    for processor in processors:
        if processor.is_framework:
            yield processor.id
        yield from _framework_ids(getattr(processor, "processors", ()))


def _in_own_thread(function: Callable[[], RunResult[Any]]) -> RunResult[Any]:
    outcome: list[RunResult[Any] | BaseException] = []

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


__all__ = ["RELEASES", "Agent", "CallOptions", "Release"]
