"""However the model's stream is cut, what comes of it is the same (R0)."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from watched import THREAD, WatchedModel, check_frame, generate, simple, stream

from interlock import Agent, Processor
from interlock.chunks import Chunk, TextDelta
from interlock.memory import Memory
from interlock.messages import TextPart
from interlock.testing import reasoning, text


class Upper(Processor):
    """Works per character."""

    id = "upper"

    def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
        """Upper-case, in a new chunk without an id."""
        return TextDelta(text=chunk.text.upper()) if isinstance(chunk, TextDelta) else chunk


class EditStep(Processor):
    """Works on a step's whole text."""

    id = "edit-step"

    async def process_output_step(self, output: Any, ctx: Any) -> None:
        """Replace a word wherever it stands in a part."""
        for message in ctx.message_list.get.response.db():
            for part in message.content.parts:
                if isinstance(part, TextPart):
                    part.text = part.text.replace("fool", "friend")


class EditResult(Processor):
    """Works on the whole answer, by a returned list."""

    id = "edit-result"

    def process_output_result(self, result: Any, ctx: Any) -> Any:
        """Give messages with bracketed texts."""
        changed = []
        for message in ctx.messages:
            parts = [
                part.replace(text=f"[{part.text}]") if isinstance(part, TextPart) else part
                for part in message.content.parts
            ]
            changed.append(message.replace(content=message.content.replace(parts=parts)))
        return changed


@st.composite
def cut(draw: st.DrawFn, whole: str) -> list[str]:
    """A text cut anywhere, empty pieces included."""
    places = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    return [whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)]


TEXTS = st.sampled_from(["you fool, 1234", "fool", "a", "", "é ü ß and more text", "x\n\ny fool fool"])
BLOCKS = st.lists(st.tuples(st.sampled_from(["text", "text", "reasoning"]), TEXTS), min_size=1, max_size=4)
PROCESSORS = {"upper": Upper, "step": EditStep, "result": EditResult}


@st.composite
def cut_answers(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    """An answer in one piece a block, and the same cut."""
    whole: list[Any] = []
    pieces: list[Any] = []
    for number, (kind, content) in enumerate(draw(BLOCKS)):
        block = text if kind == "text" else reasoning
        whole.append(block(content, id=f"b{number}"))
        pieces.append(block(*draw(cut(content)), id=f"b{number}"))
    return whole, pieces


async def outcome(script: list[Any], names: list[str], release: Any) -> Any:
    """What a script gives, in every place; the places agree."""
    memory = Memory()
    agent = Agent(
        id="cut",
        model=WatchedModel([script]),
        memory=memory,
        output_processors=[PROCESSORS[name]() for name in names],
    )
    seen = await stream(agent, memory=THREAD, release=release)
    assert seen.result is not None
    check_frame(seen.chunks)
    again = await generate(agent, memory={"thread": "other", "resource": "r"}, release=release)
    assert again.result is not None
    assert again.result.text == seen.result.text, "R10.4"
    stored = await memory.messages("t", resource="r")
    assert "".join(each.text for each in stored if each.role == "assistant") == seen.result.text, "R0.1"
    if release == "run":
        assert seen.client_text == seen.result.text == seen.result.released_text, "R0.1"
    return seen.client_text, seen.result.text, simple(seen.result.messages), simple(stored)


@given(
    answers=cut_answers(),
    names=st.lists(st.sampled_from(sorted(PROCESSORS)), unique=True, max_size=3),
)
@settings(max_examples=120)
def test_any_cut_gives_the_same_text_everywhere(
    answers: tuple[list[Any], list[Any]], names: list[str]
) -> None:
    """Under release ``run`` result, store and client text are the same for any cut, and the same as each
    other.

    R0.1, R0.2.
    """
    whole, pieces = answers
    expected = asyncio.run(outcome(whole, names, "run"))
    assert asyncio.run(outcome(pieces, names, "run")) == expected


@given(answers=cut_answers(), release=st.sampled_from(["live", "step", "run", "auto"]))
@settings(max_examples=60)
def test_a_hook_that_works_per_character_does_not_see_cuts(
    answers: tuple[list[Any], list[Any]], release: str
) -> None:
    """Upper-casing deltas gives the upper-cased whole, under every release policy. R0.1, R4.6."""
    whole, pieces = answers
    client, result, _, _ = asyncio.run(outcome(pieces, ["upper"], release))
    said = "".join(block.deltas[0] for block in whole if block.kind == "text").upper()
    assert client == result == said
