"""Whatever processors, tools and models do, a run ends once, cleanly, and says the same everywhere."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from chaos import FORGED, FRAME, TEXT_ANYWHERE, Plan, plans, stream_plans
from hypothesis import given, settings
from hypothesis import strategies as st
from watched import (
    THREAD,
    Journal,
    Seen,
    WatchedModel,
    cancelled_stream,
    check_frame,
    generate,
    no_task_left,
    simple,
    simple_result,
    stream,
)

from interlock import Message, ModelError, RunResult
from interlock.memory import Memory
from interlock.messages import ToolInvocationPart

MOST = 150


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Any:
    """What on_run_end raises is logged each time: that is not what is looked at here."""
    logging.getLogger("interlock").setLevel(logging.CRITICAL)
    yield
    logging.getLogger("interlock").setLevel(logging.NOTSET)


def check_clean(plan: Plan, model: WatchedModel, journal: Journal) -> None:
    """Nothing is left running, and every processor was told of the end exactly once (R1.5, R5.1, R5.5)."""
    assert model.open == 0, "the provider's stream is still open"
    assert {each: len(ends) for each, ends in journal.ends.items()} == {
        f"p{i}": 1 for i in range(len(plan.processors))
    }


def check_usage(model: WatchedModel, result: RunResult) -> None:
    """Usage counts every call that told its usage, and is always numbers (R5.3)."""
    usage = result.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (
        model.input_tokens,
        model.input_tokens // 2,
        model.input_tokens * 3 // 2,
    )


def open_calls(messages: list[Message]) -> list[str]:
    """Ids of the calls without an answer."""
    return [
        part.tool_call_id
        for message in messages
        for part in message.content.parts
        if isinstance(part, ToolInvocationPart) and part.state in ("call", "partial-call")
    ]


def text_of(messages: list[Message], role: str = "assistant") -> str:
    """The text of the messages of one role."""
    return "".join(message.text for message in messages if message.role == role)


def unfinished(messages: list[Message]) -> bool:
    """Whether a message is marked as part of an unfinished turn."""
    return any((message.content.metadata or {}).get("unfinished") for message in messages)


async def check_stored(plan: Plan, memory: Memory, journal: Journal, seen: Seen) -> None:
    """What is stored is what R8.1 and R8.2 say for this kind of end."""
    stored = await memory.messages(THREAD["thread"], resource=THREAD["resource"])
    outcome = journal.ends["p0"][0]
    result = outcome.result
    if outcome.kind == "finished":
        assert simple(stored) == simple(result.all_messages), "R8.1: the final content of the list is saved"
        assert not unfinished(stored)
        return
    assert not open_calls(stored), "R8.2: nothing that is kept after an early end holds an open call"
    in_hook = outcome.kind == "error" and not from_model(outcome.error)
    if outcome.kind == "tripwire" or in_hook:
        kept = {
            call.tool_call_id for step in result.steps if step.tripwire is None for call in step.tool_calls
        }
        if result.steps and result.steps[-1].tripwire is not None:  # a refused final answer keeps its calls
            kept |= {call.tool_call_id for call in result.steps[-1].tool_calls}
        if not kept & set(journal.tools):
            assert stored == [], "R8.2: nothing of a blocked turn is saved"
        else:
            assert any(message.role == "user" for message in stored)
            assert text_of(stored) == result.text, "R8.2: accepted steps are saved whole"
        assert not unfinished(stored)
    elif not plan.memory_policy:
        assert stored == [], "R8.2: save_unfinished=False"
    elif stored:
        assert unfinished(stored), "R8.2: marked unfinished"
        assert text_of(stored).startswith(result.text), "R8.2: the accepted steps"
        rest = text_of(stored)[len(result.text) :]
        assert result.released_text.endswith(rest), "R8.2: and the text already released, no more"
    else:
        assert not result.steps, "R8.2: accepted steps are saved"


def from_model(error: BaseException | None) -> bool:
    """Whether a run's error is the provider's."""
    return isinstance(error, ModelError)


async def run_three_ways(plan: Plan) -> None:
    """Run a plan as a stream and with generate, and check each and both."""
    seen: dict[str, Seen] = {}
    ends: dict[str, RunResult] = {}
    for mode in ("stream", "generate"):
        journal = Journal()
        agent, model, memory = plan.build(journal)
        run = stream if mode == "stream" else generate
        seen[mode] = each = await run(agent, memory=THREAD, **plan.options)
        check_clean(plan, model, journal)
        outcome = journal.ends["p0"][0]
        ends[mode] = outcome.result
        check_usage(model, outcome.result)
        await check_stored(plan, memory, journal, each)
        if each.result is not None:
            assert each.result == outcome.result
            assert (each.result.finish_reason == "other") == (each.result.tripwire is not None)
    one, other = seen["stream"], seen["generate"]
    check_frame(one.chunks)
    assert simple_result(ends["stream"]) == simple_result(ends["generate"]), "R10.4: one code path"
    assert type(one.error) is type(other.error)
    assert str(one.error) == str(other.error)
    assert (one.kind == "error") == (one.error is not None)
    assert (one.kind == "tripwire") == (ends["stream"].tripwire is not None)
    assert ends["stream"].released_text == one.client_text, "R0: released_text says what had left"
    if one.kind == "finish" and plan.options["release"] == "run":
        assert one.result is not None
        assert one.client_text == one.result.text == text_of(one.result.messages), "R0.1"


@given(plan=plans())
@settings(max_examples=MOST)
def test_any_run_ends_once_cleanly_and_alike_in_both_modes(plan: Plan) -> None:
    """However a run goes: no task, no open stream, one end, on_run_end once, usage in numbers, storage as R8.2 says.

    R0.1, R1.5, R4.6, R5, R8, R10.4: also generate and stream agree, and under release ``run`` the client's text is
    the result's.
    """
    asyncio.run(run_three_ways(plan))


@given(plan=plans(calm=True))
@settings(max_examples=MOST)
def test_runs_without_mishap_end_cleanly_and_alike_in_both_modes(plan: Plan) -> None:
    """As above with edits, drops and several-chunk returns only, so that runs come far.

    R0.1, R4, R7.5, R8.1.
    """
    asyncio.run(run_three_ways(plan))


@given(plan=stream_plans(TEXT_ANYWHERE))
@settings(max_examples=60)
def test_text_that_a_hook_adds_at_any_chunk_is_framed(plan: Plan) -> None:
    """Deltas, starts and ends returned for any chunk, also step-start, tool-result and step-finish: framed.

    R4.6, R0.1.
    """
    asyncio.run(run_three_ways(plan))


@given(plan=stream_plans(FRAME))
@settings(max_examples=60)
def test_a_hidden_step_frame_hides_nothing_else(plan: Plan) -> None:
    """A step-start, step-finish or finish that a hook drops or doubles changes nothing but itself for the
    client.

    R4.6, R0.1, R7.3.
    """
    asyncio.run(run_three_ways(plan))


@given(plan=stream_plans(FORGED))
@settings(max_examples=60)
def test_a_hook_cannot_forge_the_frame_of_a_run(plan: Plan) -> None:
    """start, finish, tripwire, error and abort returned by a hook never give the stream a second one.

    R4.6, R5.2.
    """
    asyncio.run(run_three_ways(plan))


async def run_cancelled(plan: Plan, after: int, leave: bool) -> None:
    """Cancel a plan's stream after so many chunks."""
    journal = Journal()
    agent, model, memory = plan.build(journal)
    seen = await cancelled_stream(agent, after, journal, leave=leave, memory=THREAD, **plan.options)
    check_clean(plan, model, journal)
    outcome = journal.ends["p0"][0]
    check_usage(model, outcome.result)
    await check_stored(plan, memory, journal, seen)
    assert seen.hooks_after_cancel == 0, "R5.5: no hook but on_run_end runs after a cancellation"
    if not leave:
        check_frame(seen.chunks)
        assert (seen.kind == "abort") == (outcome.kind == "cancelled")
    if outcome.kind == "cancelled":
        result = outcome.result
        assert (result.finish_reason, result.tripwire) == ("aborted", None)
        assert all(step.finish_reason == "retry" or step.tripwire is None for step in result.steps)


@given(plan=plans(), after=st.integers(0, 12), leave=st.booleans())
@settings(max_examples=MOST)
def test_a_run_cancelled_anywhere_ends_once_and_cleanly(plan: Plan, after: int, leave: bool) -> None:
    """Cancelled by cancel() or by leaving, after any chunk: closed at once, no hook, finish_reason aborted.

    R5.5, R8.2.
    """
    asyncio.run(run_cancelled(plan, after, leave))


async def run_task_cancelled(plan: Plan, turns: int) -> None:
    """Cancel the task of a plan's generate."""
    journal = Journal()
    agent, model, memory = plan.build(journal)
    task = asyncio.create_task(agent.generate("hi", memory=THREAD, **plan.options))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    await no_task_left()
    if turns == 0:
        return  # it never began
    assert model.open == 0
    assert all(len(ends) == 1 for ends in journal.ends.values())
    if journal.ends:
        check_clean(plan, model, journal)
        outcome = journal.ends["p0"][0]
        # what was being saved is saved, and then the run has ended as it would have; the task is cancelled all the same
        assert task.cancelled() or outcome.kind != "cancelled"
        await check_stored(plan, memory, journal, Seen())


@given(plan=plans(), turns=st.integers(0, 30))
@settings(max_examples=MOST)
def test_a_cancelled_generate_ends_cleanly(plan: Plan, turns: int) -> None:
    """The task of ``generate`` cancelled at any turn of the event loop leaves nothing behind. R5.5, R8.2."""
    asyncio.run(run_task_cancelled(plan, turns))
