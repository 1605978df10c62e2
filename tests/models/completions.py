"""Streamed completions read without a server."""

from __future__ import annotations

import json
from typing import Any

from fault_server import delta

from interlock.core.chunks import Chunk, ResponseMetadata, StepStart, ToolCall
from interlock.models.openai_stream import AnswerReader


def read(*events: Any) -> list[Chunk]:
    """The chunks of these events, without the opening ones."""
    reader = AnswerReader(provider="acme")
    chunks = [chunk for event in events for chunk in reader.read(json.dumps(event))]
    reader.done = True
    chunks += reader.end()
    return [chunk for chunk in chunks if not isinstance(chunk, StepStart | ResponseMetadata)]


def call(index: int | None, call_id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    """An event with a piece of a tool call."""
    piece = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return delta(tool_calls=[piece])


def calls_of(*events: Any) -> list[tuple[str, Any]]:
    """Names and arguments of the calls in these events."""
    return [(chunk.tool_name, chunk.args) for chunk in read(*events) if isinstance(chunk, ToolCall)]
