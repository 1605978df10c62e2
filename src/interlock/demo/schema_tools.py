"""Tool calls for a model that has never learned to make them.

SmolLM2 drops tools silently: its chat template has no place for them. But its server can hold any answer to a JSON
schema, so where a tool must be called it is asked for ``{"name": ..., "arguments": ...}``, and what it writes becomes
a tool call like any other.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any, cast

from interlock import LanguageModel, ModelRequest
from interlock.chunks import Chunk, Finish, TextDelta, ToolCall
from interlock.prompt import Prompt, PromptMessage, PromptText, PromptToolResult, ToolSpec


class SchemaTools:
    """A language model that calls tools through another's structured output.

    Args:
        model: the model to ask.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model = model

    @property
    def provider(self) -> str:
        """The model's provider."""
        return self.model.provider

    @property
    def model_id(self) -> str:
        """The model's name."""
        return self.model.model_id

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Call the model: for a tool call if it has tools, for an answer otherwise."""
        asked = _asking_for_call(request) if request.tools else request.replace(prompt=_told(request.prompt))
        written = ""
        async with aclosing(self.model.stream(asked)) as chunks:
            async for chunk in chunks:
                if not request.tools:
                    yield chunk
                elif isinstance(chunk, TextDelta):
                    written += chunk.text
                elif isinstance(chunk, Finish):
                    yield _call(written)
                    yield chunk.replace(finish_reason="tool-calls")


def _asking_for_call(request: ModelRequest) -> ModelRequest:
    tools = "\n".join(f"{tool.name}: {tool.description}" for tool in request.tools)
    system = PromptMessage(role="system", content=f"Call one of these tools. Answer with JSON.\n{tools}")
    questions = tuple(message for message in request.prompt if message.role == "user")
    return request.replace(
        prompt=(system, *questions),
        tools=(),
        tool_choice="auto",
        structured_output={"anyOf": [_call_schema(tool) for tool in request.tools]},
    )


def _call_schema(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": tool.parameters},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _call(written: str) -> ToolCall:
    new_id = f"call-{uuid.uuid4().hex[:8]}"
    try:
        call = json.loads(written)
        return ToolCall(tool_call_id=new_id, tool_name=call["name"], args=call["arguments"])
    except (ValueError, KeyError, TypeError):
        return ToolCall(tool_call_id=new_id, tool_name="unknown", invalid=f"no tool call: {written:.200}")


def _told(prompt: Prompt) -> Prompt:
    """The prompt with tool results as text after the question, and without the calls: no template needs more."""
    parts = [part for message in prompt if message.role == "tool" for part in message.content]
    facts = "".join(f"\n\n{_fact(part)}" for part in parts if isinstance(part, PromptToolResult))
    kept = [message for message in prompt if message.role in ("system", "user")]
    if facts:
        kept[-1] = PromptMessage(role="user", content=(PromptText(text=kept[-1].text + facts),))
    return tuple(kept) if facts else prompt


def _fact(result: PromptToolResult) -> str:
    said = ", ".join(f"{name} {text}" for name, text in _items(result.value))
    return f"From {result.tool_name}: {said}."


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    return cast("dict[str, Any]", value).items() if isinstance(value, dict) else [("it says", value)]
