"""What the core does not have itself, and gets from around it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from interlock.core.model import ModelResolver
from interlock.core.record import FrozenRecord
from interlock.core.result import Turn

if TYPE_CHECKING:
    from interlock.core.run import Run
    from interlock.core.tool_jobs import ToolEvent, ToolJob


class Recorder(Protocol):
    """Saves turns: memory, as the runtime sees it."""

    async def save_turn(self, turn: Turn) -> bool | None:
        """Save a turn whole or not at all.

        Returns:
            False when it was not to be saved.

        Raises:
            StorageError: it could not be saved.
            SavedAnyway: it is saved; whoever waited was cancelled meanwhile.
        """
        ...


ToolExecutor: TypeAlias = "Callable[[Sequence[ToolJob], Run], AsyncGenerator[ToolEvent, None]]"


def _as_given(given: Any, where: str) -> Any:
    return given


class Edges(FrozenRecord, frozen=True, kw_only=True):
    """What the core does not have itself: a clock, ids, tools' concurrency, the finding of models, storage.

    ``resolve_schema`` makes of what a user gives as ``structured_output`` what the runtime's processor takes, or
    raises UsageError; the core only carries it.
    """

    now: Callable[[], datetime]
    new_id: Callable[[], str]
    run_tools: ToolExecutor
    resolve_model: ModelResolver
    resolve_schema: Callable[[Any, str], Any] = _as_given
    recorder: Recorder | None = None
