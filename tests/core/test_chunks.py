"""Chunks: typed, flat, named as on the wire (R4.6, R10.6)."""

from __future__ import annotations

from typing import Any

import pytest

import interlock.chunks as public
from interlock.core import chunks
from interlock.core.chunks import Chunk, DataChunk, OtherChunk, TextDelta, Usage

WIRE_NAMES = {
    "Abort": "abort",
    "ErrorChunk": "error",
    "File": "file",
    "Finish": "finish",
    "ObjectResult": "object-result",
    "PartialObject": "object",
    "ReasoningDelta": "reasoning-delta",
    "ReasoningEnd": "reasoning-end",
    "ReasoningStart": "reasoning-start",
    "ResponseMetadata": "response-metadata",
    "Source": "source",
    "Start": "start",
    "StepFinish": "step-finish",
    "StepStart": "step-start",
    "TextDelta": "text-delta",
    "TextEnd": "text-end",
    "TextStart": "text-start",
    "ToolCall": "tool-call",
    "ToolError": "tool-error",
    "ToolInputDelta": "tool-call-delta",
    "ToolInputEnd": "tool-call-input-streaming-end",
    "ToolInputStart": "tool-call-input-streaming-start",
    "ToolResult": "tool-result",
    "TripWireChunk": "tripwire",
}


def chunk_classes() -> dict[str, type[Chunk]]:
    """The chunk classes that are defined."""
    return {
        name: value
        for name, value in vars(chunks).items()
        if isinstance(value, type) and issubclass(value, Chunk) and value is not Chunk
    }


def test_types_are_the_names_on_the_wire() -> None:
    """The wire keeps the reference's names exactly."""
    fixed = {name: cls.type for name, cls in chunk_classes().items() if cls not in (DataChunk, OtherChunk)}
    assert fixed == WIRE_NAMES


def test_every_chunk_is_public() -> None:
    """R10.6: chunk types live in ``interlock.chunks``."""
    assert {*chunk_classes(), "Chunk", "Usage", "TripWireInfo"} <= set(public.__all__)
    for name, cls in chunk_classes().items():
        assert getattr(public, name) is cls


@pytest.mark.parametrize(
    ("chunk", "text"),
    [(TextDelta(text="a", id="1"), "a"), (TextDelta("a"), "a"), (DataChunk(type="data-x"), None)],
)
def test_chunks_can_be_matched(chunk: Any, text: str | None) -> None:
    """R10.6: on the class or on ``chunk.type``."""
    match chunk:
        case TextDelta(text=found):
            assert found == text
            assert chunk.type == "text-delta"
        case _:
            assert chunk.type == "data-x"


def test_free_types_are_the_chunks_own() -> None:
    """R9.1: a data chunk's type is given with it; so is that of a chunk this version does not know."""
    assert DataChunk(type="data-x").type == "data-x"
    assert OtherChunk(type="from-the-future", payload={"a": 1}).replace(payload=2).type == "from-the-future"


def test_usage_adds_up() -> None:
    """R5.3: usage counts every call made, and is always numbers."""
    one = Usage(input_tokens=1, output_tokens=2, total_tokens=3, reasoning_tokens=4, cached_input_tokens=5)
    assert one + one == Usage(
        input_tokens=2, output_tokens=4, total_tokens=6, reasoning_tokens=8, cached_input_tokens=10
    )
    assert Usage() + Usage() == Usage(
        input_tokens=0, output_tokens=0, total_tokens=0, reasoning_tokens=0, cached_input_tokens=0
    )
    assert sum([one, one], Usage()) == one + one
