"""Blocks: the lines of an event with their data, and the same lines with other data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.sse.blocks import Block, BlockReader, ends_block, with_data
from interlock.sse.lines import BOM
from interlock.sse.shapes import Unreadable

LINES = st.lists(
    st.sampled_from([b"data: x\n", b"data\r\n", b"id: 7\n", b": c\n", b"\n", b"\r\n", b"event:e\r\n"])
)


def blocks(lines: list[bytes]) -> list[Block]:
    """All blocks of these lines."""
    reader = BlockReader()
    found = [block for line in lines if (block := reader.feed(line)) is not None]
    return found if (last := reader.end()) is None else [*found, last]


@given(lines=LINES)
def test_the_blocks_are_the_lines(lines: list[bytes]) -> None:
    """In their order, none lost and none twice; each ends with an empty line, or is a comment."""
    found = blocks(lines)
    assert [line for block in found for line in block.lines] == lines
    for block in found[:-1]:
        assert not block.lines[-1].strip(b"\r\n") or block.lines[-1].startswith(b":")


def test_data_are_joined_as_clients_join_them() -> None:
    """One space behind the colon is no data, several lines are joined by LF, a field without a colon is empty."""
    lines = [b"id: 7\n", b"data: a\r\n", b": in between\n", b"data:b\n", b"data\n", b"data:  c\n", b"\n"]
    assert blocks(lines) == [Block(lines, b"a\nb\n\n c")]


def test_comments_between_events_wait_for_nothing() -> None:
    """Nor does a byte order mark; one within an event is a part of it."""
    reader = BlockReader()
    assert reader.feed(BOM) == Block([BOM], b"")
    assert reader.feed(b": ping\n") == Block([b": ping\n"], b"")
    assert reader.feed(b"data: 1\n") is None
    assert reader.feed(b": ping\n") is None
    assert reader.feed(b"\n") == Block([b"data: 1\n", b": ping\n", b"\n"], b"1")


@pytest.mark.parametrize("line", [b"<html>\n", b'{"a": 1}\n', b" data: x\n", b"Data: x\n", BOM])
def test_a_line_that_is_no_field_is_left_out(line: bytes) -> None:
    """It could hold anything; the event around it stays. The error does not say what stands there (R0.3)."""
    reader = BlockReader()
    reader.feed(b"data: 1\n")
    with pytest.raises(Unreadable) as caught:
        reader.feed(line)
    assert str(caught.value) == "a line that is no SSE field"
    assert reader.feed(b"\n") == Block([b"data: 1\n", b"\n"], b"1")


def test_other_data_in_the_same_lines() -> None:
    """Names, ids, comments and line ends stay; data in several lines become one; the event is ended."""
    assert with_data([b"id: 7\r\n", b"data: {\r\n", b": c\r\n", b"data: }\r\n", b"\r\n"], {"a": 1}) == (
        b'id: 7\r\ndata: {"a":1}\r\n: c\r\n\r\n'
    )
    assert with_data([b"data: {}"], {}) == b"data: {}\n\n"


@given(lines=LINES)
def test_what_ends_a_block(lines: list[bytes]) -> None:
    """A block that is complete needs nothing in front of the next; only the last one can lack its end."""
    found = blocks(lines)
    for block in found[:-1]:
        assert ends_block(b"".join(block.lines))
    if found and found[-1].lines[-1].strip(b"\r\n") and not found[-1].lines[-1].startswith(b":"):
        assert not ends_block(b"".join(found[-1].lines))
