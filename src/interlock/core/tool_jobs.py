"""What the loop asks of whoever runs tools, and what it hears back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from interlock.core.chunks import DataChunk
from interlock.core.record import Record
from interlock.core.tool import Tool


class ToolJob(Record, kw_only=True):
    """A call to run: the tool and the arguments as the message list holds them.

    ``entered`` is set once the tool's code has begun: a call refused for its arguments has not run.
    """

    tool_call_id: str
    tool: Tool
    args: Any
    entered: bool = False


class ToolData(Record, kw_only=True):
    """A tool's writer sent a data chunk; ``done`` is to be called when it has passed the processors."""

    chunk: DataChunk
    done: Callable[[], None]


class ToolDone(Record, kw_only=True):
    """A tool ended: with a value, or with an error's text for the model."""

    tool_call_id: str
    value: Any = None
    error: str | None = None


ToolEvent: TypeAlias = ToolData | ToolDone
