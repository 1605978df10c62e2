"""Chain: several processors as one entry of a list (R10.3)."""

from __future__ import annotations

from typing import Any

import pytest

from harness_runs import ALL_HOOKS, Hooks, Recorder, echo_tool, in_both_modes, make_agent, play
from interlock import Agent, Chain, Retry, UsageError
from interlock.chunks import TextDelta
from interlock.testing import ScriptedModel, error, text, tool_call

pytestmark = pytest.mark.anyio


def _marks(name: str) -> Hooks:
    def hook(chunk: Any, ctx: Any) -> Any:
        return chunk.replace(text=chunk.text + name) if isinstance(chunk, TextDelta) else chunk

    return Hooks(name, process_output_stream=hook)


@in_both_modes
async def test_members_run_in_order_in_the_place_of_the_chain(mode: str) -> None:
    """The members stand in the list where the chain stands, chains in chains too (R10.3)."""
    processors = [_marks("a"), Chain(_marks("b"), Chain(_marks("c"), id="inner"), _marks("d")), _marks("e")]
    agent = make_agent(ScriptedModel([text("-")]), output_processors=processors)
    assert (await play(agent, mode=mode)).result.text == "-abcde"


@in_both_modes
async def test_a_chain_works_in_every_list(mode: str) -> None:
    """In each list the hooks of that list's kind are called, of all nine (R10.3, R2.5)."""
    recorder = Recorder(act=lambda name, subject, ctx: Retry() if name == "process_api_error" else None)
    chain = Chain(recorder)
    model = ScriptedModel([error(400, "no")], [tool_call("echo", {"value": 1})], [text("ok")])
    agent = make_agent(
        model,
        input_processors=[chain],
        output_processors=[chain],
        error_processors=[chain],
        tools=[echo_tool()],
    )
    seen = await play(agent, mode=mode)
    assert seen.result.text == "ok"
    assert set(recorder.hooks) == set(ALL_HOOKS)
    assert len(recorder.ends) == 1, "on_run_end once for the object (R1.5)"


@in_both_modes
async def test_a_member_keeps_its_name_and_state(mode: str) -> None:
    """The tripwire names the member, not the chain; its state is the member's (R10.3, R6)."""
    states: list[Any] = []

    def stop(messages: Any, ctx: Any) -> None:
        ctx.state["mine"] = True
        ctx.abort("no")

    member = Hooks(
        "member", process_input=stop, on_run_end=lambda outcome, ctx: states.append(dict(ctx.state))
    )
    agent = make_agent(ScriptedModel(), input_processors=[Chain(member, id="whole")])
    seen = await play(agent, mode=mode)
    assert seen.result.tripwire is not None
    assert seen.result.tripwire.processor_id == "member"
    assert states == [{"mine": True}]


@in_both_modes
async def test_an_abort_stops_the_members_after_it(mode: str) -> None:
    """No later member is called after an abort (R5.1)."""
    later = Recorder("later")
    stop = Hooks("stop", process_input=lambda messages, ctx: ctx.abort("no"))
    await play(make_agent(ScriptedModel(), input_processors=[Chain(stop, later)]), mode=mode)
    assert later.log == []
    assert len(later.ends) == 1


def test_mistakes_are_told_at_set_up() -> None:
    """No members, something that is no processor, ids given twice, also across the chain's edge (R2.4, R2.5)."""
    with pytest.raises(UsageError, match="Chain"):
        Chain()
    a, other = _marks("a"), _marks("a")
    for processors in ([a, Chain(other)], [Chain(a, other)], [Chain(a), Chain(other, id="b")]):
        with pytest.raises(UsageError, match="'a'"):
            Agent(id="x", model=ScriptedModel(), output_processors=processors)
    with pytest.raises(UsageError, match="not a processor"):
        Agent(id="x", model=ScriptedModel(), output_processors=[Chain("text")])  # type: ignore[arg-type]
