"""Work that a cancellation lets end: a turn the client has read must not be lost because it left early.

Some cancel once (asyncio), some again and again until the task has gone (anyio's scopes, and so web frameworks when a
client goes). Both have to find the same: the first counts, the others are waited out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger("interlock")

PATIENCE = 10.0
"""Seconds that work may take to end after a cancellation."""


async def to_the_end(work: Coroutine[Any, Any, T], *, patience: float = PATIENCE) -> T:
    """Do work; a cancellation is raised when the work is over.

    Args:
        work: what has to be done whole.
        patience: seconds it may go on after a cancellation; then it is stopped.

    Returns:
        What it returns.

    Raises:
        CancelledError: whoever waits was cancelled; the work is done, unless it took too long or failed (which is
            logged).
        Exception: the work's own.
    """
    task = asyncio.create_task(work, name="interlock save")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await _over(task, patience)
        if not task.done():
            await _stopped(task)
        if task.cancelled() or not task.done():
            log.error("a turn was not saved: it took too long after a cancellation")
        elif (problem := task.exception()) is not None:
            log.error("a turn could not be saved: %s", type(problem).__name__)
        raise


async def cancelled_once(work: Coroutine[Any, Any, T]) -> T:
    """Do work that is told of one cancellation, however many come, and has cleaned up when that is raised.

    Args:
        work: what may be stopped, but not while it is stopping.

    Raises:
        CancelledError: whoever waits was cancelled.
        Exception: the work's own.
    """
    task = asyncio.create_task(work, name="interlock storage")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await _stopped(task)
        if task.done() and not task.cancelled():
            task.exception()  # nobody is left to hear of it
        raise


async def _stopped(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await _over(task, PATIENCE)


async def _over(task: asyncio.Task[Any], patience: float) -> None:
    """Wait until it is over, or for so many seconds, whoever cancels meanwhile."""
    loop = asyncio.get_running_loop()
    until = loop.time() + patience
    while not task.done() and (left := until - loop.time()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task], timeout=left)
