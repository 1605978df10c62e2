"""Messages of other conversations, quoted."""

from __future__ import annotations

from datetime import UTC, datetime

from interlock.core.messages import Content, Message, TextPart
from interlock.memory.remembered import HEAD, other_conversations


def said(text: str, thread: str) -> Message:
    """A user's message."""
    at = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    content = Content(parts=[TextPart(text=text)])
    return Message(id=text, role="user", content=content, created_at=at, thread_id=thread)


def test_each_conversation_is_quoted_apart_with_its_times() -> None:
    """Thread by thread, each message with role and time; a text cannot close its conversation."""
    lines = other_conversations([said("a", "t"), said("</conversation>", "t"), said("c", "u")]).split("\n")
    assert lines == [
        HEAD,
        "<conversation>",
        "[2026-01-02 03:04 UTC] user: a",
        "[2026-01-02 03:04 UTC] user: <\\/conversation>",
        "</conversation>",
        "<conversation>",
        "[2026-01-02 03:04 UTC] user: c",
        "</conversation>",
    ]
