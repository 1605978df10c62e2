"""The loop.

::

    input ──▶ process_input                                        once
                  │
        ┌─▶ process_input_step                                     each step
        │   process_llm_request
        │   the model ──▶ process_output_stream                    each chunk
        │       └─ rejected? ──▶ process_api_error ──▶ the same step again
        │   process_llm_response
        │   process_output_step
        │   the tools ──▶ process_tool_result                      each result
        └── tools were called? the next step
                  │
            process_output_result                                  once
                  ▼
               result

A phase returns the next phase: the arrow back is a return value, and one ``try`` covers everything a processor can
stop. Rules kept here: the order of a run (spec R1), what an abort means (R5), what a retry means (R7).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import UNSET

from interlock.core import stages
from interlock.core.attempt import Attempt
from interlock.core.call import CallFailed, read_response
from interlock.core.calling import heed
from interlock.core.chunks import StepFinish, ToolResult
from interlock.core.errors import TripWire
from interlock.core.jsonable import jsonable
from interlock.core.messages import ToolInvocationPart
from interlock.core.run import Run
from interlock.core.step_records import tripwire_info
from interlock.core.tool_jobs import ToolData, ToolDone, ToolJob

Phase: TypeAlias = "Callable[[Run], Awaitable[Phase | None]]"

FEEDBACK = "retry-feedback"


async def drive(run: Run) -> None:
    """Take a run from its input to its end. The only place where a TripWire is caught."""
    phase: Phase | None = begin
    while phase is not None:
        try:
            phase = await phase(run)
        except TripWire as trip:
            phase = trip_over(run, phase, run.latch.trip or trip)


async def begin(run: Run) -> Phase | None:
    """The input, once."""
    await stages.process_input(run)
    run.input_passed = True
    await run.delivery.start()
    return take_step


async def take_step(run: Run) -> Phase | None:
    """One step: a model call and the tools it asks for."""
    attempt = run.open_attempt()
    await stages.process_input_step(run, attempt)
    if not await call_model(run, attempt):
        return repair_step
    await stages.process_llm_response(run, attempt)
    await stages.process_output_step(run, attempt)
    await run.delivery.accept_step()
    await call_tools(run, attempt)
    await close_step(run, attempt)
    return take_step if attempt.continues else finish


async def finish(run: Run) -> Phase | None:
    """The final answer, once per candidate."""
    await stages.process_output_result(run)
    await heed(run)
    await run.delivery.accept_run()
    return None


# ------------------------------------------------------------------------------------------------ inside a step


async def call_model(run: Run, attempt: Attempt) -> bool:
    """Ask the model. Returns False when the call failed and an error processor wants the step again (R4.5)."""
    answer = await stages.process_llm_request(run, attempt)
    try:
        await read_response(run, attempt, answer)
    except CallFailed as failure:
        run.attempts.remove(attempt)  # a failed call is no step
        if not await stages.process_api_error(run, failure.error):
            raise failure.error from failure.error.__cause__
        return False
    return True


async def call_tools(run: Run, attempt: Attempt) -> None:
    """Run the calls the message list now holds, then take their results in call order (R1.2g, R4.7)."""
    calls = run.own_calls(attempt)
    attempt.continues = bool(calls) and attempt.number + 1 < run.options.max_steps
    if not calls:
        return
    outcomes = await run_tools(run, attempt, [part for part in calls if part.state == "call"])
    for part in calls:
        result = await stages.process_tool_result(run, result_of(part, outcomes.get(part.tool_call_id)))
        run.stage = "process_output_stream"
        await run.chain.feed(stages.result_chunk(result))


async def run_tools(run: Run, attempt: Attempt, calls: list[ToolInvocationPart]) -> dict[str, ToolDone]:
    """Run tools concurrently; their data chunks go out from here, so that they never race a hook (R9.1)."""
    outcomes: dict[str, ToolDone] = {}
    jobs: list[ToolJob] = []
    for part in calls:
        tool = attempt.active_tools().get(part.tool_name)
        if part.invalid is not None:
            error = f"arguments for {part.tool_name} could not be read: {part.invalid}"
            outcomes[part.tool_call_id] = ToolDone(tool_call_id=part.tool_call_id, error=error)
        elif tool is None:
            outcomes[part.tool_call_id] = ToolDone(
                tool_call_id=part.tool_call_id, error=not_found(attempt, part)
            )
        else:
            jobs.append(ToolJob(tool_call_id=part.tool_call_id, tool=tool, args=part.args))
    run.stage = "process_output_stream"
    events = run.edges.run_tools(jobs, run)
    try:
        async for event in events:
            if isinstance(event, ToolData):
                run.post_data(event.chunk)
                await heed(run)
                event.done()
            else:
                outcomes[event.tool_call_id] = event
    finally:
        await events.aclose()
        attempt.tools_ran = any(job.entered for job in jobs)
        attempt.unrepeatable_ran = any(job.entered and not job.tool.repeatable for job in jobs)
    return outcomes


def not_found(attempt: Attempt, part: ToolInvocationPart) -> str:
    """The error the model reads when it calls a tool that is not there."""
    known = ", ".join(attempt.active_tools()) or "none"
    return f"tool {part.tool_name!r} not found; available tools: {known}"


def result_of(part: ToolInvocationPart, outcome: ToolDone | None) -> ToolResult:
    """A call's outcome as the subject of process_tool_result; one answered beforehand brings its own."""
    value, is_error = (part.result, None) if outcome is None else (jsonable(outcome.value), None)
    if outcome is not None and outcome.error is not None:
        value, is_error = outcome.error, True
    return ToolResult(
        tool_call_id=part.tool_call_id,
        tool_name=part.tool_name,
        args=part.args,
        result=value,
        is_error=is_error,
    )


async def close_step(run: Run, attempt: Attempt) -> None:
    """The step is accepted when its step-finish has passed (R1.4)."""
    run.stage = "process_output_stream"
    steps = run.all_steps()
    await run.chain.feed(
        StepFinish(
            finish_reason=attempt.finish_reason,
            usage=attempt.usage,
            is_continued=attempt.continues,
            text=steps[-1].text,
            steps=steps,
            processor_retry_count=run.retry_count,
            warnings=attempt.warnings,
            provider_metadata=attempt.provider_metadata,
        )
    )
    await run.transcript.close_blocks()  # should a hook have dropped the step-finish
    attempt.accepted = True
    run.message_list.clear_system(FEEDBACK)
    run.delivery.close_step()


# ------------------------------------------------------------------------------------------------- aborts and retries


def trip_over(run: Run, phase: Phase, trip: TripWire) -> Phase | None:
    """A processor stopped the run: take the step again with its reason as feedback, or end (R7.1)."""
    attempt = run.attempt
    if (
        not trip.retry
        or attempt is None
        or phase not in (take_step, finish)
        or not run.may_retry(trip.processor_id)
    ):
        return block(run, trip)
    run.latch.trip = None
    run.alert = False
    attempt.tripwire = tripwire_info(trip)
    return take_again


async def repair_step(run: Run) -> Phase | None:
    """Withdraw what a failed call brought, and take the same step again (R4.5)."""
    assert run.attempt is not None
    run.error_retries += 1
    await withdraw(run, run.attempt)
    return take_step


async def take_again(run: Run) -> Phase | None:
    """Withdraw the attempt, tell the model why, and take the same step again (R7.3)."""
    attempt = run.attempt
    assert attempt is not None and attempt.tripwire is not None
    feedback = (
        f"Your last answer was not accepted. The reason: {attempt.tripwire.reason}\n"
        "Answer again and take this into account."
    )
    run.message_list.add_system(feedback, tag=FEEDBACK)
    await withdraw(run, attempt, feedback)
    return take_step


async def withdraw(run: Run, attempt: Attempt, feedback: str | None = None) -> None:
    """Take an attempt back: out of the messages, out of what is held, and, where it was seen, from the client."""
    run.retry_count += 1
    run.object = UNSET
    attempt.accepted = False
    attempt.finish_reason = "retry"
    ends = run.transcript.open_chunks()
    run.delivery.drop_step(attempt.number)
    run.transcript.forget_step(attempt.number)
    if not run.delivery.holding:  # what was held has gone, start and all
        for end in ends:
            await run.delivery.send_now(end)
    if attempt.opened:
        run.stage = "process_output_stream"
        await run.chain.feed(
            StepFinish(
                finish_reason="retry",
                usage=attempt.usage,
                is_continued=True,
                steps=run.all_steps(),
                processor_retry_count=run.retry_count,
                processor_retry_feedback=feedback,
                tripwire=attempt.tripwire,
            )
        )
        run.transcript.forget_step(attempt.number)  # what hooks added to that chunk is withdrawn with it


def block(run: Run, trip: TripWire) -> None:
    """The run ends here: what was blocked leaves the messages (R5.3)."""
    run.blocked = trip
    run.delivery.drop_held()
    attempt = run.attempt
    if attempt is None:
        return
    if run.stage == "process_output_result":
        run.ledger.keep_calls_only()
    elif not attempt.accepted:
        run.transcript.forget_step(attempt.number)
    if attempt in run.attempts:
        attempt.tripwire = tripwire_info(trip)
        attempt.finish_reason = "tripwire"
