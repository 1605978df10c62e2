"""Gemini's streamGenerateContent: https://ai.google.dev/api/generate-content."""

from __future__ import annotations

import json
from typing import Any

import httpx2
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider

from wires import (
    CACHED_TOKENS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    REASONING_TOKENS,
    Said,
    Thought,
    Turn,
)

Json = dict[str, Any]

PROVIDER = "google"
MODEL = "gemini-2.5-pro"
KEY = "AIzaSy-very-secret-0123456789abcdef"
STOP = {"stop": "STOP", "tool-calls": "STOP", "length": "MAX_TOKENS"}


def model(base_url: str, client: httpx2.AsyncClient) -> GoogleModel:
    """The model, at the fault server."""
    address = base_url.removesuffix("/v1")
    provider = GoogleProvider(api_key=KEY, base_url=address, http_client=client)
    return GoogleModel(MODEL, provider=provider)


def body(turn: Turn) -> bytes:
    """A whole event stream."""
    return b"".join(_sse(data) for data in events(turn))


def events(turn: Turn) -> list[Json]:
    """Its events: parts of the answer as they are made; a signature comes with the part after the thought."""
    parts: list[Json] = []
    signature: str | None = None
    for block in turn.blocks:
        if isinstance(block, Thought):
            parts += [{"text": piece, "thought": True} for piece in block.pieces]
            signature = block.signature
            continue
        if isinstance(block, Said):
            made: list[Json] = [{"text": piece} for piece in block.pieces]
        else:
            call = {"id": block.id, "name": block.name, "args": json.loads("".join(block.pieces))}
            made = [{"functionCall": call}]
        if signature and made:
            made[0]["thoughtSignature"] = signature
            signature = None
        parts += made
    chunks = [_chunk([part]) for part in parts]
    last = _chunk([{"text": ""}])
    last["candidates"][0]["finishReason"] = STOP[turn.ended]
    last["usageMetadata"] = {
        "promptTokenCount": INPUT_TOKENS,
        "cachedContentTokenCount": CACHED_TOKENS,
        "candidatesTokenCount": OUTPUT_TOKENS - REASONING_TOKENS,
        "thoughtsTokenCount": REASONING_TOKENS,
        "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    return [*chunks, last]


def _chunk(parts: list[Json]) -> Json:
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
        "modelVersion": MODEL,
        "responseId": "mKbaaPSNGJyz1PIP",
    }


def error(status: int, message: str = "The model is overloaded.") -> bytes:
    """The body of an answer that is no success."""
    kinds = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
    kind = kinds.get(status, "INTERNAL")
    return json.dumps({"error": {"code": status, "message": message, "status": kind}}).encode()


def stream_error(message: str = "The model is overloaded.") -> bytes:
    """A stream that reports an error after its first text."""
    fault = {"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}}
    return _sse(_chunk([{"text": "Hel"}])) + _sse(fault)


def _sse(data: Json) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\r\n\r\n".encode()
