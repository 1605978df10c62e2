"""A run as an async iterator of chunks, and as a result.

The run is one task; between it and the reader stands one small buffer. When the buffer is full the run waits, so a
slow reader slows the provider down and nothing piles up. Leaving the ``async with`` cancels what still runs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeAlias

from interlock.core.chunks import Chunk, TextDelta
from interlock.core.delivery import Sink
from interlock.core.errors import UsageError
from interlock.core.result import RunResult

# Each switch between the run and its reader costs as much as two or three chunks: a bigger buffer would save little.
HIGH_MARK = 32
LOW_MARK = 8


class Ending:
    """What is known of the end, beside the task's own return: the result of a cancelled run, an early cancel."""

    __slots__ = ("cancelled_early", "result")

    def __init__(self) -> None:
        self.cancelled_early = False
        self.result: RunResult | None = None


Start: TypeAlias = Callable[[Sink, Ending], Coroutine[Any, Any, RunResult]]


class RunStream:
    """What ``agent.stream`` gives: iterate it for chunks, ``text_stream`` for text only, ``result()`` for the end.

    ::

        async with agent.stream("Hi") as stream:
            async for chunk in stream:
                ...
            result = await stream.result()

    The run starts when the stream is entered or first read. It can be read once: a second ``async for`` goes on
    where the first stopped. After a tripwire the iteration ends with its chunk and does not raise; after an error,
    iterating, ``text_stream`` and ``result()`` all raise the same exception.
    """

    def __init__(self, start: Start) -> None:
        self._start = start
        self._task: asyncio.Task[RunResult] | None = None
        self._buffer: deque[Chunk] = deque()
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._reading = False
        self._draining = False
        self._cancelled = False
        self._ending = Ending()

    # ------------------------------------------------------------------------------------------------------- the run

    def _begin(self) -> asyncio.Task[RunResult]:
        if self._task is None:
            self._writable.set()
            self._task = asyncio.create_task(self._start(self._put, self._ending), name="interlock run")
            self._task.add_done_callback(lambda _: self._readable.set())
        return self._task

    def _put(self, chunk: Chunk) -> Coroutine[Any, Any, Any] | None:
        if self._draining:
            return None
        buffer = self._buffer
        buffer.append(chunk)
        if len(buffer) == 1:
            self._readable.set()
        if len(buffer) < HIGH_MARK or self._cancelled:
            return None
        self._writable.clear()
        return self._writable.wait()

    # ----------------------------------------------------------------------------------------------------- the reader

    async def __aenter__(self) -> Self:
        self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        buffer = self._buffer
        if buffer and not self._reading:
            return self._pop()
        task = self._begin()
        if self._reading:
            raise UsageError("this stream is being read by another task; a stream has one reader")
        self._reading = True
        try:
            while not buffer:
                if task.done():
                    self._raise_failure(task)
                    raise StopAsyncIteration
                self._readable.clear()
                await self._readable.wait()
            return self._pop()
        finally:
            self._reading = False

    def _pop(self) -> Chunk:
        chunk = self._buffer.popleft()
        if len(self._buffer) == LOW_MARK:
            self._writable.set()
        return chunk

    def _raise_failure(self, task: asyncio.Task[RunResult]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    @property
    def text_stream(self) -> AsyncGenerator[str, None]:
        """The answer's text as it arrives, and nothing else."""
        return self._texts()

    async def _texts(self) -> AsyncGenerator[str, None]:
        async for chunk in self:
            if type(chunk) is TextDelta and chunk.text:
                yield chunk.text

    async def result(self) -> RunResult:
        """The result, once the run is over; what was not read is drained.

        Returns:
            The result, also after a tripwire (``result.tripwire``) or a cancellation (finish_reason ``aborted``).

        Raises:
            Exception: what ended the run: a hook's exception, ModelError, StorageError.
        """
        task = self._begin()
        self._draining = True
        self._buffer.clear()
        self._writable.set()
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and self._ending.result is not None:
                return self._ending.result
            if not task.done():
                await self._close()  # whoever waited was cancelled: nobody is left to want the run
            raise

    async def cancel(self) -> None:
        """Cancel the run: the provider's stream and running tools are closed; text that is held is not sent.

        Chunks already on their way can still be read; the last one is ``abort``.
        """
        self._ending.cancelled_early = self._task is None
        await self._stop(self._begin())

    async def _stop(self, task: asyncio.Task[RunResult]) -> None:
        self._cancelled = True  # from here on nothing waits for the reader
        self._writable.set()
        if not task.done():
            await asyncio.sleep(0)  # a task that never began could not clean up
            task.cancel()
            await asyncio.wait([task])

    async def _close(self) -> None:
        task = self._task
        if task is not None and not task.done():
            self._draining = True
            await self._stop(task)
        if task is not None and task.done() and not task.cancelled():
            task.exception()  # an error nobody asked for is not a warning of the event loop
