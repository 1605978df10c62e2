"""Assertions of a guard's tests: never_sent, saved_equals_sent."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from interlock import Agent, Processor, UsageError, guard_stream, guard_text
from interlock.chunks import (
    Chunk,
    DataChunk,
    ErrorChunk,
    ReasoningDelta,
    Source,
    StepFinish,
    StepStart,
    TextDelta,
    ToolCall,
    ToolInputDelta,
    Usage,
)
from interlock.core.stored import message_to_row
from interlock.memory import Memory
from interlock.processors import RegexFilter
from interlock.testing import ScriptedModel, all_cuts, never_sent, saved_equals_sent, text
from interlock.testing.checks import client_text
from interlock.wire import to_wire

EMAIL = r"[\w.]+@[\w.]+\w"


def step(*texts: str, reason: str = "stop") -> list[Chunk]:
    """The chunks of a step, as a client gets them."""
    return [
        StepStart(),
        *(TextDelta(id="t", text=each) for each in texts),
        StepFinish(finish_reason=reason, usage=Usage()),
    ]


# ------------------------------------------------------------------------------------------------------------ patterns


def test_nothing_forbidden_is_silent() -> None:
    """What may be sent raises nothing; neither does nothing."""
    never_sent(["write to ", "[EMAIL]", " today"], r"bob|smith")
    never_sent([], r"bob")
    never_sent(step("fine"), r"bob")


def test_a_chunk_that_matches_is_named() -> None:
    """Which chunk, what it holds, and the pattern."""
    with pytest.raises(AssertionError, match=r"sent\[1\] holds 'bob' \(pattern 'bob\|smith'\).*'to bob\.'"):
        never_sent(["write ", "to bob.", "x"], r"bob|smith")


def test_pieces_that_match_together_are_named() -> None:
    """No chunk matches by itself, but what the client joins does: all the chunks that are part of it."""
    with pytest.raises(AssertionError) as caught:
        never_sent(["to ", "bo", "", "b.sm", "ith", " now"], r"bob\.smith")
    assert "'bob.smith'" in str(caught.value)
    assert "sent[1], sent[3] and sent[4]: 'bo' | 'b.sm' | 'ith'" in str(caught.value)


def test_a_chunk_matches_by_itself_even_where_the_whole_does_not() -> None:
    """A look-around that the neighbours would defeat: the chunk alone is what some client shows."""
    never_sent(["12345678"], r"\b\d{4}\b")
    with pytest.raises(AssertionError):
        never_sent(["1234", "5678"], r"\b\d{4}\b")


@pytest.mark.parametrize("pattern", [re.compile("BOB", re.IGNORECASE), "(?i)BOB", r"\p{Ll}{3}"])
def test_patterns_of_both_packages(pattern: Any) -> None:
    """Compiled ones keep their flags; texts are in the syntax of the regex package."""
    with pytest.raises(AssertionError):
        never_sent(["bob"], pattern)


def test_an_empty_match_is_none() -> None:
    """A pattern that may match nothing matches nothing everywhere: that is no find."""
    never_sent(["abc"], r"x*")


@pytest.mark.parametrize(
    "chunk",
    [
        TextDelta(id="t", text="secret"),
        ReasoningDelta(id="r", text="secret"),
        ToolInputDelta(tool_call_id="c", tool_name="t", args_text='{"a": "secret"}'),
        ToolCall(tool_call_id="c", tool_name="t", args={"id": ["a secret"]}),
        ToolCall(tool_call_id="c", tool_name="t", args={"secret": 1}),
        Source(id="s", title="secret"),
        DataChunk(type="data-x", data={"deep": [{"er": "secret"}]}),
        ErrorChunk(ValueError("secret")),
    ],
    ids=lambda chunk: chunk.type,
)
def test_every_channel_is_looked_through(chunk: Chunk) -> None:
    """R0.3: text, reasoning, tool arguments, data, titles, errors; as chunks and as their JSON."""
    with pytest.raises(AssertionError, match=r"sent\[0\]"):
        never_sent([chunk], "secret")
    with pytest.raises(AssertionError):
        never_sent([to_wire(chunk)], "secret")


def test_names_and_marks_are_no_content() -> None:
    """Types and ids of chunks raise no alarm."""
    never_sent([*step("x"), ToolCall(tool_call_id="call-1", tool_name="t", args={})], "text|call|step|stop")


def test_channels_are_joined_apart() -> None:
    """Text is joined with text, reasoning with reasoning, each call's arguments with its own."""
    mixed = [TextDelta(id="t", text="bo"), ReasoningDelta(id="r", text="x"), TextDelta(id="u", text="b")]
    with pytest.raises(AssertionError, match=r"sent\[0\]\.text and sent\[2\]\.text"):
        never_sent(mixed, "bob")
    never_sent([TextDelta(id="t", text="bo"), ReasoningDelta(id="r", text="b")], "bob")
    a, b = ({"tool_call_id": each, "tool_name": "t"} for each in "ab")
    never_sent([ToolInputDelta(**a, args_text="bo"), ToolInputDelta(**b, args_text="b")], "bob")
    with pytest.raises(AssertionError):
        never_sent([ToolInputDelta(**a, args_text="bo"), ToolInputDelta(**a, args_text="b")], "bob")


def test_attempts_are_joined_apart() -> None:
    """Steps are judged apart; a withdrawn attempt was sent all the same."""
    never_sent([*step("bo"), *step("b")], "bob")
    with pytest.raises(AssertionError):
        never_sent([*step("bo", "b", reason="retry"), *step("fine")], "bob")


# ---------------------------------------------------------------------------------------------- an alphabet, and spans


def test_an_alphabet_of_what_is_removed() -> None:
    """Characters that occur in removed spans only: one of them is enough."""
    never_sent(["plain ", "text -]^"], set("€§"))
    with pytest.raises(AssertionError, match=r"sent\[1\] holds '§' \(of the forbidden characters\)"):
        never_sent(["plain ", "te§xt"], set("€§"))
    with pytest.raises(AssertionError):
        never_sent(["a-b"], frozenset("-]^"))


def test_removed_spans_by_their_places() -> None:
    """A piece of a span in its place is told with the span; the same word elsewhere is no alarm."""
    whole = "ask bob: bob@x.org"
    never_sent(["ask bob", ": [EMAIL]"], [(9, 18)], whole=whole)
    with pytest.raises(AssertionError, match=r"'bob' of whole\[9:18\] was sent in sent\[1\]: ': bob\[E\]'"):
        never_sent(["ask bob", ": bob[E]"], [(9, 18)], whole=whole)
    never_sent(["ask bob: ", "[bob]"], [(9, 18)], whole=whole, replacements=["[bob]"])
    never_sent(["ask bob: bob"], [(9, 18)], whole=whole, min_piece=4)


def test_spans_in_chunks() -> None:
    """Text deltas are what the places are in; other chunks between them do no harm."""
    sent = [
        StepStart(),
        TextDelta(id="t", text="to b"),
        ReasoningDelta(id="r", text="hm"),
        TextDelta(id="t", text="ob"),
    ]
    with pytest.raises(AssertionError, match=r"sent\[1\]\.text and sent\[3\]\.text"):
        never_sent(sent, [(3, 6)], whole="to bob")


def test_a_text_that_does_not_fit_is_told() -> None:
    """Then the places cannot be found, and nothing can be vouched for."""
    with pytest.raises(AssertionError, match="not the whole text with these spans replaced"):
        never_sent(["another text"], [(3, 6)], whole="to bob")


@pytest.mark.anyio
async def test_a_guards_own_finds_are_spans() -> None:
    """Detections say where; never_sent holds for every cut of the filter, and fails for one that leaks."""
    guards, whole = [RegexFilter({"email": EMAIL})], "ask bob: bob@x.org and bob.smith@y.com ok"
    found = (await guard_text(whole, guards)).detections

    async def pieces(parts: Sequence[str]) -> AsyncGenerator[str]:
        for part in parts:
            yield part

    for parts in all_cuts(whole, max_cuts=1):
        sent = [piece async for piece in guard_stream(pieces(parts), guards)]
        never_sent(sent, found, whole=whole)
    with pytest.raises(AssertionError):
        never_sent([whole], found, whole=whole)


@pytest.mark.parametrize(
    ("sent", "forbidden", "options", "told"),
    [
        (["a"], "(", {}, "does not compile"),
        (["a"], set(), {}, "single characters"),
        (["a"], {"word"}, {}, "single characters"),
        (["a"], [(0, 1)], {}, "whole"),
        (["a"], [(0, 9)], {"whole": "a"}, "not inside"),
        (["a"], [(1, 0)], {"whole": "a"}, "not inside"),
        (["a"], ["ab"], {"whole": "a"}, "a span is"),
        (["a"], [("0", "1")], {"whole": "a"}, "numbers"),
        (["a"], [(0, 1)], {"whole": "a", "min_piece": 0}, "min_piece"),
        ([5], "a", {}, "texts or chunks"),
    ],
)
def test_what_cannot_be_checked_is_refused(sent: Any, forbidden: Any, options: Any, told: str) -> None:
    """A check that checks nothing is an error, not a silent pass."""
    with pytest.raises(UsageError, match=told):
        never_sent(sent, forbidden, **options)


def test_one_text_is_one_piece() -> None:
    """A bare text is what was sent, not its characters."""
    with pytest.raises(AssertionError, match=r"sent\[0\] holds 'bob'"):
        never_sent("to bob", "bob")


# ---------------------------------------------------------------------------------------------------- saved equals sent


def test_what_a_client_is_left_with() -> None:
    """R7.3: a retry withdraws the attempt under way or, after process_output_result, the step just finished."""
    assert client_text(["a", "b"]) == "ab"
    assert client_text([*step("no", reason="retry"), *step("yes")]) == "yes"
    assert client_text([*step("one "), *step("no", reason="retry"), *step("two")]) == "one two"
    late = StepFinish(finish_reason="retry", usage=Usage())
    assert client_text([*step("one "), *step("no"), late, *step("two")]) == "one two"
    assert client_text([to_wire(chunk) for chunk in [*step("no", reason="retry"), *step("yes")]]) == "yes"
    assert client_text([TextDelta(id="t", text="hidden step-start"), late, *step("yes")]) == "yes"


class _Judge(Processor):
    id = "judge"

    def process_output_step(self, output: Any, ctx: Any) -> None:
        if output.text == "bad":
            ctx.abort("no", retry=True)


@pytest.mark.anyio
@pytest.mark.parametrize("release", ["live", "step", "run"])
async def test_a_run_with_a_retry(release: Any) -> None:
    """R0.1, R7.3: the client's text is what is stored, for the last turn of a thread; in every form of a message."""
    model = ScriptedModel([text("first")], [text("ba", "d")], [text("go", "od")])
    memory = Memory()
    agent = Agent(
        id="a",
        model=model,
        memory=memory,
        output_processors=[_Judge()],
        max_processor_retries=1,
        release=release,
    )
    place = {"thread": "t", "resource": "r"}
    await agent.generate("hi", memory=place)
    async with agent.stream("and now", memory=place) as stream:
        chunks = [chunk async for chunk in stream]
        result = await stream.result()
    stored = await memory.messages("t", resource="r")
    assert [message.role for message in stored] == ["user", "assistant"] * 2
    saved_equals_sent(chunks, stored)
    saved_equals_sent(chunks, [message_to_row(message) for message in stored])
    saved_equals_sent([to_wire(chunk) for chunk in chunks], result)
    saved_equals_sent(["good"], result.messages)
    with pytest.raises(AssertionError, match="from character 2 on"):
        saved_equals_sent(["gold"], stored)


def test_where_the_two_differ() -> None:
    """Also when one is the beginning of the other, or nothing was stored."""
    rows = [{"role": "assistant", "content": "good"}]
    saved_equals_sent(["good"], rows)
    saved_equals_sent([], [{"role": "user", "content": "hi"}])
    saved_equals_sent([], [])
    with pytest.raises(AssertionError, match=r"from character 4 on the client has .*\(5 and 4 characters\)"):
        saved_equals_sent(["goods"], rows)
    with pytest.raises(AssertionError, match=r"\(1 and 0 characters\)"):
        saved_equals_sent(["x"], [*rows, {"role": "user", "content": "hi"}])
