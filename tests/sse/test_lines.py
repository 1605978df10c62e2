"""Lines of an event stream: cut wherever the bytes are, joined the bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from interlock.sse.lines import BOM, LINE_END, LineReader


def read(pieces: list[bytes]) -> list[bytes]:
    """All lines of these pieces."""
    reader = LineReader()
    lines = [line for piece in pieces for line in reader.feed(piece)]
    return [*lines, *reader.end()]


@given(
    body=st.lists(st.sampled_from([b"a", b"\r", b"\n", b"\r\n", BOM, "é".encode(), b"\xef"])).map(b"".join),
    places=st.lists(st.integers(0, 60), max_size=8),
)
def test_the_lines_are_the_bytes_whatever_the_cuts(body: bytes, places: list[int]) -> None:
    """Joined they are what came; each has one end, CR, LF or both; the cuts of the bytes change none of them."""
    ends = [0, *sorted(min(place, len(body)) for place in places), len(body)]
    lines = read([body[start:end] for start, end in pairwise(ends)])
    assert b"".join(lines) == body
    assert lines == read([body])
    rest = lines[1:] if body.startswith(BOM) else lines
    for line in rest[:-1]:
        (end,) = LINE_END.findall(line)
        assert line.endswith(end)
    assert not body.startswith(BOM) or lines[0] == BOM


def test_a_line_is_given_as_soon_as_its_end_is_certain() -> None:
    """A CR waits for what follows, which may be its LF; an LF waits for nothing."""
    reader = LineReader()
    assert list(reader.feed(b"a\r")) == []
    assert list(reader.feed(b"b\n")) == [b"a\r", b"b\n"]
    assert list(reader.feed(b"c\r")) == []
    assert list(reader.feed(b"\nd")) == [b"c\r\n"]
    assert list(reader.end()) == [b"d"]


def test_long_lines_are_searched_once() -> None:
    """What has no line's end in it is not looked at again: a line in many pieces costs linear time."""
    reader = LineReader()
    for _ in range(3):
        assert list(reader.feed(b"x" * 10)) == []
    assert reader._searched == 30
