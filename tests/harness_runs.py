"""Small runs for tests: processors made of functions, an agent around them, a run read in either mode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import pytest

from interlock import Agent, ModelRequest, Processor, RunOutcome, RunResult, tool
from interlock.chunks import Chunk, TextDelta
from interlock.core.hooks import HOOKS, implemented

ALL_HOOKS = tuple(hook.name for hook in HOOKS)
IN_A_STEP = tuple(name for name in ALL_HOOKS if name not in ("process_input", "process_output_result"))

in_both_modes = pytest.mark.parametrize("mode", ["stream", "generate"])
"""The behaviour holds for a stream that is read chunk by chunk, and for ``generate`` (R10.4)."""


class Hooks(Processor):
    """A processor whose hooks and attributes are given by name: ``Hooks("id", process_input=function)``."""

    def __init__(self, id: str, /, **members: Any) -> None:
        self.id = id
        for name, member in members.items():
            setattr(self, name, member)


class Recorder(Processor):
    """Writes down every hook call, and lets ``act(hook, subject, ctx)`` do something in it.

    Attributes:
        log: ``(hook, detail)``: a chunk's type, or a tool call's id.
        ends: the outcomes ``on_run_end`` was told.
    """

    def __init__(
        self,
        id: str = "recorder",
        *,
        act: Callable[[str, Any, Any], Any] | None = None,
        hooks: Sequence[str] = ALL_HOOKS,
    ) -> None:
        self.id = id
        self.log: list[tuple[str, str]] = []
        self.ends: list[RunOutcome] = []
        self.contexts: dict[str, Any] = {}
        for name in hooks:
            setattr(self, name, self._hook(name, act))

    def _hook(self, name: str, act: Callable[[str, Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
        async def hook(subject: Any, ctx: Any) -> Any:
            detail = {"process_output_stream": "type", "process_tool_result": "tool_call_id"}.get(name)
            self.log.append((name, getattr(subject, detail) if detail else ""))
            self.contexts[name] = ctx
            returned = act(name, subject, ctx) if act else None
            if asyncio.iscoroutine(returned):
                returned = await returned
            return subject if returned is None and name == "process_output_stream" else returned

        return hook

    def on_run_end(self, outcome: RunOutcome, ctx: Any) -> None:
        """Keep the outcome."""
        self.ends.append(outcome)

    @property
    def hooks(self) -> list[str]:
        """The names of the hooks called, in order."""
        return [name for name, _ in self.log]

    @property
    def stages(self) -> list[str]:
        """The same without process_output_stream."""
        return [name for name in self.hooks if name != "process_output_stream"]


def make_agent(model: Any, *processors: Processor, **options: Any) -> Agent:
    """An agent with each processor in every list it has hooks for."""
    lists: dict[str, Any] = {
        f"{lane}_processors": [each for each in processors if implemented(each, lane)]
        for lane in ("input", "output", "error")
    }
    return Agent(id="agent", model=model, **{**lists, **options})


class Seen:
    """What a run left.

    Attributes:
        chunks: what the client got; empty under ``generate``.
        result: the result, unless the run failed.
        error: what the run raised.
    """

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.error: BaseException | None = None
        self._result: RunResult | None = None

    @property
    def result(self) -> RunResult:
        """The result; the run's error is raised if it has none."""
        if self._result is None:
            assert self.error is not None
            raise self.error
        return self._result

    @property
    def types(self) -> list[str]:
        """The chunks' types."""
        return [chunk.type for chunk in self.chunks]

    @property
    def shown(self) -> str:
        """The text the client got."""
        return "".join(chunk.text for chunk in self.chunks if isinstance(chunk, TextDelta))


async def play(agent: Agent, given: Any = "hi", *, mode: str, **options: Any) -> Seen:
    """Do a run. A failure is kept in ``error``; under ``stream`` it must come out of iterating and of result()."""
    seen = Seen()
    if mode == "generate":
        try:
            seen._result = await agent.generate(given, **options)
        except Exception as problem:
            seen.error = problem
        return seen
    async with agent.stream(given, **options) as stream:
        try:
            async for chunk in stream:
                seen.chunks.append(chunk)
        except Exception as problem:
            seen.error = problem
        try:
            seen._result = await stream.result()
        except Exception as problem:
            assert problem is seen.error, "result() raises what iterating raised (R5.4)"  # noqa: PT017
    return seen


def check_last(seen: Seen, kind: str) -> None:
    """The stream's last chunk is of this type, and no other chunk could be taken for an end."""
    ends = ("tripwire", "error", "abort", "finish")
    if seen.chunks:
        assert seen.types[-1] == kind
        assert [each for each in seen.types if each in ends] == [kind]


class WatchedModel:
    """A model whose stream says when it was closed: after its chunks it waits for ever, if ``hangs``."""

    provider = "watched"
    model_id = "watched"

    def __init__(self, *chunks: Chunk, hangs: bool = False) -> None:
        self.chunks = chunks
        self.hangs = hangs
        self.opened = 0
        self.closed: list[str] = []
        self.waiting = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Follow the script."""
        self.opened += 1
        try:
            for chunk in self.chunks:
                yield chunk.replace()
            if self.hangs:
                self.waiting.set()
                await asyncio.Event().wait()
        except BaseException as problem:
            self.closed.append(type(problem).__name__)
            raise
        self.closed.append("end")


def echo_tool(ran: list[Any] | None = None, **options: Any) -> Any:
    """A tool ``echo(value)`` that gives its argument back and notes in ``ran`` that it ran."""

    @tool(name="echo", **options)
    async def echo(value: Any) -> Any:
        """Give the value back."""
        if ran is not None:
            ran.append(value)
        return value

    return echo
