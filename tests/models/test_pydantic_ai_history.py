"""Our prompt as pydantic-ai's history."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    CachePoint,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    VideoUrl,
)

from interlock.core.errors import UsageError
from interlock.core.model import (
    PromptFile,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptText,
    PromptToolCall,
    PromptToolResult,
)
from interlock.models.pydantic_ai_history import TOOL_ID, build_history, tool_id


def history(*messages: PromptMessage, provider: str = "anthropic") -> list[Any]:
    """The history, which must hold everything."""
    warnings: list[dict[str, Any]] = []
    built = build_history(messages, provider, warnings)
    assert warnings == []
    return built


def user(*parts: PromptPart) -> PromptMessage:
    """A user message."""
    return PromptMessage(role="user", content=parts)


def assistant(*parts: PromptPart) -> PromptMessage:
    """An answer."""
    return PromptMessage(role="assistant", content=parts)


def results(*parts: PromptPart) -> PromptMessage:
    """Results of tools."""
    return PromptMessage(role="tool", content=parts)


def test_a_conversation_with_a_tool() -> None:
    """What goes to the model between two answers is one request, in order."""
    built = history(
        PromptMessage(role="system", content="Be kind."),
        user(PromptText(text="Weather?")),
        assistant(
            PromptText(text="Let me see."), PromptToolCall(tool_call_id="c1", tool_name="w", input={"a": 1})
        ),
        results(PromptToolResult(tool_call_id="c1", tool_name="w", kind="json", value={"b": 2})),
        user(PromptText(text="And?")),
    )
    first, answer, second = built
    assert isinstance(first, ModelRequest)
    assert [type(part) for part in first.parts] == [SystemPromptPart, UserPromptPart]
    assert isinstance(answer, ModelResponse)
    assert [type(part) for part in answer.parts] == [TextPart, ToolCallPart]
    assert answer.parts[1].args == {"a": 1}  # type: ignore[union-attr]
    result, question = second.parts
    assert isinstance(result, ToolReturnPart)
    assert (result.content, result.tool_call_id, result.outcome) == ({"b": 2}, "c1", "success")
    assert question.content == "And?"


def test_a_failed_tool_is_marked() -> None:
    """Providers have a place for errors of tools."""
    (request,) = history(
        results(PromptToolResult(tool_call_id="c", tool_name="t", kind="error-text", value="no"))
    )
    assert (request.parts[0].outcome, request.parts[0].content) == ("failed", "no")


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("image/png", ImageUrl),
        ("audio/mpeg", AudioUrl),
        ("video/mp4", VideoUrl),
        ("application/pdf", DocumentUrl),
    ],
)
def test_files_by_address(media_type: str, kind: type[Any]) -> None:
    """An http(s) URL stays one, with the media type we were told."""
    (request,) = history(user(PromptFile(media_type=media_type, data="https://h/x")))
    (file,) = request.parts[0].content
    assert isinstance(file, kind)
    assert (file.url, file.media_type) == ("https://h/x", media_type)


@pytest.mark.parametrize("head", ["", "data:image/png;base64,"])
def test_files_by_content(head: str) -> None:
    """Base64, bare or in a data URL, becomes bytes."""
    data = base64.b64encode(b"abc").decode()
    (request,) = history(user(PromptText(text="see"), PromptFile(media_type="image/png", data=head + data)))
    text, file = request.parts[0].content
    assert text == "see"
    assert isinstance(file, BinaryContent)
    assert (file.data, file.media_type) == (b"abc", "image/png")
    (answer,) = history(assistant(PromptFile(media_type="image/png", data=head + data)))
    assert isinstance(answer.parts[0], FilePart)


def test_a_file_that_is_neither() -> None:
    """The error does not repeat the data."""
    with pytest.raises(UsageError, match="image/png") as caught:
        history(user(PromptFile(media_type="image/png", data="not base64!")))
    assert "not base64!" not in str(caught.value)


def test_cache_points() -> None:
    """``cacheControl`` on a part: what stands before may be cached."""
    marked = PromptText(text="long", provider_options={"anthropic": {"cacheControl": {"type": "ephemeral"}}})
    (request,) = history(user(marked, PromptText(text="short")))
    long, point, short = request.parts[0].content
    assert (long, short) == ("long", "short")
    assert isinstance(point, CachePoint)


def test_what_came_from_a_provider_keeps_its_name() -> None:
    """Thinking with its signature, and a call the provider ran with its result, in one response."""
    thought = PromptReasoning(text="hm", provider_options={"anthropic": {"signature": "s"}})
    options = {"anthropic": {"resultDetails": {"k": 1}}}
    call = PromptToolCall(
        tool_call_id="srv_1", tool_name="web_search", provider_executed=True, provider_options=options
    )
    result = PromptToolResult(tool_call_id="srv_1", tool_name="web_search", kind="json", value=[1])
    (answer,) = history(assistant(thought, call, result, PromptText(text="done")))
    assert answer.provider_name == "anthropic"
    thinking, native, returned, text = answer.parts
    assert isinstance(thinking, ThinkingPart)
    assert (thinking.signature, thinking.provider_name) == ("s", "anthropic")
    assert isinstance(native, NativeToolCallPart)
    assert isinstance(returned, NativeToolReturnPart)
    assert (returned.content, returned.provider_name, returned.provider_details) == (
        [1],
        "anthropic",
        {"k": 1},
    )
    assert (text.content, text.id) == ("done", None)


def test_what_cannot_be_said_is_warned_of() -> None:
    """A file of the model's that is an address, reasoning in a user's message: left out, once each."""
    warnings: list[dict[str, Any]] = []
    file = PromptFile(media_type="image/png", data="https://h/x")
    asked = user(PromptReasoning(text="?"), PromptText(text="Hi"))
    build_history((asked, assistant(file, file, PromptText(text="x"))), "openai", warnings)
    assert [(warning["part"], warning["role"]) for warning in warnings] == [
        ("PromptReasoning", "user"),
        ("PromptFile", "assistant"),
    ]


def test_messages_of_nothing_are_not_sent() -> None:
    """An answer that only held what is left out is no message."""
    assert history(assistant(PromptReasoning(text=""))) == []


@given(st.text(min_size=1))
def test_tool_ids_fit_everywhere(given_id: str) -> None:
    """Any id becomes one that every provider takes, always the same; a good one stays."""
    made = tool_id(given_id)
    assert TOOL_ID.fullmatch(made)
    assert made == tool_id(given_id)
    assert tool_id(made) == made
    if TOOL_ID.fullmatch(given_id):
        assert made == given_id
