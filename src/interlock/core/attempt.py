"""One attempt at a step: what the runtime knows of it beside the message list."""

from __future__ import annotations

from typing import Any

from interlock.core.chunks import Chunk, Finish, Metadata, ToolResult, TripWireInfo, Usage
from interlock.core.step import StepInput
from interlock.core.tool import Tool


class Attempt:
    """An attempt at a step, accepted or not.

    Attributes:
        number: the step's number; a retry has the same.
        input: model, tools and settings of this step.
        opened: the model's stream has opened (or the call failed): a step-start was due.
        complete: the response is there; ``ctx.steps`` includes it from then on.
        accepted: its step-finish has passed.
        continues: its tools were called and another step follows.
        tools_ran: one of its own tools was started.
        unrepeatable_ran: one that must not run twice was.
        raw: the model's chunks, when process_llm_response wants them.
        open_blocks: blocks the model has open, in order, to be closed in its place.
        early_results: provider's results whose calls have not left the chain yet.
    """

    __slots__ = (
        "accepted",
        "complete",
        "continues",
        "early_results",
        "finish",
        "finish_reason",
        "from_cache",
        "input",
        "number",
        "open_blocks",
        "opened",
        "provider_metadata",
        "raw",
        "raw_response",
        "request",
        "response",
        "tools_ran",
        "tripwire",
        "unrepeatable_ran",
        "usage",
        "warnings",
    )

    def __init__(self, number: int, step_input: StepInput) -> None:
        self.number = number
        self.input = step_input
        self.opened = False
        self.complete = False
        self.accepted = False
        self.continues = False
        self.tools_ran = False
        self.unrepeatable_ran = False
        self.from_cache = False
        self.finish: Finish | None = None
        self.finish_reason = "unknown"
        self.usage = Usage()
        self.provider_metadata: Metadata | None = None
        self.request: Any = None
        self.response: dict[str, Any] = {}
        self.raw_response: Any = None
        self.warnings: list[Any] = []
        self.tripwire: TripWireInfo | None = None
        self.raw: list[Chunk] = []
        self.early_results: list[ToolResult] = []
        self.open_blocks: dict[tuple[type[Chunk], str], None] = {}

    def active_tools(self) -> dict[str, Tool]:
        """The step's tools without those that are not active; unknown active ones are passed over."""
        step = self.input
        if step.active_tools is None:
            return step.tools
        return {name: tool for name, tool in step.tools.items() if name in step.active_tools}
