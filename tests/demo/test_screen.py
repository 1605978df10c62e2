"""A run on the terminal, chunk by chunk."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from interlock.chunks import DataChunk, TextDelta, TextEnd, ToolCall, TripWireChunk
from interlock.demo.screen import Screen


class Terminal(Screen):
    """A screen whose text can be looked at."""

    def __init__(self, *, force: bool | None = None) -> None:
        self.file = io.StringIO()
        colours = "truecolor" if force else None
        super().__init__(
            Console(file=self.file, highlight=False, width=40, force_terminal=force, color_system=colours)
        )

    @property
    def text(self) -> str:
        return self.file.getvalue()


def note(hook: str, **fields: str) -> DataChunk:
    """What a processor tells."""
    told = {"hook": hook, "processor": "p", "did": "did it", "before": "", "after": "", **fields}
    return DataChunk(type="data-note", data=told)


def test_text_is_shown_as_it_comes_and_never_wrapped() -> None:
    """One line, whatever the pieces and the width: wrapping is the terminal's."""
    screen = Terminal()
    for piece in ("one ", "two [red] ", "x" * 60):
        screen.chunk(TextDelta(text=piece))
    screen.chunk(TextEnd())
    assert screen.text == f"answer    one two [red] {'x' * 60}\n"


def test_a_note_within_the_text_gets_a_line_of_its_own() -> None:
    """A block in the middle of an answer does not continue its line."""
    screen = Terminal()
    screen.chunk(TextDelta(text="so far"))
    screen.chunk(TripWireChunk(reason="no", processor_id="guard", metadata={"found": "it"}))
    lines = screen.text.splitlines()
    assert lines == ["answer    so far", "  tripwire: guard blocked: no", "    found   found: it"]


def test_rewritten_words_are_told_after_the_text_and_once() -> None:
    """They are noted in the middle of a line."""
    screen = Terminal()
    for _ in range(2):
        screen.chunk(note("process_output_stream", before="and", after="&"))
    screen.chunk(TextDelta(text="a & b & c"))
    screen.chunk(TextEnd())
    assert screen.text.splitlines()[1:] == ["  process_output_stream: p rewrote and → &"]


@pytest.mark.parametrize("args", [None, "text", {"city": "Oslo"}])
def test_any_arguments_of_a_call_can_be_shown(args: object) -> None:
    """A model may write what is no record at all."""
    screen = Terminal()
    screen.chunk(ToolCall(tool_call_id="1", tool_name="weather", args=args))
    assert "tool call weather(" in screen.text


def test_a_pipe_is_told_what_is_being_waited_for() -> None:
    """Without the spinner of a terminal."""
    screen = Terminal(force=False)
    with screen.working("Starting", "There it is."):
        assert screen.text == "Starting ...\n"
    assert screen.text == "Starting ...\nThere it is.\n"


def test_a_terminal_gets_colours() -> None:
    """Where they can be seen."""
    screen = Terminal(force=True)
    screen.question("q")
    assert "\x1b[" in screen.text
