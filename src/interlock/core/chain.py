"""process_output_stream: each chunk through the output processors, in order (spec R4.6, R9.2).

The hot path of the library. What a hook cannot do, it does not pay for: no context is built, no result is probed
for being awaitable, nothing is kept that no hook reads.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from interlock.core.calling import after_failure, blame, heed
from interlock.core.chunks import (
    Abort,
    Chunk,
    DataChunk,
    ErrorChunk,
    ObjectResult,
    PartialObject,
    ResponseMetadata,
    Start,
    TripWireChunk,
)
from interlock.core.pipeline import HookCall, holds
from interlock.core.returns import wrong_return
from interlock.core.shapes import is_sequence

if TYPE_CHECKING:
    from interlock.core.context import HookContext
    from interlock.core.run import Run

FORGED = frozenset({Start, ResponseMetadata, ErrorChunk, TripWireChunk, Abort, PartialObject, ObjectResult})
"""Chunks that hooks never see: a hook that returns one would tell of a run's course what is not so."""
_SPECIAL = FORGED | {DataChunk}

StreamFunction: TypeAlias = Callable[[Any, Any], Any]


class StreamHook:
    """A processor's process_output_stream in one run."""

    __slots__ = ("call", "ctx", "dropped", "function", "index", "is_async", "parts", "sees_data")

    def __init__(self, call: HookCall, ctx: HookContext) -> None:
        self.call = call
        self.ctx = ctx
        self.index = call.index
        self.function: StreamFunction = _conditional(call) if call.conditions else call.function
        self.is_async = call.is_async or bool(call.conditions)
        self.sees_data = call.processor.process_data_parts
        self.parts = ctx.keep_stream_parts() if call.reads_parts else None
        self.dropped = 0


def _conditional(call: HookCall) -> StreamFunction:
    async def ask_first(chunk: Chunk, ctx: HookContext) -> Any:
        if not await holds(call.conditions, ctx):
            return chunk
        returned = call.function(chunk, ctx)
        return await returned if call.is_async else returned

    return ask_first


class Chain:
    """The stream hooks of a run, and where what leaves them goes."""

    __slots__ = ("_row", "hooks", "run", "survived")

    def __init__(self, run: Run, calls: Sequence[HookCall]) -> None:
        self.run: Run = run
        self.hooks = [StreamHook(call, run.contexts[call.member]) for call in calls]
        # what the loop below needs of each hook, unpacked in one go
        self._row = [(hook.function, hook.is_async, hook.ctx, hook.parts, hook) for hook in self.hooks]
        self.survived = False

    def close(self) -> None:
        """The run is over: forget it."""
        self.hooks, self._row = [], []
        del self.run

    async def feed(self, chunk: Chunk, start: int = 0) -> None:
        """Pass a chunk through the hooks from ``start`` on, and what is left of it to the transcript."""
        run = self.run
        if type(chunk) is DataChunk:
            await self._feed_data(chunk, start)
            return
        for function, is_async, ctx, parts, hook in self._row[start:] if start else self._row:
            if parts is not None:
                parts.append(chunk)
            try:
                returned = function(chunk, ctx)
                if is_async:
                    returned = await returned
            except BaseException as problem:
                await after_failure(run, hook.call, problem)
                returned = chunk
            if run.alert:
                await heed(run)
            if returned is chunk:
                continue
            if returned is None:
                hook.dropped += 1
                return
            if not isinstance(returned, Chunk) or type(returned) in _SPECIAL:
                await self._feed_several(hook, chunk, returned)
                return
            chunk = _adopted(returned, chunk)
        self.survived = True
        pending = run.transcript.take(chunk)  # in place of _deliver: this line runs once per chunk
        if pending is not None:
            await pending

    async def _feed_data(self, chunk: DataChunk, start: int) -> None:
        """A custom data chunk: only for those who asked for such chunks (spec R9.2)."""
        for hook in self.hooks[start:]:
            if hook.sees_data:
                await self._ask(hook, chunk)
                return
        await self._deliver(chunk)

    async def _ask(self, hook: StreamHook, chunk: Chunk) -> None:
        """One hook for one chunk, then the rest of the row."""
        if hook.parts is not None:
            hook.parts.append(chunk)
        try:
            returned = hook.function(chunk, hook.ctx)
            if hook.is_async:
                returned = await returned
        except BaseException as problem:
            await after_failure(self.run, hook.call, problem)
            returned = chunk
        if self.run.alert:
            await heed(self.run)
        await self._feed_several(hook, chunk, returned)

    async def _deliver(self, chunk: Chunk) -> None:
        pending = self.run.transcript.take(chunk)
        if pending is not None:
            await pending

    async def _feed_several(self, hook: StreamHook, chunk: Chunk, returned: Any) -> None:
        """None drops the chunk, a list goes on as several; anything else is the processor's mistake."""
        if inspect.isawaitable(returned):
            returned = await self._awaited(hook, chunk, returned)
        pieces: Any = [] if returned is None else [returned] if isinstance(returned, Chunk) else returned
        if not is_sequence(pieces) or not all(isinstance(piece, Chunk) for piece in pieces):
            raise blame(self.run, hook.call, wrong_return(hook.call, returned))
        for piece in pieces:
            if type(piece) in FORGED:
                why = f"in place of a {chunk.type} chunk: a run's {piece.type} is the runtime's to send"
                raise blame(self.run, hook.call, wrong_return(hook.call, piece, why))
        if not pieces:
            hook.dropped += 1
        for piece in pieces:
            await self.feed(_adopted(piece, chunk), hook.index + 1)

    async def _awaited(self, hook: StreamHook, chunk: Chunk, returned: Awaitable[Any]) -> Any:
        """What a plain hook's coroutine returns; the same care as for an async hook."""
        try:
            answer = await returned
        except BaseException as problem:
            await after_failure(self.run, hook.call, problem)
            return chunk
        if self.run.alert:
            await heed(self.run)
        return answer

    def silent_hook(self) -> str | None:
        """The id of a processor that dropped every chunk it saw: more likely a forgotten return than a wish.

        Nothing survived the chain, and no hook behind the last one that dropped anything dropped something too: so
        that one let nothing through.
        """
        dropping = [hook for hook in self.hooks if hook.dropped]
        return dropping[-1].call.processor.id if dropping and not self.survived else None


def _adopted(returned: Chunk, original: Chunk) -> Chunk:
    """A replacement made without an id gets that of the block it stands in (spec R4.6)."""
    if returned is not original and not getattr(returned, "id", None):
        for name in ("id", "tool_call_id"):
            if getattr(returned, name, None) == "" and getattr(original, name, None):
                setattr(returned, name, getattr(original, name))
    return returned
