"""A run from its first hook to its last chunk: whatever happens, it is saved as R8 says and ends exactly once.

Order at the end: the outcome is decided, the turn is saved, ``on_run_end`` is told, the last chunk goes out. So a
client that has the last chunk can rely on everything else being over.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from msgspec import UNSET

from interlock.core.calling import tell_end
from interlock.core.chunks import Abort, Chunk, ErrorChunk, Finish, ObjectResult, TripWireChunk
from interlock.core.errors import SavedAnyway, StorageError
from interlock.core.loop import drive
from interlock.core.messages import Content, Message, StepStartPart, TextPart
from interlock.core.result import RunOutcome, RunResult, Turn, TurnEditor
from interlock.core.run import Run

log = logging.getLogger("interlock")


async def conduct(run: Run, cancelled: BaseException | None = None) -> RunResult:
    """Do the run.

    Args:
        cancelled: the cancellation that came before the run could begin.

    Returns:
        Its result, also when a processor blocked it.

    Raises:
        Exception: a hook's, a model's (ModelError) or the store's (StorageError).
        BaseException: a cancellation, once everything is cleaned up.
    """
    error = cancelled
    try:
        if cancelled is None:
            await drive(run)
    except BaseException as problem:
        error = problem
    outcome, late = await _saved(run, _decide(run, error))
    _warn_of_silence(run)
    run.outcome = outcome
    interrupted = await tell_end(run, outcome)
    if outcome.kind == "finished" and run.object is not UNSET:
        await run.delivery.send_last(ObjectResult(run.object))
    await run.delivery.send_last(_last_chunk(run, outcome))
    run.close()
    if outcome.error is not None:
        raise outcome.error
    if cancellation := late or interrupted:
        raise cancellation
    return outcome.result


async def _saved(run: Run, outcome: RunOutcome) -> tuple[RunOutcome, BaseException | None]:
    """Save the turn. A failure or a cancellation meanwhile becomes the outcome, unless there is a worse one.

    Returns:
        The outcome; and a cancellation that came too late to change it, since the turn is saved all the same.
    """
    try:
        return outcome, await _save(run, outcome)
    except BaseException as problem:
        if outcome.error is not None and isinstance(problem, Exception):
            log.error("the unfinished turn could not be saved: %s", type(problem).__name__)
        if outcome.error is not None:
            return outcome, None
        if isinstance(problem, StorageError):
            problem.result = outcome.result
        if isinstance(problem, Exception):
            return RunOutcome(kind="error", result=outcome.result, error=problem), None
        run.cancelled = True
        return RunOutcome(kind="cancelled", result=run.result(), error=problem), None


def _decide(run: Run, error: BaseException | None) -> RunOutcome:
    """What the end means for the messages (R5.3 to R5.5), and the result that follows."""
    if error is None:
        if run.blocked is None:
            run.transcript.flush_early()
        kind = "finished" if run.blocked is None else "tripwire"
        result = run.result()
        if run.blocked is None and run.object is not UNSET:
            result.object = run.object
        return RunOutcome(kind=kind, result=result)
    run.delivery.drop_held()
    attempt = run.attempt
    if attempt is not None and not attempt.accepted:
        run.transcript.forget_step(attempt.number)
        if attempt in run.attempts:
            run.attempts.remove(attempt)
    if run.failed_in_hook and run.stage == "process_output_result":
        run.ledger.keep_calls_only()
    run.cancelled = not isinstance(error, Exception)
    return RunOutcome(kind="cancelled" if run.cancelled else "error", result=run.result(), error=error)


async def _save(run: Run, outcome: RunOutcome) -> BaseException | None:
    recorder, options = run.edges.recorder, run.options
    if recorder is None or options.thread_id is None or not run.input_passed:
        return None  # input that no guard has passed yet is not kept either
    messages = _messages_to_save(run, outcome)
    if not messages:
        return None
    _date(run, messages)
    turn = Turn(
        thread_id=options.thread_id,
        resource_id=options.resource_id,
        messages=messages,
        unfinished=outcome.kind == "cancelled" or (outcome.kind == "error" and not run.failed_in_hook),
        run_id=outcome.result.run_id,
        usage=outcome.result.usage,
    )
    for member in run.pipeline.members:
        if member.processor.is_framework and isinstance(member.processor, TurnEditor):
            turn = member.processor.edit_turn(turn)
    late: BaseException | None = None
    try:
        saved = await recorder.save_turn(turn)
    except SavedAnyway as told:
        saved, late = True, told.cancellation
    if saved is not False:
        outcome.saved = turn
    return late


def _messages_to_save(run: Run, outcome: RunOutcome) -> list[Message]:
    """The new messages that R8.2 keeps for this kind of end."""
    new = run.ledger.messages("input", "response")
    if outcome.kind == "finished":
        return new
    run.ledger.drop_open_calls()
    new = run.ledger.messages("input", "response")
    if outcome.kind == "tripwire" or run.failed_in_hook:
        # what was done must be known to the next turn; what was only said, need not
        return new if any(attempt.accepted and attempt.tools_ran for attempt in run.attempts) else []
    return _marked_unfinished(run, new) if run.options.save_unfinished else []


def _marked_unfinished(run: Run, messages: list[Message]) -> list[Message]:
    """The messages with the text that had left already, marked; the run's own stay as they are."""
    text = run.delivery.step_released
    saved = list(messages)
    tail = run.ledger.own_tail()
    if text and tail is not None:
        border = [StepStartPart()] if tail.last_step >= 0 else []
        parts = [*tail.message.content.parts, *border, TextPart(text=text)]
        saved[-1] = tail.message.replace(content=tail.message.content.replace(parts=parts))
    elif text:
        answer = Content(parts=[TextPart(text=text)])
        saved.append(Message(id=run.edges.new_id(), role="assistant", content=answer))
    if saved:
        last = saved[-1]
        metadata = {**(last.content.metadata or {}), "unfinished": True}
        saved[-1] = last.replace(content=last.content.replace(metadata=metadata))
    return saved


def _date(run: Run, messages: list[Message]) -> None:
    """Give new messages increasing times in list order, and the thread they belong to (R3.3)."""
    remembered = [
        message.created_at for message in run.ledger.messages("memory") if message.created_at is not None
    ]
    previous = max(remembered, default=None)
    for message in messages:
        moment = message.created_at or run.edges.now()
        if previous is not None and moment <= previous:
            moment = previous + timedelta(milliseconds=1)
        message.created_at = previous = moment
        message.thread_id = run.options.thread_id
        message.resource_id = run.options.resource_id


def _last_chunk(run: Run, outcome: RunOutcome) -> Chunk:
    match outcome.kind:
        case "finished":
            result = outcome.result
            return Finish(
                finish_reason=result.finish_reason,
                usage=result.usage,
                steps=result.steps,
                messages=result.messages,
                processor_retry_count=run.retry_count,
            )
        case "tripwire":
            trip = run.blocked
            assert trip is not None
            return TripWireChunk(
                reason=trip.reason, processor_id=trip.processor_id, retry=trip.retry, metadata=trip.metadata
            )
        case "error":
            return ErrorChunk(outcome.error)
        case _:
            return Abort()


def _warn_of_silence(run: Run) -> None:
    silent = run.chain.silent_hook()
    if silent is not None:
        log.warning(
            "processor %r: process_output_stream dropped every chunk it saw; return the chunk to let it pass",
            silent,
        )
