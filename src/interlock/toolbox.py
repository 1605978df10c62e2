"""Runs tool calls at the same time and hands what comes of them to the run's own task.

The tools only execute; everything a hook could see happens in the run's task, so hooks never race on messages or
state. There is no TaskGroup here: it would wrap a tripwire in an exception group.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from interlock.core.context import Sending, data_chunk
from interlock.core.run import Run
from interlock.core.tool import ToolContext
from interlock.core.tool_jobs import ToolData, ToolDone, ToolEvent, ToolJob

log = logging.getLogger("interlock")


async def run_tools(jobs: Sequence[ToolJob], run: Run) -> AsyncGenerator[ToolEvent, None]:
    """Run the jobs concurrently.

    Args:
        jobs: the calls.
        run: the run they belong to.

    Yields:
        ToolData as tools write, ToolDone as each ends. Closing the generator cancels what still runs.
    """
    events: asyncio.Queue[ToolEvent] = asyncio.Queue()
    tasks = [asyncio.create_task(_execute(job, run, events), name=f"tool {job.tool.name}") for job in jobs]
    try:
        remaining = len(tasks)
        while remaining:
            event = await events.get()
            remaining -= isinstance(event, ToolDone)
            yield event
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _execute(job: ToolJob, run: Run, events: asyncio.Queue[ToolEvent]) -> None:
    writer = ToolWriter(events)
    context = ToolContext(
        job.tool_call_id,
        run.options.request_context,
        writer,
        cancelled=lambda: run.cancelled or run.latch.trip is not None or writer.closed,
    )
    done: ToolDone
    try:
        done = ToolDone(tool_call_id=job.tool_call_id, value=await _call(job, context))
    except BaseException as problem:
        task = asyncio.current_task()
        if isinstance(problem, KeyboardInterrupt | SystemExit) or (task is not None and task.cancelling()):
            raise  # the run was stopped; anything else, a stray cancellation too, is the tool's own failure
        log.debug("tool %s raised %s", job.tool.name, type(problem).__name__)
        done = ToolDone(tool_call_id=job.tool_call_id, error=str(problem) or type(problem).__name__)
    finally:
        writer.closed = True
    events.put_nowait(done)


async def _call(job: ToolJob, context: ToolContext) -> Any:
    arguments = job.tool.bind(job.args, context)
    job.entered = True
    if job.tool.is_async:
        return await job.tool.function(**arguments)
    return await asyncio.to_thread(job.tool.function, **arguments)


class ToolWriter:
    """A tool's writer; it may be used from the tool's thread."""

    def __init__(self, events: asyncio.Queue[ToolEvent]) -> None:
        self._events = events
        self._loop = asyncio.get_running_loop()
        self.closed = False

    def custom(self, chunk: Any, message_id: str | None = None) -> Sending:
        """Send a custom chunk; see :class:`interlock.Writer`. In a thread it need not be awaited."""
        made = data_chunk(chunk)
        if message_id is not None:
            made = made.replace(message_id=message_id)
        if self.closed:
            return Sending(_nothing)
        passed: asyncio.Future[None] = self._loop.create_future()
        self._here(lambda: self._events.put_nowait(ToolData(chunk=made, done=lambda: _resolve(passed))))
        return Sending(lambda: passed)

    def _here(self, action: Callable[[], None]) -> None:
        try:
            inside = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            inside = False
        if inside:
            action()
        else:
            self._loop.call_soon_threadsafe(action)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _nothing() -> None:
    return None
