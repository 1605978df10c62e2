"""Messages and their parts as values (R3.6, R3.7)."""

from __future__ import annotations

import pytest

from interlock.core.messages import Content, Mark, Message, Part, ReasoningPart, TextPart


def message(*parts: Part, content: str | None = None) -> Message:
    """A message of these parts."""
    return Message(id="m", role="assistant", content=Content(parts=list(parts), content=content))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (message(TextPart(text="a"), ReasoningPart(text="no"), TextPart(text="b")), "ab"),
        (message(content="old"), "old"),
        (message(TextPart(text="a"), content="old"), "a"),
        (message(TextPart(text="hidden", type="data-hidden"), TextPart(text="b")), "b"),
        (message(), ""),
    ],
    ids=["joined", "fallback", "parts before the fallback", "retyped", "nothing"],
)
def test_text(given: Message, text: str) -> None:
    """R3.7: the text parts joined, else the fallback; R3.6: a part given another type is no text any more."""
    assert given.text == text


def test_a_mark_is_no_part_of_a_parts_value() -> None:
    """Rule of the ledger: marks are hidden; parts of the same fields and class are equal, others are not."""
    assert TextPart(text="a", mark=Mark(0, 1)) == TextPart(text="a")
    assert TextPart(text="a") != TextPart(text="b")
    assert TextPart(text="a") != ReasoningPart(text="a")


def test_a_part_takes_another_type_in_place() -> None:
    """R3.6: in place, and by replace."""
    part = TextPart(text="a")
    part.type = "data-hidden"
    assert part == TextPart(text="a").replace(type="data-hidden")
