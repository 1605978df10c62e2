"""A step's chunks in the order they came: texts wait for their verdict, everything else waits behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.chunks import (
    Chunk,
    DataChunk,
    File,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
)
from interlock.release.line import Line
from interlock.release.pattern import ExactPattern
from interlock.release.scanner import Rule, TextScanner
from interlock.release.track import Track

PATTERN = r"b+c|\bd+\b|x.*?y"


def line(channels: str = "text reasoning", stands: str = "#") -> Line:
    def open_track(channel: str) -> Track | None:
        if channel not in channels.split():
            return None
        scanner = TextScanner([Rule(pattern=ExactPattern("r", PATTERN))])
        return Track(scanner, lambda span, removed: stands, lambda problem: None)

    return Line(open_track)


@st.composite
def deltas(draw: st.DrawFn) -> Chunk:
    kind = draw(st.sampled_from([TextDelta, TextDelta, ReasoningDelta]))
    metadata = {"p": {"n": draw(st.integers())}} if draw(st.integers(0, 3)) == 0 else None
    return kind(
        text=draw(st.text("abcdxy ", max_size=4)),
        id=draw(st.sampled_from(["", "t1", "t2"])),
        provider_metadata=metadata,
    )


OTHERS = st.sampled_from(
    [
        TextStart(id="t1"),
        TextEnd(id="t1", provider_metadata={"p": {"end": True}}),
        ReasoningStart(id="t2"),
        ReasoningEnd(id="t2"),
        Source(id="s", title="bc"),
        File(mime_type="image/png", data="AAAA"),
        DataChunk(type="data-x", data={"bc": 1}),
        ToolCall(tool_call_id="c", tool_name="look", args={"q": "bc"}),
    ]
).map(lambda chunk: chunk.replace())
CHUNKS = st.lists(deltas() | deltas() | OTHERS, max_size=14)


def is_delta(chunk: Chunk, kind: Any = (TextDelta, ReasoningDelta)) -> bool:
    return isinstance(chunk, kind)


def said(chunks: list[Chunk], kind: Any) -> str:
    of_kind: list[Any] = [chunk for chunk in chunks if isinstance(chunk, kind)]
    return "".join(chunk.text for chunk in of_kind)


def through(one: Line, chunks: Sequence[Chunk]) -> list[Chunk]:
    out: list[Chunk] = []
    for chunk in chunks:
        out += one.push(chunk)
    return out + one.finish()


@given(chunks=CHUNKS, stands=st.sampled_from(["", "#", "bc"]))
@settings(max_examples=300)
def test_what_leaves_is_what_came_with_the_spans_replaced(chunks: list[Chunk], stands: str) -> None:
    """Text and reasoning, each joined over all blocks, are the replaced wholes; all other chunks are the very
    objects that came, in their order; each delta's metadata leaves once, empty deltas leave as they are, and
    between two other chunks stands what came between them, with its ids.

    R0.2, R4.6.
    """
    out = through(line(stands=stands), chunks)
    for kind in (TextDelta, ReasoningDelta):
        assert said(out, kind) == regex.sub(PATTERN, stands, said(chunks, kind))
    others = [chunk for chunk in chunks if not is_delta(chunk)]
    assert [id(chunk) for chunk in out if not is_delta(chunk)] == [id(chunk) for chunk in others]
    metadata: list[Any] = [getattr(c, "provider_metadata", None) for c in chunks if is_delta(c)]
    left: list[Any] = [getattr(c, "provider_metadata", None) for c in out if is_delta(c)]
    assert [each for each in left if each is not None] == [each for each in metadata if each is not None]
    empty = [id(c) for c in chunks if isinstance(c, TextDelta | ReasoningDelta) and not c.text]
    assert set(empty) <= {id(chunk) for chunk in out}
    assert all(c.text or c.provider_metadata or id(c) in empty for c in out if isinstance(c, TextDelta))
    assert follows(runs(out), runs(chunks))


def runs(chunks: list[Chunk]) -> list[list[Any]]:
    """Between the other chunks, the kinds and ids of the deltas, each run of equal ones once."""
    made: list[list[Any]] = [[]]
    for chunk in chunks:
        name = (chunk.type, getattr(chunk, "id", None))
        if not is_delta(chunk):
            made.append([])
        elif made[-1][-1:] != [name]:
            made[-1].append(name)
    return made


def follows(out: list[list[Any]], given: list[list[Any]]) -> bool:
    """Whether each run is one that came, with nothing left in but what was there, in its order."""
    for some, all_of_them in zip(out, given, strict=True):
        rest = iter(all_of_them)
        if not all(any(name == each for each in rest) for name in dict.fromkeys(some)):
            return False
    return True


@given(chunks=CHUNKS)
def test_nothing_that_could_leave_is_held(chunks: list[Chunk]) -> None:
    """Text without anything that could still become a span is out at once, and so is all behind it. R4.6."""
    harmless = {ord(each): "a" for each in "bdx"}
    calm = [
        chunk.replace(text=chunk.text.translate(harmless))
        if isinstance(chunk, TextDelta | ReasoningDelta)
        else chunk
        for chunk in chunks
    ]
    one = line()
    for chunk in calm:
        assert one.push(chunk) == [chunk]
    assert one.finish() == []


@given(chunks=CHUNKS)
def test_a_channel_that_is_not_guarded_passes_as_it_came(chunks: list[Chunk]) -> None:
    """Deltas of an unguarded channel are the very objects that came; they only wait for their turn. R4.6."""
    out = through(line("text"), chunks)
    came = [id(chunk) for chunk in chunks if isinstance(chunk, ReasoningDelta)]
    assert [id(chunk) for chunk in out if isinstance(chunk, ReasoningDelta)] == came
    assert [id(chunk) for chunk in through(line(""), chunks)] == [id(chunk) for chunk in chunks]


def test_a_delta_leaves_in_front_of_what_is_undecided() -> None:
    """The decided part of a delta goes out at once, without the metadata, which comes with the last part; what is
    behind it waits. R4.6.
    """
    one = line()
    mark = {"p": {"n": 1}}
    assert one.push(TextDelta(text="aab", id="t", provider_metadata=mark)) == [TextDelta(text="aa", id="t")]
    assert one.push(TextEnd(id="t")) == []
    assert one.push(Source(id="s")) == []
    assert one.push(TextDelta(text="ba", id="u")) == [
        TextDelta(text="b", id="t", provider_metadata=mark),
        TextEnd(id="t"),
        Source(id="s"),
        TextDelta(text="ba", id="u"),
    ]


def test_a_span_over_two_blocks_stands_in_the_first() -> None:
    """The replacement is in the block where the span began; the other keeps what is not of it. R0.4."""
    chunks = [TextDelta(text="ab", id="t"), TextEnd(id="t"), TextStart(id="u"), TextDelta(text="bca", id="u")]
    assert through(line(), chunks) == [
        TextDelta(text="a", id="t"),
        TextDelta(text="#", id="t"),
        TextEnd(id="t"),
        TextStart(id="u"),
        TextDelta(text="a", id="u"),
    ]


def test_reasoning_and_text_are_texts_of_their_own() -> None:
    """A span does not go from one into the other. R0.4."""
    chunks = [TextDelta(text="b"), ReasoningDelta(text="c"), TextDelta(text="a"), ReasoningDelta(text="bc")]
    out = through(line(), chunks)
    assert (said(out, TextDelta), said(out, ReasoningDelta)) == ("ba", "c#")


def test_after_the_finish_a_new_text_begins() -> None:
    """What comes after a finished text is not joined to it. R0.4."""
    one = line()
    assert one.push(TextDelta(text="b")) == []
    assert one.finish() == [TextDelta(text="b")]
    assert one.push(TextDelta(text="c")) == [TextDelta(text="c")]
    assert one.finish() == []
