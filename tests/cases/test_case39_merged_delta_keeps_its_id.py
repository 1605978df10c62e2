"""Case 39: ids and metadata of merged deltas."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, both_modes

from interlock import Processor
from interlock.chunks import TextDelta, TextEnd, TextStart
from interlock.processors import KeywordFilter, RegexFilter
from interlock.testing import text

pytestmark = pytest.mark.anyio
SIGNED = {"provider": {"sig": "s1"}}
SCRIPT = [
    text("a", "b", "c", id="blk-7"),
    TextStart(id="blk-7"),
    TextDelta(id="blk-7", text="", provider_metadata=SIGNED),
    TextEnd(id="blk-7"),
    text("z", id="blk-8"),
]


class Batch(Processor):
    """Joins up to five deltas of one block, their metadata too."""

    id = "batch"

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        held: TextDelta | None = ctx.state.get("held")
        if isinstance(chunk, TextDelta):
            if held is None or held.id != chunk.id:
                ctx.state["held"], ctx.state["count"] = chunk, 1
                return held
            held.text += chunk.text
            held.provider_metadata = chunk.provider_metadata or held.provider_metadata
            ctx.state["count"] += 1
            if ctx.state["count"] < 5:
                return None
            ctx.state["held"] = None
            return held
        ctx.state["held"] = None
        return chunk if held is None else [held, chunk]


@pytest.mark.parametrize("release", ["live", "step", "run"])
@pytest.mark.parametrize("processors", [[], [Batch()]], ids=["plain", "batched"])
async def test_ids_and_metadata_arrive(processors: list[Any], release: str) -> None:
    """Every delta has its own block's id, blocks are not joined, the signature arrives; two text parts, the
    first signed.

    R3.6, R4.6, case 39.
    """
    bench = Bench(SCRIPT, output_processors=processors)
    ran = await bench.run("stream", release=release)
    texts = {"blk-7": "", "blk-8": ""}
    for chunk in ran.of_type("text-delta"):
        texts[chunk.id] += chunk.text
    assert texts == {"blk-7": "abc", "blk-8": "z"}
    assert SIGNED in [
        chunk.provider_metadata for chunk in ran.of_type("text-start", "text-delta", "text-end")
    ]
    first, second = (await bench.rows())[1].content.parts
    assert (first.text, second.text) == ("abc", "z")  # type: ignore[attr-defined]
    assert (first.provider_metadata, second.provider_metadata) == (SIGNED, None)


GUARDS = {
    "to the end": (lambda: RegexFilter({"end": r"q$"}), "abc", "z"),
    "inside": (lambda: RegexFilter({"b": "b"}), "a[B]c", "z"),
    "across the blocks": (lambda: RegexFilter({"cz": "cz"}), "ab[CZ]", ""),
    "all of both": (lambda: KeywordFilter(["abcz"], strategy="filter"), "", ""),
}


@both_modes
@pytest.mark.parametrize("release", ["live", "step", "run"])
@pytest.mark.parametrize("guard", GUARDS)
async def test_ids_and_metadata_pass_a_guard(guard: str, release: str, mode: str) -> None:
    """What leaves a guard has the id of its own block, what it replaces that of the block where it begins, and the
    signature arrives, whatever is left of its block's text.

    R0.2, R4.6, case 39.
    """
    make, first_text, second_text = GUARDS[guard]
    bench = Bench(SCRIPT, output_processors=[make()])
    ran = await bench.run(mode, release=release)
    assert ran.result.text == first_text + second_text
    if mode == "stream":
        texts = {"blk-7": "", "blk-8": ""}
        for chunk in ran.of_type("text-delta"):
            texts[chunk.id] += chunk.text
        assert texts == {"blk-7": first_text, "blk-8": second_text}
        marked = ran.of_type("text-start", "text-delta", "text-end")
        assert [chunk.provider_metadata for chunk in marked if chunk.provider_metadata] == [SIGNED]
    parts: list[Any] = (await bench.rows())[1].content.parts
    assert [(part.text, part.provider_metadata) for part in parts if part.text or part.provider_metadata] == [
        each for each in [(first_text, SIGNED), (second_text, None)] if each != ("", None)
    ]
