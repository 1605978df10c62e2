"""From pydantic-ai's events to chunks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic_ai.messages import (
    BinaryImage,
    Citation,
    DocumentCitationSource,
    FilePart,
    ModelResponsePart,
    ModelResponseStreamEvent,
    NativeToolCallPart,
    NativeToolReturnPart,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
    WebCitationSource,
)

from interlock.core.chunks import (
    Chunk,
    File,
    ReasoningDelta,
    ReasoningEnd,
    Source,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)
from interlock.models.pydantic_ai_stream import EventReader


def read(*events: ModelResponseStreamEvent, finish_reason: str | None = "stop") -> list[Chunk]:
    """The chunks of these events and of the stream's end."""
    streamed: Any = SimpleNamespace(
        provider_name="anthropic", canonical_system=None, finish_reason=finish_reason
    )
    reader = EventReader(streamed)
    chunks: list[Chunk] = []
    for event in events:
        quick = reader.quick(event)
        chunks += [quick] if quick is not None else reader.read(event)
    return [*chunks, *reader.end()]


def began(index: int, part: ModelResponsePart) -> PartStartEvent:
    """A part begins."""
    return PartStartEvent(index=index, part=part)


def more(index: int, delta: Any) -> PartDeltaEvent:
    """More of a part: text, or a delta."""
    return PartDeltaEvent(index=index, delta=TextPartDelta(delta) if isinstance(delta, str) else delta)


def test_text_that_goes_on_after_its_end_is_a_new_block() -> None:
    """A closed block stays closed; the text is not lost."""
    chunks = read(
        began(0, TextPart("a")),
        PartEndEvent(index=0, part=TextPart("a")),
        began(1, TextPart("b")),
        more(0, "c"),
    )
    assert [chunk.id for chunk in chunks if isinstance(chunk, TextStart)] == ["text-0", "text-1", "text-2"]
    assert [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)] == ["a", "b", "c"]
    assert sum(isinstance(chunk, TextEnd) for chunk in chunks) == 3


def test_thinking_ends_with_its_signature() -> None:
    """The signature is on the block's end, where the messages take it from."""
    done = ThinkingPart("ab", signature="s", provider_name="anthropic")
    chunks = read(
        began(0, ThinkingPart("a")),
        more(0, ThinkingPartDelta(content_delta="b")),
        more(0, ThinkingPartDelta(signature_delta="s")),
        PartEndEvent(index=0, part=done),
    )
    assert [chunk.text for chunk in chunks if isinstance(chunk, ReasoningDelta)] == ["a", "b"]
    (end,) = (chunk for chunk in chunks if isinstance(chunk, ReasoningEnd))
    assert end.provider_metadata is not None
    assert end.provider_metadata["anthropic"]["signature"] == "s"


def test_thoughts_an_open_model_shows_are_reasoning_not_metadata() -> None:
    """Raw thoughts come in details: as text they pass the guards (spec R0.3)."""

    def raw(details: Any) -> dict[str, Any]:
        return {"raw_content": [*(details or {}).get("raw_content", []), "hm"]}

    done = ThinkingPart("", id="rs", provider_name="openai", provider_details={"raw_content": ["hm"]})
    chunks = read(
        began(0, ThinkingPart("", provider_details={"raw_content": ["h"]})),
        more(0, ThinkingPartDelta(provider_details=raw)),
        PartEndEvent(index=0, part=done),
    )
    assert [chunk.text for chunk in chunks if isinstance(chunk, ReasoningDelta)] == ["h", "hm"]
    assert "hm" not in str([chunk for chunk in chunks if isinstance(chunk, ReasoningEnd)])


def test_calls_written_at_the_same_time() -> None:
    """Arguments in turns reach their own call, though pydantic-ai ends the first when the second begins."""
    first, second = ToolCallPart("f", '{"a"', "c1"), ToolCallPart("g", '{"b"', "c2")
    chunks = read(
        began(0, first),
        PartEndEvent(index=0, part=first),
        began(1, second),
        more(0, ToolCallPartDelta(args_delta=": 1}")),
        more(1, ToolCallPartDelta(args_delta=": 2}")),
    )
    calls = [chunk for chunk in chunks if isinstance(chunk, ToolCall)]
    assert [(call.tool_name, call.args) for call in calls] == [("f", {"a": 1}), ("g", {"b": 2})]


@pytest.mark.parametrize(
    ("reason", "words"), [("length", "cut off at the token limit"), ("stop", "not valid JSON")]
)
def test_arguments_that_cannot_be_read(reason: str, words: str) -> None:
    """The call says why; the others are made."""
    chunks = read(began(0, ToolCallPart("f", '{"a', "c1")), finish_reason=reason)
    (call,) = (chunk for chunk in chunks if isinstance(chunk, ToolCall))
    assert call.args is None
    assert call.invalid is not None
    assert words in call.invalid


def test_a_tool_the_provider_ran() -> None:
    """Call and result are marked as the provider's, the result after its call, and no tool of ours is called."""
    reader_chunks = read(
        began(0, NativeToolCallPart("web_search", None, "s1", provider_name="anthropic")),
        more(0, ToolCallPartDelta(args_delta='{"query": "x"}')),
        began(1, NativeToolReturnPart("web_search", [{"url": "u"}], "s1", provider_name="anthropic")),
        began(2, TextPart("found")),
    )
    kinds = [type(chunk) for chunk in reader_chunks]
    assert kinds.index(ToolCall) < kinds.index(ToolResult) < kinds.index(TextStart)
    (call,) = (chunk for chunk in reader_chunks if isinstance(chunk, ToolCall))
    (result,) = (chunk for chunk in reader_chunks if isinstance(chunk, ToolResult))
    (start,) = (chunk for chunk in reader_chunks if isinstance(chunk, ToolInputStart))
    assert start.provider_executed
    assert (call.args, call.provider_executed) == ({"query": "x"}, True)
    assert (result.result, result.provider_executed, result.tool_call_id) == ([{"url": "u"}], True, "s1")
    assert kinds.count(ToolInputEnd) == 1


def test_only_the_last_preview_of_an_image_is_a_file() -> None:
    """A part that is replaced is one file, in its last form."""
    preview = FilePart(BinaryImage(b"pre", media_type="image/png"))
    image = FilePart(BinaryImage(b"img", media_type="image/png"))
    chunks = read(began(0, preview), began(0, image), began(1, TextPart("x")))
    assert isinstance(chunks[0], File)
    assert [chunk.data for chunk in chunks if isinstance(chunk, File)] == [image.content.base64]


def test_citations_are_sources() -> None:
    """Each source once, web pages and documents; what they quote is not repeated (spec R0.3)."""
    page = WebCitationSource("https://h/a", title="A", excerpts=["quote"])
    paper = DocumentCitationSource(document_id="d1", title="D")
    cited = [Citation([page]), Citation([page, paper])]
    chunks = read(began(0, TextPart("x")), more(0, TextPartDelta("", citations_delta=cited)))
    sources = [chunk for chunk in chunks if isinstance(chunk, Source)]
    assert [(source.source_type, source.url, source.title) for source in sources] == [
        ("url", "https://h/a", "A"),
        ("document", None, "D"),
    ]
    assert "quote" not in str(chunks)
