"""What happened in a call, as it is written down."""

from __future__ import annotations

import asyncio
from typing import Any

from interpreter.forms import snapshot


class CallTrace:
    """The trace of one call.

    Attributes:
        in_step: the loop has begun: a step's hook or the model was called.
        gives_way: the client may cancel: before anything is done, it gets to see what was sent.
    """

    def __init__(self, method: str, *, gives_way: bool = False) -> None:
        self.in_step = False
        self.gives_way = gives_way
        self.trace: dict[str, Any] = {
            "method": method,
            "events": [],
            "hooks": [],
            "provider_prompts": [],
            "tool_executions": [],
            "on_violation": [],
        }

    def event(self, text: str) -> None:
        """Something happened."""
        self.trace["events"].append(text)

    def add(self, key: str, value: Any) -> None:
        """Add to one of the trace's lists."""
        self.trace[key].append(snapshot(value))

    def put(self, key: str, value: Any) -> None:
        """Set one of the trace's values."""
        self.trace[key] = snapshot(value)

    async def give_way(self) -> None:
        """Let the client act on what it got, as it would while a real provider takes its time."""
        for _ in range(8 if self.gives_way else 0):
            await asyncio.sleep(0)
