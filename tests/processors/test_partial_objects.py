"""Partial objects: read from the text that goes out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.chunks import Chunk, PartialObject, StepFinish, StepStart, TextDelta, Usage
from interlock.processors.partial_objects import GROWTH, ObjectReader, PartialObjects
from interlock.schema import Schema

OBJECT: Schema[Any] = Schema({})


def sent(*chunks: Chunk, steps: int = 1) -> list[Chunk]:
    """What goes out when these chunks do."""
    out: list[Chunk] = []
    partial = PartialObjects(out.append, dict.fromkeys(range(steps), OBJECT.partial))
    for chunk in chunks:
        assert partial.put(chunk) is None
    return out


def deltas(*texts: str) -> list[Chunk]:
    """A step's chunks, its end left out."""
    return [StepStart(), *(TextDelta(text, id="t") for text in texts)]


def objects(chunks: list[Chunk]) -> list[Any]:
    """The partial objects among them."""
    return [chunk.object for chunk in chunks if isinstance(chunk, PartialObject)]


def test_an_object_goes_out_behind_the_delta_that_changed_it() -> None:
    """Only where the text says something new; every other chunk goes out as it came (R0.3)."""
    given_ = deltas('{"a": ', "1", ", ", '"b": 2}', "\n")
    out = sent(*given_)
    assert [chunk for chunk in out if not isinstance(chunk, PartialObject)] == given_
    assert objects(out) == [{}, {"a": 1}, {"a": 1, "b": 2}]
    assert [type(chunk).__name__ for chunk in out[1:4]] == ["TextDelta", "PartialObject", "TextDelta"]


def test_each_step_and_each_attempt_is_read_by_itself() -> None:
    """Only steps that ask for an object are read; a withdrawn attempt's text is forgotten."""
    end = StepFinish(finish_reason="stop", usage=Usage())
    again = StepFinish(finish_reason="retry", usage=Usage())
    out = sent(*deltas('{"a": '), again, *deltas('{"b": 1}'), end, *deltas('{"c": 1}'), end)
    assert objects(out) == [{}, {"b": 1}]


@given(st.lists(st.text(alphabet='{}[]",:0123 ab\\u', max_size=4)))
def test_what_is_said_last_is_what_the_whole_text_says(pieces: list[str]) -> None:
    """However it is cut: short texts are read at every delta, and the last object is that of some prefix."""
    text = "".join(pieces)
    found = objects(sent(*deltas(*pieces)))
    prefixes = [OBJECT.partial(text[:cut]) for cut in range(len(text) + 1)]
    assert all(value in prefixes for value in found)
    if len(text) < GROWTH and OBJECT.partial(text) is not None:
        assert found[-1] == OBJECT.partial(text)


def test_a_long_text_is_not_read_at_every_delta() -> None:
    """Reading costs linear time over the whole stream: it is done when the text has grown by a part of itself."""
    text = json.dumps({"items": ["x" * 10] * 2_000})
    lengths: list[int] = []

    def read(said: str) -> Any:
        lengths.append(len(said))
        return None

    reader = ObjectReader(read)
    for at in range(0, len(text), 4):
        reader.push(text[at : at + 4])
    assert sum(lengths) < 2 * GROWTH * len(text)
    assert max(lengths) > len(text) * (1 - 2 / GROWTH)


@pytest.mark.anyio
async def test_the_reader_of_the_stream_slows_it_down_at_both() -> None:
    """The waits of the delta and of its object are both waited for."""
    waits: list[str] = []

    def sink(chunk: Chunk) -> Awaitable[object]:
        async def wait() -> None:
            await asyncio.sleep(0)
            waits.append(chunk.type)

        return wait()

    partial = PartialObjects(sink, {0: OBJECT.partial})
    for chunk in deltas("{}"):
        pending = partial.put(chunk)
        assert pending is not None
        await pending
    assert waits == ["step-start", "text-delta", "object"]
