"""The ops of a hook (VOCABULARY.md), done one after another."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from interlock import HookContext, InputChange, MessageList, ProcessorViolation, Retry, StepChange
from interlock.wire import from_wire
from interpreter import forms, message_ops, prompt_ops
from interpreter.conditions import chunk_text, holds, hook_text
from interpreter.names import snake, snake_keys
from interpreter.tools import build_tools

if TYPE_CHECKING:
    from interpreter.world import World

Op = dict[str, Any]
UNSET: Any = object()


class Done(Exception):
    """The hook returns at once."""


class HookRun:
    """One invocation of a hook.

    Attributes:
        subject: the hook's first argument.
        number: how often this hook of this instance was invoked before.
        chunk: the working chunk of process_output_stream.
        working: the working array, once an op has changed it.
        change: fields of the object the hook returns.
        returned: what a ``return_*`` op said.
    """

    def __init__(
        self, world: World, processor: Any, hook: str, subject: Any, ctx: HookContext, number: int
    ) -> None:
        self.world = world
        self.processor = processor
        self.hook = hook
        self.subject = subject
        self.ctx = ctx
        self.number = number
        self.chunk: Any = subject if hook == "process_output_stream" else None
        self.messages: list[Any] = _messages_of(hook, subject, ctx)
        self.working: list[Any] | None = None
        self.change: dict[str, Any] = {}
        self.request: Any = None
        self.returned: Any = UNSET

    @property
    def where(self) -> str:
        """Processor and hook, as events name them."""
        return f"{self.processor.id}.{self.hook}"

    @property
    def chunk_type(self) -> str | None:
        """The type of the chunk, in process_output_stream."""
        return getattr(self.chunk, "type", None)

    def event(self, kind: str) -> None:
        """Something this hook did."""
        self.world.call.event(f"{kind}:{self.where}")

    def expand(self, value: Any) -> Any:
        """A value of an op with ``$ctx`` and the like filled in."""
        if isinstance(value, dict):
            if "$ctx" in value:
                return self.ctx.request_context.get(value["$ctx"], value.get("default"))
            return {key: self.expand(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.expand(inner) for inner in value]
        if isinstance(value, str) and "$" in value:
            return re.sub(r"\$(text|hook|chunk_type)\b", lambda match: self._named(match.group(1)), value)
        return value

    def _named(self, name: str) -> str:
        return {"text": hook_text(self), "hook": self.hook, "chunk_type": self.chunk_type or ""}[name]

    # ------------------------------------------------------------------------------------------------------ running

    async def run(self, ops: list[Op]) -> Any:
        """Do the ops; the hook's return value."""
        try:
            for op in ops:
                if holds(op.get("when"), self):
                    await self._do(op)
        except Done:
            return None
        return self._value()

    async def _do(self, op: Op) -> None:
        fields = {key: self.expand(value) for key, value in op.items() if key not in ("op", "when")}
        name = op["op"]
        if name in message_ops.OPS:
            message_ops.OPS[name](self, **fields)
        elif name in prompt_ops.OPS:
            prompt_ops.OPS[name](self, **fields)
        elif name in _OPS:
            done = _OPS[name](self, **fields)
            if done is not None:
                await done
        else:
            raise ValueError(f"unknown op {name!r}")

    def _value(self) -> Any:
        if self.change and isinstance(self.returned, list | MessageList):
            key = "messages" if isinstance(self.returned, list) else "message_list"
            return self._object({**self.change, key: self.returned})
        if self.returned is not UNSET:
            return self.returned
        if self.chunk is not None:
            return self.chunk
        if self.request is not None:
            return self.request
        if not self.change:
            return self.working
        if self.working is not None:
            self.change["messages"] = self.working
        return self._object(self.change)

    def _object(self, fields: dict[str, Any]) -> Any:
        """The hook's change object; where it has none, the object as it stands in the scenario."""
        if self.hook in ("process_input_step", "prepare_step"):
            return StepChange(**fields)
        if self.hook == "process_input" and set(fields) <= {"messages", "system_messages"}:
            return InputChange(**{"messages": self.messages, **fields})
        return fields


def _messages_of(hook: str, subject: Any, ctx: HookContext) -> list[Any]:
    if hook == "process_input":
        return list(subject)
    if hook in ("process_input_step", "prepare_step"):
        return list(subject.messages)
    return list(ctx.messages)


# ---------------------------------------------------------------------------------------------------------- returning


def _returns(value: Callable[[HookRun], Any]) -> Callable[..., None]:
    def op(run: HookRun) -> None:
        run.returned = value(run)

    return op


def _array(run: HookRun) -> list[Any]:
    return run.messages if run.working is None else run.working


def _other_list(run: HookRun) -> MessageList:
    return copy.copy(run.ctx.message_list)


def _empty_object(run: HookRun) -> Any:
    return StepChange() if run.hook in ("process_input_step", "prepare_step") else None


def _return_value(run: HookRun, value: Any = None) -> None:
    as_chunk = run.hook == "process_output_stream" and isinstance(value, dict) and "type" in value
    run.returned = from_wire(value) if as_chunk else value


def _return_messages_and_system(run: HookRun, texts: list[str], keep: bool = False) -> None:
    run.change["messages"] = _array(run)
    run.change["system_messages"] = [*(_system(run) if keep else ()), *texts]


def _system(run: HookRun) -> list[str]:
    return [message.content for message in run.ctx.system_messages]


def _set(run: HookRun, values: dict[str, Any]) -> None:
    tools = dict(getattr(run.subject, "tools", {}))
    for key, value in values.items():
        match key:
            case "model":
                run.change["model"] = run.world.models.get(value, value)
            case "tools":
                run.change["tools"] = build_tools(value, run.world)
            case "add_tools":
                run.change["tools"] = {**run.change.get("tools", tools), **build_tools(value, run.world)}
            case "omit_tools":
                left = run.change.get("tools", tools)
                run.change["tools"] = {name: tool for name, tool in left.items() if name not in value}
            case "systemMessages":
                run.change["system_messages"] = list(value)
            case "addSystemMessages":
                run.change["system_messages"] = [*_system(run), *value]
            case "modelSettings":
                run.change["model_settings"] = snake_keys(value)
            case _:
                run.change[snake(key)] = value


# ------------------------------------------------------------------------------------------------------------- chunks


def _drop(run: HookRun, **_: Any) -> None:
    raise Done


def _with_text(run: HookRun, change: Callable[[str], str]) -> None:
    text = chunk_text(run.chunk)
    if text is not None:
        run.chunk = run.chunk.replace(text=change(text))


def _mutate_text(run: HookRun, find: str, replace: str) -> None:
    text = chunk_text(run.chunk)
    if text is not None:
        run.chunk.text = text.replace(find, replace)


def _merged(run: HookRun, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    run.chunk = from_wire(change(forms.chunk(run.chunk)))


# ------------------------------------------------------------------------------------------------- state and stopping


def _state_append(run: HookRun, key: str, value: Any) -> None:
    run.ctx.state.setdefault(key, []).append(value)


def _state_incr(run: HookRun, key: str, by: int = 1) -> None:
    run.ctx.state[key] = run.ctx.state.get(key, 0) + by


async def _emit(run: HookRun, type: str, catch: bool = False, **fields: Any) -> None:
    data = (
        forms.snapshot(run.ctx.state)
        if fields.get("value") == "$state"
        else fields.get("data", fields.get("value"))
    )
    chunk = {
        "type": type,
        "data": data,
        **({"transient": fields["transient"]} if "transient" in fields else {}),
    }
    try:
        await run.ctx.writer.custom(chunk)
    except Exception:
        if not catch:
            raise
        run.event("emit-error")


def _abort(run: HookRun, reason: str | None = None, options: dict[str, Any] | None = None) -> None:
    run.event("abort")
    given = options or {}
    run.ctx.abort(reason, retry=bool(given.get("retry")), metadata=given.get("metadata"))


def _abort_caught(run: HookRun, reason: str | None = None, options: dict[str, Any] | None = None) -> None:
    try:
        _abort(run, reason, options)
    except BaseException:
        run.event("caught")


def _abort_if_contains(
    run: HookRun, words: list[str], reason: str, options: dict[str, Any] | None = None
) -> None:
    if any(word in hook_text(run) for word in words):
        _abort(run, reason, options)


def _throw(run: HookRun, message: str) -> None:
    run.event("throw")
    raise RuntimeError(message)


def _call_on_violation(run: HookRun, message: str, detail: Any = None) -> Any:
    return run.processor.on_violation(
        ProcessorViolation(processor_id=run.processor.id, message=message, detail=detail)
    )


# --------------------------------------------------------------------------------------------------- the message list


def _list_add(run: HookRun, role: str, text: str, source: str) -> None:
    run.ctx.message_list.add({"role": role, "content": text}, source)  # type: ignore[arg-type]


def _list_remove(run: HookRun, index: int) -> None:
    everything = run.ctx.message_list.get.all.db()
    if -len(everything) <= index < len(everything):
        run.ctx.message_list.remove_by_ids([everything[index].id])


def _update_tool_invocation(
    run: HookRun,
    result: Any = None,
    merge: dict[str, Any] | None = None,
    call_id: str | None = None,
    tool: str = "",
) -> None:
    if merge is not None:
        received = getattr(run.subject, "result", None)
        result = {**(received if isinstance(received, dict) else {}), **merge}
    target = call_id or getattr(run.subject, "tool_call_id", None) or _call_of(run, tool)
    run.ctx.message_list.update_tool_invocation(target, result=result)


def _call_of(run: HookRun, tool: str) -> str:
    calls: list[Any] = [p for m in run.ctx.messages for p in m.content.parts if p.type == "tool-invocation"]
    named = [call for call in calls if not tool or call.tool_name == tool]
    return named[-1].tool_call_id if named else ""


_OPS: dict[str, Callable[..., Any]] = {
    "noop": lambda run: None,
    "delay": lambda run, ms: asyncio.sleep(ms / 1000),
    # returning
    "return_messages": _returns(_array),
    "return_message_list": _returns(lambda run: run.ctx.message_list),
    "return_other_message_list": _returns(_other_list),
    "return_empty": _returns(lambda run: []),
    "return_none": _returns(lambda run: None),
    "return_null": _returns(lambda run: None),
    "return_empty_object": _returns(_empty_object),
    "return_value": _return_value,
    "return_messages_and_system": _return_messages_and_system,
    "return_messages_object": lambda run: run.change.update(messages=_array(run)),
    "return_list_object": lambda run: run.change.update(message_list=run.ctx.message_list),
    "return_both": lambda run: run.change.update(messages=_array(run), message_list=run.ctx.message_list),
    "set": _set,
    "api_retry": _returns(lambda run: Retry()),
    "api_no_retry": _returns(lambda run: None),
    # chunks
    "drop_chunk": _drop,
    "replace_chunk_text": lambda run, find, replace: _with_text(
        run, lambda text: text.replace(find, replace)
    ),
    "set_chunk_text": lambda run, text: _with_text(run, lambda _: text),
    "uppercase_chunk_text": lambda run: _with_text(run, str.upper),
    "mutate_chunk_text": _mutate_text,
    "set_chunk": lambda run, chunk: _merged(run, lambda wire: {**wire, **chunk}),
    "set_chunk_payload": lambda run, payload: _merged(
        run, lambda wire: {**wire, "payload": {**(wire.get("payload") or {}), **payload}}
    ),
    "set_chunk_data": lambda run, data: _merged(run, lambda wire: {**wire, "data": data}),
    # state, data, stopping
    "state_set": lambda run, key, value: run.ctx.state.__setitem__(key, value),
    "state_incr": _state_incr,
    "state_append": _state_append,
    "emit_custom": _emit,
    "abort": _abort,
    "abort_caught": _abort_caught,
    "abort_if_contains": _abort_if_contains,
    "throw": _throw,
    "call_on_violation": _call_on_violation,
    # the message list
    "list_add": _list_add,
    "list_remove": _list_remove,
    "list_add_system": lambda run, text, tag=None: _nothing(run.ctx.message_list.add_system(text, tag)),
    "list_clear_system": lambda run, tag=None: _nothing(run.ctx.message_list.clear_system(tag)),
    "list_replace_system": lambda run, texts: _nothing(run.ctx.message_list.replace_system(texts)),
    "update_tool_invocation": _update_tool_invocation,
}


def _nothing(_: Any) -> None:
    return None


KNOWN = frozenset({*_OPS, *message_ops.OPS, *prompt_ops.OPS})
"""The names of all ops."""

__all__ = ["KNOWN", "HookRun"]
