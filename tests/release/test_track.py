"""A text on its way through a guard: what was fed, what is decided, what is handed out."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.errors import InterlockError
from interlock.release.pattern import ExactPattern
from interlock.release.scanner import Rule, Span, TextScanner
from interlock.release.track import Track, through

PATTERN = r"b+c|\bd+\b"
TEXTS = st.lists(st.text("abcd ", max_size=5), max_size=6)


def scanner(pattern: str = PATTERN, timeout: float = 1.0) -> TextScanner:
    return TextScanner([Rule(pattern=ExactPattern("r", pattern, timeout=timeout))])


class Notes:
    """What a track told."""

    def __init__(self, stands: str = "#") -> None:
        self.stands = stands
        self.spans: list[tuple[int, int, str]] = []
        self.problems: list[InterlockError] = []

    def replace(self, span: Span, removed: str) -> str:
        self.spans.append((span.start, span.end, removed))
        return self.stands


def track(notes: Notes, pattern: str = PATTERN, timeout: float = 1.0) -> Track:
    return Track(scanner(pattern, timeout), notes.replace, notes.problems.append)


@given(pieces=TEXTS, stands=st.sampled_from(["", "#", "<name>", "bc"]))
def test_the_joined_pieces_are_the_replaced_whole(pieces: list[str], stands: str) -> None:
    """However a text is cut, what is taken as it is decided, joined, is the whole text with its spans replaced;
    each span is told once, in order, with its place in the whole text and what stood there.

    R0.2.
    """
    notes = Notes(stands)
    one = track(notes)
    out: list[str] = []
    for piece in pieces:
        one.feed(piece)
        out.append(one.take_all())
    one.feed("", final=True)
    out.append(one.take_all())
    whole = "".join(pieces)
    assert "".join(out) == regex.sub(PATTERN, stands, whole)
    assert notes.spans == [(m.start(), m.end(), m[0]) for m in regex.finditer(PATTERN, whole)]


@given(pieces=TEXTS, stands=st.sampled_from(["", "#", "<name>"]), lengths=st.lists(st.integers(0, 4)))
def test_taking_in_any_lengths_gives_the_same(pieces: list[str], stands: str, lengths: list[int]) -> None:
    """What is handed out for lengths of any size, joined, is what take_all gives; the taken characters are those
    that came in, and a replacement leaves whole, with the first character of its span.

    R0.2.
    """
    whole = "".join(pieces)
    one = track(Notes(stands))
    for piece in pieces:
        one.feed(piece)
    one.feed("", final=True)
    out: list[str] = []
    left = len(whole)
    for length in [*lengths, left]:
        taken, text = one.take(length)
        assert taken == min(length, left)
        left -= taken
        out.append(text)
    assert left == 0
    assert "".join(out) == regex.sub(PATTERN, stands, whole)
    assert one.take(5) == (0, "")


@given(pieces=TEXTS)
def test_through_gives_each_text_its_part(pieces: list[str]) -> None:
    """Texts that are one text together keep their number; joined they are the replaced whole. R0.4."""
    done = through(track(Notes()), pieces)
    assert len(done) == len(pieces)
    assert "".join(done) == regex.sub(PATTERN, "#", "".join(pieces))


def test_a_span_over_several_texts_stands_in_the_first_of_them() -> None:
    """The replacement stands where the span began; of the other texts only what is outside is left. R0.2."""
    assert through(track(Notes()), ["ab", "b", "", "bca"]) == ["a#", "", "", "a"]


def test_only_what_is_decided_is_handed_out() -> None:
    """A beginning of a match waits; what is in front of it does not. R4.6."""
    one = track(Notes())
    one.feed("aab")
    assert one.take(3) == (2, "aa")
    assert one.take(1) == (0, "")
    one.feed("b")
    assert one.take_all() == ""
    one.feed("ca")
    assert one.take_all() == "#a"


def test_a_callback_that_raises_stops_everything() -> None:
    """A block: nothing from the span on is ever handed out. R0.3, R5.1."""

    def refuse(span: Span, removed: str) -> str:
        raise KeyError("blocked")

    one = Track(scanner(), refuse, lambda problem: None)
    one.feed("aa b")
    assert one.take_all() == "aa "
    with pytest.raises(KeyError):
        one.feed("bc and more")
    assert one.take_all() == ""


@given(cuts=st.integers(1, 80), before=st.sampled_from(["", "x ", "bc "]))
def test_a_failed_check_lets_everything_go_on_unchecked_and_in_order(cuts: int, before: str) -> None:
    """When the check fails and ``failed`` returns, what waited and all that comes goes on unchanged; it is told
    once. What was decided before stays as it was decided.

    R5.4.
    """
    notes = Notes()
    one = track(notes, pattern=r"bc|(?:a|aa)+$", timeout=0.005)
    rest = "a" * 60 + "!" + " bc"
    pieces = [before, *(rest[at : at + cuts] for at in range(0, len(rest), cuts))]
    done = through(one, pieces)
    assert "".join(done) == before.replace("bc", "#") + rest
    assert len(notes.problems) == 1
    assert one.scanner is None


def test_a_failed_check_that_raises_hands_out_nothing() -> None:
    """Strict: the text whose check failed stays inside. R5.4."""

    def strict(problem: InterlockError) -> None:
        raise problem

    one = Track(scanner(r"(?:a|aa)+$", 0.005), lambda span, removed: "#", strict)
    with pytest.raises(InterlockError, match="not done"):
        one.feed("x " + "a" * 60 + "!")
    assert one.take_all() == ""
