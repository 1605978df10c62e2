"""Messages as chat clients and as prompts have them: the recorded forms (R3.2)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from interlock.core.forms import core_message, ui_message, ui_part
from interlock.core.messages import (
    Content,
    DataPart,
    FilePart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolInvocationPart,
)
from interlock.core.prompt import build_messages
from interlock.core.stored import part_from_row

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def call(state: Any, **fields: Any) -> ToolInvocationPart:
    """A tool invocation."""
    return ToolInvocationPart(
        tool_call_id="c1", tool_name="weather", args={"city": "X"}, state=state, **fields
    )


CALLED = {"type": "tool-weather", "toolCallId": "c1", "input": {"city": "X"}}


@pytest.mark.parametrize(
    ("part", "form"),
    [
        (TextPart(text="AB"), {"type": "text", "text": "AB"}),
        (
            TextPart(text="AB", provider_metadata={"openai": {"itemId": "m"}}),
            {"type": "text", "text": "AB", "providerMetadata": {"openai": {"itemId": "m"}}},
        ),
        (
            ReasoningPart(text="thinking", provider_metadata={"a": {"signature": "S"}}),
            {
                "type": "reasoning",
                "text": "thinking",
                "state": "done",
                "providerMetadata": {"a": {"signature": "S"}},
            },
        ),
        (
            call("result", result={"temp": 20}),
            {**CALLED, "state": "output-available", "output": {"temp": 20}},
        ),
        (call("result", result=None), {**CALLED, "state": "output-available", "output": None}),
        (
            call("result", result=1, provider_executed=True, provider_metadata={"g": 1}),
            {
                **CALLED,
                "state": "output-available",
                "output": 1,
                "providerExecuted": True,
                "callProviderMetadata": {"g": 1},
            },
        ),
        (call("output-error", error_text="kaput"), {**CALLED, "state": "output-error", "errorText": "kaput"}),
        (call("call"), {**CALLED, "state": "input-available"}),
        (
            SourcePart(source={"sourceType": "url", "id": "s1", "url": "http://e.x/", "title": "E"}),
            {"type": "source-url", "url": "http://e.x/", "sourceId": "s1", "title": "E"},
        ),
        (
            FilePart(mime_type="image/png", data="aGVsbG8="),
            {"type": "file", "url": "data:image/png;base64,aGVsbG8=", "mediaType": "image/png"},
        ),
        (
            FilePart(mime_type="image/png", data="data:image/png;base64,QQ==", filename="a.png"),
            {
                "type": "file",
                "url": "data:image/png;base64,QQ==",
                "mediaType": "image/png",
                "filename": "a.png",
            },
        ),
        (
            FilePart(mime_type="image/png", data="https://e.x/a.png"),
            {"type": "file", "url": "https://e.x/a.png", "mediaType": "image/png"},
        ),
        (DataPart(type="data-progress", data={"pct": 50}), {"type": "data-progress", "data": {"pct": 50}}),
        (StepStartPart(), {"type": "step-start"}),
        (
            OtherPart(type="error", fields={"error": {"name": "Error", "message": "m"}}),
            {"type": "error", "error": {"name": "Error", "message": "m"}},
        ),
    ],
    ids=lambda value: f"{type(value).__name__} {value.type}" if isinstance(value, Part) else "",
)
def test_a_part_as_clients_keep_it(part: Part, form: dict[str, Any]) -> None:
    """R3.2: each part in the recorded UI form, no field more or less."""
    assert ui_part(part) == form


@pytest.mark.parametrize(
    "state", ["partial-call", "output-denied", "approval-requested", "approval-responded"]
)
def test_every_stored_state_has_a_ui_form(state: str) -> None:
    """R3.2: the reference's stored threads keep working: none of its states is too much for the view."""
    row = {
        "type": "tool-invocation",
        "toolInvocation": {"state": state, "toolCallId": "c1", "toolName": "weather", "args": {"city": "X"}},
    }
    form = ui_part(part_from_row(row))
    assert form["type"] == "tool-weather"
    assert form["input"] == {"city": "X"}


@pytest.mark.parametrize(
    "part",
    [
        TextPart(text="t", type="data-hidden"),
        ReasoningPart(text="t", type="data-hidden"),
        FilePart(mime_type="m", data="d", type="data-hidden"),
        DataPart(type="data-hidden", data=1),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_retyped_part_shows_its_new_type(part: Part) -> None:
    """R3.6: a part given another type in place is what it now says it is: not a text, not a file."""
    assert ui_part(part)["type"] == "data-hidden"


def test_a_message_as_clients_keep_it() -> None:
    """R3.2: ``{id, role, parts, metadata}``, with the message's own metadata and where and when it belongs."""
    message = Message(
        id="m1",
        role="assistant",
        content=Content(parts=[TextPart(text="hi")], metadata={"modelId": "mock"}),
        created_at=AT,
        thread_id="th1",
        resource_id="r1",
    )
    form = ui_message(message)
    assert (form["id"], form["role"]) == ("m1", "assistant")
    assert form["parts"] == [{"type": "text", "text": "hi"}]
    metadata = dict(form["metadata"])
    created = metadata.pop("createdAt")
    assert created in (AT, "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z")
    assert metadata == {"modelId": "mock", "threadId": "th1", "resourceId": "r1"}


def test_an_old_message_without_parts_shows_its_text() -> None:
    """R3.7: the fallback is shown where there are no parts."""
    form = ui_message(Message(id="m", role="assistant", content=Content(content="old")))
    assert form["parts"] == [{"type": "text", "text": "old"}]


def test_the_prompt_form() -> None:
    """R3.2: role and content, calls with ``input``, results with ``output`` in a tool message, one answer per step."""
    messages = [
        Message(id="u", role="user", content=Content(parts=[TextPart(text="hi"), FilePart(mime_type="m", data="d")])),
        Message(
            id="a",
            role="assistant",
            content=Content(
                parts=[
                    ReasoningPart(text="hm", provider_metadata={"a": {"signature": "S"}}),
                    TextPart(text="Let me"),
                    call("result", result={"temp": 20}),
                    SourcePart(source={"id": "s"}),
                    DataPart(type="data-x", data=1),
                    StepStartPart(),
                    TextPart(text="It is 20"),
                ]
            ),
        ),
    ]  # fmt: skip
    assert [core_message(message) for message in build_messages(messages)] == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "hi"}, {"type": "file", "mediaType": "m", "data": "d"}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "text": "hm", "providerOptions": {"a": {"signature": "S"}}},
                {"type": "text", "text": "Let me"},
                {"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": {"city": "X"}},
            ],
        },
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c1",
                    "toolName": "weather",
                    "output": {"type": "json", "value": {"temp": 20}},
                }
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "It is 20"}]},
    ]


@pytest.mark.parametrize(
    ("part", "output"),
    [
        (call("result", result="warm"), {"type": "text", "value": "warm"}),
        (call("result", result=[1]), {"type": "json", "value": [1]}),
        (call("output-error", error_text="kaput"), {"type": "error-text", "value": "kaput"}),
    ],
)
def test_outputs_in_the_prompt_form(part: Part, output: dict[str, Any]) -> None:
    """R3.2: text for strings, json for the rest, error-text for a failed call."""
    (_, result) = build_messages([Message(id="a", role="assistant", content=Content(parts=[part]))])
    assert core_message(result)["content"][0]["output"] == output
