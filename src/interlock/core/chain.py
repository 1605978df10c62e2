"""process_output_stream: each chunk through the output processors, in order (spec R4.6, R9.2).

The hot path of the library. What a hook cannot do, it does not pay for: no context is built, no result is probed
for being awaitable, nothing is kept that no hook reads.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from interlock.core.chunks import Chunk, DataChunk
from interlock.core.pipeline import HookCall, holds
from interlock.core.returns import wrong_return

if TYPE_CHECKING:
    from interlock.core.context import HookContext
    from interlock.core.run import Run


class StreamHook:
    """A processor's process_output_stream in one run."""

    __slots__ = ("call", "ctx", "dropped", "function", "is_async", "parts", "passed", "sees_data")

    def __init__(self, call: HookCall, ctx: HookContext) -> None:
        self.call = call
        self.ctx = ctx
        self.function: Callable[[Any, Any], Any] = _conditional(call) if call.conditions else call.function
        self.is_async = call.is_async or bool(call.conditions)
        self.sees_data = call.processor.process_data_parts
        self.parts = ctx.keep_stream_parts() if may_read_stream_parts(call.function) else None
        self.passed = False
        self.dropped = 0


def _conditional(call: HookCall) -> Callable[[Any, Any], Any]:
    async def ask_first(chunk: Chunk, ctx: HookContext) -> Any:
        if not await holds(call.conditions, ctx):
            return chunk
        returned = call.function(chunk, ctx)
        return await returned if call.is_async else returned

    return ask_first


class Chain:
    """The stream hooks of a run, and where what leaves them goes.

    Attributes:
        position: the hook that is running, so that its own data chunks start behind it; -1 for none.
    """

    __slots__ = ("hooks", "position", "run")

    def __init__(self, run: Run, calls: Sequence[HookCall]) -> None:
        self.run = run
        self.hooks = tuple(StreamHook(call, run.contexts[call.member]) for call in calls)
        self.position = -1

    async def feed(self, chunk: Chunk, index: int = 0) -> None:
        """Pass a chunk through the hooks from ``index`` on, and what is left of it to the transcript."""
        run = self.run
        hooks = self.hooks
        count = len(hooks)
        is_data = isinstance(chunk, DataChunk)
        while index < count:
            hook = hooks[index]
            if is_data and not hook.sees_data:
                index += 1
                continue
            self.position = index
            if hook.parts is not None:
                hook.parts.append(chunk)
            try:
                returned = hook.function(chunk, hook.ctx)
                if hook.is_async:
                    returned = await returned
            except BaseException as problem:
                await run.after_failure(hook.call, problem)
                returned = chunk
            if run.alert:
                await run.heed()
            if returned is not chunk:
                if returned is None:
                    hook.dropped += 1
                    self.position = -1
                    return
                if not isinstance(returned, Chunk):
                    await self._feed_several(hook, chunk, returned, index)
                    return
                chunk = _adopted(returned, chunk)
                is_data = isinstance(chunk, DataChunk)
            hook.passed = True
            index += 1
        self.position = -1
        await run.transcript.take(chunk)

    async def _feed_several(self, hook: StreamHook, chunk: Chunk, returned: Any, index: int) -> None:
        if inspect.isawaitable(returned):
            returned = await returned
            if self.run.alert:
                await self.run.heed()
        pieces: list[Any] = [returned] if isinstance(returned, Chunk) else returned
        if returned is None:
            hook.dropped += 1
            return
        if not isinstance(pieces, list | tuple) or not all(isinstance(piece, Chunk) for piece in pieces):
            raise self.run.blame(hook.call, wrong_return(hook.call, returned))
        hook.passed = hook.passed or bool(pieces)
        for piece in pieces:
            await self.feed(_adopted(piece, chunk), index + 1)

    async def feed_data(self, chunk: DataChunk, index: int) -> None:
        """Pass a custom data chunk that was sent while another chunk is in some hook's hands."""
        position = self.position
        try:
            await self.feed(chunk, index)
        finally:
            self.position = position

    def silent_hooks(self) -> list[str]:
        """Ids of processors that dropped every chunk they saw: more likely a forgotten return than a wish."""
        return [hook.call.processor.id for hook in self.hooks if hook.dropped and not hook.passed]


def _adopted(returned: Chunk, original: Chunk) -> Chunk:
    """A replacement made without an id gets that of the block it stands in (spec R4.6)."""
    if returned is not original:
        for name in ("id", "tool_call_id"):
            if getattr(returned, name, None) == "" and getattr(original, name, None):
                setattr(returned, name, getattr(original, name))
    return returned


def may_read_stream_parts(function: Callable[..., Any]) -> bool:
    """Whether a hook could look at ``ctx.stream_parts``; keeping them costs memory for the whole stream.

    Certain to be False only for plain Python code that uses its ctx for nothing but other attributes: any other use
    (ctx passed on, captured, stored, or code we cannot read) counts as True.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or code.co_argcount + (0 if not inspect.ismethod(function) else 0) < 2:
        return True
    ctx_name = code.co_varnames[code.co_argcount - 1]
    if ctx_name in code.co_cellvars or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return True
    steps = list(dis.get_instructions(code))
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if not step.opname.startswith("LOAD_FAST"):
            continue
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if ctx_name not in names:
            continue
        reads = following is not None and following.opname in ("LOAD_ATTR", "LOAD_METHOD")
        if names[-1] != ctx_name or names.count(ctx_name) > 1 or not reads or following.argval == "stream_parts":  # type: ignore[union-attr]
            return True
    return False
