"""When an op is done: its ``when``, and the text a hook is about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from interpreter import forms

if TYPE_CHECKING:
    from interpreter.ops import HookRun


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def chunk_text(chunk: Any) -> str | None:
    """A chunk's ``payload.text``, if it has one."""
    return chunk.text if chunk.type in ("text-delta", "reasoning-delta") else None


def hook_text(run: HookRun) -> str:
    """The text a hook is about, as VOCABULARY.md has it."""
    subject = run.subject
    match run.hook:
        case "process_output_stream":
            return chunk_text(subject) or ""
        case "process_output_step" | "process_output_result":
            return subject.text
        case "process_tool_result":
            return subject.result if isinstance(subject.result, str) else _json(subject.result)
        case "process_api_error":
            return str(getattr(subject, "message", subject))
        case "process_llm_request":
            return _json(forms.prompt(subject.prompt))
        case "process_llm_response":
            return "".join(chunk.text for chunk in subject.chunks if chunk.type == "text-delta")
        case _:
            return "\n".join(message.text for message in run.messages)


def holds(when: dict[str, Any] | None, run: HookRun) -> bool:
    """Whether all keys of a ``when`` hold."""
    return all(_key_holds(key, run.expand(value), run) for key, value in (when or {}).items())


def _key_holds(key: str, wanted: Any, run: HookRun) -> bool:
    if key in _TESTS:
        return bool(_TESTS[key](wanted, run))
    raise ValueError(f"unknown condition {key!r}")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _step(run: HookRun) -> int:
    return -1 if run.hook == "process_input" else run.ctx.step_number


def _finish_reason(run: HookRun) -> Any:
    return getattr(run.subject, "finish_reason", None)


_TESTS: dict[str, Any] = {
    "step": lambda wanted, run: _step(run) == wanted,
    "step_gte": lambda wanted, run: _step(run) >= wanted,
    "retry": lambda wanted, run: run.ctx.retry_count == wanted,
    "retry_lt": lambda wanted, run: run.ctx.retry_count < wanted,
    "retry_gte": lambda wanted, run: run.ctx.retry_count >= wanted,
    "call": lambda wanted, run: run.number == wanted,
    "call_gte": lambda wanted, run: run.number >= wanted,
    "call_lt": lambda wanted, run: run.number < wanted,
    "chunk_type": lambda wanted, run: run.chunk_type in _listed(wanted),
    "chunk_type_not": lambda wanted, run: run.chunk_type not in _listed(wanted),
    "text_contains": lambda wanted, run: wanted in hook_text(run),
    "text_not_contains": lambda wanted, run: wanted not in hook_text(run),
    "tool": lambda wanted, run: getattr(run.subject, "tool_name", None) == wanted,
    "call_id": lambda wanted, run: getattr(run.subject, "tool_call_id", None) == wanted,
    "finish_reason": lambda wanted, run: _finish_reason(run) == wanted,
    "from_cache": lambda wanted, run: bool(getattr(run.subject, "from_cache", False)) == wanted,
    "state_eq": lambda wanted, run: all(run.ctx.state.get(key) == value for key, value in wanted.items()),
    "state_gte": lambda wanted, run: all(run.ctx.state.get(key, 0) >= value for key, value in wanted.items()),
    "error_status": lambda wanted, run: getattr(run.subject, "status", None) == wanted,
    "has_tool_calls": lambda wanted, run: bool(getattr(run.subject, "tool_calls", None)) == wanted,
    "steps_gte": lambda wanted, run: len(run.ctx.steps) >= wanted,
}

KNOWN = frozenset(_TESTS)
"""The names of all conditions."""
