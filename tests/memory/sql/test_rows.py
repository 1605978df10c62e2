"""Rows as messages and threads: old ones, corrupt ones, and whatever can be said (R3.6)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import StorageError
from interlock.core.messages import Content, Message, TextPart
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
