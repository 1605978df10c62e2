"""One scenario: its agent, models, tools, cache and memory, and its calls one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from interlock import Agent, RequestContext, RunResult, RunStream, UsageError
from interlock.memory import Memory
from interpreter import forms
from interpreter.models import ScenarioModel
from interpreter.names import snake, snake_keys
from interpreter.processors import ScenarioProcessor, prepare_step
from interpreter.recorder import CallTrace
from interpreter.tools import build_tools

INSTRUCTIONS = "You are a test agent."
TIME_LIMIT = 60
LISTS = ("input", "output", "error")
HARNESS_ONLY = frozenset({"abortAfter", "record_callbacks"})


class World:
    """What lives as long as the scenario.

    Attributes:
        call: the call under way.
        cache: what ``cache_store`` kept.
        threads: memory threads used so far, with their resource.
    """

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.spec: dict[str, Any] = scenario.get("agent") or {}
        self.models = {key: ScenarioModel(key, script, self) for key, script in scenario["models"].items()}
        self.cache: dict[str, Any] = {}
        self.threads: dict[str, str | None] = {}
        self.call = CallTrace("setup")
        self.memory = Memory(last_messages=20) if self.spec.get("memory") else None
        self._processors: dict[Any, ScenarioProcessor] = {}

    def model_key(self, model: Any) -> str:
        """A model's key in the scenario."""
        return next((key for key, each in self.models.items() if each is model), str(model))

    # ------------------------------------------------------------------------------------------------- the agent

    def agent(self) -> Agent:
        """The agent that the scenario describes."""
        spec = self.spec
        lists = {f"{name}_processors": self.processors(name, spec[name]) for name in LISTS if name in spec}
        return Agent(
            id="agent",
            model=self.models[spec.get("model", "main")],
            instructions=spec.get("instructions", INSTRUCTIONS),
            tools=build_tools(spec.get("tools"), self),
            max_processor_retries=spec.get("max_processor_retries"),
            memory=self.memory,
            release=spec.get("release", "live"),
            **lists,
        )

    def processors(self, name: str, given: Any) -> Any:
        """A list of processors, or a function that gives one."""
        if isinstance(given, dict) and "$fn" in given:
            return self._function(name, given["$fn"])
        return [self._processor(spec) for spec in given]

    def _function(self, name: str, entries: list[dict[str, Any]]) -> Callable[[RequestContext], list[Any]]:
        def chosen(context: RequestContext) -> list[Any]:
            self.call.event(f"fn:{name}")
            return [
                self._processor(spec)
                for entry in entries
                if all(context.get(key) == value for key, value in (entry.get("when_ctx") or {}).items())
                for spec in entry["processors"]
            ]

        return chosen

    def _processor(self, spec: dict[str, Any]) -> ScenarioProcessor:
        key = ("ref", spec["ref"]) if "ref" in spec else ("spec", id(spec))
        if key not in self._processors:
            self._processors[key] = ScenarioProcessor(spec, self)
        return self._processors[key]

    # ------------------------------------------------------------------------------------------------- the calls

    async def run(self) -> dict[str, Any]:
        """Make the calls; the scenario's trace."""
        trace: dict[str, Any] = {"id": self.scenario["id"]}
        try:
            agent = self.agent()
        except UsageError as problem:
            return {**trace, "setup_error": forms.error(problem)}
        trace["calls"] = [await self._run_call(agent, call) for call in self.scenario["calls"]]
        return trace

    async def _run_call(self, agent: Agent, spec: dict[str, Any]) -> dict[str, Any]:
        options = spec.get("options") or {}
        cancel = options.get("abortAfter") or {}
        self.call = CallTrace(spec["method"], gives_way=bool(cancel))
        self._note_thread(options)
        try:
            async with asyncio.timeout(TIME_LIMIT):
                result = await self._result(agent, spec, self._options(options), cancel)
            self.call.put("result", forms.result(result))
            self.call.put("violations", [forms.violation(each) for each in result.violations])
        except Exception as problem:
            self.call.put("error", forms.error(problem))
        if self.memory is not None:
            self.call.put("stored", await self._stored())
        return self.call.trace

    async def _result(
        self, agent: Agent, spec: dict[str, Any], options: dict[str, Any], cancel: dict[str, Any]
    ) -> RunResult:
        if spec["method"] == "generate" and not cancel:
            return await agent.generate(spec["input"], **options)
        stream = agent.stream(spec["input"], **options)
        if spec["method"] == "stream":
            self.call.put("chunks", [])
        return await self._read(stream, cancel, keep=spec["method"] == "stream")

    async def _read(self, stream: RunStream, cancel: dict[str, Any], *, keep: bool) -> RunResult:
        left = cancel.get("count", 1)
        if cancel.get("before_start"):
            self.call.event("client-abort")
            await stream.cancel()
        async with stream:
            async for chunk in stream:
                if keep:
                    self.call.add("chunks", forms.chunk(chunk))
                if chunk.type == cancel.get("type"):
                    left -= 1
                    if left == 0:
                        self.call.event("client-abort")
                        await stream.cancel()
            return await stream.result()

    def _options(self, given: dict[str, Any]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for key, value in given.items():
            if key in HARNESS_ONLY:
                continue
            name = snake(key)
            if name.endswith("_processors"):
                value = self.processors(name.removesuffix("_processors"), value)
            elif name == "prepare_step":
                value = prepare_step(value, self)
            elif name == "model_settings":
                value = snake_keys(value)
            elif name == "tools":
                value = build_tools(value, self)
            options[name] = value
        return options

    # ------------------------------------------------------------------------------------------------- memory

    def _note_thread(self, options: dict[str, Any]) -> None:
        memory = options.get("memory")
        if self.memory is not None and memory:
            self.threads.setdefault(memory["thread"], memory.get("resource"))

    async def _stored(self) -> dict[str, Any]:
        assert self.memory is not None
        return {
            thread: forms.messages(await self.memory.messages(thread, resource=resource), step_starts=True)
            for thread, resource in self.threads.items()
        }
