"""The models of all four wire formats at one fault server, and what they made of a turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from fault_server import Action, FaultServer
from wires import Called, Said, Thought, Turn, anthropic, chat, gemini, responses

from interlock.core.chunks import (
    Chunk,
    Finish,
    ReasoningDelta,
    ResponseMetadata,
    StepStart,
    TextDelta,
    ToolInputDelta,
)
from interlock.core.errors import ModelError
from interlock.core.model import LanguageModel, ModelRequest, PromptMessage, PromptText, ToolSpec
from interlock.models.pydantic_ai import PydanticAIModel
from interlock.models.pydantic_ai_http import make_client

WIRES: tuple[ModuleType, ...] = (anthropic, gemini, responses, chat)

TURN = Turn(
    (
        Thought(("Let me ", "think…")),
        Said(("Héllo ", "🌍 wörld")),
        Called("call_1", "weather", ('{"city":', '"Zürich"}')),
        Called("call_2", "clock", ("{}",)),
    ),
    "tool-calls",
)
"""A turn with everything in it, and text of more than one byte a character."""

HELLO = Turn((Said(("Hel", "lo")),))

TOOLS = (
    ToolSpec(
        name="weather",
        description="The weather of a city.",
        parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    ),
    ToolSpec(name="clock", description="The time.", parameters={"type": "object", "properties": {}}),
)


def each_wire(*, own: bool = False) -> pytest.MarkDecorator:
    """Run the test against each wire format; ``own`` adds our own chat adapter as a fifth."""
    wires = [pytest.param(wire, False, id=wire.__name__.rpartition(".")[2]) for wire in WIRES]
    if own:
        return pytest.mark.parametrize(("wire", "own"), [*wires, pytest.param(chat, True, id="own-chat")])
    return pytest.mark.parametrize("wire", [pytest.param(*p.values[:1], id=p.id) for p in wires])


def ask(text: str = "Hi", *, tools: Sequence[ToolSpec] = (), **settings: Any) -> ModelRequest:
    """A request with one user message."""
    message = PromptMessage(role="user", content=(PromptText(text=text),))
    return ModelRequest(prompt=(message,), tools=tuple(tools), settings=settings, wants_raw=True)


@asynccontextmanager
async def model_at(
    server: FaultServer, wire: Any, *, own: bool = False, silence: float = 9.0, **options: Any
) -> AsyncGenerator[LanguageModel]:
    """The model of a wire format at that server; its connections are closed afterwards."""
    if own:
        model = wire.own_model(server.base_url, silence)
        yield model
        await model.aclose()
        return
    client = make_client(timeout=silence)
    async with client:
        yield PydanticAIModel(wire.model(server.base_url, client), **options)


async def collect(model: LanguageModel, request: ModelRequest | None = None) -> list[Chunk]:
    """All chunks of one call."""
    async with aclosing(model.stream(request or ask())) as chunks:
        return [chunk async for chunk in chunks]


async def chunks_of(
    wire: Any, *script: Action, own: bool = False, request: ModelRequest | None = None
) -> list[Chunk]:
    """All chunks of one call that gets this answer."""
    async with FaultServer(script) as server, model_at(server, wire, own=own) as model:
        return await collect(model, request)


async def failure(
    wire: Any, *scripts: Sequence[Action], request: ModelRequest | None = None, silence: float = 9.0
) -> ModelError:
    """The error that a call against these scripts raises."""
    async with FaultServer(*scripts) as server, model_at(server, wire, silence=silence) as model:
        with pytest.raises(ModelError) as caught:
            await collect(model, request)
    return caught.value


class Shape(NamedTuple):
    """What must be the same whatever the wire: chunks without provider metadata, deltas joined."""

    chunks: tuple[Any, ...]
    finish: Finish


def shape_of(chunks: Iterable[Chunk]) -> Shape:
    """The chunks, with what differs by provider left out."""
    shaped: list[Any] = []
    finish = Finish()
    for chunk in chunks:
        if isinstance(chunk, StepStart | ResponseMetadata):
            continue
        if isinstance(chunk, Finish):
            finish = chunk
            continue
        bare = chunk.replace(provider_metadata=None) if hasattr(chunk, "provider_metadata") else chunk
        last: Any = shaped[-1] if shaped else None
        if isinstance(bare, TextDelta | ReasoningDelta) and type(last) is type(bare) and last.id == bare.id:
            shaped[-1] = last.replace(text=last.text + bare.text)
        elif isinstance(bare, ToolInputDelta) and isinstance(last, ToolInputDelta):
            shaped[-1] = last.replace(args_text=last.args_text + bare.args_text)
        else:
            shaped.append(bare)
    return Shape(tuple(shaped), finish)


def text_of(chunks: Iterable[Chunk]) -> str:
    """The text in the chunks."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
