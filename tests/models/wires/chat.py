"""OpenAI's chat completions: https://platform.openai.com/docs/api-reference/chat-streaming.

Reasoning comes in ``reasoning_content``, as DeepSeek and others have it; OpenAI itself shows none here.
"""

from __future__ import annotations

import json
from typing import Any

import httpx2
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from interlock.models.openai_compatible import OpenAICompatible
from wires import (
    CACHED_TOKENS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    REASONING_TOKENS,
    Called,
    Said,
    Thought,
    Turn,
)

Json = dict[str, Any]

PROVIDER = "openai"
MODEL = "gpt-5-mini"
KEY = "sk-proj-very-secret-0123456789"
STOP = {"stop": "stop", "tool-calls": "tool_calls", "length": "length"}


def model(base_url: str, client: httpx2.AsyncClient) -> OpenAIChatModel:
    """pydantic-ai's model, at the fault server."""
    return OpenAIChatModel(MODEL, provider=OpenAIProvider(api_key=KEY, base_url=base_url, http_client=client))


def own_model(base_url: str, silence: float = 9.0) -> OpenAICompatible:
    """Our own adapter, at the fault server."""
    return OpenAICompatible(MODEL, base_url=base_url, api_key=KEY, provider=PROVIDER, timeout=silence)


def body(turn: Turn) -> bytes:
    """A whole event stream."""
    return b"".join(_sse(data) for data in events(turn)) + b"data: [DONE]\n\n"


def events(turn: Turn) -> list[Json]:
    """Its events."""
    made = [_chunk({"role": "assistant", "content": ""})]
    calls = 0
    for block in turn.blocks:
        match block:
            case Thought():
                made += [_chunk({"reasoning_content": piece}) for piece in block.pieces]
            case Said():
                made += [_chunk({"content": piece}) for piece in block.pieces]
            case Called():
                begun = {"name": block.name, "arguments": ""}
                opening = {"index": calls, "id": block.id, "type": "function", "function": begun}
                made.append(_chunk({"tool_calls": [opening]}))
                for piece in block.pieces:
                    more = {"index": calls, "function": {"arguments": piece}}
                    made.append(_chunk({"tool_calls": [more]}))
                calls += 1
    usage = {
        "prompt_tokens": INPUT_TOKENS,
        "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "completion_tokens": OUTPUT_TOKENS,
        "completion_tokens_details": {"reasoning_tokens": REASONING_TOKENS},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    made.append(_chunk({}, STOP[turn.ended]))
    made.append({**_chunk({}), "choices": [], "usage": usage})
    return made


def _chunk(delta: Json, finish_reason: str | None = None) -> Json:
    return {
        "id": "chatcmpl-123",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": MODEL,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


def error(status: int, message: str = "The server had an error.") -> bytes:
    """The body of an answer that is no success."""
    kinds = {400: "invalid_request_error", 401: "invalid_api_key", 429: "rate_limit_exceeded"}
    code = kinds.get(status, "server_error")
    return json.dumps({"error": {"message": message, "type": code, "param": None, "code": code}}).encode()


def stream_error(message: str = "The server had an error.") -> bytes:
    """A stream that reports an error after its first text."""
    fault = {"error": {"message": message, "type": "server_error", "code": "server_error"}}
    return _sse(_chunk({"content": "Hel"})) + _sse(fault)


def _sse(data: Json) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
