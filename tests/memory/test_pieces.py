"""Texts in pieces that an embedding model can read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlock.core.messages import Content, Message, ReasoningPart, TextPart, ToolInvocationPart
from interlock.memory.pieces import LONGEST, MOST, pieces, pieces_of, query_of


@given(st.lists(st.sampled_from(["word ", "long" * 700, ". ", "\n\n", "\u3002"]), max_size=60).map("".join))
def test_nothing_but_space_is_lost(text: str) -> None:
    """All characters are in some piece, in order, and no piece is too long or empty."""
    found = pieces(text)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(0 < len(piece) <= LONGEST for piece in found)


def test_a_piece_ends_where_a_sentence_does() -> None:
    """A cut falls on a paragraph, a sentence or a word, where there is one in the second half."""
    assert pieces("a" * 1000 + ". " + "b" * 500) == ["a" * 1000 + ".", "b" * 500]


def test_only_text_is_searched_and_not_without_end() -> None:
    """Reasoning, calls and results are no part of what is embedded; a huge message has a bounded number of pieces."""
    parts = [
        ReasoningPart(text="hm"),
        ToolInvocationPart(tool_call_id="c", tool_name="t"),
        TextPart(text="said"),
    ]
    assert pieces_of(Message(id="m", role="assistant", content=Content(parts=list(parts)))) == ["said"]
    huge = Message(id="m", role="user", content=Content(parts=[TextPart(text="x " * LONGEST * MOST)]))
    assert len(pieces_of(huge)) == MOST


def test_a_long_question_is_its_beginning_and_its_end() -> None:
    """What is searched with fits the model too."""
    query = query_of("begin" + "x" * 5000 + "end")
    assert query.startswith("begin")
    assert query.endswith("end")
    assert len(query) <= LONGEST + 1
