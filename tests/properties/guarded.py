"""A text through an agent that guards it, in one channel, and what everybody then has of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias, cast, get_args

from drawn import Drawn, rows, through_all
from hypothesis import strategies as st

from interlock import Agent, RunResult, tool
from interlock.chunks import (
    Chunk,
    DataChunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
    ToolResult,
)
from interlock.memory import Memory
from interlock.messages import DataPart, ReasoningPart, SourcePart, TextPart, ToolInvocationPart
from interlock.testing import ScriptedModel, text

THREAD = {"thread": "t", "resource": "r"}
ALPHABET = "aab1 \n-A.éß"

ChannelName: TypeAlias = Literal[
    "text", "reasoning", "tool-arguments", "tool-results", "data", "sources", "input"
]
CHANNELS: tuple[ChannelName, ...] = get_args(ChannelName)
Form: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A text, cut, in a channel, through guards in a row.

    Attributes:
        pieces: the text's pieces; None between two blocks.
        again: a second turn follows, so that the next prompt can be looked at.
    """

    channel: ChannelName
    row: tuple[Drawn, ...]
    text: str
    pieces: tuple[str | None, ...]
    mode: str
    release: Any
    again: bool

    @property
    def holder(self) -> Any:
        """Where the text is in this channel: in keys and in values of an object, or alone."""
        match self.channel:
            case "tool-arguments":
                return {"q": {self.text: [self.text]}}
            case "tool-results" | "data":
                return {"q": [self.text, 1], self.text: {self.text: None}}
            case _:
                return self.text

    @property
    def wanted(self) -> Any:
        """What the guards make of it."""
        value = self.holder
        for number, drawn in enumerate(self.row):
            value = _redacted(value, lambda text, n=number, d=drawn: through_all([d], text, n))
        return value


def _redacted(value: Any, guard: Callable[[str], str]) -> Any:
    """A value with all its texts guarded, said a second time; of keys that become the same each has its number."""
    if isinstance(value, str):
        return guard(value)
    if isinstance(value, list):
        return [_redacted(inner, guard) for inner in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    given = cast(Form, value)
    made: Form = {}
    kept = [key for key in given if guard(key) == key]
    for key, inner in given.items():
        name = guard(key)
        others = [*kept, *made]
        if name != key and name in others:
            name = next(n for i in range(2, 9) if (n := f"{name} ({i})") not in others)
        made[name] = _redacted(inner, guard)
    return made


@st.composite
def cases(draw: st.DrawFn, channel: ChannelName, count: int) -> list[Case]:
    """Cases of this channel, so many for the same guards: to draw guards costs most."""
    row = draw(rows())
    texts = st.text(ALPHABET, min_size=1 if channel == "input" else 0, max_size=16)
    return [draw(a_run_of(channel, row, draw(texts))) for _ in range(count)]


@st.composite
def a_run_of(draw: st.DrawFn, channel: ChannelName, row: tuple[Drawn, ...], whole: str) -> Case:
    """A text through these guards, cut, streamed and released somehow."""
    return Case(
        channel=channel,
        row=row,
        text=whole,
        pieces=tuple(draw(_pieces(whole))),
        mode=draw(st.sampled_from(["stream", "stream", "generate"])),
        release=draw(st.sampled_from(["live", "live", "step", "run"])),
        again=draw(st.booleans()),
    )


@st.composite
def _pieces(draw: st.DrawFn, whole: str) -> list[str | None]:
    places = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    borders = draw(st.sets(st.integers(1, 8), max_size=2))
    pieces: list[str | None] = []
    for number, (start, end) in enumerate(pairwise([0, *places, len(whole)])):
        pieces += [None, whole[start:end]] if number in borders else [whole[start:end]]
    return pieces


# --------------------------------------------------------------------------------------------- what the model says


def _blocks(case: Case) -> list[Chunk]:
    """The text in blocks; a block of the other kind stands between two.

    A unit of reasoning ends where text follows it: with judges in the row that block is empty.
    """
    if case.channel == "text":
        start, delta, end = TextStart, TextDelta, TextEnd
        between: list[Chunk] = [ReasoningStart(id="x"), ReasoningEnd(id="x")]
    else:
        start, delta, end = ReasoningStart, ReasoningDelta, ReasoningEnd
        said = "" if any(drawn.unit for drawn in case.row) else "said"
        between = [TextStart(id="x"), TextDelta(id="x", text=said), TextEnd(id="x")]
    chunks: list[Chunk] = [start(id="b0")]
    number = 0
    for piece in case.pieces:
        if piece is None:
            chunks += [end(id=f"b{number}"), *between, start(id=f"b{number + 1}")]
            number += 1
        else:
            chunks.append(delta(id=f"b{number}", text=piece))
    return [*chunks, end(id=f"b{number}")]


def _call(case: Case) -> list[Chunk]:
    """A call with the text in its arguments, streamed as JSON in pieces."""
    written = json.dumps(case.holder, ensure_ascii=False)
    cuts = sorted({min(len(written), len(piece or "") * 3) for piece in case.pieces})
    return [
        ToolInputStart(tool_call_id="c", tool_name="look"),
        *(
            ToolInputDelta(tool_call_id="c", args_text=written[start:end])
            for start, end in pairwise([0, *cuts, len(written)])
        ),
        ToolCall(tool_call_id="c", tool_name="look", args=case.holder),
    ]


def _script(case: Case) -> list[Any]:
    match case.channel:
        case "text" | "reasoning":
            return _blocks(case)
        case "tool-arguments":
            return _call(case)
        case "tool-results":
            return [ToolCall(tool_call_id="c", tool_name="tell", args={})]
        case "data":
            return [DataChunk(type="data-note", data=case.holder), text("ok")]
        case "sources":
            return [Source(id="s", url="u", title=case.text), text("ok")]
        case "input":
            return [text("ok")]


# ----------------------------------------------------------------------------------------------------- a run of it


_asked: ContextVar[list[Any]] = ContextVar("asked")
_told: ContextVar[Any] = ContextVar("told")


@tool
def look(q: dict[str, list[str]]) -> str:
    """Look."""
    _asked.get().append({"q": q})
    return ""


@tool
def tell() -> Any:
    """Tell."""
    return _told.get()


TOOLS = [look, tell]  # made once: to read a signature takes as long as a run


@dataclass(frozen=True)
class Seen:
    """What everybody has of the text, by place; and all that the client, the tool, the model and storage got."""

    places: Form
    chunks: list[Chunk]
    result: RunResult
    asked: list[Any]
    stored: list[Any]
    calls: int


async def seen(case: Case, options: Sequence[Form] = ()) -> Seen:
    """Run the case and, unless it was blocked, a second turn if there is to be one; then look everywhere.

    Args:
        case: the case.
        options: for each guard of the row.
    """
    asked: list[Any] = []
    _asked.set(asked)
    _told.set(case.holder)
    only: Form = {} if case.channel != "reasoning" else {"channels": ["reasoning"]}
    given = list(options) or [{}] * len(case.row)
    guards = [drawn.made(number, **only, **given[number]) for number, drawn in enumerate(case.row)]
    lists: Form = {"input_processors" if case.channel == "input" else "output_processors": guards}
    model = ScriptedModel(_script(case), [text("yes")], [text("yes")])
    memory = Memory()
    agent = Agent(id="a", model=model, tools=TOOLS, memory=memory, **lists)
    chunks, result = await _run(agent, case)
    calls = len(model.calls)
    places: Form = {}
    if result.tripwire is None and case.again:
        unguarded: Form = {key: [] for key in lists}
        await agent.generate("again", memory=THREAD, **unguarded)
    rows = await memory.messages("t", resource="r")
    if result.tripwire is None:
        prompt = [part for message in model.calls[-1].prompt for part in _parts(message)]
        places = {
            name: found
            for name, found in _PLACES[case.channel](chunks, result, rows, prompt).items()
            if (case.mode == "stream" or name not in _SENT) and (case.again or name != "prompt")
        }
        if case.channel == "tool-arguments" and list(case.wanted) == ["q"]:
            places["tool"] = asked  # else the call does not fit its tool any more
    return Seen(places, chunks, result, asked, rows, calls)


async def _run(agent: Agent, case: Case) -> tuple[list[Chunk], RunResult]:
    given: Any = "hi"
    if case.channel == "input":
        parts = [{"type": "text", "text": piece} for piece in case.pieces if piece]
        given = [{"role": "user", "content": parts or "."}]
    if case.mode == "generate":
        return [], await agent.generate(given, memory=THREAD, release=case.release)
    async with agent.stream(given, memory=THREAD, release=case.release) as stream:
        chunks = [chunk async for chunk in stream]
        return chunks, await stream.result()


def _parts(message: Form) -> list[tuple[str, Form]]:
    content: Any = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return [(message["role"], part) for part in content]


# ----------------------------------------------------------------------------------------- where the text then is

_SENT = ("client", "deltas")


def _of(kind: type[Any], found: Sequence[Any]) -> list[Any]:
    return [each for each in found if isinstance(each, kind)]


def _joined(kind: type[Any], found: Sequence[Any]) -> str:
    return "".join(each.text for each in _of(kind, found))


def _kept(rows: Sequence[Any], kind: type[Any]) -> list[Any]:
    return _of(kind, [part for row in rows for part in row.content.parts])


def _prompted(prompt: Sequence[tuple[str, Form]], kind: str, role: str) -> list[Form]:
    return [part for of, part in prompt if part["type"] == kind and of == role]


def _text(chunks: list[Chunk], result: RunResult, rows: list[Any], prompt: list[Any]) -> Form:
    return {
        "client": _joined(TextDelta, chunks),
        "result": result.text,
        "released": result.released_text,
        "stored": _joined(TextPart, _answer(rows)),
        "prompt": "".join(part["text"] for part in _prompted(prompt, "text", "assistant")),
    }


def _answer(rows: list[Any]) -> list[Any]:
    """The parts of the first turn's answer; an answer without any text has no row."""
    roles = [row.role for row in rows]
    until = roles.index("user", 1) if "user" in roles[1:] else len(roles)
    return [part for row in rows[1:until] for part in row.content.parts]


def _reasoning(chunks: list[Chunk], result: RunResult, rows: list[Any], prompt: list[Any]) -> Form:
    return {
        "client": _joined(ReasoningDelta, chunks),
        "result": result.reasoning,
        "stored": _joined(ReasoningPart, _answer(rows)),
        "prompt": "".join(part["text"] for part in _prompted(prompt, "reasoning", "assistant")),
    }


def _arguments(chunks: list[Chunk], result: RunResult, rows: list[Any], prompt: list[Any]) -> Form:
    deltas = _of(ToolInputDelta, chunks)
    return {
        "client": [chunk.args for chunk in _of(ToolCall, chunks)],
        "deltas": [json.loads("".join(chunk.args_text for chunk in deltas))] if deltas else [],
        "result": [call.args for call in result.tool_calls],
        "stored": [part.args for part in _kept(rows, ToolInvocationPart)],
        "prompt": [part["input"] for part in _prompted(prompt, "tool-call", "assistant")],
    }


def _results(chunks: list[Chunk], result: RunResult, rows: list[Any], prompt: list[Any]) -> Form:
    return {
        "client": [chunk.result for chunk in _of(ToolResult, chunks)],
        "result": [each.result for each in result.tool_results],
        "stored": [part.result for part in _kept(rows, ToolInvocationPart)],
        "prompt": [part["output"]["value"] for part in _prompted(prompt, "tool-result", "tool")],
    }


def _data(chunks: list[Chunk], result: RunResult, rows: list[Any], prompt: list[Any]) -> Form:
    return {
        "client": [chunk.data for chunk in _of(DataChunk, chunks)],
        "result": [part.data for part in _kept(result.messages, DataPart)],
        "stored": [part.data for part in _kept(rows, DataPart)],
    }


def _sources(chunks: list[Chunk], result: RunResult, rows: list[Any], prompt: list[Any]) -> Form:
    return {
        "client": [chunk.title for chunk in _of(Source, chunks)],
        "result": [each.title for each in result.sources],
        "stored": [part.source["title"] for part in _kept(rows, SourcePart)],
    }


def _input(chunks: list[Chunk], result: RunResult, rows: list[Any], prompt: list[Any]) -> Form:
    first = [part["text"] for part in _prompted(prompt, "text", "user")]
    return {
        "result": _joined(TextPart, result.all_messages[0].content.parts),
        "stored": _joined(TextPart, rows[0].content.parts),
        "prompt": "".join(first[:-1]),
    }


_PLACES = {
    "text": _text,
    "reasoning": _reasoning,
    "tool-arguments": _arguments,
    "tool-results": _results,
    "data": _data,
    "sources": _sources,
    "input": _input,
}
