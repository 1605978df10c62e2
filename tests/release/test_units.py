"""Cutting a growing text into units (R0.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.release.units import UnitCutter, UnitKind

TEXTS = st.text(alphabet="ab.!?。」\"') \n\r\t…*é", max_size=40)
KINDS = st.sampled_from(["word", "sentence", "answer", 1, 3, 7])


def units(kind: UnitKind, *pieces: str) -> list[str]:
    """The units of a text that comes in these pieces."""
    cutter = UnitCutter(kind)
    out = [unit for piece in pieces for unit in cutter.feed(piece)]
    return out + cutter.feed("", final=True)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("sentence", "One. Two! Three", ["One. ", "Two! ", "Three"]),
        ("sentence", 'He said "no." Then 3.14?) Yes', ['He said "no." ', "Then 3.14?) ", "Yes"]),
        ("sentence", "Wait... what?! Oh", ["Wait... ", "what?! ", "Oh"]),
        ("sentence", "no full stop\n\n- item\n- item", ["no full stop\n\n", "- item\n- item"]),
        ("sentence", "你好。「是的！」对", ["你好。", "「是的！」", "对"]),  # noqa: RUF001
        ("sentence", "  \n\n Hi. ", ["  \n\n Hi. "]),
        ("sentence", "", []),
        ("sentence", " \n\n ", [" \n\n "]),
        ("word", " one  two\nthree", [" one  ", "two\n", "three"]),
        ("word", "a.b c. d", ["a.b ", "c. ", "d"]),
        (4, "123456789", ["1234", "5678", "9"]),
        ("answer", "One. Two.", ["One. Two."]),
    ],
)
def test_units(kind: UnitKind, text: str, expected: list[str]) -> None:
    """What the units of a text are."""
    assert units(kind, text) == expected


@given(text=TEXTS, kind=KINDS, data=st.data())
def test_the_units_are_the_same_for_any_cut(text: str, kind: UnitKind, data: st.DataObject) -> None:
    """However a text comes, its units are the same; joined, they are the text; none is empty. R0.2."""
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    whole = units(kind, text)
    assert units(kind, *pieces) == whole
    assert units(kind, *text) == whole
    assert "".join(whole) == text
    assert "" not in whole


def test_a_unit_is_given_when_the_next_begins() -> None:
    """A sentence is complete with the first character behind its white space, a window with its last one."""
    cutter = UnitCutter("sentence")
    assert cutter.feed("One.") == []
    assert cutter.feed(" \n") == []
    assert cutter.held == 6
    assert cutter.feed("T") == ["One. \n"]
    assert cutter.held == 1
    assert UnitCutter(3).feed("abc") == ["abc"]


def test_what_is_held_can_be_taken() -> None:
    """The rest of the unit follows when it is complete."""
    cutter = UnitCutter("sentence")
    cutter.feed("a very long sen")
    assert cutter.take_held() == "a very long sen"
    assert cutter.held == 0
    assert cutter.feed("tence. Next") == ["tence. "]
    assert cutter.feed("", final=True) == ["Next"]


@pytest.mark.parametrize("kind", ["word", "sentence", "answer", 5])
def test_a_long_text_in_small_pieces_takes_linear_time(kind: UnitKind) -> None:
    """A hundred thousand pieces, the worst of them for the cutter, are no trouble."""
    assert "".join(units(kind, *[".", " "] * 50_000)) == ". " * 50_000
    assert "".join(units(kind, *["."] * 100_000)) == "." * 100_000
