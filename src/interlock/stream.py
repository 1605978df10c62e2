"""A run as an async iterator of chunks, and as a result.

The run is one task; between it and the reader stands one small buffer. When the buffer is full the run waits, so a
slow reader slows the provider down and nothing piles up. Leaving the ``async with``, or dropping the stream, cancels
what still runs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias

from interlock.core.chunks import Chunk, TextDelta
from interlock.core.delivery import Sink
from interlock.core.errors import UsageError
from interlock.core.result import Answer, RunResult

# Each switch between the run and its reader costs as much as two or three chunks: a bigger buffer would save little.
HIGH_MARK = 32
LOW_MARK = 8


class Ending:
    """What is known of a run beside its task's own return.

    Attributes:
        begun: its first line has run; a task that is cancelled before could not clean up.
        cancelled_early: it was cancelled before that; the run ends at once, in good order.
        result: also of a cancelled run.
    """

    __slots__ = ("begun", "cancelled_early", "result")

    def __init__(self) -> None:
        self.begun = False
        self.cancelled_early = False
        self.result: RunResult | None = None


Start: TypeAlias = Callable[[Sink, Ending], Coroutine[Any, Any, RunResult]]


class Channel:
    """The buffer between a run and its reader. It knows neither, so that dropping the reader's end is noticed.

    Attributes:
        open: the run waits for the reader when the buffer is full; once closed, it never waits again.
        draining: nobody reads any more: chunks are thrown away.
    """

    __slots__ = ("buffer", "draining", "open", "readable", "writable")

    def __init__(self) -> None:
        self.buffer: deque[Chunk] = deque()
        self.readable = asyncio.Event()
        self.writable = asyncio.Event()
        self.open = True
        self.draining = False

    def put(self, chunk: Chunk) -> Coroutine[Any, Any, Any] | None:
        """Take a chunk. Returns what to wait for before the next one, if anything."""
        if self.draining:
            return None
        self.buffer.append(chunk)
        if len(self.buffer) == 1:
            self.readable.set()
        if len(self.buffer) < HIGH_MARK or not self.open:
            return None
        self.writable.clear()
        return self.writable.wait()

    def pop(self) -> Chunk:
        """Give the next chunk; there must be one."""
        chunk = self.buffer.popleft()
        if len(self.buffer) == LOW_MARK:
            self.writable.set()
        return chunk

    def drain(self) -> None:
        """Throw away what is there and what is to come."""
        self.draining = True
        self.buffer.clear()
        self.writable.set()

    def close(self) -> None:
        """From here on the run never waits for the reader."""
        self.open = False
        self.writable.set()


class RunStream(Generic[Answer]):
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
        self._channel = Channel()
        self._ending = Ending()
        self._reading = False

    def _begin(self) -> asyncio.Task[RunResult]:
        if self._task is None:
            channel = self._channel
            self._task = asyncio.create_task(self._start(channel.put, self._ending), name="interlock run")
            self._task.add_done_callback(lambda _: channel.readable.set())
        return self._task

    def __del__(self) -> None:
        task = self._task
        if task is not None and not task.done():
            self._channel.close()
            loop = task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)

    async def __aenter__(self) -> Self:
        self._begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave()

    # ------------------------------------------------------------------------------------------------------- reading

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        channel = self._channel
        if channel.buffer and not self._reading:
            return channel.pop()
        task = self._begin()
        if self._reading:
            raise UsageError("this stream is being read by another task; a stream has one reader")
        self._reading = True
        try:
            while not channel.buffer:
                if task.done():
                    _raise_failure(task)
                    raise StopAsyncIteration
                channel.readable.clear()
                await channel.readable.wait()
            return channel.pop()
        finally:
            self._reading = False

    @property
    def text_stream(self) -> AsyncGenerator[str, None]:
        """The answer's text as it arrives, and nothing else."""
        return self._texts()

    async def _texts(self) -> AsyncGenerator[str, None]:
        async for chunk in self:
            if type(chunk) is TextDelta and chunk.text:
                yield chunk.text

    async def result(self) -> RunResult[Answer]:
        """The result, once the run is over; what was not read is drained.

        Returns:
            The result, also after a tripwire (``result.tripwire``) or a cancellation (finish_reason ``aborted``).

        Raises:
            Exception: what ended the run: a hook's exception, ModelError, StorageError.
        """
        task = self._begin()
        self._channel.drain()
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and self._ending.result is not None:
                return self._ending.result
            await self._leave()  # whoever waited was cancelled: nobody is left to want the run
            raise

    # ------------------------------------------------------------------------------------------------------ stopping

    async def cancel(self) -> None:
        """Cancel the run: the provider's stream and running tools are closed; text that is held is not sent.

        Chunks already on their way can still be read; the last one is ``abort``.
        """
        await self._stop(self._begin())

    async def _stop(self, task: asyncio.Task[RunResult]) -> None:
        if not self._ending.begun:
            self._ending.cancelled_early = True
        elif not task.done():
            task.cancel()  # first of all: an open channel alone would let the run go on
        self._channel.close()
        if not task.done():
            await asyncio.wait([task])

    async def _leave(self) -> None:
        task = self._task
        if task is not None and not task.done():
            self._channel.draining = True
            await self._stop(task)
            self._channel.drain()
        if task is not None and not task.cancelled():
            task.exception()  # an error nobody asked for is no warning of the event loop


def _raise_failure(task: asyncio.Task[RunResult]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
