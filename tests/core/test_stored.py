"""Messages as stored rows: the reference's format 2, both ways (R3.6, R3.7; the shapes are the recorded ones)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from interlock.core.errors import UsageError
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
from interlock.core.prompt import build_prompt
from interlock.core.stored import message_from_row, message_to_row, part_from_row, part_to_row

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def invocation(state: str, **fields: Any) -> dict[str, Any]:
    """A tool-invocation's row."""
    extra = {key: fields.pop(key) for key in ("providerExecuted", "providerMetadata") if key in fields}
    called = {"state": state, "toolCallId": "c1", "toolName": "weather", "args": {"city": "X"}, **fields}
    return {"type": "tool-invocation", "toolInvocation": called, **extra}


RECORDED: list[tuple[str, dict[str, Any], type[Part]]] = [
    ("text", {"type": "text", "text": "AB"}, TextPart),
    ("empty text", {"type": "text", "text": ""}, TextPart),
    (
        "text with metadata",
        {"type": "text", "text": "AB", "providerMetadata": {"openai": {"itemId": "msg_1"}}},
        TextPart,
    ),
    (
        "reasoning",
        {
            "type": "reasoning",
            "reasoning": "thinking",
            "details": [{"type": "text", "text": "thinking"}],
            "providerMetadata": {"anthropic": {"signature": "SIG"}},
        },
        ReasoningPart,
    ),
    (
        "redacted reasoning",
        {
            "type": "reasoning",
            "reasoning": "",
            "details": [{"type": "redacted", "data": ""}],
            "providerMetadata": {"anthropic": {"redactedData": "RED"}},
        },
        ReasoningPart,
    ),
    (
        "empty reasoning",
        {"type": "reasoning", "reasoning": "", "details": [{"type": "text", "text": ""}]},
        ReasoningPart,
    ),
    ("result", invocation("result", result={"temp": 20}), ToolInvocationPart),
    ("result null", invocation("result", result=None), ToolInvocationPart),
    (
        "result with metadata",
        invocation("result", result=1, providerMetadata={"google": {"thoughtSignature": "TS"}}),
        ToolInvocationPart,
    ),
    ("open call", invocation("call"), ToolInvocationPart),
    ("partial call", invocation("partial-call"), ToolInvocationPart),
    ("error", invocation("output-error", errorText="kaput"), ToolInvocationPart),
    (
        "provider executed",
        invocation("result", result={"r": 1}, providerExecuted=True, providerMetadata={"p": {"x": 1}}),
        ToolInvocationPart,
    ),
    (
        "source",
        {"type": "source", "source": {"sourceType": "url", "id": "s1", "url": "http://e.x/", "title": "E"}},
        SourcePart,
    ),
    (
        "source with metadata",
        {"type": "source", "source": {"sourceType": "url", "id": "s", "url": "u", "providerMetadata": {"p": 1}}},
        SourcePart,
    ),
    ("file", {"type": "file", "data": "aGVsbG8=", "mimeType": "image/png"}, FilePart),
    (
        "named file",
        {"type": "file", "data": "data:;base64,QQ==", "mimeType": "application/pdf", "filename": "a.pdf"},
        FilePart,
    ),
    ("step-start", {"type": "step-start"}, StepStartPart),
    ("data", {"type": "data-progress", "data": {"pct": 50}}, DataPart),
    ("error part", {"type": "error", "error": {"name": "Error", "message": "midstream"}}, OtherPart),
    (
        "source-document",
        {"type": "source-document", "sourceId": "s2", "mediaType": "a/pdf", "title": "D", "filename": "f.pdf"},
        OtherPart,
    ),
    ("unknown", {"type": "hologram", "depth": [1, {"x": None}], "text": "t", "providerMetadata": {"p": 1}}, OtherPart),
]  # fmt: skip


@pytest.mark.parametrize(("row", "kind"), [case[1:] for case in RECORDED], ids=[case[0] for case in RECORDED])
def test_a_part_survives_reading_and_writing(row: dict[str, Any], kind: type[Part]) -> None:
    """R3.6: every recorded part is understood, and written as it was read; unknown parts survive untouched."""
    part = part_from_row(row)
    assert type(part) is kind
    assert part_to_row(part) == row


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        ({"type": "text", "text": "AB", "createdAt": 1796143302796}, "createdAt"),
        ({"type": "step-start", "createdAt": 1796143302796, "model": "mock-prov/mock-model"}, "model"),
        (invocation("output-denied", approval={"id": "c1", "approved": False, "reason": "nah"}), "approval"),
        (invocation("approval-requested", approval={"id": "c1"}), "approval"),
        (invocation("output-error", errorText="e", rawInput="{"), "rawInput"),
    ],
    ids=["createdAt", "model", "denied", "approval requested", "rawInput"],
)
def test_fields_of_the_reference_that_we_do_not_use_survive(row: dict[str, Any], kept: str) -> None:
    """The wire keeps the reference's shapes exactly, so that its clients and its stored threads keep working: what a
    stored part has beside what we read is not lost when it is written again.
    """
    written = part_to_row(part_from_row(row))
    assert kept in {**written, **written.get("toolInvocation", {})}
    assert written == row


@pytest.mark.parametrize(
    "state", ["output-denied", "approval-requested", "approval-responded", "from-the-future"]
)
def test_states_of_the_reference_that_we_do_not_know_harm_nobody(state: str) -> None:
    """R3.8: a stored thread with such a call still makes a prompt, without an unanswered call in it."""
    content = {"format": 2, "parts": [invocation(state), {"type": "text", "text": "a"}]}
    message = message_from_row({"id": "m", "role": "assistant", "content": content})
    prompt = build_prompt([], [message])
    assert [m.role for m in prompt][-1] in ("assistant", "tool")
    assert "a" in [m.text for m in prompt]


@pytest.mark.parametrize("retyped", ["data-hidden", "note", "reasoning-ish"])
@pytest.mark.parametrize(
    "part",
    [
        TextPart(text="t", provider_metadata={"p": 1}),
        ReasoningPart(text="t"),
        FilePart(mime_type="m", data="d"),
        SourcePart(source={"id": "s"}),
        ToolInvocationPart(tool_call_id="c", tool_name="n", args={}, state="result", result=1),
        DataPart(type="data-x", data=1),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_retyped_part_survives(part: Part, retyped: str) -> None:
    """R3.6: a part given another type in place is stored with its fields, and is read back to the same row."""
    part = part.replace(type=retyped)
    row = part_to_row(part)
    assert row["type"] == retyped
    original = {**part_to_row(part.replace(type="x")), "type": retyped}
    assert row == original
    assert part_to_row(part_from_row(row)) == row


# ------------------------------------------------------------------------------------------------------------ messages


def test_a_message_as_its_row() -> None:
    """R3.6: ``{id, role, createdAt, threadId?, resourceId?, content: {format: 2, parts, metadata?}}``."""
    message = Message(
        id="m1",
        role="assistant",
        created_at=AT,
        thread_id="th1",
        resource_id="r1",
        content=Content(parts=[TextPart(text="hi")], metadata={"modelId": "mock-model"}),
    )
    row = message_to_row(message)
    assert {key: row[key] for key in ("id", "role", "threadId", "resourceId")} == {
        "id": "m1",
        "role": "assistant",
        "threadId": "th1",
        "resourceId": "r1",
    }
    assert row["createdAt"] == AT
    assert row["content"]["format"] == 2
    assert row["content"]["parts"] == [{"type": "text", "text": "hi"}]
    assert row["content"]["metadata"] == {"modelId": "mock-model"}
    assert message_from_row(row) == message


def test_what_is_not_there_is_left_out() -> None:
    """R3.6: optional fields are absent, not null; hidden marks and block ids are never written."""
    message = Message(id="m", role="user", content=Content(parts=[TextPart(text="hi", id="text-1")]))
    row = message_to_row(message)
    assert "threadId" not in row
    assert "resourceId" not in row
    assert set(row["content"]) <= {"format", "parts", "content"}
    assert row["content"]["parts"] == [{"type": "text", "text": "hi"}]


@pytest.mark.parametrize(
    "given", ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00", int(AT.timestamp() * 1000), AT]
)
def test_times_are_read_in_every_form_they_are_stored_in(given: Any) -> None:
    """R3.6: ISO text, epoch milliseconds and dates."""
    row = {"id": "m", "role": "user", "createdAt": given, "content": {"format": 2, "parts": []}}
    assert message_from_row(row).created_at == AT


@pytest.mark.parametrize("odd", [1.0, {"a": 1}, ["x"], False])
def test_a_fallback_that_is_no_text_is_kept_and_not_read(odd: Any) -> None:
    """R3.6, R3.7: a row of another program may have anything there; it is no text, and survives."""
    row = {"id": "m", "role": "system", "content": {"format": 2, "parts": [], "content": odd}}
    message = message_from_row(row)
    assert message.text == ""
    assert message_to_row(message)["content"]["content"] == odd


def test_an_old_row_keeps_its_fallback() -> None:
    """R3.6, R3.7: a row with no parts has only its flattened text; it is read and kept."""
    row = {"id": "m", "role": "assistant", "content": {"format": 2, "parts": [], "content": "old"}}
    message = message_from_row(row)
    assert message.text == "old"
    assert message_to_row(message)["content"]["content"] == "old"


def test_the_parts_are_the_truth() -> None:
    """R3.6, R0.3: where parts are, their flattened copies neither speak nor outlive an edit of the parts."""
    row = {
        "id": "m",
        "role": "assistant",
        "content": {
            "format": 2,
            "parts": [{"type": "text", "text": "secret"}],
            "content": "secret",
            "reasoning": "secret",
            "toolInvocations": [{"args": "secret"}],
        },
    }
    message = message_from_row(row)
    assert message.text == "secret"
    message.content.parts[0].text = "[GONE]"  # type: ignore[attr-defined]
    assert message.text == "[GONE]"
    assert "secret" not in str(message_to_row(message))


def test_removing_the_last_text_does_not_bring_the_fallback_back() -> None:
    """R0.3, R3.7: a guard that removes every text part has removed the text."""
    row = {
        "id": "m",
        "role": "user",
        "content": {"format": 2, "parts": [{"type": "text", "text": "s"}], "content": "s"},
    }
    message = message_from_row(row)
    message.content.parts.clear()
    assert message.text == ""


def test_unknown_fields_of_the_content_survive() -> None:
    """R3.6: ``experimental_attachments``, ``annotations`` and what else a row may have are kept."""
    content = {
        "format": 2,
        "parts": [{"type": "text", "text": "hi"}],
        "experimental_attachments": [{"url": "data:image/png;base64,QQ==", "contentType": "image/png"}],
        "annotations": [1],
    }
    written = message_to_row(message_from_row({"id": "m", "role": "user", "content": content}))["content"]
    assert {key: written[key] for key in content} == content


def test_a_row_is_json() -> None:
    """R3.6: a row can be encoded and read back, dates aside."""
    content = {"format": 2, "parts": [case[1] for case in RECORDED]}
    message = message_from_row({"id": "m", "role": "assistant", "createdAt": AT, "content": content})
    again = message_from_row(msgspec.json.decode(msgspec.json.encode(message_to_row(message))))
    assert again == message


def test_reading_shares_nothing_with_the_row() -> None:
    """R3.5: an edit of what was read does not reach the stored row."""
    row = {
        "id": "m",
        "role": "assistant",
        "content": {
            "format": 2,
            "metadata": {"a": 1},
            "parts": [{"type": "source", "source": {"id": "s", "title": "t"}}],
        },
    }
    message = message_from_row(row)
    part = message.content.parts[0]
    assert isinstance(part, SourcePart)
    part.source["title"] = "edited"
    assert message.content.metadata is not None
    message.content.metadata["a"] = 2
    assert row["content"]["parts"][0]["source"]["title"] == "t"  # type: ignore[index]
    assert row["content"]["metadata"] == {"a": 1}  # type: ignore[index]


@pytest.mark.parametrize("content", ["text", None, ["x"], 5])
def test_a_content_that_is_no_object_is_refused(content: Any) -> None:
    """R3.6: never a bare string."""
    with pytest.raises(UsageError, match="content"):
        message_from_row({"id": "m", "role": "user", "content": content})


@pytest.mark.parametrize("part", ["text", None, {}, {"type": 5}, {"text": "x"}])
def test_a_part_without_a_type_is_refused(part: Any) -> None:
    """R3.6, R11: told, without showing what it holds."""
    with pytest.raises(UsageError, match="type"):
        part_from_row(part)


def test_a_date_that_is_none_is_refused() -> None:
    """R11: the error names the field."""
    with pytest.raises(UsageError, match="createdAt"):
        message_from_row(
            {"id": "m", "role": "user", "createdAt": "yesterday", "content": {"format": 2, "parts": []}}
        )
