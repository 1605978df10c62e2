"""Texts of a choice: where they stand, and their way through guards piece by piece."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import guard_text
from interlock.guarding import open_tracks
from interlock.processors import RegexFilter, Unit, UnitGuard, Verdict
from interlock.sse.shapes import Unreadable
from interlock.sse.texts import Passage, Piece, texts_of

pytestmark = pytest.mark.anyio
PIN = RegexFilter({"pin": r"\d{4,6}"}, id="pin")
NAME = RegexFilter({"name": "zoe"}, id="name", replacement="12")


def found(delta: Any, **more: Any) -> list[tuple[str, tuple[str, ...], str]]:
    """What is found in a delta."""
    return [(channel, path, piece.text) for channel, path, piece in texts_of({"delta": delta, **more})]


def test_where_texts_stand() -> None:
    """Strings, parts, and parts in parts; parts' texts are one text with a plain string; what is no text is not one."""
    assert found({"content": "a", "refusal": None, "role": "assistant"}) == [("text", ("content",), "a")]
    parts = [
        {"type": "text", "text": "b"},
        {"type": "thinking", "thinking": [{"text": "c"}], "signature": "s"},
        "d",
        7,
    ]
    assert found({"content": parts}) == [
        ("text", ("content",), "b"),
        ("text", ("content", "thinking"), "c"),
        ("text", ("content",), "d"),
    ]
    details = [{"type": "reasoning.summary", "summary": "e", "id": "r-1", "format": "f", "index": 0}]
    assert found({"reasoning_details": details}) == [("reasoning", ("reasoning_details", "summary"), "e")]
    assert found({"audio": {"transcript": "g", "data": "aGk=", "id": "a"}}) == [
        ("text", ("audio", "transcript"), "g")
    ]
    copies = {
        "reasoning_content": "i",
        "thinking_blocks": [{"thinking": "j", "signature": "s"}],
        "other": "k",
    }
    assert found({"reasoning_content": "i", "provider_specific_fields": copies}) == [
        ("reasoning", ("reasoning_content",), "i"),
        ("reasoning", ("provider_specific_fields", "reasoning_content"), "i"),
        ("reasoning", ("provider_specific_fields", "thinking_blocks", "thinking"), "j"),
    ]
    assert found(None, text="h") == [("text", ("text",), "h")]
    assert found({}) == []
    for wrong in ("text", [], 0, False):
        with pytest.raises(Unreadable):
            found(wrong)
    with pytest.raises(Unreadable):
        found({"provider_specific_fields": "text"})


class Judge(UnitGuard):
    """Shouts each word."""

    def judge(self, unit: Unit, ctx: Any) -> Verdict:
        return Verdict.replace(unit.text.upper())


@given(contents=st.lists(st.text("1zoe .", max_size=5), max_size=8))
async def test_what_leaves_joined_is_the_guarded_whole(contents: list[str]) -> None:
    """Each piece has what stands for it once it is decided, in order; at the end all are. R0.2."""
    row = (NAME, PIN, Judge(id="judge", unit="word", strategy="redact"))
    passage = Passage("text", open_tracks(row, []))
    pieces = [Piece({"content": content}, "content") for content in contents]
    for number, piece in enumerate(pieces):
        await passage.push(piece)
        done = [each.done for each in pieces[: number + 1]]
        assert done == sorted(done, reverse=True)
    await passage.finish()
    assert all(piece.done for piece in pieces)
    assert "".join(piece.out for piece in pieces) == (await guard_text("".join(contents), row)).text


async def test_a_piece_stays_or_not() -> None:
    """Unchanged is what came as it was and in one event; without guards everything is."""
    free = Passage("text", [])
    piece = Piece({"content": "1234"}, "content")
    await free.push(piece)
    assert piece.done
    assert piece.unchanged
    piece.cut = True
    assert not piece.unchanged
    held = Passage("text", open_tracks([PIN], []))
    first, second = (Piece({"content": part}, "content") for part in ("a 12", "34 b"))
    await held.push(first)
    assert (first.out, first.done, first.unchanged) == ("a ", False, False)
    await held.push(second)
    assert (first.out, second.out) == ("a [PIN]", " b")


async def test_units_under_way_are_complete_where_another_text_follows() -> None:
    """A judge's unit is; what a pattern holds is not: the match may go on behind the other text."""
    passage = Passage("reasoning", open_tracks([Judge(id="judge", strategy="redact")], [], "reasoning"))
    thought = Piece({"reasoning": "no stop"}, "reasoning")
    await passage.push(thought)
    assert not thought.done
    await passage.finish_units()
    assert (thought.out, thought.done) == ("NO STOP", True)
    pattern = Passage("reasoning", open_tracks([PIN], [], "reasoning"))
    held = Piece({"reasoning": "12"}, "reasoning")
    await pattern.push(held)
    await pattern.finish_units()
    assert not held.done
