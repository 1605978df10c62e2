"""The notation of the cases (shared/cases/README.md): scripted runs, and messages, prompts and stored rows
as short lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import text as sql
from sqlalchemy.ext.asyncio import AsyncConnection

from interlock import Agent, Message, Processor, RunResult, Tool
from interlock.chunks import Chunk, TextDelta, TextEnd
from interlock.memory import ConversationStore, InMemoryStore, Memory, Turn
from interlock.memory.sql import SqlStore
from interlock.messages import Content, FilePart, Part, StepStartPart, TextPart, ToolInvocationPart
from interlock.prompt import PromptFile, PromptMessage, PromptText, PromptToolCall, PromptToolResult
from interlock.testing import ScriptedModel

_IDS_AND_TIMES = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|\d{4}-\d\d-\d\d[T ][\d:.]+|datetime\.datetime\([^()]*\)"
)

both_modes = pytest.mark.parametrize("mode", ["stream", "generate"])


def said(*things: Any) -> str:
    """Things as text, to look for what must not be there: without ids and times, which hold any digits by chance.

    >>> said({"id": "815aa925-5ff1-4db9-85bd-c722cb421234", "text": "1234"})
    "{'id': '', 'text': '1234'}"
    """
    return _IDS_AND_TIMES.sub(
        "", "".join(thing if isinstance(thing, str) else repr(thing) for thing in things)
    )


@dataclass
class Ran:
    """What one run gave: in mode ``generate`` there are no chunks."""

    mode: str
    result: RunResult
    chunks: list[Chunk] = field(default_factory=list[Chunk])

    @property
    def text_concat(self) -> str:
        """All text deltas joined."""
        return "".join(chunk.text for chunk in self.chunks if isinstance(chunk, TextDelta))

    @property
    def types(self) -> list[str]:
        """The kinds of the chunks."""
        return [chunk.type for chunk in self.chunks]

    def of_type(self, *types: str) -> list[Any]:
        """The chunks of these kinds."""
        return [chunk for chunk in self.chunks if chunk.type in types]

    def never_contains(self, *texts: str) -> None:
        """None of these is in any chunk or in the joined text."""
        for forbidden in texts:
            assert forbidden not in said(self.chunks)
            assert forbidden not in self.text_concat

    def order(self) -> list[str]:
        """The kinds with the text of neighbouring deltas joined; start and step-start, which are harmless,
        left out.
        """
        lines: list[str] = []
        for chunk in self.chunks:
            if chunk.type in ("start", "step-start"):
                continue
            if isinstance(chunk, TextDelta):
                if lines and lines[-1].startswith("text-delta "):
                    lines[-1] += chunk.text
                elif chunk.text:
                    lines.append(f"text-delta {chunk.text}")
            elif chunk.type in ("tool-call", "tool-result", "tool-error"):
                lines.append(f"{chunk.type} {chunk.tool_call_id}")  # type: ignore[attr-defined]
            else:
                lines.append(chunk.type)
        return lines


KEPT: list[ConversationStore] = []
"""The store of the cases that are tried with each kind (the fixture ``every_store``)."""


class Bench:
    """An agent with a scripted model and a memory.

    Args:
        calls: the script, one list a call; the last one repeats.
        model: another model.
        agent_options: for the agent.
    """

    def __init__(self, *calls: Iterable[Any], model: Any = None, **agent_options: Any) -> None:
        self.model: Any = model or ScriptedModel(*calls, repeat_last=True)
        self.store: ConversationStore = KEPT[0] if KEPT else InMemoryStore()
        self.memory = Memory(self.store, last_messages=None)
        self.agent = Agent(id="agent", model=self.model, memory=self.memory, **agent_options)

    async def seed(self, messages: list[Message], thread: str = "t") -> None:
        """Store messages as an earlier turn."""
        await self.store.save_turn(Turn(thread_id=thread, resource_id="r", messages=messages))

    async def run(self, mode: str, given: Any = "x", *, thread: str = "t", **options: Any) -> Ran:
        """Run once: ``stream`` (chunks are read), ``result`` (a stream of which only that is awaited) or
        ``generate``.
        """
        options["memory"] = {"thread": thread, "resource": "r"}
        if mode == "generate":
            return Ran(mode, await self.agent.generate(given, **options))
        async with self.agent.stream(given, **options) as stream:
            chunks = [] if mode == "result" else [chunk async for chunk in stream]
            return Ran(mode, await stream.result(), chunks)

    async def rows(self, thread: str = "t") -> list[Message]:
        """The stored messages."""
        return await self.memory.messages(thread, resource="r")

    async def raw(self, thread: str = "t") -> list[str]:
        """The rows of the thread as the store keeps them, as text."""
        if isinstance(self.store, InMemoryStore):
            return [row.decode() for row in self.store._rows[thread].values()]
        assert isinstance(self.store, SqlStore)
        query = sql('SELECT * FROM mastra_messages WHERE thread_id = :thread ORDER BY "createdAt"')

        async def look(connection: AsyncConnection) -> list[str]:
            return [str(row) for row in await connection.execute(query, {"thread": thread})]

        return await self.store.database.read(look)

    async def stored(self, thread: str = "t") -> list[str]:
        """The stored messages as lines."""
        return lines(await self.rows(thread))

    def receives(self, call: int, *, system: bool = False) -> list[str]:
        """The prompt of a call (from 1) as lines."""
        prompt = self.model.calls[call - 1].request.prompt
        return [prompt_line(message) for message in prompt if system or message.role != "system"]


def conversation(*given: str) -> list[Message]:
    """Messages from lines: ``user: text``, ``assistant: call look c1``, ``tool: c1 → 7`` (put into the call
    it answers).
    """
    made: list[Message] = []
    for number, line in enumerate(given):
        role, _, rest = line.partition(": ")
        if role == "tool":
            call_id, _, value = rest.partition(" → ")
            for message in made:
                for part in message.content.parts:
                    if isinstance(part, ToolInvocationPart) and part.tool_call_id == call_id:
                        part.state, part.result = "result", value
            continue
        parts: list[Part] = [_part(piece) for piece in rest.split(" | ")]
        made.append(Message(id=f"old-{number}", role=role, content=Content(parts=parts)))  # type: ignore[arg-type]
    return made


def _part(piece: str) -> Part:
    call = re.fullmatch(r"call (\w+) (\w+)", piece)
    if call:
        return ToolInvocationPart(tool_name=call.group(1), tool_call_id=call.group(2), args={})
    return TextPart(text=piece)


def lines(messages: Iterable[Message]) -> list[str]:
    """Messages as lines: ``assistant: text | look → 7 | text``."""
    return [
        f"{message.role}: {' | '.join(filter(None, map(_shown, message.content.parts)))}"
        for message in messages
    ]


def _shown(part: Part) -> str | None:
    match part:
        case TextPart(type="text"):
            return part.text
        case ToolInvocationPart(state="result"):
            return f"{part.tool_name} → {compact(part.result)}"
        case ToolInvocationPart(state="output-error"):
            return f"{part.tool_name} ✗ {part.error_text}"
        case ToolInvocationPart():
            return f"call {part.tool_name} {part.tool_call_id}"
        case FilePart():
            return "[file]"
        case StepStartPart():
            return None
        case _:
            return part.type


def prompt_line(message: PromptMessage) -> str:
    """A prompt message as a line: ``assistant: text + call look``, ``tool: 7``."""
    if isinstance(message.content, str):
        return f"{message.role}: {message.content}"
    shown: list[str] = []
    for part in message.content:
        match part:
            case PromptText():
                shown.append(part.text)
            case PromptToolCall():
                shown.append(f"call {part.tool_name}{compact(part.input) if part.input else ''}")
            case PromptToolResult():
                shown.append(compact(part.value))
            case PromptFile():
                shown.append("[file]")
            case _:
                shown.append(type(part).__name__)
    return f"{message.role}: {' + '.join(shown)}"


def compact(value: Any) -> str:
    """A value as compact JSON, a string as it is."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def counted(name: str, returns: Any) -> tuple[Tool, list[Any]]:
    """A tool that notes the arguments of its runs, and the list it notes them in."""
    runs: list[Any] = []

    async def run(note: str | None = None, amount: int | None = None) -> Any:
        given = {"note": note, "amount": amount}
        runs.append({key: value for key, value in given.items() if value is not None})
        return returns

    return Tool(run, name=name, description=name), runs


class HoldBack(Processor):
    """Rewrites text wherever it was cut: holds back what follows the last border, until the block ends.

    Args:
        id: its id.
        rewrite: makes of a text what may be shown; must not look across a border.
        border: a pattern at whose end text may be cut.
    """

    def __init__(self, id: str, rewrite: Callable[[str], str], border: str = r"\s") -> None:
        self.id = id
        self.rewrite = rewrite
        self.border = re.compile(border)

    def process_output_stream(self, chunk: Chunk, ctx: Any) -> Any:
        """Let out what cannot change any more."""
        held: dict[str, str] = ctx.state.setdefault("held", {})
        if isinstance(chunk, TextDelta):
            whole = held.get(chunk.id, "") + chunk.text
            cut = max((found.end() for found in self.border.finditer(whole)), default=0)
            held[chunk.id] = whole[cut:]
            return chunk.replace(text=self.rewrite(whole[:cut])) if cut else None
        if isinstance(chunk, TextEnd):
            rest = self.rewrite(held.pop(chunk.id, ""))
            return [TextDelta(id=chunk.id, text=rest), chunk] if rest else chunk
        return chunk


class Cap(Processor):
    """Answers every call of ``look`` itself."""

    def __init__(self, id: str, answer: str) -> None:
        self.id = id
        self.answer = answer

    def process_output_step(self, output: Any, ctx: Any) -> None:
        for call in output.tool_calls:
            if call.tool_name == "look":
                ctx.message_list.update_tool_invocation(call.tool_call_id, result=self.answer)


def masked(text: str) -> str:
    """Four digits become stars."""
    return re.sub(r"\d{4}", "****", text)


__all__ = [
    "Bench",
    "Cap",
    "HoldBack",
    "Ran",
    "both_modes",
    "compact",
    "conversation",
    "counted",
    "lines",
    "masked",
    "prompt_line",
]
