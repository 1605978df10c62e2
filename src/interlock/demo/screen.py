"""A run on the terminal: the answer as it streams, and a line for everything a processor did."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from interlock import RunResult
from interlock.chunks import (
    Chunk,
    DataChunk,
    StepFinish,
    TextDelta,
    TextEnd,
    ToolCall,
    ToolError,
    ToolResult,
    TripWireChunk,
)
from interlock.demo.processors import in_words

LABEL = 10


class Screen:
    """Shows runs on a rich console; in a pipe the same, without colours.

    Args:
        console: where to.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._in_text = False
        self._rewritten: list[dict[str, Any]] = []
        self._sent_back = 0

    @contextmanager
    def working(self, doing: str, done: str) -> Generator[None]:
        """Say what is being waited for, and then that it is there."""
        if self.console.is_terminal:
            with self.console.status(f"{doing} ..."):
                yield
        else:
            self._line(f"{doing} ...", style="dim")
            yield
        self._line(done, style="dim")

    def question(self, question: str) -> None:
        """A run begins."""
        self._in_text, self._rewritten, self._sent_back = False, [], 0
        self._line("")
        self._labelled("question", question, style="bold")

    def chunk(self, chunk: Chunk) -> None:
        """Show one chunk of the stream."""
        match chunk:
            case TextDelta(text=text):
                if not self._in_text:
                    self._put(Text("answer".ljust(LABEL), style="dim"))
                    self._in_text = True
                self._put(Text(text, style="green"))
            case TextEnd():
                self._end_text()
                self._show_rewritten()
            case DataChunk(type="data-note", data=note):
                self._note(note)
            case ToolCall(tool_name=name, args=args):
                self._labelled("tool call", f"{name}({in_words(args)})  # the model's, held to a JSON schema")
            case ToolResult(result=result):
                self._labelled("result", in_words(result))
            case ToolError(error=error):
                self._labelled("failed", error)
            case StepFinish(finish_reason="retry", tripwire=trip) if trip is not None:
                self._sent_back += 1
                self._did(
                    "process_output_step", trip.processor_id, f"sent the answer back: {trip.reason}", "yellow"
                )
            case TripWireChunk(processor_id=processor, reason=reason, metadata=metadata):
                self._end_text()
                self._did("tripwire", processor, f"blocked: {reason}", "red")
                if metadata:
                    self._detail("found", in_words(metadata))
            case _:
                pass

    def result(self, result: RunResult, *, seconds: float) -> None:
        """A run is over."""
        # under other policies than "live" nobody saw the answers that were sent back, nor hears of it on the way
        sent_back = [step.tripwire for step in result.steps if step.tripwire and step.tripwire.retry]
        for trip in sent_back[self._sent_back :]:
            did = f"had an answer sent back, unseen: {trip.reason}"
            self._did("process_output_step", trip.processor_id, did, "yellow")
        calls = len([step for step in result.steps if step.usage.total_tokens])
        summary = f"{result.finish_reason}; model calls: {calls}; tokens: {result.usage.total_tokens}; {seconds:.1f} s"
        self._labelled("end", summary, style="dim")

    def interrupted(self) -> None:
        """The program is told to end."""
        self._line("interrupted", style="dim")

    def _note(self, note: dict[str, Any]) -> None:
        if note["hook"] == "process_output_stream":
            self._rewritten.append(note)  # in the middle of a line: told when it is complete
            return
        self._did(note["hook"], note["processor"], note["did"])
        if note["before"]:
            self._detail("before", note["before"])
            self._detail("after", note["after"])

    def _show_rewritten(self) -> None:
        notes, self._rewritten = self._rewritten, []
        if notes:
            pairs = dict.fromkeys(f"{note['before']} → {note['after']}" for note in notes)
            self._did(notes[0]["hook"], notes[0]["processor"], f"rewrote {', '.join(pairs)}")
            if any("|" in note["before"] for note in notes):
                self._detail("", "(| is where the stream was cut)")

    def _did(self, hook: str, processor: str, did: str, style: str = "cyan") -> None:
        self._line("  ", (f"{hook}: {processor}", style), f" {did}")

    def _detail(self, label: str, text: str) -> None:
        self._line("    ", (label.ljust(LABEL - 2), "dim"), text)

    def _labelled(self, label: str, text: str, style: str = "") -> None:
        self._line((label.ljust(LABEL), "dim"), (text, style))

    def _end_text(self) -> None:
        if self._in_text:
            self._in_text = False
            self._line("")

    def _line(self, *parts: str | tuple[str, str], style: str = "") -> None:
        self._end_text()
        self.console.print(Text.assemble(*parts, style=style), soft_wrap=True)

    def _put(self, text: Text) -> None:
        self.console.print(text, end="", soft_wrap=True)
