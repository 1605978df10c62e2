"""How a hook is called, and what is looked at behind it: an abort, violations to tell, data to send (spec R5, R9)."""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING, Any

from interlock.core.errors import TripWire
from interlock.core.pipeline import HookCall, holds
from interlock.core.processor import BaseProcessor
from interlock.core.result import RunOutcome

if TYPE_CHECKING:
    from interlock.core.run import Run

log = logging.getLogger("interlock")


async def invoke(run: Run, call: HookCall, subject: Any) -> Any:
    """Call one hook of one processor, with everything that comes with it; the stream's hooks are the Chain's.

    Returns:
        What it returned; None also when its condition is not met or it failed open.

    Raises:
        TripWire: it aborted, even if it swallowed that.
    """
    ctx = run.contexts[call.member]
    returned: Any = None
    try:
        if not call.conditions or await holds(call.conditions, ctx):
            returned = call.function(subject, ctx)
        if returned is not None and (call.is_async or inspect.isawaitable(returned)):
            returned = await returned
    except BaseException as problem:
        await after_failure(run, call, problem)
        return None
    if run.alert:
        await heed(run)
    return returned


async def after_failure(run: Run, call: HookCall, problem: BaseException) -> None:
    """A hook raised. Returns only if its processor fails open (spec R2.7, R5.4)."""
    stopped = isinstance(problem, Exception | TripWire | BaseExceptionGroup)
    if stopped and run.latch.trip is not None:
        await heed(run)
    if isinstance(problem, TripWire):
        raise problem
    if not isinstance(problem, Exception):
        raise problem
    await _tell_violations(run)
    if call.processor.on_error == "open":
        run.note_violation(
            call.processor, f"{call.hook} failed and was passed over", {"error": type(problem).__name__}
        )
        await heed(run)
        return
    raise blame(run, call, problem)


def blame(run: Run, call: HookCall, problem: Exception) -> Exception:
    """The exception with a note of the processor and hook it came from."""
    run.failed_in_hook = True
    problem.add_note(f"raised in processor {call.processor.id!r}, hook {call.hook}")
    return problem


async def heed(run: Run) -> None:
    """Look: send posted data, tell violations, and stop if somebody aborted."""
    run.alert = False
    if run.outbox:
        await flush_data(run)
    await _tell_violations(run)
    if run.latch.trip is not None:
        raise run.latch.trip


async def flush_data(run: Run) -> None:
    """Send what was posted, before anything else goes on."""
    while run.outbox:
        chunk, start = run.outbox.pop(0)
        await run.delivery.start()
        stage, run.stage = run.stage, "process_output_stream"
        try:
            await run.chain.feed(chunk, start)
        finally:
            run.stage = stage


async def _tell_violations(run: Run) -> None:
    while run.untold:
        processor, violation = run.untold.pop(0)
        await _quietly(processor, "on_violation", violation)


async def tell_end(run: Run, outcome: RunOutcome) -> BaseException | None:
    """``on_run_end`` of every processor, once each, whatever comes in between (spec R1.5).

    Returns:
        The first cancellation that came meanwhile.
    """
    told: set[int] = set()
    interrupted: BaseException | None = None
    for member, ctx in zip(run.pipeline.members, run.contexts, strict=True):
        if id(member.processor) in told:
            continue
        told.add(id(member.processor))
        try:
            await _quietly(member.processor, "on_run_end", outcome, ctx)
        except BaseException as problem:
            interrupted = interrupted or problem
    return interrupted


async def _quietly(processor: BaseProcessor, method: str, *args: Any) -> None:
    """Call a callback whose failure must not disturb the run."""
    function = getattr(processor, method)
    if getattr(type(processor), method, None) is getattr(BaseProcessor, method) and method not in vars(
        processor
    ):
        return
    try:
        answer = function(*args)
        if inspect.isawaitable(answer):
            await answer
    except (Exception, TripWire) as problem:
        log.warning(
            "%s of processor %r raised %s; it was ignored", method, processor.id, type(problem).__name__
        )
