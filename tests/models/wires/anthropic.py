"""Anthropic's Messages: https://docs.anthropic.com/en/api/messages-streaming."""

from __future__ import annotations

import json
from typing import Any

import httpx2
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from wires import CACHED_TOKENS, INPUT_TOKENS, OUTPUT_TOKENS, Called, Said, Thought, Turn

Json = dict[str, Any]

PROVIDER = "anthropic"
MODEL = "claude-sonnet-4-5"
KEY = "sk-ant-api03-very-secret-0123456789"
STOP = {"stop": "end_turn", "tool-calls": "tool_use", "length": "max_tokens"}


def model(base_url: str, client: httpx2.AsyncClient) -> AnthropicModel:
    """The model, at the fault server."""
    address = base_url.removesuffix("/v1")
    return AnthropicModel(
        MODEL, provider=AnthropicProvider(api_key=KEY, base_url=address, http_client=client)
    )


def body(turn: Turn) -> bytes:
    """A whole event stream."""
    return b"".join(_sse(data) for data in events(turn))


def events(turn: Turn) -> list[Json]:
    """Its events."""
    blocks = [data for index, block in enumerate(turn.blocks) for data in _block(index, block)]
    end = {"stop_reason": STOP[turn.ended], "stop_sequence": None}
    return [
        start(),
        *blocks,
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": OUTPUT_TOKENS}},
        {"type": "message_stop"},
    ]


def start() -> Json:
    """The first event. Cached tokens are counted beside the others, not among them."""
    usage = {
        "input_tokens": INPUT_TOKENS - CACHED_TOKENS,
        "cache_read_input_tokens": CACHED_TOKENS,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    message = {
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    return {"type": "message_start", "message": message}


def _block(index: int, block: Thought | Said | Called) -> list[Json]:
    match block:
        case Thought():
            opening: Json = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in block.pieces]
            deltas.append({"type": "signature_delta", "signature": block.signature})
        case Said():
            opening = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in block.pieces]
        case Called():
            opening = {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in block.pieces]
    return [
        {"type": "content_block_start", "index": index, "content_block": opening},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def error(status: int, message: str = "Overloaded") -> bytes:
    """The body of an answer that is no success."""
    kinds = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "overloaded_error" if status == 529 else "api_error")
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


def stream_error(message: str = "Overloaded") -> bytes:
    """A stream that reports an error after its first text."""
    opened = events(Turn((Said(("Hel",)),)))[:4]
    fault = {"type": "error", "error": {"type": "overloaded_error", "message": message}}
    return b"".join(_sse(data) for data in [*opened, fault])


def _sse(data: Json) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
