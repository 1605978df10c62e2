"""What a guard removes is nowhere, wherever the stream is cut: every channel, every place, one law (R0)."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock import (
    Agent,
    ModelError,
    ModelRequest,
    Processor,
    Retry,
    RunResult,
    ToolContext,
    TripWireError,
    UsageError,
    guard_text,
    tool,
)
from interlock.chunks import (
    Chunk,
    DataChunk,
    File,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolError,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
    TripWireChunk,
)
from interlock.core.step import map_strings
from interlock.memory import Memory
from interlock.messages import (
    Content,
    DataPart,
    FilePart,
    Message,
    ReasoningPart,
    SourcePart,
    TextPart,
    ToolInvocationPart,
)
from interlock.processors import RegexFilter, Unit, UnitGuard, Verdict
from interlock.release.pattern import ExactPattern
from interlock.release.scanner import Rule
from interlock.testing import ScriptedModel, error, reasoning, text, tool_call
from interlock.wire import to_wire

THREAD = {"thread": "t", "resource": "r"}

RULES = {
    "word": r"\bЖ\w*\b",
    "ahead": r"ЩЩ(?=[!\s])",
    "behind": r"(?<=key )Ю+",
    "end": r"Я+$",
    "prefixes": r"ЦФД|ЦФ|Ц",
    "short-first": r"Й|ЙЙИ",
    "lazy": r"Л.*?Л",
    "until": r"Э[^;]*;",
    "line": r"Б.*",
    "twice": r"(П\d)\1",
}
"""Every kind of pattern; the letters in them are in nothing but what they are about."""

SECRETS = [
    "Ж", "Жab", "ЩЩ!", "ЩЩ ", "ЩЩ", "key Ю", "ЮЮ", "key ЮЮЮ", "Я", "ЯЯ", "Ц", "ЦФ", "ЦФД", "Й", "ЙЙИ", "Л", "ЛabЛ",
    "Эa b;", "Э", "Б rest", "П1П1", "П1", "П2",
]  # fmt: skip
PLAIN = ["a", "b c", " ", "; ", "!", ". ", "key ", "\n", "12", "", "[", "é"]
SENTINELS = frozenset("ЖЩЮЯЦФДЙИЛЭБП")

TEXTS = st.lists(st.sampled_from(SECRETS + PLAIN + PLAIN), max_size=6).map("".join)


def whole(text: str, rules: tuple[str, ...]) -> str:
    """What the guards make of a whole text, said by the plain search of each in turn."""
    for rule in rules:
        text = regex.sub(RULES[rule], f"[{rule.upper()}]", text)
    return text


def guards(rules: tuple[str, ...], **options: Any) -> list[RegexFilter]:
    return [RegexFilter({rule: RULES[rule]}, id=f"guard-{rule}", **options) for rule in rules]


# -------------------------------------------------------------------------------------------------- what a model says


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """A text in pieces, empty ones among them."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@dataclass(frozen=True)
class Talk:
    """A scripted conversation; ``answers`` are what the tools say, by call id."""

    calls: list[list[Chunk]]
    answers: dict[str, str]
    failing: frozenset[str]
    rules: tuple[str, ...]
    release: str


@st.composite
def blocks(draw: st.DrawFn, block_id: str) -> list[Chunk]:
    """A text or reasoning block, some of its deltas with metadata."""
    start, delta, end = draw(
        st.sampled_from(
            [(TextStart, TextDelta, TextEnd)] * 3 + [(ReasoningStart, ReasoningDelta, ReasoningEnd)]
        )
    )
    deltas: list[Chunk] = []
    for number, piece in enumerate(draw(cut(draw(TEXTS)))):
        metadata = {"p": {"n": f"{block_id}-{number}"}} if draw(st.integers(0, 4)) == 0 else None
        deltas.append(delta(id=block_id, text=piece, provider_metadata=metadata))
    return [start(id=block_id), *deltas, end(id=block_id, provider_metadata={"p": {"end": block_id}})]


@st.composite
def calls(draw: st.DrawFn, call_id: str, provider: bool, fails: bool = False) -> list[Chunk]:
    """A call, perhaps with its arguments streamed before it; a provider's own with its result or error."""
    args = {"q": draw(TEXTS), "more": [draw(TEXTS), {"deep": draw(TEXTS)}, 1, None]}
    name = "theirs" if provider else "look"
    chunks: list[Chunk] = []
    if draw(st.booleans()):
        chunks.append(ToolInputStart(tool_call_id=call_id, tool_name=name))
        pieces = draw(cut(json.dumps(args, ensure_ascii=False)))
        chunks += [ToolInputDelta(tool_call_id=call_id, args_text=piece) for piece in pieces]
        if draw(st.booleans()):
            chunks.append(ToolInputEnd(tool_call_id=call_id))
    chunks.append(
        ToolCall(tool_call_id=call_id, tool_name=name, args=args, provider_executed=provider or None)
    )
    if provider and not fails:
        answer = {"hits": [draw(TEXTS)], "n": 1}
        chunks.append(ToolResult(tool_call_id=call_id, tool_name=name, args=args, result=answer))
    elif provider:
        chunks.append(ToolError(tool_call_id=call_id, tool_name=name, args=args, error=draw(TEXTS)))
    return chunks


@st.composite
def others(draw: st.DrawFn, number: str) -> list[Chunk]:
    kind = draw(st.sampled_from(["source", "file", "data", "provider"]))
    if kind == "source":
        return [
            Source(id=f"s{number}", url=f"https://x/{draw(TEXTS)}", title=draw(TEXTS), filename=draw(TEXTS))
        ]
    if kind == "file":
        return [File(mime_type="image/png", data="AAAA")]
    if kind == "data":
        data = {"note": draw(TEXTS), "list": [draw(TEXTS)]}
        return [DataChunk(type="data-note", data=data, transient=draw(st.booleans()), id=f"d{number}")]
    return draw(calls(f"p{number}", provider=True, fails=True))


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    """One to three steps; all but the last call the model's own tools."""
    made: list[list[Chunk]] = []
    answers: dict[str, str] = {}
    steps = draw(st.integers(1, 3))
    for step in range(steps):
        # in front of all text: one behind text that waits is lost, see test_a_providers_result_behind_text_that_waits
        chunks: list[Chunk] = draw(st.just([]) | calls(f"r{step}", provider=True))
        for number in range(draw(st.integers(1, 4))):
            some = blocks(f"b{step}-{number}")
            chunks += draw(some | some | others(f"{step}-{number}"))
        if step < steps - 1:
            for number in range(draw(st.integers(1, 2))):
                call_id = f"c{step}-{number}"
                answers[call_id] = draw(TEXTS)
                chunks += draw(calls(call_id, provider=False))
                chunks += draw(st.just([]) | blocks(f"after{step}-{number}"))
        made.append(chunks)
    rules = draw(st.lists(st.sampled_from(sorted(RULES)), min_size=1, max_size=4, unique=True))
    return Talk(
        calls=made,
        answers=answers,
        failing=frozenset(each for each in answers if draw(st.booleans())),
        rules=tuple(rules),
        release=draw(st.sampled_from(["live", "live", "step", "run"])),
    )


# --------------------------------------------------------------------------------------------------- what comes of it


@dataclass
class Ran:
    """A run, from every side."""

    chunks: list[Chunk]
    result: RunResult
    stored: list[Message]
    prompts: list[str]
    tool_args: dict[str, Any]
    log: str

    def steps(self) -> list[list[Chunk]]:
        """The chunks of each step, up to its step-finish."""
        made: list[list[Chunk]] = []
        for chunk in self.chunks:
            if isinstance(chunk, StepStart):
                made.append([])
            elif made:
                made[-1].append(chunk)
        return made

    def of(self, kind: type[Any]) -> list[Any]:
        return [chunk for chunk in self.chunks if isinstance(chunk, kind)]

    def everything(self) -> str:
        """All that anybody outside can see."""
        shown = [to_wire(chunk) for chunk in self.chunks]
        return "\n".join(
            [
                json.dumps(shown, ensure_ascii=False),
                repr(self.result),
                repr(self.stored),
                *self.prompts,
                self.log,
            ]
        )


async def run(talk: Talk, processors: list[Any], how: str = "stream") -> Ran:
    tool_args: dict[str, Any] = {}

    @tool
    async def look(q: str, more: list[Any], ctx: ToolContext) -> Any:
        """Look."""
        tool_args[ctx.tool_call_id] = {"q": q, "more": more}
        answer = talk.answers[ctx.tool_call_id]
        await ctx.writer.custom({"type": "data-seen", "data": [answer]})
        if ctx.tool_call_id in talk.failing:
            raise ValueError(answer)
        return {"said": answer}

    model = ScriptedModel(*talk.calls)
    memory = Memory()
    agent = Agent(id="a", model=model, tools=[look], memory=memory, output_processors=processors)
    options: Any = {"memory": THREAD, "release": talk.release}
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    logging.getLogger("interlock").addHandler(handler)
    chunks: list[Chunk] = []
    try:
        if how == "stream":
            async with agent.stream("hi", **options) as stream:
                chunks = [chunk async for chunk in stream]
                result = await stream.result()
        else:
            result = await agent.generate("hi", **options)
    finally:
        logging.getLogger("interlock").removeHandler(handler)
    model.assert_used()
    return Ran(
        chunks=chunks,
        result=result,
        stored=await memory.messages("t", resource="r"),
        prompts=[json.dumps(call.prompt, ensure_ascii=False) for call in model.calls],
        tool_args=tool_args,
        log=said.getvalue(),
    )


def joined(chunks: list[Chunk], kind: type[Any] = TextDelta) -> str:
    of_kind: list[Any] = [chunk for chunk in chunks if isinstance(chunk, kind)]
    return "".join(chunk.text for chunk in of_kind)


def skeleton(chunks: list[Chunk]) -> list[Any]:
    """The chunks without what guards may change: texts, and how arguments are streamed."""
    kept: list[Any] = []
    for chunk in chunks:
        match chunk:
            case TextDelta() | ReasoningDelta() | ToolInputStart() | ToolInputDelta() | ToolInputEnd():
                continue
            case _:
                ids = [getattr(chunk, name, None) for name in ("id", "tool_call_id", "tool_name")]
                kept.append((chunk.type, *ids, getattr(chunk, "provider_metadata", None)))
    return kept


def marks(chunks: list[Chunk]) -> list[Any]:
    """The metadata of deltas, and the deltas that were empty from the start, each in its block."""
    return [
        (chunk.id, chunk.provider_metadata)
        for chunk in chunks
        if isinstance(chunk, TextDelta | ReasoningDelta) and chunk.provider_metadata is not None
    ]


def empties(chunks: list[Chunk]) -> list[str]:
    return [
        chunk.id
        for chunk in chunks
        if isinstance(chunk, TextDelta | ReasoningDelta)
        and not chunk.text
        and chunk.provider_metadata is None
    ]


def contents(ran: Ran, change: Callable[[str], str]) -> dict[str, Any]:
    """Everything of a run that is not a delta, changed as given."""
    return {
        "arguments": [map_strings(chunk.args, change) for chunk in ran.of(ToolCall)],
        "results": [map_strings(chunk.result, change) for chunk in ran.of(ToolResult)],
        "result arguments": [map_strings(c.args, change) for c in ran.of(ToolResult) + ran.of(ToolError)],
        "errors": [change(chunk.error) for chunk in ran.of(ToolError)],
        "sources": [[change(each or "") for each in (c.url, c.title, c.filename)] for c in ran.of(Source)],
        "data": [map_strings(chunk.data, change) for chunk in ran.of(DataChunk)],
        "ran with": {call: map_strings(args, change) for call, args in ran.tool_args.items()},
    }


async def check(talk: Talk) -> None:
    bare = await run(talk, [])
    guarded = await run(talk, list(guards(talk.rules)))
    expected = [whole(joined(step), talk.rules) for step in bare.steps()]
    text = "".join(expected)
    assert [joined(step) for step in guarded.steps()] == expected, "R0.2: what the client joins, step by step"
    assert [step.text for step in guarded.result.steps] == expected
    assert guarded.result.text == guarded.result.released_text == text, "R0.1"
    assert "".join(m.text for m in guarded.stored if m.role == "assistant") == text, "R0.1: stored"
    for number, prompt in enumerate(guarded.prompts):
        assert prompt_text(json.loads(prompt)) == "".join(expected[:number]), "R0.1: the next prompt"
    reasoning = [whole(joined(step, ReasoningDelta), talk.rules) for step in bare.steps()]
    assert [joined(step, ReasoningDelta) for step in guarded.steps()] == reasoning, "R0.3: reasoning"
    assert [step.reasoning for step in guarded.result.steps] == reasoning

    wanted = contents(bare, lambda each: whole(each, talk.rules))
    assert contents(guarded, lambda each: each) == wanted, "R0.3: every other channel"
    for call in guarded.of(ToolCall):
        deltas = [c.args_text for c in guarded.of(ToolInputDelta) if c.tool_call_id == call.tool_call_id]
        assert [json.loads(delta) for delta in deltas] == [call.args], (
            "R0.3: one delta of the final arguments"
        )

    assert skeleton(guarded.chunks) == skeleton(bare.chunks), "R4.6: order, ids, metadata"
    assert marks(guarded.chunks) == marks(bare.chunks), "each metadata once, in its order"
    assert empties(guarded.chunks) == empties(bare.chunks), "empty deltas pass"

    allowed = json.dumps([expected, reasoning, wanted], ensure_ascii=False)
    shown = guarded.everything()
    leaked = [each for each in SENTINELS if each in shown and each not in allowed]
    assert not leaked, f"R0.3: {leaked} of a removed span"

    again = await run(talk, list(guards(talk.rules)), "generate")
    assert (again.result.text, again.tool_args) == (text, guarded.tool_args), "R0.2: only awaited"


def prompt_text(prompt: list[Any]) -> str:
    """The assistant's text in a prompt."""
    parts = [part for message in prompt if message["role"] == "assistant" for part in message["content"]]
    return "".join(part["text"] for part in parts if part["type"] == "text")


@given(talk=talks())
@settings(max_examples=150)
def test_what_guards_remove_is_nowhere_however_the_stream_is_cut(talk: Talk) -> None:
    """For random conversations, cuts and guards in a row: the client's, the result's, the stored and the next
    prompt's text are what the guards make of the whole text of each step, and so is every string of every
    other channel; tools run with guarded arguments; no chunk of any kind, nor anything else, holds a piece of
    what was removed; ids, metadata, empty deltas and order are the model's.

    R0.1, R0.2, R0.3, R4.6, R4.8.
    """
    asyncio.run(check(talk))


# ---------------------------------------------------------------------------------------------------------- one guard

PIN = {"pin": r"\d{4}"}
WORDS = {"bad": r"bad words?"}
Simple = tuple[list[Chunk], RunResult, list[Message]]


async def ask(agent: Agent, memory: Memory, given: Any = "hi", thread: str = "t", **options: Any) -> Simple:
    """The chunks, the result and what is stored."""
    async with agent.stream(given, memory={"thread": thread, "resource": "r"}, **options) as stream:
        chunks = [chunk async for chunk in stream]
        result = await stream.result()
    return chunks, result, await memory.messages(thread, resource="r")


def shown(chunks: list[Chunk]) -> str:
    """All that a client gets, without ids made at random, which hold any digits by chance."""
    return re.sub(
        r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        "",
        json.dumps([to_wire(chunk) for chunk in chunks], ensure_ascii=False),
    )


def setup(*calls: Any, tools: Any = (), **options: Any) -> tuple[Agent, Memory, ScriptedModel]:
    memory = Memory()
    model = ScriptedModel(*calls)
    return Agent(id="a", model=model, tools=list(tools), memory=memory, **options), memory, model


@given(pieces=cut("well, xbad word! and more"), release=st.sampled_from(["live", "step", "run"]))
@settings(max_examples=40)
def test_a_blocked_phrase_never_begins_to_leave(pieces: list[str], release: Any) -> None:
    """Block: no part of the phrase nor anything behind it leaves, under live release too; the tripwire names
    the guard and says what was found where, without its text; nothing is stored.

    R0.3, R5.2, R8.2.
    """

    async def check() -> None:
        guard = RegexFilter(WORDS, id="words", strategy="block")
        agent, memory, _ = setup([text(*pieces)], output_processors=[guard])
        chunks, result, stored = await ask(agent, memory, release=release)
        sent = joined(chunks)
        assert "well, x".startswith(sent)
        assert "bad" not in shown(chunks[:-1])
        end = chunks[-1]
        assert isinstance(end, TripWireChunk)
        assert end.processor_id == "words"
        assert end.metadata == {"rule": "bad", "channel": "text", "offset": 7, "strategy": "block"}
        assert "word!" not in shown(chunks)
        assert result.tripwire is not None
        assert (result.text, result.finish_reason, stored) == ("", "other", [])
        assert [each.processor_id for each in result.violations] == ["words"]

    asyncio.run(check())


CHANNEL_SCRIPTS: dict[str, list[Any]] = {
    "reasoning": [reasoning("it is 12", "34"), text("ok")],
    "tool-arguments": [tool_call("look", {"q": "1234"}), text("ok")],
    "data": [DataChunk(type="data-x", data={"a": ["1234"]}), text("ok")],
    "sources": [Source(id="s", title="number 1234"), text("ok")],
    "text": [text("12", "34")],
}


@pytest.mark.anyio
@pytest.mark.parametrize("channel", list(CHANNEL_SCRIPTS))
async def test_a_block_works_in_every_channel_before_anything_leaves(channel: str) -> None:
    """A find in any channel blocks; no tool runs, nothing of it was sent. R0.3, R0.4, R5.2."""
    ran: list[str] = []

    @tool
    def look(q: str) -> str:
        """Look."""
        ran.append(q)
        return q

    guard = RegexFilter(PIN, strategy="block")
    agent, memory, _ = setup(CHANNEL_SCRIPTS[channel], [text("ok")], tools=[look], output_processors=[guard])
    chunks, result, stored = await ask(agent, memory)
    assert "1234" not in shown(chunks)
    assert result.tripwire is not None
    assert result.tripwire.metadata["channel"] == channel
    assert (ran, stored) == ([], [])


@pytest.mark.anyio
@pytest.mark.parametrize("channel", list(CHANNEL_SCRIPTS))
async def test_a_channel_left_out_is_not_touched_and_says_so(
    channel: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Without its channel the text passes as it is; description and log name what is not guarded. R2.1, R4.6."""

    @tool
    def look(q: str) -> str:
        """Look."""
        return "seen"

    caplog.set_level(logging.INFO, "interlock")
    others: Any = [each for each in ("input", "text", "reasoning", "tool-arguments", "tool-results", "data", "sources")
                   if each != channel]  # fmt: skip
    guard = RegexFilter(PIN, strategy="block", channels=others)
    assert guard.description == f"does not guard: {channel}"
    assert f"does not guard {channel}" in caplog.text
    agent, memory, _ = setup(CHANNEL_SCRIPTS[channel], [text("ok")], tools=[look], output_processors=[guard])
    chunks, result, _ = await ask(agent, memory)
    assert result.tripwire is None
    assert "1234" in shown(chunks) or joined(chunks, ReasoningDelta) == "it is 1234" or result.text == "1234"


@pytest.mark.anyio
async def test_streamed_arguments_of_an_unguarded_channel_pass_as_they_come() -> None:
    """Without ``tool-arguments`` the streamed arguments are the model's, delta by delta. R4.6."""
    guard = RegexFilter(PIN, channels=["text"])
    script = [
        ToolInputStart(tool_call_id="c", tool_name="look"),
        ToolInputDelta(tool_call_id="c", args_text='{"q": "12'),
        ToolInputDelta(tool_call_id="c", args_text='34"}'),
        ToolInputEnd(tool_call_id="c"),
        ToolCall(tool_call_id="c", tool_name="look", args={"q": "1234"}, provider_executed=True),
    ]
    agent, memory, _ = setup(script, output_processors=[guard])
    chunks, _, _ = await ask(agent, memory)
    deltas = [chunk.args_text for chunk in chunks if isinstance(chunk, ToolInputDelta)]
    assert deltas == ['{"q": "12', '34"}']


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "a [PIN] b"),
        ({"redaction": "mask"}, "a **** b"),
        ({"redaction": "remove"}, "a  b"),
        ({"redaction": "hash"}, "a [PIN:03ac6742] b"),
        ({"replacement": "#"}, "a # b"),
        ({"replacement": lambda rule, found: f"<{rule} {found[:1]}>"}, "a <pin 1> b"),
        ({"redaction": "remove", "replacement": "#"}, "a # b"),
        ({"strategy": "filter"}, "a  b"),
        ({"strategy": "filter", "replacement": "#"}, "a  b"),
        ({"strategy": "warn"}, "a 1234 b"),
        ({"strategy": "detect"}, "a 1234 b"),
    ],
)
@pytest.mark.anyio
async def test_what_a_strategy_makes_of_a_find(options: dict[str, Any], expected: str) -> None:
    """Each strategy and redaction gives its text, everywhere the same; all but detect record a violation, which
    never has the text; on_detection is told once, where, how long and what stands there now.

    R0.1, R2.6.
    """
    told: list[Any] = []
    guard = RegexFilter(PIN, id="pins", on_detection=told.append, **options)
    agent, memory, _ = setup([text("a 1", "23", "4 b")], output_processors=[guard])
    chunks, result, stored = await ask(agent, memory)
    assert joined(chunks) == result.text == stored[-1].text == expected
    [find] = told
    replacement = None if expected == "a 1234 b" else expected[2:-2]
    assert (find.rule, find.channel, find.offset, find.length) == ("pin", "text", 2, 4)
    assert (find.replacement, find.text) == (replacement, None)
    if options.get("strategy") == "detect":
        assert result.violations == []
    else:
        [violation] = result.violations
        assert violation.processor_id == "pins"
        assert violation.detail == {"rule": "pin", "channel": "text", "offset": 2}
        assert "1234" not in repr(violation)


@pytest.mark.anyio
async def test_a_masks_format_and_the_text_of_a_report() -> None:
    """A mask keeps length and format; ``report_text`` gives the text to on_detection, still not to violations.

    R2.6.
    """
    told: list[Any] = []
    rules = {"phone": r"\d+-\d+"}
    guard = RegexFilter(rules, redaction="mask", report_text=True, on_detection=told.append)
    agent, memory, _ = setup([text("call 555-12 now")], output_processors=[guard])
    _, result, _ = await ask(agent, memory)
    assert result.text == "call ***-** now"
    assert [find.text for find in told] == ["555-12"]
    assert "555" not in repr(result.violations)


@pytest.mark.anyio
async def test_detections_are_told_in_order_with_offsets_in_the_whole_text_of_the_step() -> None:
    """Offsets count from the start of the step's text, over blocks and over what was let go long ago. R0.4."""
    told: list[Any] = []
    guard = RegexFilter(PIN, on_detection=told.append)
    script = [text("1234", " ", id="a"), reasoning("no"), text("x" * 20_000, "y1111", id="b")]
    agent, memory, _ = setup(script, output_processors=[guard])
    await ask(agent, memory)
    assert [(find.offset, find.length) for find in told] == [(0, 4), (20_006, 4)]


# -------------------------------------------------------------------------------------------------------------- input


@pytest.mark.anyio
async def test_everything_readable_in_the_input_is_guarded() -> None:
    """Text (also around files, as one text), the fallback of old rows, reasoning, tool calls and results and
    their errors, names of files and sources, data: neither the model nor the store gets what was removed.

    R0.3, R4.1.
    """
    guard = RegexFilter({"pin": r"\d{4}", "split": "open sesame"})
    parts: list[Any] = [
        TextPart(text="my pin 1234, open "),
        FilePart(mime_type="image/png", data="AAAA", filename="scan 1234.png"),
        TextPart(text="sesame"),
        ReasoningPart(text="1234?"),
        ToolInvocationPart(
            tool_call_id="c", tool_name="t", args={"q": "1234"}, state="result", result={"r": ["1234", 5]}
        ),
        ToolInvocationPart(tool_call_id="d", tool_name="t", state="output-error", error_text="no 1234"),
        SourcePart(source={"sourceType": "url", "id": "9999", "url": "https://x/1234", "title": "1234"}),
        DataPart(type="data-x", data={"n": "1234"}),
    ]
    message = Message(id="m", role="assistant", content=Content(parts=parts))
    agent, memory, model = setup([text("ok")], input_processors=[guard])
    chunks, _, stored = await ask(agent, memory, [message, {"role": "user", "content": "and 4321"}])
    contents = repr([row.content for row in stored])  # not their ids and times
    assert "1234" not in contents
    assert "4321" not in contents
    assert "1234" not in shown(chunks)
    assert "1234" not in model.calls[0].prompt_text
    assert "1234" not in json.dumps(model.calls[0].prompt)
    kept: list[Any] = stored[0].content.parts
    assert (kept[0].text, kept[2].text) == ("my pin [PIN], [SPLIT]", "")
    assert (kept[1].data, kept[1].filename) == ("AAAA", "scan [PIN].png")
    assert (kept[4].args, kept[4].result) == ({"q": "[PIN]"}, {"r": ["[PIN]", 5]})
    assert kept[6].source == {"sourceType": "url", "id": "9999", "url": "https://x/[PIN]", "title": "[PIN]"}
    old = Message(id="o", role="user", content=Content(parts=[], content="old 1234"))
    agent, memory, model = setup([text("ok")], input_processors=[guard])
    await ask(agent, memory, old)
    assert model.calls[0].prompt_text == "old [PIN]"


@pytest.mark.anyio
async def test_an_input_message_without_finds_stays_the_same() -> None:
    """A guard that finds nothing changes nothing: parts, ids, the order. R3.5."""
    guard = RegexFilter(PIN)
    message = Message(id="m", role="user", content=Content(parts=[TextPart(text="a"), TextPart(text="")]))
    agent, memory, _ = setup([text("ok")], input_processors=[guard])
    _, _, stored = await ask(agent, memory, message)
    assert stored[0].id == "m"
    assert stored[0].content.parts == [TextPart(text="a"), TextPart(text="")]


@pytest.mark.anyio
async def test_remembered_messages_are_not_touched_and_context_is_guarded() -> None:
    """What memory brings was judged when it came; what the call brings as context is guarded too. R3.5, R4.1."""
    agent, memory, model = setup([text("one")], [text("two")], [text("three")])
    await ask(agent, memory, "old 1111")
    guard = RegexFilter(PIN)
    given: Any = {"input_processors": [guard], "context": [{"role": "user", "content": "side 2222"}]}
    _, _, stored = await ask(agent, memory, "new 3333", **given)
    assert [message.text for message in stored] == ["old 1111", "one", "new [PIN]", "two"]
    assert "old 1111" in model.calls[1].prompt_text
    assert "side [PIN]" in model.calls[1].prompt_text
    blocking = RegexFilter(PIN, strategy="block")
    _, result, _ = await ask(agent, memory, "fine", input_processors=[blocking])
    assert result.tripwire is None


@pytest.mark.anyio
async def test_a_blocked_input_goes_nowhere() -> None:
    """The model is not asked, only the tripwire goes out, nothing is stored. R5.1, R5.2, R8.2."""
    guard = RegexFilter(PIN, id="pins", strategy="block")
    agent, memory, model = setup([text("ok")], input_processors=[guard])
    chunks, result, stored = await ask(agent, memory, "it is 1234")
    assert [chunk.type for chunk in chunks] == ["tripwire"]
    assert result.tripwire is not None
    assert result.tripwire.processor_id == "pins"
    assert result.tripwire.metadata == {"rule": "pin", "channel": "input", "offset": 6, "strategy": "block"}
    assert (model.calls, stored) == ([], [])
    assert "1234" not in repr(result.tripwire) + repr(result.violations) + shown(chunks)


@pytest.mark.anyio
async def test_one_guard_in_both_lists() -> None:
    """The same object guards what comes in and what goes out. R2.5."""
    guard = RegexFilter(PIN)
    agent, memory, model = setup([text("not 56", "78")], input_processors=[guard], output_processors=[guard])
    _, result, stored = await ask(agent, memory, "my 1234")
    assert "my [PIN]" in model.calls[0].prompt_text
    assert result.text == "not [PIN]"
    assert [message.text for message in stored] == ["my [PIN]", "not [PIN]"]
    assert [each.detail["channel"] for each in result.violations] == ["input", "text"]


@pytest.mark.anyio
async def test_runs_at_the_same_time_share_nothing() -> None:
    """One guard object in many runs at once: each has its own text under way. R6."""
    guard = RegexFilter(PIN)

    class Slow:
        """Says its own number, a character at a time."""

        provider, model_id = "slow", "slow"

        async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
            said = json.dumps(str(request.prompt))
            name = regex.search(r"run(\d+)", said)
            assert name is not None
            for piece in f"<{name[1]}> 1234 x":
                await asyncio.sleep(0)
                yield TextDelta(text=piece)

    agent = Agent(id="a", model=Slow(), output_processors=[guard])
    results = await asyncio.gather(*(agent.generate(f"run{number}") for number in range(20)))
    assert [each.text for each in results] == [f"<{number}> [PIN] x" for number in range(20)]


# --------------------------------------------------------------------------------------- attempts, and what they hold


class Picky(Processor):
    """Rejects the first answer of a step, where it is told to."""

    id = "picky"

    def __init__(self, where: str) -> None:
        self.where = where

    def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
        if self.where == "stream" and isinstance(chunk, Source) and ctx.retry_count == 0:
            ctx.abort("again", retry=True)
        return chunk

    def process_output_step(self, output: Any, ctx: Any) -> None:
        if self.where == "step" and ctx.retry_count == 0:
            ctx.abort("again", retry=True)

    def process_output_result(self, result: Any, ctx: Any) -> None:
        if self.where == "result" and ctx.retry_count == 0:
            ctx.abort("again", retry=True)

    def process_api_error(self, error: Any, ctx: Any) -> Retry | None:
        return Retry() if self.where == "error" else None


class HideSteps(Processor):
    """Hides the borders of steps and attempts from everybody behind it."""

    id = "hide-steps"

    def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk | None:
        return None if isinstance(chunk, StepStart | StepFinish) else chunk


@pytest.mark.anyio
@pytest.mark.parametrize("hidden", [False, True], ids=["", "borders hidden"])
@pytest.mark.parametrize("where", ["stream", "step", "result", "error"])
async def test_what_a_rejected_attempt_held_never_comes_out(where: str, hidden: bool) -> None:
    """A retry from any hook, or after a failed call, starts with a text of its own: what the guard still held of
    the rejected one is gone, even if another processor hides the borders of the attempts.

    R4.5, R7.3.
    """
    guard = RegexFilter({"far": r"\d+[^;]*;"}, id="guard")
    picky = Picky(where)
    row: list[Any] = [HideSteps()] if hidden else []
    row += [picky, guard] if where == "stream" else [guard, picky]
    first: list[Any] = [text("told ", "12 held")]
    first += [error(400, "no")] if where == "error" else [Source(id="s", title="x")]
    agent, memory, _ = setup(
        first,
        [text("fine; ", "7 ", "x; end")],
        output_processors=row,
        error_processors=[picky],
        max_processor_retries=2,
    )
    for release in ("live", "run"):
        agent, memory, _ = setup(
            first, [text("fine; ", "7 ", "x; end")], output_processors=row, error_processors=[picky],
            max_processor_retries=2,
        )  # fmt: skip
        chunks, result, stored = await ask(agent, memory, release=release)
        assert result.text == stored[-1].text == "fine; [FAR] end"
        assert joined(chunks).endswith("fine; [FAR] end")
        if where != "step" and where != "result":
            assert "held" not in shown(chunks)


class Stuck:
    """A model whose stream never comes to the source."""

    provider, model_id = "stuck", "stuck"

    def __init__(self, inner: ScriptedModel) -> None:
        self.inner = inner

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        async for chunk in self.inner.stream(request):
            if isinstance(chunk, Source):
                await asyncio.Event().wait()
            yield chunk


class Stop(Processor):
    """Ends the run at a source."""

    id = "stop"

    def __init__(self, how: str) -> None:
        self.how = how

    def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
        if isinstance(chunk, Source):
            if self.how == "tripwire":
                ctx.abort("no")
            raise ValueError("broken")
        return chunk


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["tripwire", "error", "model", "cancel"])
async def test_held_text_is_not_sent_when_the_run_ends_badly(how: str) -> None:
    """On a tripwire, an error, a provider's failure or a cancellation, what the guard held is never sent nor
    stored. R5.2, R5.4, R5.5, R8.2.
    """
    guard = RegexFilter({"far": r"\d+[^;]*;"}, id="guard")
    script: list[Any] = [text("told ", "12 held")]
    script += [error(400, "no")] if how == "model" else [Source(id="s", title="x")]
    row: list[Any] = [Stop(how), guard] if how in ("tripwire", "error") else [guard]
    agent, memory, model = setup(script, output_processors=row)
    agent = (
        agent if how != "cancel" else Agent(id="a", model=Stuck(model), memory=memory, output_processors=row)
    )
    chunks: list[Chunk] = []
    async with agent.stream("hi", memory=THREAD) as stream:
        try:
            async for chunk in stream:
                chunks.append(chunk)
                if how == "cancel" and isinstance(chunk, TextDelta):
                    await stream.cancel()
        except (ValueError, ModelError):
            assert how in ("error", "model")
    stored = await memory.messages("t", resource="r")
    assert joined(chunks) == "told "
    assert "held" not in shown(chunks) + repr(stored)
    if how in ("model", "cancel"):
        assert stored[-1].text == "told ", "R8.2: what was released"


class HideFinish(Processor):
    """Hides the model's finish from everybody behind it."""

    id = "hide-finish"

    def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk | None:
        return None if isinstance(chunk, Finish) else chunk


@pytest.mark.anyio
async def test_held_text_leaves_even_if_another_processor_hides_the_finish() -> None:
    """A guard that does not see the model's finish decides at the end of the step. R0.2, R4.6."""
    guard = RegexFilter({"far": r"\d+[^;]*;"}, id="guard")
    agent, memory, _ = setup([text("told ", "12 held")], output_processors=[HideFinish(), guard])
    chunks, result, stored = await ask(agent, memory)
    assert joined(chunks) == result.text == stored[-1].text == "told 12 held"


# ----------------------------------------------------------------------------------------------------- failing checks

SLOW = {"slow": r"(?:a|aa)+$"}
SLOW_TEXT = "x " + "a" * 60 + "b" + " the rest"


@pytest.mark.anyio
async def test_a_failed_check_blocks_when_strict() -> None:
    """A pattern that takes too long is a tripwire with ``check_failed``; nothing of the text was sent. R5.4."""
    guard = RegexFilter(SLOW, id="slow", timeout=0.01)
    agent, memory, _ = setup([text(SLOW_TEXT)], output_processors=[guard])
    chunks, result, stored = await ask(agent, memory)
    assert result.tripwire is not None
    assert result.tripwire.metadata == {"check_failed": True}
    assert result.tripwire.processor_id == "slow"
    assert joined(chunks) == ""
    assert "aaa" not in shown(chunks) + repr(result)
    assert stored == []


@pytest.mark.anyio
@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_failed_check_lets_the_text_go_when_told_to_warn(size: int) -> None:
    """With ``warn`` the failure is one violation, and all of the text goes on unchanged and in order. R5.4."""
    guard = RegexFilter(SLOW, id="slow", timeout=0.01, error_strategy="warn")
    pieces = [SLOW_TEXT[at : at + size] for at in range(0, len(SLOW_TEXT), size)]
    script = [text(*pieces, id="a"), reasoning("hm"), text(" end", id="b")]
    agent, memory, _ = setup(script, output_processors=[guard])
    chunks, result, stored = await ask(agent, memory)
    assert joined(chunks) == result.text == stored[-1].text == SLOW_TEXT + " end"
    assert [each.detail for each in result.violations] == [{"check_failed": True}]
    assert "aaa" not in repr(result.violations)
    blocks_seen = [chunk.type for chunk in chunks if chunk.type.endswith(("start", "end"))]
    assert blocks_seen[2:8] == [
        "text-start",
        "text-end",
        "reasoning-start",
        "reasoning-end",
        "text-start",
        "text-end",
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("strategy", ["strict", "warn"])
async def test_too_much_held_text_is_a_failed_check(strategy: Any) -> None:
    """A rule that cannot make up its mind counts as a failed check once more than 64k wait. R4.6, R5.4."""
    guard = RegexFilter({"open": r"<[^>]*>"}, error_strategy=strategy)
    said = ["x <", *(["y" * 10_000] * 8), "z"]
    agent, memory, _ = setup([text(*said)], output_processors=[guard])
    chunks, result, _ = await ask(agent, memory)
    if strategy == "strict":
        assert joined(chunks) == "x "
        assert result.tripwire is not None
        assert result.tripwire.metadata == {"check_failed": True}
    else:
        assert joined(chunks) == result.text == "".join(said)


def _raises(*given: str) -> Any:
    raise KeyError(given[-1])


def _nothing(*given: str) -> Any:
    return None


@pytest.mark.anyio
@pytest.mark.parametrize("strategy", ["strict", "warn"])
@pytest.mark.parametrize(
    ("options", "instead"),
    [
        ({"replacement": _raises}, "[PIN]"),
        ({"replacement": _nothing}, "[PIN]"),
        ({"rules": [Rule(pattern=ExactPattern("pin", r"\d{4}"), accept=_raises)]}, "1234"),
    ],
    ids=["a replacement raises", "a replacement is no text", "a check raises"],
)
async def test_a_users_function_that_fails_is_a_failed_check(
    options: dict[str, Any], instead: str, strategy: Any
) -> None:
    """What was found does not stay since nothing stands for it, and what the function says, which may be the text
    (``KeyError: '1234'``), is in no error. R0.3, R5.4.
    """
    given: dict[str, Any] = {"rules": {"pin": r"\d{4}"}, "error_strategy": strategy, **options}
    guard = RegexFilter(**given)
    agent, memory, _ = setup([text("a 12", "34 b")], output_processors=[guard])
    chunks, result, stored = await ask(agent, memory)
    if strategy == "strict":
        assert result.tripwire is not None
        assert result.tripwire.metadata == {"check_failed": True}
        assert joined(chunks) == "a "
        assert "1234" not in shown(chunks) + repr(result)
        assert stored == []
    else:
        assert joined(chunks) == result.text == stored[-1].text == f"a {instead} b"
        assert {"check_failed": True} in [each.detail for each in result.violations]
        assert "1234" not in repr(result.violations)


@pytest.mark.anyio
async def test_what_a_failed_function_said_is_not_the_errors_context() -> None:
    """Neither the error nor anything it is chained to holds the text, without the agent too. R0.3."""
    with pytest.raises(TripWireError) as caught:
        await guard_text("a 1234 b", [RegexFilter({"pin": r"\d{4}"}, replacement=_raises)])
    problem: BaseException | None = caught.value
    chain: list[BaseException] = []
    while problem is not None:
        chain.append(problem)
        problem = problem.__cause__ or problem.__context__
    assert "1234" not in repr(chain)


@pytest.mark.anyio
async def test_reasoning_blocks_that_alternate_hold_what_guards_made_of_them() -> None:
    """Guards judge reasoning in the order it came; parts joined in another would be what they remove. R0.1, R0.3."""
    deltas = [("a", "12"), ("b", " x "), ("a", "34"), ("b", "5"), ("a", "678")]
    script = [
        *(ReasoningStart(id="a"), ReasoningStart(id="b")),
        *(ReasoningDelta(each, id=id) for id, each in deltas),
        *(ReasoningEnd(id="a"), ReasoningEnd(id="b"), text("ok")),
    ]
    agent, memory, _ = setup(script, output_processors=[RegexFilter({"pin": r"\d{4}"})])
    chunks, result, stored = await ask(agent, memory)
    said = "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningDelta))
    assert said == "12 x [PIN]78"
    parts = [part.text for part in stored[-1].content.parts if isinstance(part, ReasoningPart)]
    assert "".join(parts) == result.reasoning == said
    assert "1234" not in repr(parts)


# --------------------------------------------------------------------------------------------------- tools and values


@dataclass
class Row:
    """Something that is no JSON."""

    note: str
    inner: list[Any] = field(default_factory=list[Any])


@pytest.mark.anyio
async def test_values_that_are_no_json_are_guarded_as_the_client_would_see_them() -> None:
    """Objects in custom data and in a provider's raw result hide nothing; those without a find stay what they
    are. R0.3, R4.8.
    """
    seen: list[Any] = []

    class Look(Processor):
        id = "look"

        def process_tool_result(self, result: ToolResult, ctx: Any) -> None:
            seen.append(result.result)

    fine = Row("fine")
    script = [
        ToolCall(tool_call_id="p", tool_name="theirs", args={}, provider_executed=True),
        ToolResult(tool_call_id="p", tool_name="theirs", result=Row("1234", [Row("5678")])),
        ToolCall(tool_call_id="q", tool_name="theirs", args={}, provider_executed=True),
        ToolResult(tool_call_id="q", tool_name="theirs", result=fine),
        DataChunk(type="data-x", data=Row("1234", [{"1", "1234"}])),
    ]
    agent, memory, _ = setup(script, output_processors=[RegexFilter(PIN), Look()])
    chunks, result, stored = await ask(agent, memory)
    assert seen == [{"note": "[PIN]", "inner": [{"note": "[PIN]", "inner": []}]}, fine]
    assert "1234" not in shown(chunks) + repr(result) + repr(stored)


@pytest.mark.anyio
async def test_a_call_that_could_not_be_read_shows_nothing_of_it() -> None:
    """Why arguments were unreadable is guarded too: the model's next prompt and the client get it. R0.3, R1.2h."""
    script = [
        ToolInputStart(tool_call_id="c", tool_name="look"),
        ToolInputDelta(tool_call_id="c", args_text='{"q": 1234'),
        ToolCall(tool_call_id="c", tool_name="look", invalid="cut off at 1234"),
    ]
    agent, memory, model = setup(script, [text("ok")], output_processors=[RegexFilter(PIN)])
    chunks, result, stored = await ask(agent, memory)
    assert "1234" not in shown(chunks) + repr(result) + repr(stored) + repr(model.calls[1].prompt)


@pytest.mark.anyio
async def test_a_call_is_the_tools_and_the_clients_alike() -> None:
    """A call that the model's deltas did not announce is told like any other, once per guard in a row. R4.6."""
    ran: list[Any] = []

    @tool
    def look(q: str) -> str:
        """Look."""
        ran.append(q)
        return f"{q} has 9999"

    row = [RegexFilter(PIN, id="one"), RegexFilter({"b": "PIN"}, id="two")]
    agent, memory, model = setup(
        [tool_call("look", {"q": "1234"}, id="c")], [text("ok")], tools=[look], output_processors=row
    )
    chunks, _, stored = await ask(agent, memory)
    assert ran == ["[[B]]"]
    order = [chunk.type for chunk in chunks if chunk.type.startswith("tool")]
    assert order == [
        "tool-call-input-streaming-start",
        "tool-call-delta",
        "tool-call-input-streaming-end",
        "tool-call",
        "tool-result",
    ]
    [part] = [part for part in stored[-1].content.parts if isinstance(part, ToolInvocationPart)]
    assert (part.args, part.result) == ({"q": "[[B]]"}, "[[B]] has [[B]]")
    assert "9999" not in repr(model.calls[1].prompt)


@pytest.mark.anyio
async def test_a_providers_result_behind_text_that_waits() -> None:
    """A provider's result whose call still waits behind undecided text comes out behind it. R1.2g, R4.8."""
    script = [
        text("see 12", id="a"),
        ToolCall(tool_call_id="p", tool_name="theirs", args={}, provider_executed=True),
        ToolResult(tool_call_id="p", tool_name="theirs", result="found 1234"),
        text("34", id="b"),
    ]
    agent, memory, _ = setup(script, output_processors=[RegexFilter({"pin": r"\d{4}"})])
    chunks, result, _ = await ask(agent, memory)
    assert result.text == "see [PIN]"
    assert [chunk.result for chunk in chunks if isinstance(chunk, ToolResult)] == ["found [PIN]"]


# ------------------------------------------------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"strategy": "hide"}, "strategy must be one of redact, block, filter, warn, detect, not 'hide'"),
        ({"redaction": "stars"}, "redaction must be one of"),
        ({"error_strategy": "open"}, "error_strategy must be one of strict, warn"),
        ({"channels": ["text", "images"]}, "channels are input, text"),
        ({"channels": "text"}, "channels are input, text"),
        ({"replacement": 5}, "replacement is a text or a function"),
    ],
)
def test_unknown_options_are_refused_with_the_known_ones(options: dict[str, Any], says: str) -> None:
    """A typing error must not turn a guard off. R2.4."""
    with pytest.raises(UsageError, match=says):
        RegexFilter(PIN, id="mine", **options)


def test_a_guard_of_everything_has_no_description_of_gaps() -> None:
    """With all channels there is nothing to warn of. R2.1."""
    assert not RegexFilter(PIN).description


class Progress(Processor):
    """Tells of each delta by custom data, from its stream hook; the guards behind it see that."""

    id = "progress"

    def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
        if isinstance(chunk, TextDelta):
            ctx.writer.custom({"type": "data-seen", "data": {"pin": "1234"}})
        return chunk


class Whole(UnitGuard):
    """Holds everything until the text is complete."""

    def judge(self, unit: Unit, ctx: Any) -> Verdict:
        return Verdict.replace("[PIN]") if unit.text == "1234" else Verdict.allow()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "guard",
    [
        lambda: RegexFilter({"pin": "1234", "end": "z$"}),
        lambda: Whole(id="w", unit="answer", strategy="redact"),
    ],
    ids=["patterns", "units"],
)
async def test_custom_data_waits_for_no_text(guard: Any) -> None:
    """Custom data goes out at once, guarded, also while the text in front of it is held; under ``live`` as under every
    policy. R7.5, R0.3.
    """
    model = ScriptedModel([text("zz", "z", "z!")])
    agent = Agent(id="a", model=model, output_processors=[Progress(), guard()])
    order: list[str] = []
    async with agent.stream("hi", release="live") as stream:
        async for chunk in stream:
            if isinstance(chunk, DataChunk):
                assert chunk.data == {"pin": "[PIN]"}
            if isinstance(chunk, DataChunk | TextDelta):
                order.append(chunk.type)
        assert (await stream.result()).text == "zzzz!"
    assert order[0] == "data-seen"
    if isinstance(guard(), UnitGuard):
        assert order == ["data-seen"] * 3 + ["text-delta"]
    assert order.count("data-seen") == 3
