"""A choice: which guards see its texts, and what its finish reason ends."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import TripWireError
from interlock.processors import RegexFilter
from interlock.sse.choices import Choice
from interlock.sse.shapes import Unreadable
from interlock.sse.texts import Piece, texts_of

pytestmark = pytest.mark.anyio
PIN = RegexFilter({"pin": r"\d{4,6}"}, id="pin")
THOUGHTS = RegexFilter({"pin": r"\d{4,6}"}, id="thoughts", channels=["reasoning"], strategy="filter")


async def pushed(choice: Choice, **delta: str) -> list[Piece]:
    """The pieces of a delta, pushed."""
    texts = list(texts_of({"delta": delta}))
    for found in texts:
        await choice.push(found)
    return [found.piece for found in texts]


async def test_each_text_has_its_own_way() -> None:
    """Content and reasoning are apart, each through the guards of its channel, and complete together."""
    choice = Choice(0, [PIN, THOUGHTS])
    said, thought = await pushed(choice, content="12", reasoning="34")
    await pushed(choice, content="34")
    await choice.finish()
    assert (said.out, thought.out) == ("[PIN]", "34")
    assert [guard.id for guard in choice.guards_of("text")] == ["pin"]
    assert [guard.id for guard in choice.guards_of("reasoning")] == ["pin", "thoughts"]


async def test_nothing_comes_behind_the_finish_reason() -> None:
    """It could not be judged together with what left; what nobody guards, and nothing at all, may."""
    choice = Choice(0, [THOUGHTS])
    await choice.finish()
    await choice.finish()
    await pushed(choice, content="late", reasoning="")
    with pytest.raises(Unreadable, match="text came behind"):
        await pushed(choice, reasoning="late")
    (slot,) = choice.calls.in_delta(calling("{}"))
    with pytest.raises(Unreadable, match="arguments came behind"):
        choice.keep_arguments(slot)
    assert await choice.take_arguments() == []


def calling(arguments: str) -> dict[str, Any]:
    """A delta with a call."""
    return {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "look", "arguments": arguments}}]}


async def test_arguments_are_taken_out_and_given_guarded() -> None:
    """The delta keeps none of them; joined and guarded they are given once."""
    choice = Choice(0, [PIN])
    deltas = [calling('{"a": "12'), calling('34"}'), calling("")]
    kept = [choice.keep_arguments(slot) for delta in deltas for slot in choice.calls.in_delta(delta)]
    assert kept == [True, True, False]
    assert deltas == [calling("")] * 3
    ((_, arguments),) = await choice.take_arguments()
    assert arguments == '{"a":"[PIN]"}'
    assert await choice.take_arguments() == []


async def test_a_block_in_arguments() -> None:
    """It is raised where they are taken, before anything of them is given (R0.3)."""
    choice = Choice(0, [RegexFilter({"pin": r"\d{4}"}, id="no-pins", strategy="block")])
    (slot,) = choice.calls.in_delta(calling('{"a": "1234"}'))
    choice.keep_arguments(slot)
    with pytest.raises(TripWireError) as caught:
        await choice.take_arguments()
    assert caught.value.processor_id == "no-pins"
