"""A streamed OpenAI chat completion, event by event, and what a client reads in one."""

from __future__ import annotations

import json
from typing import Any

FRAME = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
DONE = b"data: [DONE]\n\n"


def choice(delta: dict[str, Any], index: int = 0, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A choice of an event."""
    return {"index": index, "delta": delta, "finish_reason": finish, **more}


def event(*choices: dict[str, Any], **more: Any) -> bytes:
    """An event with these choices."""
    data = json.dumps({**FRAME, "choices": list(choices), **more}, ensure_ascii=False)
    return b"data: " + data.encode() + b"\n\n"


def text(content: str, index: int = 0) -> bytes:
    """An event with a piece of content."""
    return event(choice({"content": content}, index))


def call(arguments: str, number: int = 0, index: int = 0, **head: Any) -> bytes:
    """An event with a piece of a tool call."""
    name = {"name": head.pop("name")} if "name" in head else {}
    item = {"index": number, **head, "function": {**name, "arguments": arguments}}
    return event(choice({"tool_calls": [item]}, index))


def stop(index: int = 0, reason: str = "stop") -> bytes:
    """The event that ends a choice."""
    return event(choice({}, index, reason))


ROLE = event(choice({"role": "assistant", "content": "", "refusal": None}))
USAGE = event(usage={"total_tokens": 7})


def events(body: bytes) -> list[Any]:
    """As a strict client reads it."""
    found: list[Any] = []
    body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for block in body.split(b"\n\n"):
        data = [line[5:].lstrip() for line in block.split(b"\n") if line.startswith(b"data:")]
        if any(data):
            joined = b"\n".join(data)
            found.append("[DONE]" if joined == b"[DONE]" else json.loads(joined))
    return found


def joined(body: bytes, field: str = "content", index: int = 0) -> str:
    """A field's pieces, joined."""
    return "".join(
        each["delta"].get(field) or ""
        for data in events(body)
        if data != "[DONE]"
        for each in data.get("choices", [])
        if each["index"] == index
    )


def arguments(body: bytes, number: int = 0, index: int = 0) -> list[str]:
    """The pieces of a call's arguments, but for empty ones."""
    return [
        item["function"]["arguments"]
        for data in events(body)
        if data != "[DONE]"
        for each in data.get("choices", [])
        if each["index"] == index
        for item in each["delta"].get("tool_calls", [])
        if item["index"] == number and item["function"].get("arguments")
    ]
