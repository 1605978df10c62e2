"""What hooks are given and what they may give back (spec R4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from interlock.core.chunks import (
    Chunk,
    Metadata,
    StepRecord,
    ToolCall,
    Usage,
)
from interlock.core.message_list import MessageList
from interlock.core.messages import Message, SystemMessage
from interlock.core.model import (
    LanguageModel,
    Prompt,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptText,
    PromptToolCall,
    PromptToolResult,
)
from interlock.core.record import FrozenRecord, Record
from interlock.core.shapes import is_dict, is_sequence
from interlock.core.tool import Tool

# ----------------------------------------------------------------------------------------------- process_input


class InputChange(Record, kw_only=True):
    """What process_input may return to change the untagged system messages too (spec R3.3)."""

    messages: list[Message]
    system_messages: Sequence[str | SystemMessage] | None = None


# ------------------------------------------------------------------------------------------ process_input_step


class StepInput(Record, kw_only=True):
    """The subject of process_input_step: everything the step is about to be made of (spec R4.2)."""

    model: LanguageModel
    tools: dict[str, Tool]
    tool_choice: Any
    active_tools: list[str] | None
    provider_options: dict[str, Any]
    model_settings: dict[str, Any]
    structured_output: Any
    messages: list[Message]
    system_messages: list[SystemMessage]


class StepChange(Record, kw_only=True):
    """What process_input_step may return: values to put in the place of the step's, for this step only.

    ``model`` may be a model or a router id (``"openai/gpt-5"``); ``tools`` a list or a mapping. Give ``messages``
    or ``message_list``, not both.
    """

    model: Any = UNSET
    tools: Any = UNSET
    tool_choice: Any = UNSET
    active_tools: Sequence[str] | UnsetType | None = UNSET
    provider_options: dict[str, Any] | UnsetType = UNSET
    model_settings: dict[str, Any] | UnsetType = UNSET
    structured_output: Any = UNSET
    messages: Sequence[Message] | UnsetType = UNSET
    message_list: MessageList | UnsetType = UNSET
    system_messages: Sequence[str | SystemMessage] | UnsetType = UNSET


# ----------------------------------------------------------------------- process_llm_request, _llm_response


class LLMRequest(FrozenRecord, kw_only=True, frozen=True):
    """The subject of process_llm_request: the final prompt and the model that will get it. Frozen (spec R4.3)."""

    prompt: Prompt
    model: LanguageModel

    def map_text(self, function: Callable[[str], str]) -> LLMRequest:
        """The request with every text the model would read passed through a function.

        Args:
            function: gets and gives a string; called for system texts, text, reasoning, and every string inside
                tool arguments and results. Names and ids stay.
        """
        return self.replace(prompt=tuple(_map_message(message, function) for message in self.prompt))


def _map_message(message: PromptMessage, function: Callable[[str], str]) -> PromptMessage:
    if isinstance(message.content, str):
        return message.replace(content=function(message.content))
    return message.replace(content=tuple(_map_part(part, function) for part in message.content))


def _map_part(part: PromptPart, function: Callable[[str], str]) -> PromptPart:
    match part:
        case PromptText() | PromptReasoning():
            return part.replace(text=function(part.text))
        case PromptToolCall():
            return part.replace(input=map_strings(part.input, function))
        case PromptToolResult():
            return part.replace(value=map_strings(part.value, function))
        case _:
            return part


def map_strings(value: Any, function: Callable[[str], str]) -> Any:
    """A JSON value with every string in it passed through a function; keys stay."""
    if isinstance(value, str):
        return function(value)
    if is_dict(value):
        return {key: map_strings(inner, function) for key, inner in value.items()}
    if is_sequence(value):
        return [map_strings(inner, function) for inner in value]
    return value


class CachedResponse(Record):
    """What process_llm_request may return to answer instead of the provider (spec R4.3).

    Args:
        chunks: what a cache kept of ``response.raw_chunks``. They take the normal way through the processors.
    """

    chunks: Iterable[Chunk]


class LLMResponse(Record, kw_only=True):
    """The subject of process_llm_response (spec R4.4).

    Attributes:
        chunks: the step's chunks as they left the output processors.
        raw_chunks: as the model produced them: what a cache must keep, since a cached response passes the output
            processors again.
        from_cache: the chunks came from a CachedResponse.
        request: the provider's request body, where the model gives it.
        raw_response: the provider's response, where the model gives it.
    """

    chunks: list[Chunk]
    raw_chunks: list[Chunk]
    model: LanguageModel
    from_cache: bool = False
    warnings: list[Any] = []
    request: Any = None
    raw_response: Any = None


class Retry(Record):
    """What process_api_error may return: ask the model again (spec R4.5)."""


# ---------------------------------------------------------------------- process_output_step, _output_result


class OutputStep(Record, kw_only=True):
    """The subject of process_output_step (spec R4.7)."""

    text: str
    tool_calls: list[ToolCall]
    finish_reason: str
    usage: Usage
    provider_metadata: Metadata | None = None


class OutputResult(Record, kw_only=True):
    """The subject of process_output_result: the text of all accepted steps, joined (spec R4.9)."""

    text: str
    usage: Usage
    finish_reason: str
    steps: list[StepRecord]
