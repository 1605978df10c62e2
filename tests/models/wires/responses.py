"""OpenAI's Responses: https://platform.openai.com/docs/api-reference/responses-streaming."""

from __future__ import annotations

import json
from typing import Any

import httpx2
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

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
MODEL = "gpt-5"
KEY = "sk-proj-very-secret-0123456789"


def model(base_url: str, client: httpx2.AsyncClient) -> OpenAIResponsesModel:
    """The model, at the fault server."""
    provider = OpenAIProvider(api_key=KEY, base_url=base_url, http_client=client)
    return OpenAIResponsesModel(MODEL, provider=provider)


def body(turn: Turn) -> bytes:
    """A whole event stream."""
    return b"".join(_sse(data) for data in events(turn))


def events(turn: Turn) -> list[Json]:
    """Its events, numbered."""
    made: list[Json] = [{"type": "response.created", "response": _response("in_progress", [])}]
    output: list[Json] = []
    for index, block in enumerate(turn.blocks):
        item, during = _item(index, block)
        made.append({"type": "response.output_item.added", "output_index": index, "item": _begun(item)})
        made += during
        made.append({"type": "response.output_item.done", "output_index": index, "item": item})
        output.append(item)
    cut = turn.ended == "length"
    kind = "response.incomplete" if cut else "response.completed"
    made.append({"type": kind, "response": _response("incomplete" if cut else "completed", output)})
    return [{**data, "sequence_number": number} for number, data in enumerate(made)]


def _begun(item: Json) -> Json:
    begun = {**item, "status": "in_progress"}
    for name, empty in (("content", []), ("summary", []), ("arguments", ""), ("encrypted_content", None)):
        if name in begun:
            begun[name] = empty
    return begun


def _item(index: int, block: Thought | Said | Called) -> tuple[Json, list[Json]]:
    match block:
        case Thought():
            return _reasoning(index, block)
        case Said():
            return _message(index, block)
        case Called():
            item_id = f"fc_{index}"
            where = {"item_id": item_id, "output_index": index}
            text = "".join(block.pieces)
            item = {"type": "function_call", "id": item_id, "call_id": block.id, "name": block.name}
            kind = "response.function_call_arguments"
            deltas: list[Json] = [{"type": f"{kind}.delta", **where, "delta": p} for p in block.pieces]
            done = {"type": f"{kind}.done", **where, "name": block.name, "arguments": text}
            return {**item, "arguments": text, "status": "completed"}, [*deltas, done]


def _reasoning(index: int, block: Thought) -> tuple[Json, list[Json]]:
    item_id = f"rs_{index}"
    where = {"item_id": item_id, "output_index": index, "summary_index": 0}
    part = {"type": "summary_text", "text": "".join(block.pieces)}
    kind = "response.reasoning_summary"
    during: list[Json] = [
        {"type": f"{kind}_part.added", **where, "part": {**part, "text": ""}},
        *({"type": f"{kind}_text.delta", **where, "delta": piece} for piece in block.pieces),
        {"type": f"{kind}_text.done", **where, "text": part["text"]},
        {"type": f"{kind}_part.done", **where, "part": part},
    ]
    item = {"type": "reasoning", "id": item_id, "summary": [part], "encrypted_content": block.signature}
    return item, during


def _message(index: int, block: Said) -> tuple[Json, list[Json]]:
    item_id = f"msg_{index}"
    where = {"item_id": item_id, "output_index": index, "content_index": 0}
    part: Json = {"type": "output_text", "text": "".join(block.pieces), "annotations": []}
    during: list[Json] = [
        {"type": "response.content_part.added", **where, "part": {**part, "text": ""}},
        *(
            {"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []}
            for piece in block.pieces
        ),
        {"type": "response.output_text.done", **where, "text": part["text"], "logprobs": []},
        {"type": "response.content_part.done", **where, "part": part},
    ]
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }, during


def _response(status: str, output: list[Json]) -> Json:
    ended = status != "in_progress"
    usage = {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": REASONING_TOKENS},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    return {
        "id": "resp_67ccd3a9da748190",
        "object": "response",
        "created_at": 1_741_477_801,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": None,
        "model": MODEL,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage if ended else None,
    }


def error(status: int, message: str = "The server had an error.") -> bytes:
    """The body of an answer that is no success."""
    kinds = {400: "invalid_request_error", 401: "invalid_api_key", 429: "rate_limit_exceeded"}
    code = kinds.get(status, "server_error")
    return json.dumps({"error": {"message": message, "type": code, "param": None, "code": code}}).encode()


def stream_error(message: str = "The server had an error.") -> bytes:
    """A stream that reports an error after its first text."""
    opened = events(Turn((Said(("Hel",)),)))[:4]
    fault = {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": 9}
    return b"".join(_sse(data) for data in [*opened, fault])


def _sse(data: Json) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
