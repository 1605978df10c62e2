"""The JSON body of a request."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from interlock.core.errors import UsageError
from interlock.core.model import (
    ModelRequest,
    PromptFile,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptText,
    PromptToolCall,
    PromptToolResult,
    ToolSpec,
)
from interlock.models.openai_messages import build_body

WEATHER = ToolSpec(name="weather", description="Of a city.", parameters={"type": "object", "properties": {}})
CSV = "data:text/csv;base64,QUI="
PNG = "data:image/png;base64,QUI="


def body(provider: str = "acme", **fields: Any) -> dict[str, Any]:
    """The body of a request with these fields."""
    fields = {"prompt": (), **fields}
    return build_body(ModelRequest(**fields), model_id="m", provider=provider)[0]


def messages(*prompt: PromptMessage) -> list[dict[str, Any]]:
    """The messages in the body."""
    return body(prompt=prompt)["messages"]


def user(*parts: PromptPart) -> Any:
    """The content of a user message."""
    return messages(PromptMessage(role="user", content=parts))[0]["content"]


def test_conversation() -> None:
    """System, user, assistant with a call, its result and a text take the forms of the protocol."""
    prompt = (
        PromptMessage(role="system", content="Be brief."),
        PromptMessage(role="user", content=(PromptText(text="Hi"),)),
        PromptMessage(
            role="assistant",
            content=(
                PromptText(text="Let me "),
                PromptText(text="see."),
                PromptToolCall(tool_call_id="a", tool_name="weather", input={"city": "Bern"}),
                PromptToolCall(tool_call_id="b", tool_name="weather"),
            ),
        ),
        PromptMessage(
            role="tool",
            content=(
                PromptToolResult(tool_call_id="a", tool_name="weather", kind="json", value={"celsius": 21}),
                PromptToolResult(tool_call_id="b", tool_name="weather", kind="error-text", value="no city"),
            ),
        ),
    )
    arguments = ['{"city":"Bern"}', "{}"]
    calls = [
        {"id": name, "type": "function", "function": {"name": "weather", "arguments": text}}
        for name, text in zip("ab", arguments, strict=True)
    ]
    assert messages(*prompt) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": '{"celsius":21}'},
        {"role": "tool", "tool_call_id": "b", "content": "no city"},
    ]


def test_call_without_text() -> None:
    """An assistant message that only calls has null as its content."""
    call = PromptToolCall(tool_call_id="a", tool_name="f", input={"on": date(2026, 1, 2)})
    made = messages(PromptMessage(role="assistant", content=(call,)))[0]
    assert made["content"] is None
    assert made["tool_calls"][0]["function"]["arguments"] == '{"on":"2026-01-02"}'


@pytest.mark.parametrize(
    ("media_type", "data", "part"),
    [
        ("image/png", "QUI=", {"type": "image_url", "image_url": {"url": PNG}}),
        ("image/*", "https://x.test/a.png", {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}),
        ("image/png", PNG, {"type": "image_url", "image_url": {"url": PNG}}),
        ("audio/mpeg", "QUI=", {"type": "input_audio", "input_audio": {"data": "QUI=", "format": "mp3"}}),
        ("text/csv", "QUI=", {"type": "file", "file": {"filename": "a.csv", "file_data": CSV}}),
        ("application/pdf", "file-6F2k_x-1", {"type": "file", "file": {"file_id": "file-6F2k_x-1"}}),
        ("image/*", "/9j/4AAQ", {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/4AAQ"}}),
    ],
)  # fmt: skip
def test_files(media_type: str, data: str, part: dict[str, Any]) -> None:
    """Images, audio and other files, as base64, data URL or URL, become content parts beside the text."""
    file = PromptFile(media_type=media_type, data=data, filename="a.csv")
    assert user(PromptText(text="See"), file) == [{"type": "text", "text": "See"}, part]


def test_options_of_a_part() -> None:
    """A part's options for this provider go with it, those for others do not."""
    cached = PromptText(text="long", provider_options={"acme": {"cache_control": 1}, "other": {"x": 1}})
    assert user(cached) == [{"type": "text", "text": "long", "cache_control": 1}]


def test_detail_of_an_image() -> None:
    """The one option of an image has its place inside; the message's own options are not touched."""
    options = {"acme": {"detail": "low", "x": 1}}
    file = PromptFile(media_type="image/png", data="QUI=", provider_options=options)
    assert user(file) == [{"type": "image_url", "image_url": {"url": PNG, "detail": "low"}, "x": 1}]
    assert options == {"acme": {"detail": "low", "x": 1}}


def test_what_goes_back_as_it_came() -> None:
    """OpenRouter's reasoning details and Google's signatures of calls return to the provider they came from."""
    details = [{"type": "reasoning.text", "text": "hm", "signature": "s"}]
    extra = {"google": {"thought_signature": "abc"}}
    parts = (
        PromptReasoning(text="hm", provider_options={"acme": {"reasoningDetails": details}}),
        PromptToolCall(tool_call_id="a", tool_name="f", provider_options={"acme": {"extraContent": extra}}),
    )
    prompt = (PromptMessage(role="assistant", content=parts),)
    made, warnings = build_body(ModelRequest(prompt=prompt), model_id="m", provider="acme")
    assert made["messages"][0]["reasoning_details"] == details
    assert made["messages"][0]["tool_calls"][0]["extra_content"] == extra
    assert warnings == []
    other, warnings = build_body(ModelRequest(prompt=prompt), model_id="m", provider="other")
    assert "reasoning_details" not in other["messages"][0]
    assert "extra_content" not in other["messages"][0]["tool_calls"][0]
    assert [warning["part"] for warning in warnings] == ["PromptReasoning"]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("max_tokens", "write max_output_tokens"),
        ("maxOutputTokens", "write max_output_tokens"),
        ("stop", "write stop_sequences"),
        ("topP", "write top_p"),
        ("top_k", "provider_options"),
    ],
)
def test_advice_for_unknown_settings(name: str, advice: str) -> None:
    """A setting that is not sent says what to write instead."""
    made, (warning,) = build_body(ModelRequest(prompt=(), settings={name: 1}), model_id="m", provider="acme")
    assert advice in warning["details"]
    assert name not in made


def test_what_the_protocol_cannot_say() -> None:
    """Reasoning, a model's own files and provider-executed calls are left out, each with a warning."""
    parts = (
        PromptReasoning(text="hm"),
        PromptFile(media_type="image/png", data="QUI="),
        PromptToolCall(tool_call_id="a", tool_name="search", provider_executed=True),
    )
    request = ModelRequest(prompt=(PromptMessage(role="assistant", content=parts),))
    made, warnings = build_body(request, model_id="m", provider="acme")
    assert made["messages"] == []
    assert [warning["part"] for warning in warnings] == ["PromptReasoning", "PromptFile", "PromptToolCall"]


def test_settings() -> None:
    """Settings get their names on the wire; None is not sent, unknown ones are warned of."""
    settings = {
        "temperature": 0,
        "top_p": 0.5,
        "max_output_tokens": 9,
        "stop_sequences": ["."],
        "seed": 1,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "max_retries": 3,
        "timeout": 5,
        "top_k": 4,
        "other": None,
    }
    made, warnings = build_body(ModelRequest(prompt=(), settings=settings), model_id="m", provider="acme")
    assert made == {
        "model": "m",
        "messages": [],
        "temperature": 0,
        "top_p": 0.5,
        "max_tokens": 9,
        "stop": ["."],
        "seed": 1,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert [(warning["type"], warning["setting"]) for warning in warnings] == [
        ("unsupported-setting", "top_k")
    ]


def test_dialects() -> None:
    """OpenAI's newer models want max_completion_tokens; Mistral knows random_seed and no stream_options."""
    settings = {"max_output_tokens": 9, "seed": 1}
    assert body("openai", settings=settings)["max_completion_tokens"] == 9
    mistral = body("mistral", settings=settings)
    assert mistral["random_seed"] == 1
    assert mistral.keys() & {"seed", "stream_options"} == set()


def test_provider_options() -> None:
    """This provider's options override the body, None removes a field, and streaming cannot be turned off."""
    options = {"acme": {"temperature": 1, "stream_options": None, "stream": False, "x": 2}, "other": {"y": 3}}
    made = body(provider_options=options, settings={"temperature": 0})
    assert made == {"model": "m", "messages": [], "temperature": 1, "stream": True, "x": 2}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", None),
        ("required", "required"),
        ({"type": "tool", "toolName": "weather"}, {"type": "function", "function": {"name": "weather"}}),
    ],
)
def test_tools(choice: Any, sent: Any) -> None:
    """Tools come with their schema, the choice among them in the protocol's words."""
    made = body(tools=(WEATHER,), tool_choice=choice)
    function = {"name": "weather", "description": "Of a city.", "parameters": WEATHER.parameters}
    assert made["tools"] == [{"type": "function", "function": function}]
    assert made.get("tool_choice") == sent
    assert "tool_choice" not in body(tool_choice=choice)


def test_unknown_tool_choice() -> None:
    """A tool_choice of no known form is the caller's mistake."""
    with pytest.raises(UsageError, match="perhaps"):
        body(tools=(WEATHER,), tool_choice="perhaps")


@pytest.mark.parametrize(
    ("extra", "strict"),
    [
        ({"additionalProperties": False, "required": ["a"]}, True),
        ({"additionalProperties": False}, False),
        ({"required": ["a"]}, False),
    ],
)
def test_structured_output(extra: dict[str, Any], strict: bool) -> None:
    """A JSON schema becomes the response format, strict where OpenAI would take it as such."""
    schema = {"title": "My Answer", "type": "object", "properties": {"a": {"type": "string"}}, **extra}
    assert body(structured_output=schema)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "My_Answer", "schema": schema, "strict": strict},
    }
