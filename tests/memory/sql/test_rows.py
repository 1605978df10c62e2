"""Rows as messages and threads: old ones, corrupt ones, and whatever can be said (R3.6)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import StorageError
from interlock.core.messages import Content, Message, TextPart
from interlock.core.model import PromptToolCall, PromptToolResult
from interlock.core.prompt import build_prompt
from interlock.memory.sql.rows import decoded, encoded, message_of, message_values, thread_of

AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
ROW: dict[str, Any] = {
    "id": "m",
    "thread_id": "t",
    "content": '{"format":2,"parts":[{"type":"text","text":"hi"}]}',
    "role": "user",
    "type": "v2",
    "createdAt": AT,
    "resourceId": "r",
}


@given(st.text(st.characters()))
def test_every_text_comes_back(text: str) -> None:
    """R0.1: what was shown is what is stored: also NUL and half a surrogate pair, which some databases refuse raw."""
    message = Message(id="m", role="user", content=Content(parts=[TextPart(text=text)]), created_at=AT)
    values = message_values(message, "t", "r", AT)
    assert "\0" not in values["content"]
    values["content"].encode()
    assert message_of(values) == message.replace(thread_id="t", resource_id="r")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_every_json_value_comes_back(value: Any) -> None:
    """Arguments and results of tools, numbers beyond 64 bits included."""
    assert decoded(encoded(value)) == value


@pytest.mark.parametrize(
    ("content", "kind", "text"),
    [
        ("plain words", "text", "plain words"),
        ("12", "text", "12"),
        ('[{"type":"text","text":"hi"}]', "text", "hi"),
        ('{"format":2,"parts":[],"content":"old"}', "v2", "old"),
        ('{"format":2,"content":"old"}', "v2", "old"),
    ],
)
def test_old_rows_are_read(content: str, kind: str, text: str) -> None:
    """R3.6, R3.7: bare text, a list of parts, and the flattened fallback."""
    assert message_of({**ROW, "content": content, "type": kind}).text == text


@pytest.mark.parametrize(
    "broken",
    [
        {"content": '{"format":2,"par'},
        {"content": "12"},
        {"content": '{"format":2,"parts":[7]}'},
        {"content": '{"format":2,"parts":7}'},
        {"createdAt": "yesterday"},
    ],
)
def test_a_corrupt_row_is_told_with_its_id(broken: dict[str, Any]) -> None:
    """R8: the error names message and thread, and what to do; it does not repeat what was said."""
    with pytest.raises(StorageError, match=r"message 'm' of thread 't' is corrupt.*delete_messages"):
        message_of({**ROW, **broken})


ODD = JSON | st.sampled_from(["c1", "c2", "call", "result", "partial-call", "output-error", "output-denied"])
"""A value where some version of some program may have put one."""
PARTS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["text", "reasoning", "file", "source", "step-start", "data-x", "from-the-future"]
        )
    },
    optional=dict.fromkeys(
        ("text", "data", "mimeType", "source", "reasoning", "details", "toolInvocation"), ODD
    ),
) | st.fixed_dictionaries(
    {
        "type": st.just("tool-invocation"),
        "toolInvocation": st.fixed_dictionaries(
            {
                "state": st.sampled_from(
                    ["call", "result", "partial-call", "output-error", "output-denied", "new"]
                ),
                "toolCallId": st.sampled_from(["c1", "c2"]),
                "toolName": st.just("look"),
            },
            optional=dict.fromkeys(("args", "result", "errorText"), ODD),
        ),
    }
)
CONTENTS = st.fixed_dictionaries(
    {"format": st.just(2), "parts": st.lists(PARTS, max_size=4)},
    optional=dict.fromkeys(("content", "metadata", "toolInvocations", "new"), ODD),
)
STORED = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "system", "tool", "signal"]), CONTENTS), max_size=5
)


@given(STORED)
def test_the_prompt_of_any_stored_state_is_well_formed(stored: list[tuple[str, Any]]) -> None:
    """R3.8: dangling calls, orphans, unknown parts and roles: each call has one result right after it, nothing else
    has one, and no prompt begins with the assistant. What cannot be read at all is a StorageError.
    """
    try:
        messages = [
            message_of({**ROW, "id": str(n), "role": role, "content": encoded(content)})
            for n, (role, content) in enumerate(stored)
        ]
    except StorageError:
        return
    prompt = build_prompt([], messages)
    spoken = [message for message in prompt if message.role != "system"]
    assert not spoken or spoken[0].role == "user"
    waiting: list[str] = []
    for message in prompt:
        parts = () if isinstance(message.content, str) else message.content
        assert sorted(p.tool_call_id for p in parts if isinstance(p, PromptToolResult)) == sorted(waiting)
        waiting = [p.tool_call_id for p in parts if isinstance(p, PromptToolCall)]
    assert waiting == []


@given(CONTENTS)
def test_unknown_fields_and_parts_survive(content: dict[str, Any]) -> None:
    """R3.6: reading a row and writing it again loses no part, and none of a type from a newer version is changed."""
    try:
        message = message_of({**ROW, "content": encoded(content)})
    except StorageError:
        return
    again = decoded(message_values(message, "t", "r", AT)["content"])
    assert [part["type"] for part in again["parts"]] == [part["type"] for part in content["parts"]]
    future = [part for part in content["parts"] if part["type"] == "from-the-future"]
    assert [part for part in again["parts"] if part["type"] == "from-the-future"] == future


THREAD: dict[str, Any] = {
    "id": "t", "resourceId": "r", "title": "T", "metadata": None, "createdAt": AT, "updatedAt": AT,
}  # fmt: skip


@pytest.mark.parametrize(
    ("stored", "metadata"),
    [
        (None, {}),
        ('{"z":1}', {"z": 1}),
        ({"z": 1}, {"z": 1}),
        (bytes.fromhex("4c177a1331"), {"z": 1}),
    ],
)
def test_metadata_in_every_form_the_reference_has(stored: Any, metadata: Any) -> None:
    """JSON text, an object, SQLite's binary JSON; PostgreSQL may have JSON in JSON."""
    assert thread_of({**THREAD, "metadata": stored}).metadata == metadata


@pytest.mark.parametrize(
    "broken", [{"metadata": "{"}, {"metadata": "7"}, {"metadata": b"\xff"}, {"createdAt": "x"}]
)
def test_a_corrupt_thread_is_told_with_its_id(broken: dict[str, Any]) -> None:
    """R8: the error names the thread."""
    with pytest.raises(StorageError, match="thread 't'"):
        thread_of({**THREAD, **broken})
