"""What a model is to the loop: something that turns a prompt into a stream of chunks.

A model is any object with ``provider``, ``model_id`` and ``stream(request)``, an async generator of chunks.
The loop reads it under ``aclosing``: closing the generator must hang up on the provider at once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from interlock.core.chunks import Chunk, Metadata
from interlock.core.record import FrozenRecord

# --------------------------------------------------------------------------------- the provider-neutral prompt


class PromptText(FrozenRecord, kw_only=True, frozen=True):
    """Text."""

    text: str
    provider_options: Metadata | None = None


class PromptReasoning(FrozenRecord, kw_only=True, frozen=True):
    """Reasoning of an earlier answer, with the provider's signature in ``provider_options``."""

    text: str
    redacted: str | None = None
    provider_options: Metadata | None = None


class PromptFile(FrozenRecord, kw_only=True, frozen=True):
    """A file or image: base64 text, a data URL or a URL."""

    media_type: str
    data: str
    filename: str | None = None
    provider_options: Metadata | None = None


class PromptToolCall(FrozenRecord, kw_only=True, frozen=True):
    """A tool call the model made."""

    tool_call_id: str
    tool_name: str
    input: Any = None
    provider_executed: bool | None = None
    provider_options: Metadata | None = None


class PromptToolResult(FrozenRecord, kw_only=True, frozen=True):
    """The answer to a tool call. ``kind`` tells a text, a JSON value or an error text from one another."""

    tool_call_id: str
    tool_name: str
    kind: Literal["text", "json", "error-text"]
    value: Any = None
    provider_options: Metadata | None = None


PromptPart: TypeAlias = PromptText | PromptReasoning | PromptFile | PromptToolCall | PromptToolResult


class PromptMessage(FrozenRecord, kw_only=True, frozen=True):
    """One message of the prompt. A system message's content is a string, any other's a tuple of parts.

    Frozen: changing it in place raises; build a new one with ``replace`` (spec R4.3).
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str | tuple[PromptPart, ...]

    @property
    def text(self) -> str:
        """The message's text."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, PromptText))


Prompt: TypeAlias = tuple[PromptMessage, ...]


# -------------------------------------------------------------------------------------------------- the call


class ToolSpec(FrozenRecord, kw_only=True, frozen=True):
    """A tool as the model sees it: name, description and the JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


class ModelRequest(FrozenRecord, kw_only=True, frozen=True):
    """One call of a model.

    Attributes:
        prompt: the messages.
        tools: the active tools, in the order they were given; empty when tool_choice is ``none``.
        tool_choice: ``auto``, ``required``, ``none`` or ``{"type": "tool", "toolName": name}``.
        settings: temperature, max_output_tokens, top_p, stop_sequences, seed, max_retries, ...
        provider_options: provider name to options only it understands.
        structured_output: a JSON schema the answer must follow, or None.
        wants_raw: somebody will look at the raw response (``ResponseMetadata.raw``); else it need not be kept.
    """

    prompt: Prompt
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Any = "auto"
    settings: dict[str, Any] = {}
    provider_options: dict[str, Any] = {}
    structured_output: Any = None
    wants_raw: bool = False


@runtime_checkable
class LanguageModel(Protocol):
    """A language model.

    ``stream`` yields, in order: optionally a :class:`StepStart` with warnings and the request body, optionally
    :class:`ResponseMetadata`, then text, reasoning, tool, source and file chunks, and last one :class:`Finish`.
    A model that makes its provider keep to ``request.structured_output`` says so with an attribute
    ``native_structured_output = True``; any other is told the schema in words.
    It raises :class:`ModelError` when the provider fails; its own retries (transport faults before the first
    chunk, at most ``settings["max_retries"]``) are behind it by then.
    """

    @property
    def provider(self) -> str:
        """The provider's name."""
        ...

    @property
    def model_id(self) -> str:
        """The model's name at that provider."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Call the model."""
        ...


def has_native_structured_output(model: LanguageModel) -> bool:
    """Whether the model makes its provider keep to a JSON schema."""
    return bool(getattr(model, "native_structured_output", False))


ModelResolver: TypeAlias = Callable[[Any], LanguageModel]
"""Turns what a user may give as a model (an object, a router id) into a model, or raises UsageError."""
