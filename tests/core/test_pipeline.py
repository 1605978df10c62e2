"""From lists of processors to calls of hooks: what a processor is and how it is called (R2, R10.1, R10.2)."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest

from harness_runs import ALL_HOOKS, Hooks, Recorder, check_last, echo_tool, in_both_modes, make_agent, play
from interlock import (
    Agent,
    Chain,
    ErrorProcessor,
    InputProcessor,
    ModelError,
    OutputProcessor,
    Processor,
    ProcessorViolation,
    Retry,
    UsageError,
    When,
)
from interlock.chunks import TextDelta
from interlock.core.hooks import HOOKS, LANES, hooks_of, implemented
from interlock.core.pipeline import Pipeline, is_async
from interlock.memory import Memory
from interlock.testing import ScriptedModel, error, text, tool_call

pytestmark = pytest.mark.anyio


def _script(hook: str) -> ScriptedModel:
    failed = [[error(400, "rejected")]] if hook == "process_api_error" else []
    return ScriptedModel(
        *failed, [tool_call("echo", {"value": "v"}, id="c1")], [text("done")], repeat_last=True
    )


# ------------------------------------------------------------------------------------------------- forms of a hook


class _Sync:
    def __call__(self, subject: Any, ctx: Any) -> Any:
        ctx.state["called"] = True
        return ctx.request_context["returns"](subject)


class _Async:
    async def __call__(self, subject: Any, ctx: Any) -> Any:
        await asyncio.sleep(0)
        return _Sync()(subject, ctx)


async def _async_function(subject: Any, ctx: Any) -> Any:
    return await _Async()(subject, ctx)


def _sync_function(subject: Any, ctx: Any) -> Any:
    return _Sync()(subject, ctx)


def _with_option(option: int, subject: Any, ctx: Any) -> Any:
    return _Sync()(subject, ctx)


async def _async_with_option(option: int, subject: Any, ctx: Any) -> Any:
    return _Sync()(subject, ctx)


FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "def": _sync_function,
    "async def": _async_function,
    "partial of def": functools.partial(_with_option, 1),
    "partial of async def": functools.partial(_async_with_option, 1),
    "partial of partial": functools.partial(functools.partial(_async_with_option), 1),
    "object": _Sync(),
    "async object": _Async(),
    "partial of an async object": functools.partial(_Async()),
    "def that gives a coroutine": lambda subject, ctx: _async_function(subject, ctx),
}


@in_both_modes
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hook", ALL_HOOKS)
async def test_every_hook_may_have_any_form(hook: str, form: str, mode: str) -> None:
    """Each of the nine hooks may be def, async def, a partial or an object, as method or assigned (R2.2)."""
    returns = {
        "process_output_stream": lambda chunk: (
            chunk.replace(text="DONE") if isinstance(chunk, TextDelta) else chunk
        ),
        "process_api_error": lambda problem: Retry(),
    }.get(hook, lambda subject: None)
    ends: list[dict[str, Any]] = []
    processor = Hooks("p", **{hook: FORMS[form]}, on_run_end=lambda outcome, ctx: ends.append(ctx.state))
    agent = make_agent(_script(hook), processor, tools=[echo_tool()])
    seen = await play(agent, mode=mode, request_context={"returns": returns})
    assert seen.result.text == ("DONE" if hook == "process_output_stream" else "done")
    assert ends == [{"called": True}]


class _Shouts(Processor):
    """A hook of a class, to be inherited."""

    id = "shouts"

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        return chunk.replace(text="DONE") if isinstance(chunk, TextDelta) else chunk


class _ShoutsLater(Processor):
    id = "shouts-later"

    async def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        await asyncio.sleep(0)
        return chunk.replace(text="DONE") if isinstance(chunk, TextDelta) else chunk


@in_both_modes
@pytest.mark.parametrize("base", [_Shouts, _ShoutsLater])
async def test_hooks_as_methods_of_a_class(base: Any, mode: str) -> None:
    """A hook inherited from the user's own base class counts, sync or async (R2.2)."""

    class Derived(base):
        id = "derived"

    seen = await play(make_agent(ScriptedModel([text("done")]), Derived()), mode=mode)
    assert seen.result.text == "DONE"


@pytest.mark.parametrize(("form", "function"), FORMS.items(), ids=FORMS)
def test_async_is_decided_from_the_function(form: str, function: Any) -> None:
    """What can be known to be async before the call is (R2.2)."""
    assert is_async(function) == ("async" in form or form == "partial of partial")


@in_both_modes
async def test_hooks_nobody_overrides_are_not_called(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook inherited unchanged from the library's classes is never called (R2.2)."""

    def trap(self: Any, subject: Any, ctx: Any) -> None:
        raise AssertionError("a hook nobody implements was called")

    for hook in HOOKS:
        monkeypatch.setattr(LANES[hook.lane], hook.name, trap)
    processor = Hooks(
        "p", process_input=lambda messages, ctx: None, process_output_result=lambda result, ctx: None
    )
    agent = make_agent(_script("process_api_error"), processor, tools=[echo_tool()])
    seen = await play(agent, mode=mode, error_processors=[])
    assert isinstance(seen.error, ModelError)
    seen = await play(agent, mode=mode)
    assert seen.result.text == "done"


def test_an_empty_pipeline_has_nothing_to_call() -> None:
    """Only implemented hooks are compiled (R2.2)."""
    pipeline = Pipeline({"input": [Hooks("p", process_input=_sync_function)], "output": [], "error": []})
    assert {hook: len(calls) for hook, calls in pipeline.calls.items() if calls} == {"process_input": 1}


# --------------------------------------------------------------------------------------------------- lanes and ids


def test_each_hook_belongs_to_one_lane() -> None:
    """The lanes' hooks are those of the contract (R2.4)."""
    assert set(hooks_of("input")) == {
        "process_input",
        "process_input_step",
        "process_llm_request",
        "process_llm_response",
    }
    assert set(hooks_of("output")) == {
        "process_output_stream",
        "process_output_step",
        "process_tool_result",
        "process_output_result",
    }
    assert hooks_of("error") == ("process_api_error",)


@in_both_modes
async def test_one_object_in_several_lists(mode: str) -> None:
    """In each list the hooks of that list's kind are called, and no other (R2.5)."""
    recorder = Recorder(act=lambda name, subject, ctx: Retry() if name == "process_api_error" else None)
    for lanes in (["input"], ["output"], ["error"], ["input", "error"], ["input", "output", "error"]):
        recorder.log.clear()
        lists: dict[str, Any] = {f"{lane}_processors": [recorder] for lane in lanes}
        agent = Agent(
            id="a",
            model=_script("process_api_error" if "error" in lanes else ""),
            tools=[echo_tool()],
            **lists,
        )
        await play(agent, mode=mode)
        wanted = {hook for lane in lanes for hook in hooks_of(lane)}  # type: ignore[arg-type]
        assert set(recorder.hooks) == wanted


@in_both_modes
async def test_one_object_shares_its_state_between_lists(mode: str) -> None:
    """The same object, and two objects of one id in different lists, have one state (R2.5, R6)."""

    def write(subject: Any, ctx: Any) -> None:
        ctx.state["written"] = True

    read: list[Any] = []
    first = Hooks("same", process_input=write)
    second = Hooks("same", process_output_result=lambda result, ctx: read.append(dict(ctx.state)))
    await play(make_agent(ScriptedModel([text("ok")]), first, second), mode=mode)
    assert read == [{"written": True}]


@pytest.mark.parametrize(
    ("base", "lane"), [(InputProcessor, "input"), (OutputProcessor, "output"), (ErrorProcessor, "error")]
)
def test_a_base_class_declares_its_own_lanes_hooks(base: Any, lane: Any) -> None:
    """InputProcessor, OutputProcessor, ErrorProcessor declare the hooks of one lane, Processor all (R2.4)."""
    declared = {name for name in dir(base) if name.startswith("process_") and name in ALL_HOOKS}
    assert declared == set(hooks_of(lane))
    assert set(ALL_HOOKS) <= set(dir(Processor))


def test_a_hook_outside_its_base_class_is_no_hook() -> None:
    """An OutputProcessor with a method process_input is refused in the input list (R2.4)."""

    class Confused(OutputProcessor):
        id = "confused"

        def process_input(self, messages: Any, ctx: Any) -> None:
            return None

        def process_output_result(self, result: Any, ctx: Any) -> None:
            return None

    assert implemented(Confused(), "output") == ("process_output_result",)
    with pytest.raises(UsageError, match="confused"):
        Agent(id="a", model=ScriptedModel(), input_processors=[Confused()])  # type: ignore[list-item]


def test_name_falls_back_to_the_id() -> None:
    """name is optional and falls back to the id (R2.1)."""

    class Named(Processor):
        id = "with-name"
        name = "A name"

    class Unnamed(Processor):
        id = "without-name"

    assert Named().name == "A name"
    assert Unnamed().name == "without-name"
    assert Hooks("given-in-init").name == "given-in-init"


def test_processor_data_has_the_defaults_of_the_contract() -> None:
    """process_data_parts is off, on_error is closed, description and index are empty (R2.1, R2.7)."""
    processor = Hooks("p")
    assert processor.process_data_parts is False
    assert processor.process_tool_errors is False
    assert processor.observes is False
    assert processor.on_error == "closed"
    assert processor.description is None
    assert processor.processor_index is None


@in_both_modes
async def test_processor_index_is_the_place_in_the_combined_list(mode: str) -> None:
    """The runtime sets processor_index when lists are combined: memory's processors count (R2.1)."""
    seen: list[int | None] = []
    first = Hooks("a", process_input=lambda messages, ctx: seen.append(first.processor_index))
    second = Hooks("b", process_input=lambda messages, ctx: seen.append(second.processor_index))
    agent = make_agent(ScriptedModel([text("ok")], repeat_last=True), first, second, memory=Memory())
    await play(agent, mode=mode)
    assert seen == [0, 1]
    seen.clear()
    await play(agent, mode=mode, memory={"thread": "t"})
    assert seen == [2, 3]


# ------------------------------------------------------------------------------------------------------- violations


def _abort_once(hook: str, retry: bool = False) -> Callable[[Any, Any], Any]:
    def run(subject: Any, ctx: Any) -> Any:
        if not ctx.state:
            ctx.state["done"] = True
            ctx.abort("reason", metadata={"hook": hook}, retry=retry)
        return subject if hook == "process_output_stream" else None

    return run


@in_both_modes
@pytest.mark.parametrize("hook", ALL_HOOKS)
@pytest.mark.parametrize("way", ["override", "override async", "assign", "assign async"])
async def test_on_violation_is_told_of_an_abort_in_any_hook(way: str, hook: str, mode: str) -> None:
    """ProcessorViolation(processor_id, message, detail) goes to on_violation, sync or async, once per abort (R2.6)."""
    told: list[ProcessorViolation] = []

    async def tell_later(violation: ProcessorViolation) -> None:
        await asyncio.sleep(0)
        told.append(violation)

    class Overriding(Hooks):
        def on_violation(self, violation: ProcessorViolation) -> Any:
            return tell_later(violation) if "async" in way else told.append(violation)

    if "override" in way:
        processor: Hooks = Overriding("p", **{hook: _abort_once(hook)})
    else:
        callback = tell_later if "async" in way else told.append
        processor = Hooks("p", **{hook: _abort_once(hook)}, on_violation=callback)
    bystander = Hooks("b", process_input=lambda messages, ctx: None, on_violation=lambda v: told.append(v))
    seen = await play(make_agent(_script(hook), bystander, processor, tools=[echo_tool()]), mode=mode)
    assert told == [ProcessorViolation(processor_id="p", message="reason", detail={"hook": hook})]
    assert seen.result.violations == told


@in_both_modes
async def test_every_violation_is_in_the_result(mode: str) -> None:
    """Retries that were granted and aborts that were swallowed are violations too, in order (R2.6)."""

    def judge(output: Any, ctx: Any) -> None:
        ctx.abort(f"not {output.text}", retry=True)

    def swallow(result: Any, ctx: Any) -> None:
        try:
            ctx.abort("swallowed")
        except BaseException:
            return

    model = ScriptedModel([text("one")], [text("two")])
    agent = make_agent(model, Hooks("j", process_output_step=judge), max_processor_retries=1)
    seen = await play(agent, mode=mode)
    assert [v.message for v in seen.result.violations] == ["not one", "not two"]
    agent = make_agent(ScriptedModel([text("one")]), Hooks("s", process_output_result=swallow))
    seen = await play(agent, mode=mode)
    assert [(v.processor_id, v.message) for v in seen.result.violations] == [("s", "swallowed")]


def _raise(violation: Any) -> None:
    raise RuntimeError("callback")


async def _raise_later(violation: Any) -> None:
    await asyncio.sleep(0)
    raise RuntimeError("callback")


@in_both_modes
@pytest.mark.parametrize("callback", [_raise, _raise_later])
@pytest.mark.parametrize("retry", [False, True])
async def test_what_on_violation_raises_never_disturbs_the_run(
    retry: bool, callback: Any, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A failing callback is logged; the run is blocked, or asked again, just the same (R2.6)."""
    processor = Hooks(
        "p", process_output_step=_abort_once("process_output_step", retry), on_violation=callback
    )
    model = ScriptedModel([text("one")], [text("two")])
    seen = await play(make_agent(model, processor, max_processor_retries=1), mode=mode)
    if retry:
        assert seen.result.text == "two"
        assert seen.result.tripwire is None
    else:
        assert seen.result.tripwire is not None
        assert seen.result.tripwire.reason == "reason"
        check_last(seen, "tripwire")
    assert len(seen.result.violations) == 1
    assert "p" in caplog.text


@in_both_modes
async def test_an_abort_in_on_violation_changes_nothing(mode: str) -> None:
    """on_violation cannot abort: the first tripwire stands (R2.6)."""
    kept: list[Any] = []

    def on_input(messages: Any, ctx: Any) -> None:
        kept.append(ctx)
        ctx.abort("first")

    def abort_again(violation: Any) -> None:
        if len(kept) == 1:
            kept.append(None)
            kept[0].abort("second")

    agent = make_agent(ScriptedModel(), Hooks("p", process_input=on_input, on_violation=abort_again))
    seen = await play(agent, mode=mode)
    assert seen.result.tripwire is not None
    assert seen.result.tripwire.reason == "first"


# --------------------------------------------------------------------------------------------------------- on_error


@in_both_modes
@pytest.mark.parametrize("is_async_hook", [False, True])
@pytest.mark.parametrize("hook", ALL_HOOKS)
async def test_a_processor_that_fails_open_is_passed_over(hook: str, is_async_hook: bool, mode: str) -> None:
    """on_error="open": the hook's return counts as unchanged and a violation tells so; the run goes on (R2.7)."""
    told: list[ProcessorViolation] = []

    def fail(subject: Any, ctx: Any) -> Any:
        raise ValueError("boom")

    async def fail_later(subject: Any, ctx: Any) -> Any:
        await asyncio.sleep(0)
        raise ValueError("boom")

    processor = Hooks(
        "p", **{hook: fail_later if is_async_hook else fail}, on_error="open", on_violation=told.append
    )
    seen = await play(make_agent(_script(hook), processor, tools=[echo_tool()]), mode=mode)
    if hook == "process_api_error":
        assert isinstance(seen.error, ModelError), "not handled: the original error surfaces (R4.5)"
    else:
        assert seen.result.text == "done"
        assert seen.result.violations == told
    assert told
    assert {violation.processor_id for violation in told} == {"p"}
    assert hook in told[0].message


@in_both_modes
async def test_in_place_edits_of_a_hook_that_failed_open_stay(mode: str) -> None:
    """What it changed in place before it failed is not taken back (R2.7)."""

    def edit_then_fail(messages: Any, ctx: Any) -> None:
        messages[0].content.parts[0].text = "edited"
        raise ValueError("boom")

    model = ScriptedModel([text("ok")])
    await play(make_agent(model, Hooks("p", process_input=edit_then_fail, on_error="open")), mode=mode)
    assert model.calls[0].prompt_text == "edited"


@in_both_modes
async def test_an_abort_is_no_error_to_be_passed_over(mode: str) -> None:
    """on_error="open" is about exceptions: an abort stops the run, even one that ends as another exception (R2.7)."""

    def abort_badly(messages: Any, ctx: Any) -> None:
        try:
            ctx.abort("stop")
        except BaseException as trip:
            raise ValueError("boom") from trip

    for hook in (lambda messages, ctx: ctx.abort("stop"), abort_badly):
        seen = await play(
            make_agent(ScriptedModel(), Hooks("p", process_input=hook, on_error="open")), mode=mode
        )
        assert seen.result.tripwire is not None
        assert seen.result.tripwire.reason == "stop"


@in_both_modes
async def test_a_failing_stream_hook_lets_the_chunk_pass_to_the_next(mode: str) -> None:
    """A stream hook that failed open passes its chunk on unchanged, to later processors too (R2.7, R4.6)."""

    def fail_on_text(chunk: Any, ctx: Any) -> Any:
        if isinstance(chunk, TextDelta):
            raise ValueError("boom")
        return chunk

    def mark(chunk: Any, ctx: Any) -> Any:
        return chunk.replace(text=f"<{chunk.text}>") if isinstance(chunk, TextDelta) else chunk

    agent = make_agent(
        ScriptedModel([text("a", "b")]),
        Hooks("f", process_output_stream=fail_on_text, on_error="open"),
        Hooks("m", process_output_stream=mark),
    )
    seen = await play(agent, mode=mode)
    assert seen.result.text == "<a><b>"
    assert len(seen.result.violations) == 2


# --------------------------------------------------------------------------------------------------- configuration


@in_both_modes
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_list_may_be_a_function_of_the_request_context(kind: str, mode: str) -> None:
    """Each list may be a sync or async function, evaluated once per call with the request context (R10.1)."""
    asked: list[Any] = []

    def make(context: Any) -> list[Processor]:
        asked.append(context["name"])
        return [Hooks("made", process_input=lambda m, ctx: None, process_output_result=lambda r, ctx: None)]

    async def make_later(context: Any) -> list[Processor]:
        await asyncio.sleep(0)
        return make(context)

    given: Any = make if kind == "sync" else make_later
    agent = Agent(
        id="a", model=_script(""), tools=[echo_tool()], input_processors=given, output_processors=given
    )
    await play(agent, mode=mode, request_context={"name": "one"})
    assert asked == ["one", "one"], "once for each list"
    asked.clear()
    await play(agent, mode=mode, request_context={"name": "two"}, input_processors=[])
    assert asked == ["two"], "an overridden list is not evaluated"


@in_both_modes
@pytest.mark.parametrize("lane", ["input", "output", "error"])
async def test_a_list_given_to_the_call_replaces_the_agents(lane: Any, mode: str) -> None:
    """A call's list replaces the agent's for that call only; [] disables it (R10.2)."""
    hook = {"input": "process_input", "output": "process_output_result", "error": "process_api_error"}[lane]
    own, other = Recorder("own", hooks=[hook]), Recorder("other", hooks=[hook])
    script = [error(400, "no")] if lane == "error" else [text("ok")]
    agent = make_agent(ScriptedModel(script, repeat_last=True), own)
    for given, expected in (([other], (0, 1)), ([], (0, 1)), (None, (1, 1)), ((other,), (1, 2))):
        await play(agent, mode=mode, **({} if given is None else {f"{lane}_processors": given}))
        assert (len(own.log), len(other.log)) == expected


@in_both_modes
async def test_memory_runs_around_the_users_processors(mode: str) -> None:
    """Memory's processors come before the user's on input, and stay when the call overrides the list (R10.2, R1)."""
    memory = Memory()
    model = ScriptedModel([text("one")], repeat_last=True)
    seen: list[list[str]] = []
    look = Hooks("look", process_input=lambda messages, ctx: seen.append([m.text for m in messages]))
    agent = make_agent(model, look, memory=memory)
    thread = {"thread": "t"}
    await play(agent, "a", mode=mode, memory=thread)
    await play(agent, "b", mode=mode, memory=thread)
    assert seen[1] == ["a", "one", "b"]
    await play(agent, "c", mode=mode, memory=thread, input_processors=[])
    assert "a" in model.calls[2].prompt_text


@in_both_modes
async def test_concurrent_runs_of_one_agent_do_not_mix(mode: str) -> None:
    """State, retries and tripwires of runs that go on at the same time stay apart (R6)."""

    async def step(chunk: Any, ctx: Any) -> Any:
        await asyncio.sleep(0)
        ctx.state["seen"] = ctx.state.get("seen", 0) + 1
        if isinstance(chunk, TextDelta) and ctx.request_context["n"] % 2:
            ctx.abort(str(ctx.request_context["n"]))
        return chunk

    ends: list[int] = []
    processor = Hooks(
        "p", process_output_stream=step, on_run_end=lambda o, ctx: ends.append(ctx.state["seen"])
    )
    agent = make_agent(ScriptedModel([text("ok")], repeat_last=True), processor)
    runs = await asyncio.gather(*(play(agent, mode=mode, request_context={"n": n}) for n in range(20)))
    for n, seen in enumerate(runs):
        if n % 2:
            assert seen.result.tripwire is not None
            assert seen.result.tripwire.reason == str(n)
        else:
            assert seen.result.text == "ok"
    assert sorted(set(ends)) == [3, 6]


def test_compositions_are_flattened_in_place() -> None:
    """Members stand in the order of the list, with their own ids, and duplicate ids are found among them (R10.3)."""
    a, b, c, d = (Hooks(name, process_input=_sync_function) for name in "abcd")
    pipeline = Pipeline({"input": [a, Chain(b, When(lambda ctx: True, c)), d]})
    assert [member.processor.id for member in pipeline.members] == ["a", "b", "c", "d"]
    assert [call.processor.id for call in pipeline.calls["process_input"]] == ["a", "b", "c", "d"]
    assert [len(call.conditions) for call in pipeline.calls["process_input"]] == [0, 0, 1, 0]
    with pytest.raises(UsageError, match="same id"):
        Pipeline({"input": [a, Chain(b, When(lambda ctx: True, Hooks("a", process_input=_sync_function)))]})
