"""Work that a cancellation lets end: a turn the client has read must not be lost because it left early."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger("interlock")


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Do work; a cancellation is raised when the work is over. A second one stops the work.

    Args:
        work: what has to be done whole, and takes no longer than its own time limits say.

    Returns:
        What it returns.

    Raises:
        CancelledError: whoever waits was cancelled; the work is done, unless that happened twice or it failed (which
            is logged).
        Exception: the work's own.
    """
    task = asyncio.create_task(work, name="interlock save")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await _waited(task)
        if task.cancelled():
            log.error("a turn was not saved: it was cancelled twice meanwhile")
        elif (problem := task.exception()) is not None:
            log.error("a turn could not be saved: %s", type(problem).__name__)
        raise


async def _waited(task: asyncio.Task[Any]) -> None:
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([task])
