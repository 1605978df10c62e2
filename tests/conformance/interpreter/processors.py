"""A scenario's processors: only the hooks that are listed, each recorded on entry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from interlock import HookContext, Processor, ProcessorViolation
from interpreter import forms
from interpreter.names import HOOKS
from interpreter.ops import HookRun

if TYPE_CHECKING:
    from interpreter.world import World

Ops = list[dict[str, Any]]
Hook = Callable[[Any, HookContext], Awaitable[Any]]
OUTSIDE_STEPS = ("process_input", "process_output_result")


class ScenarioProcessor(Processor):
    """A processor of a scenario."""

    def __init__(self, spec: dict[str, Any], world: World) -> None:
        self.id = spec["id"]
        self.process_data_parts = bool(spec.get("process_data_parts"))
        if "on_violation" in spec:
            self.on_violation = _violation_hook(self.id, world, throws=spec["on_violation"] == "throw")  # type: ignore[method-assign]
        for name, ops in spec.get("hooks", {}).items():
            hook = HOOKS[name]
            setattr(self, hook, _hook(self, hook, ops, world))


def prepare_step(ops: Ops, world: World) -> Hook:
    """The caller's ``prepare_step``: like process_input_step of a processor of that name."""

    class _Named:
        id = "prepare_step"

    return _hook(_Named(), "prepare_step", ops, world)


def _violation_hook(processor_id: str, world: World, *, throws: bool) -> Callable[[ProcessorViolation], None]:
    def on_violation(violation: ProcessorViolation) -> None:
        world.call.event(f"violation:{processor_id}")
        world.call.add("on_violation", forms.violation(violation))
        if throws:
            raise RuntimeError("on_violation throws")

    return on_violation


def _hook(processor: Any, hook: str, ops: Ops, world: World) -> Hook:
    count = 0

    async def run(subject: Any, ctx: HookContext) -> Any:
        nonlocal count
        number, count = count, count + 1
        await world.call.give_way()
        _record(world, processor.id, hook, subject, ctx)
        return await HookRun(world, processor, hook, subject, ctx, number).run(ops)

    return run


def _record(world: World, processor_id: str, hook: str, subject: Any, ctx: HookContext) -> None:
    call = world.call
    if hook not in ("process_input", "process_output_stream"):
        call.in_step = True
    in_step = call.in_step and hook not in OUTSIDE_STEPS
    detail = {"process_output_stream": "type", "process_tool_result": "tool_call_id"}.get(hook)
    argument = f"({getattr(subject, detail)})" if detail else ""
    call.event(f"{processor_id}.{hook}{argument}" + (f"@{ctx.step_number}" if in_step else ""))
    entry: dict[str, Any] = {"processor": processor_id, "hook": hook}
    if in_step:
        entry["step"] = ctx.step_number
    entry["retry_count"] = ctx.retry_count
    if ctx.state:
        entry["state"] = ctx.state
    call.add("hooks", {**entry, **_ENTRIES[hook](world, subject, ctx)})


# ------------------------------------------------------------------------------------------------ what each hook has


def _texts(ctx: HookContext) -> list[str]:
    return [message.content for message in ctx.system_messages]


def _seen(ctx: HookContext) -> dict[str, Any]:
    return {
        "messages": forms.messages(ctx.messages),
        "system_messages": _texts(ctx),
        "steps": len(ctx.steps),
    }


def _process_input(_: World, subject: Any, ctx: HookContext) -> dict[str, Any]:
    return {"messages": forms.messages(subject), "system_messages": _texts(ctx)}


def _process_input_step(world: World, subject: Any, ctx: HookContext) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "messages": forms.messages(subject.messages),
        "system_messages": [message.content for message in subject.system_messages],
        "steps": len(ctx.steps),
        "model": world.model_key(subject.model),
        "tools": sorted(subject.tools),
        "active_tools": subject.active_tools,
        "model_settings": forms.settings(subject.model_settings),
        "provider_options": dict(subject.provider_options or {}),
    }
    if subject.tool_choice not in (None, "auto"):
        entry["tool_choice"] = subject.tool_choice
    return entry


def _process_llm_request(world: World, subject: Any, ctx: HookContext) -> dict[str, Any]:
    return {
        "steps": len(ctx.steps),
        "prompt": forms.prompt(subject.prompt),
        "model": world.model_key(subject.model),
    }


def _process_llm_response(_: World, subject: Any, ctx: HookContext) -> dict[str, Any]:
    chunks = [forms.chunk(chunk) for chunk in subject.chunks]
    return {"steps": len(ctx.steps), "chunks": chunks, "from_cache": subject.from_cache}


def _process_api_error(_: World, subject: Any, ctx: HookContext) -> dict[str, Any]:
    error = {"message": str(getattr(subject, "message", subject))}
    return {"steps": len(ctx.steps), "messages": forms.messages(ctx.messages), "error": error}


def _process_output_stream(_: World, subject: Any, ctx: HookContext) -> dict[str, Any]:
    return {"chunk": forms.chunk(subject), "stream_parts": len(ctx.stream_parts)}


def _process_output_step(_: World, subject: Any, ctx: HookContext) -> dict[str, Any]:
    return {
        **_seen(ctx),
        "text": subject.text,
        "finish_reason": subject.finish_reason,
        "usage": forms.usage(subject.usage),
        "tool_calls": forms.tool_calls(subject.tool_calls),
    }


def _process_tool_result(_: World, subject: Any, ctx: HookContext) -> dict[str, Any]:
    entry: dict[str, Any] = {
        **_seen(ctx),
        "tool": subject.tool_name,
        "call_id": subject.tool_call_id,
        "args": subject.args,
        "result": subject.result,
    }
    return {**entry, "provider_executed": True} if subject.provider_executed else entry


def _process_output_result(_: World, subject: Any, ctx: HookContext) -> dict[str, Any]:
    result = {
        "text": subject.text,
        "finish_reason": subject.finish_reason,
        "usage": forms.usage(subject.usage),
        "steps": [forms.step(step) for step in subject.steps],
    }
    return {"messages": forms.messages(ctx.messages), "result": result}


_ENTRIES: dict[str, Callable[[Any, Any, HookContext], dict[str, Any]]] = {
    "process_input": _process_input,
    "process_input_step": _process_input_step,
    "prepare_step": _process_input_step,
    "process_llm_request": _process_llm_request,
    "process_llm_response": _process_llm_response,
    "process_api_error": _process_api_error,
    "process_output_stream": _process_output_stream,
    "process_output_step": _process_output_step,
    "process_tool_result": _process_tool_result,
    "process_output_result": _process_output_result,
}
