"""A scenario's tools as tools of the library."""

from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import StrictBool, StrictFloat, StrictInt, StrictStr

from interlock import Tool, ToolContext, tool

if TYPE_CHECKING:
    from interpreter.world import World

TYPES: dict[str, Any] = {
    "string": StrictStr,
    "number": StrictInt | StrictFloat,
    "boolean": StrictBool,
    "any": Any,
}
CONTEXT = "tool_context"


def build_tools(specs: dict[str, Any] | None, world: World) -> dict[str, Tool]:
    """Tools by name."""
    return {name: build_tool(name, spec, world) for name, spec in (specs or {}).items()}


def build_tool(name: str, spec: dict[str, Any], world: World) -> Tool:
    """A typed function that does what the scenario says."""

    async def behave(**given: Any) -> Any:
        context: ToolContext = given.pop(CONTEXT)
        call = world.call
        await call.give_way()
        call.event(f"tool-start:{name}")
        call.add("tool_executions", {"tool": name, "args": given})
        try:
            value = await _behaviour(spec, given, context)
        except Exception:
            call.event(f"tool-end:{name}")
            raise
        call.event(f"tool-end:{name}")
        return value

    annotations = {key: TYPES[kind] for key, kind in (spec.get("params") or {}).items()}
    annotations[CONTEXT] = ToolContext
    behave.__annotations__ = annotations
    behave.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, annotation=kind)
            for key, kind in annotations.items()
        ]
    )
    return tool(name=name, description=spec.get("description") or f"The tool {name}.")(behave)


async def _behaviour(spec: dict[str, Any], args: dict[str, Any], context: ToolContext) -> Any:
    for chunk in spec.get("emit") or ():
        await context.writer.custom(dict(chunk))
    if spec.get("delay_ms"):
        await asyncio.sleep(spec["delay_ms"] / 1000)
    if "throws" in spec:
        raise RuntimeError(spec["throws"])
    if "returns_arg" in spec:
        return args.get(spec["returns_arg"])
    if "returns_special" in spec:
        return _special(spec["returns_special"])
    return spec.get("returns")


def _special(kind: str) -> Any:
    if kind == "date":
        return {"at": datetime.fromtimestamp(0, UTC), "fn": lambda: None, "big": "x"}
    if kind == "cyclic":
        value: dict[str, Any] = {"name": "loop"}
        value["self"] = value
        return value
    return None
