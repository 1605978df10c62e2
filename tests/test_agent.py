"""The agent: configuration, overrides for a call, and that calls share nothing (R10, R6, R7.5)."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from typing import Any

import pytest

from interlock import (
    Agent,
    CallOptions,
    ModelError,
    Processor,
    RequestContext,
    Retry,
    StepChange,
    UsageError,
    tool,
)
from interlock.chunks import Chunk, TextDelta
from interlock.memory import Memory
from interlock.testing import ScriptedModel, error, text, tool_call


class Tagger(Processor):
    """Adds its name to the text on the way in, and on the way out."""

    def __init__(self, name: str) -> None:
        self.id = name

    def process_input(self, messages: Any, ctx: Any) -> None:
        messages[-1].content.parts[0].text += f" in:{self.id}"

    def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
        return chunk.replace(text=f"{chunk.text} out:{self.id}") if isinstance(chunk, TextDelta) else chunk

    def process_api_error(self, error: Exception, ctx: Any) -> Retry | None:
        ctx.message_list.add(f"sorry from {self.id}")
        return Retry() if ctx.retry_count == 0 else None


class Watch(Processor):
    """Keeps what it sees of each step."""

    id = "watch"

    def __init__(self) -> None:
        self.steps: list[Any] = []

    def process_input_step(self, step: Any, ctx: Any) -> None:
        self.steps.append(step)


def saying(*words: str, **options: Any) -> ScriptedModel:
    """A model that says the same whenever it is asked."""
    return ScriptedModel([text(*words)], repeat_last=True, **options)


@tool
def look(query: str = "q") -> str:
    """Look something up."""
    return f"found {query}"


# ----------------------------------------------------------------------------------------------------------- overrides


@pytest.mark.anyio
async def test_lists_of_a_call_replace_the_agents() -> None:
    """R10.2: a list given with the call replaces the agent's of that lane for that call, and only that."""
    model = saying("ok")
    agent = Agent(id="a", model=model, input_processors=[Tagger("a")], output_processors=[Tagger("a")])
    assert (await agent.generate("hi")).text == "ok out:a"
    assert (await agent.generate("hi", output_processors=[Tagger("b"), Tagger("c")])).text == "ok out:b out:c"
    assert (await agent.generate("hi", input_processors=[Tagger("d")])).text == "ok out:a"
    assert [call.prompt_text for call in model.calls] == ["hi in:a", "hi in:a", "hi in:d"]
    assert (await agent.generate("hi")).text == "ok out:a"


@pytest.mark.anyio
async def test_an_empty_list_disables() -> None:
    """R10.2: [] disables the lane."""
    model = saying("ok")
    agent = Agent(id="a", model=model, input_processors=[Tagger("a")], output_processors=[Tagger("a")])
    result = await agent.generate("hi", input_processors=[], output_processors=[])
    assert result.text == "ok"
    assert model.calls[0].prompt_text == "hi"


@pytest.mark.anyio
async def test_none_is_no_override() -> None:
    """R10.2: an option that is None is as if it was not given."""
    agent = Agent(id="a", model=saying("ok"), output_processors=[Tagger("a")])
    result = await agent.generate("hi", output_processors=None)  # type: ignore[arg-type]
    assert result.text == "ok out:a"


@pytest.mark.anyio
@pytest.mark.parametrize(("override", "calls"), [(None, 2), ([Tagger("b")], 2), ([], 1)])
async def test_error_processors_are_overridden_too(override: Any, calls: int) -> None:
    """R10.2: the same for error_processors."""
    model = ScriptedModel([error(400, "no")], [text("ok")])
    agent = Agent(id="a", model=model, error_processors=[Tagger("a")])
    options = {} if override is None else {"error_processors": override}
    if calls == 1:
        with pytest.raises(ModelError, match="no"):
            await agent.generate("hi", **options)
    else:
        await agent.generate("hi", **options)
    assert len(model.calls) == calls
    if calls == 2:
        assert f"sorry from {'a' if override is None else 'b'}" in model.calls[1].prompt_text


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("of_agent", "of_call", "calls"), [(None, None, 1), (2, None, 3), (2, 1, 2), (None, 1, 2), (2, 0, 1)]
)
async def test_max_processor_retries_of_the_call_counts(of_agent: Any, of_call: Any, calls: int) -> None:
    """R7.1, R10.2: the call's value, else the agent's; unset, a retry request is a plain abort."""

    class Never(Processor):
        id = "never"

        def process_output_step(self, output: Any, ctx: Any) -> None:
            ctx.abort("no", retry=True)

    model = saying("bad")
    agent = Agent(id="a", model=model, output_processors=[Never()], max_processor_retries=of_agent)
    options: Any = {} if of_call is None else {"max_processor_retries": of_call}
    result = await agent.generate("hi", **options)
    assert result.tripwire is not None
    assert result.tripwire.retry is True
    assert len(model.calls) == calls


# ------------------------------------------------------------------------------------------------------ list functions


@pytest.mark.anyio
@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_lists_may_depend_on_the_request(colour: str) -> None:
    """R10.1: a list may be a (sync or async) function of the request context, evaluated once per call."""
    asked: list[Any] = []

    def choose(context: RequestContext) -> list[Tagger]:
        asked.append(context.get("tenant"))
        return [Tagger(str(context.get("tenant")))]

    async def choose_later(context: RequestContext) -> list[Tagger]:
        await asyncio.sleep(0)
        return choose(context)

    @tool
    def again() -> str:
        """Ask again."""
        return "x"

    model = ScriptedModel([tool_call("again")], [text("ok")], [text("ok")])
    agent = Agent(
        id="a", model=model, tools=[again], output_processors=choose if colour == "sync" else choose_later
    )
    assert (await agent.generate("hi", request_context={"tenant": "acme"})).text == "ok out:acme"
    assert asked == ["acme"], "once per call, not once per step"
    assert (await agent.generate("hi", request_context=RequestContext(tenant="b"))).text == "ok out:b"
    assert asked == ["acme", "b"]


@pytest.mark.anyio
async def test_an_overridden_function_is_not_evaluated() -> None:
    """R10.1, R10.2: what the call replaces is not asked for; the call's own list may be a function too."""

    def never(context: RequestContext) -> list[Tagger]:
        raise AssertionError("must not be evaluated")

    agent = Agent(id="a", model=saying("ok"), input_processors=never, output_processors=never)
    assert (await agent.generate("hi", input_processors=[], output_processors=[])).text == "ok"
    result = await agent.generate("hi", input_processors=[], output_processors=lambda context: [Tagger("f")])
    assert result.text == "ok out:f"


@pytest.mark.anyio
@pytest.mark.parametrize("made", [5, "x", None, Tagger("a")])
async def test_a_function_that_gives_no_list_is_told(made: Any) -> None:
    """R10.1: the error names the list."""
    agent = Agent(id="a", model=saying("ok"), output_processors=lambda context: made)
    with pytest.raises(UsageError, match="output_processors"):
        await agent.generate("hi")


@pytest.mark.anyio
async def test_what_a_list_function_raises_surfaces() -> None:
    """R10.1: its own exception, not wrapped, from generate and from a stream."""

    def broken(context: RequestContext) -> Any:
        raise KeyError("no tenant")

    model = saying("ok")
    agent = Agent(id="a", model=model, input_processors=broken)
    with pytest.raises(KeyError, match="no tenant"):
        await agent.generate("hi")
    async with agent.stream("hi") as stream:
        with pytest.raises(KeyError, match="no tenant"):
            await stream.result()
    assert model.calls == []


# -------------------------------------------------------------------------------------------------------- call options


@pytest.mark.anyio
async def test_instructions_and_system() -> None:
    """R10.5: the call's instructions replace the agent's; ``system`` adds to them."""
    model = saying("ok")
    agent = Agent(id="a", model=model, instructions="be kind")
    await agent.generate("hi")
    await agent.generate("hi", system="today is Monday")
    await agent.generate("hi", instructions=["be brief", "be exact"])
    systems = [[m["content"] for m in call.prompt if m["role"] == "system"] for call in model.calls]
    assert systems == [["be kind"], ["be kind", "today is Monday"], ["be brief", "be exact"]]


@pytest.mark.anyio
async def test_context_is_in_the_prompt_and_never_saved() -> None:
    """R10.5, R3.1: context messages are among process_input's and in the prompt; memory never gets them."""
    seen: list[str] = []

    class See(Processor):
        id = "see"

        def process_input(self, messages: Any, ctx: Any) -> None:
            seen.extend(m.text for m in messages)

    memory = Memory()
    model = saying("ok")
    agent = Agent(id="a", model=model, memory=memory, input_processors=[See()])
    await agent.generate("hi", context=["the weather is fine"], memory={"thread": "t", "resource": "r"})
    assert seen == ["the weather is fine", "hi"]
    assert "the weather is fine" in model.calls[0].prompt_text
    assert [m.text for m in await memory.messages("t", resource="r")] == ["hi", "ok"]


@pytest.mark.anyio
@pytest.mark.parametrize(("max_steps", "calls"), [(1, 1), (2, 2), (5, 5)])
@pytest.mark.parametrize("where", ["agent", "call"])
async def test_max_steps(max_steps: int, calls: int, where: str) -> None:
    """R1.2h, R10.5: the loop ends when max_steps is reached, whatever the model asks for; the default is 5."""
    model = ScriptedModel([tool_call("look")], repeat_last=True)
    of_agent: Any = {"max_steps": max_steps} if where == "agent" else {}
    of_call: Any = {"max_steps": max_steps} if where == "call" else {}
    result = await Agent(id="a", model=model, tools=[look], **of_agent).generate("hi", **of_call)
    assert len(model.calls) == len(result.steps) == calls
    default = ScriptedModel([tool_call("look")], repeat_last=True)
    await Agent(id="a", model=default, tools=[look]).generate("hi")
    assert len(default.calls) == 5


@pytest.mark.anyio
async def test_tools_and_their_choice() -> None:
    """R10.5: tools of the call replace the agent's; active_tools and tool_choice apply to every step."""

    @tool
    def other() -> str:
        """Other."""
        return "other"

    model = ScriptedModel([text("ok")], repeat_last=True)
    agent = Agent(id="a", model=model, tools=[look, other])
    await agent.generate("hi")
    await agent.generate("hi", tools=[other])
    await agent.generate("hi", tools={"renamed": other})
    await agent.generate("hi", tools=[])
    await agent.generate("hi", active_tools=["look"])
    await agent.generate("hi", tool_choice="none")
    await agent.generate("hi", tool_choice={"type": "tool", "toolName": "look"})
    names = [[spec.name for spec in call.tools] for call in model.calls]
    assert names == [["look", "other"], ["other"], ["renamed"], [], ["look"], [], ["look", "other"]]
    assert model.calls[-1].request.tool_choice == {"type": "tool", "toolName": "look"}
    assert model.calls[0].request.tool_choice == "auto"


@pytest.mark.anyio
async def test_settings_and_options_reach_the_model() -> None:
    """R10.5: model_settings, provider_options and structured_output; the call's beside the agent's, key by key."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    model = ScriptedModel([text('{"a": 1}')], repeat_last=True, native_structured_output=True)
    agent = Agent(
        id="a",
        model=model,
        model_settings={"temperature": 0.5, "seed": 1},
        provider_options={"openai": {"user": "u"}},
    )
    await agent.generate("hi")
    await agent.generate(
        "hi",
        model_settings={"temperature": 0},
        provider_options={"other": {"x": 1}},
        structured_output=schema,
    )
    first, second = (call.request for call in model.calls)
    assert first.settings == {"temperature": 0.5, "seed": 1}
    assert first.provider_options == {"openai": {"user": "u"}}
    assert first.structured_output is None
    assert second.settings == {"temperature": 0, "seed": 1}
    assert second.provider_options == {"openai": {"user": "u"}, "other": {"x": 1}}
    assert second.structured_output == schema
    assert agent.model_settings == {"temperature": 0.5, "seed": 1}


@pytest.mark.anyio
@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_prepare_step_is_the_last_input_step_hook(colour: str) -> None:
    """R1.2a, R10.5: it sees what the processors changed, and its word is the last, at every step."""
    seen: list[Any] = []

    class First(Processor):
        id = "first"

        def process_input_step(self, step: Any, ctx: Any) -> StepChange:
            return StepChange(model_settings={"by": "processor", "step": ctx.step_number})

    def prepare(step: Any, ctx: Any) -> StepChange:
        seen.append(dict(step.model_settings))
        return StepChange(model_settings={**step.model_settings, "by": "caller"})

    async def prepare_later(step: Any, ctx: Any) -> StepChange:
        await asyncio.sleep(0)
        return prepare(step, ctx)

    model = ScriptedModel([tool_call("look")], [text("ok")])
    agent = Agent(id="a", model=model, tools=[look], input_processors=[First()])
    await agent.generate("hi", prepare_step=prepare if colour == "sync" else prepare_later)
    assert seen == [{"by": "processor", "step": 0}, {"by": "processor", "step": 1}]
    assert [call.settings for call in model.calls] == [
        {"by": "caller", "step": 0},
        {"by": "caller", "step": 1},
    ]


@pytest.mark.anyio
async def test_the_request_context_is_the_callers() -> None:
    """R10.5, R4: a mapping or a RequestContext reaches hooks and tools; a processor may write into it."""

    class Note(Processor):
        id = "note"

        def process_input(self, messages: Any, ctx: Any) -> None:
            ctx.request_context.set("seen", ctx.request_context["tenant"])

    agent = Agent(id="a", model=saying("ok"), input_processors=[Note()])
    context = RequestContext(tenant="acme")
    await agent.generate("hi", request_context=context)
    assert context["seen"] == "acme"
    mapping = {"tenant": "b"}
    await agent.generate("hi", request_context=mapping)
    assert mapping == {"tenant": "b"}, "a plain mapping is copied"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("of_agent", "of_call", "saved"), [(True, None, 1), (True, False, 0), (False, None, 0)]
)
async def test_save_unfinished(of_agent: bool, of_call: bool | None, saved: int) -> None:
    """R8.2, R10.5: after a provider's failure the user's message is saved unless save_unfinished is off."""
    memory = Memory(save_unfinished=of_agent)
    agent = Agent(id="a", model=ScriptedModel([error(400, "no")]), memory=memory)
    options: Any = {} if of_call is None else {"save_unfinished": of_call}
    with pytest.raises(Exception, match="no"):
        await agent.generate("hi", memory={"thread": "t", "resource": "r"}, **options)
    assert len(await memory.messages("t", resource="r")) == saved


@pytest.mark.anyio
async def test_tracing_context_is_handed_on() -> None:
    """R4: ctx.tracing_context is what the call was given."""
    seen: list[Any] = []

    class See(Processor):
        id = "see"

        def process_input(self, messages: Any, ctx: Any) -> None:
            seen.append(ctx.tracing_context)

    span = object()
    agent = Agent(id="a", model=saying("ok"), input_processors=[See()])
    await agent.generate("hi", tracing_context=span)
    assert seen == [span]


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_step": 3}, "max_step"),
        ({"temperature": 0}, "temperature"),
        ({"release": "later"}, "later"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_steps": "3"}, "max_steps"),
        ({"max_steps": True}, "max_steps"),
        ({"max_processor_retries": -1}, "max_processor_retries"),
        ({"tool_choice": "maybe"}, "tool_choice"),
        ({"active_tools": "look"}, "active_tools"),
        ({"tools": [1]}, "@tool"),
        ({"request_context": 5}, "request_context"),
        ({"memory": "t"}, "memory"),
        ({"memory": {"resource": "r"}}, "thread"),
        ({"memory": {"thread": "t", "resource": 5}}, "resource"),
        ({"input_processors": Tagger("a")}, "input_processors"),
        ({"output_processors": "x"}, "output_processors"),
        ({"output_processors": [Watch()]}, "watch"),
        ({"instructions": 5}, "instructions"),
        ({"context": [5]}, "message"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_option_is_told_at_the_call(options: Any, told: str) -> None:
    """R10, R2.4: at set-up of the call, before anything runs: ``stream`` itself raises, naming what is wrong."""
    agent = Agent(id="my-agent", model=saying("ok"))
    with pytest.raises(UsageError, match=told):
        agent.stream("hi", **options)


@pytest.mark.anyio
async def test_unknown_options_are_told_with_those_there_are() -> None:
    """R10.5: the error names the agent, the unknown option and the known ones; generate raises it too."""
    agent = Agent(id="my-agent", model=saying("ok"))
    with pytest.raises(UsageError, match=r"(?s)my-agent.*max_step\b.*max_steps"):
        await agent.generate("hi", max_step=3)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"release": "later"}, "later"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_processor_retries": 1.5}, "max_processor_retries"),
        ({"tools": "look"}, "tools"),
        ({"instructions": 5}, "instructions"),
        ({"input_processors": 5}, "input_processors"),
        ({"input_processors": [Watch, ]}, "Watch()"),
        ({"model": "no-such-provider/x"}, "no-such-provider"),
        ({"model": 5}, "model"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)  # fmt: skip
def test_a_wrong_agent_is_told_at_set_up(options: Any, told: str) -> None:
    """R10.1, R2.4: mistakes are told when the agent is made."""
    merged: dict[str, Any] = {"id": "a", "model": saying("ok"), **options}
    with pytest.raises(UsageError, match=re.escape(told)):
        Agent(**merged)


def test_every_call_option_of_the_spec_exists() -> None:
    """R10.2, R10.5: the options the spec lists are those that CallOptions declares."""
    named = {
        *("input_processors", "output_processors", "error_processors", "max_processor_retries"),
        *(
            "instructions",
            "system",
            "context",
            "memory",
            "request_context",
            "max_steps",
            "tools",
            "tool_choice",
        ),
        *(
            "active_tools",
            "model_settings",
            "provider_options",
            "structured_output",
            "prepare_step",
            "release",
        ),
        "save_unfinished",
    }
    assert named <= set(CallOptions.__annotations__)


# ------------------------------------------------------------------------------------------------------- generate_sync


def test_generate_sync_without_an_event_loop() -> None:
    """R10.4: the same run for code without an event loop, with the same options."""
    agent = Agent(id="a", model=saying("ok"))
    assert agent.generate_sync("hi").text == "ok"
    assert agent.generate_sync("hi", output_processors=[Tagger("b")]).text == "ok out:b"
    with pytest.raises(UsageError):
        agent.generate_sync("")


@pytest.mark.anyio
async def test_generate_sync_inside_an_event_loop() -> None:
    """R10.4: where a loop runs already (Jupyter) it works too, in a thread of its own, and raises what the run does."""
    threads: list[int] = []

    class Where(Processor):
        id = "where"

        def process_input(self, messages: Any, ctx: Any) -> None:
            threads.append(threading.get_ident())

    agent = Agent(id="a", model=saying("ok"), input_processors=[Where()])
    assert agent.generate_sync("hi").text == "ok"
    assert threads != [threading.get_ident()]
    failing = Agent(id="f", model=ScriptedModel([error(400, "no")]))
    with pytest.raises(Exception, match="no"):
        failing.generate_sync("hi")


# ------------------------------------------------------------------------------------------------------ release policy


class Judge(Processor):
    id = "judge"

    def process_output_step(self, output: Any, ctx: Any) -> Any:
        """Judge."""


class Looker(Judge):
    id = "looker"
    observes = True


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("processors", "held"),
    [
        ([], False),
        ([Tagger("a")], False),
        ([Judge()], True),
        ([Looker()], False),
        ([Looker(), Judge()], True),
    ],
    ids=["none", "stream", "judge", "observer", "both"],
)
async def test_auto_holds_where_a_hook_judges(processors: Any, held: bool) -> None:
    """R7.5: auto is step if an output processor implements process_output_step and does not observe, else live."""
    out: list[str] = []
    at_step: list[str] = []

    class Last(Looker):
        id = "last"

        async def process_output_step(self, output: Any, ctx: Any) -> None:
            for _ in range(5):
                await asyncio.sleep(0)
            at_step.extend(out)

    agent = Agent(id="a", model=saying("ok"), output_processors=[*processors, Last()])
    async with agent.stream("hi") as stream:
        async for piece in stream.text_stream:
            out.append(piece)
    assert at_step == ([] if held else out)


@pytest.mark.anyio
async def test_auto_says_once_what_it_chose(caplog: pytest.LogCaptureFixture) -> None:
    """R7.5: a log line says so once; a policy that was chosen says nothing."""
    caplog.set_level(logging.INFO, logger="interlock")
    agent = Agent(id="chatty", model=saying("ok"), output_processors=[Judge()])
    await agent.generate("hi")
    await agent.generate("hi")
    lines = [record.getMessage() for record in caplog.records if "chatty" in record.getMessage()]
    assert len(lines) == 1
    assert "step" in lines[0]
    caplog.clear()
    await Agent(id="quiet", model=saying("ok"), release="live").generate("hi")
    assert not [record for record in caplog.records if "quiet" in record.getMessage()]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("of_agent", "of_call", "out"), [("run", None, ""), ("run", "live", "ok"), ("live", "run", "")]
)
async def test_the_calls_release_counts(of_agent: Any, of_call: Any, out: str) -> None:
    """R7.5, R10.5: release of the agent or the call."""

    class Block(Processor):
        id = "block"

        def process_output_result(self, result: Any, ctx: Any) -> None:
            ctx.abort("no")

    agent = Agent(id="a", model=saying("ok"), output_processors=[Block()], release=of_agent)
    options: Any = {} if of_call is None else {"release": of_call}
    result = await agent.generate("hi", **options)
    assert result.released_text == out


# ------------------------------------------------------------------------------------------------- nothing is shared


@pytest.mark.anyio
async def test_a_thousand_concurrent_runs_share_nothing() -> None:
    """R6: state, messages, retries and context of each run are its own, with one agent and one processor object."""

    class Count(Processor):
        id = "count"

        async def process_input(self, messages: Any, ctx: Any) -> None:
            assert ctx.state == {}
            ctx.state["mine"] = ctx.request_context["n"]
            await asyncio.sleep(0)
            ctx.message_list.add_system(f"run {ctx.request_context['n']}", tag="own")

        async def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
            if isinstance(chunk, TextDelta):
                await asyncio.sleep(0)
                assert ctx.state["mine"] == ctx.request_context["n"]
                ctx.state["chunks"] = ctx.state.get("chunks", 0) + 1
                return chunk.replace(text=f"{ctx.state['mine']}:{chunk.text} ")
            return chunk

        async def process_output_step(self, output: Any, ctx: Any) -> None:
            await asyncio.sleep(0)
            if ctx.retry_count == 0 and ctx.state["mine"] % 3 == 0:
                ctx.abort("again", retry=True)

        def process_output_result(self, result: Any, ctx: Any) -> None:
            ctx.message_list.get.response.db()[-1].content.metadata = {"chunks": ctx.state["chunks"]}

    model = saying("a", "b")
    count = Count()
    agent = Agent(
        id="a", model=model, input_processors=[count], output_processors=[count], max_processor_retries=1
    )
    results = await asyncio.gather(
        *(agent.generate(f"question {n}", request_context={"n": n}) for n in range(1000))
    )
    for n, result in enumerate(results):
        assert result.text == f"{n}:a {n}:b "
        assert result.all_messages[0].text == f"question {n}"
        assert len(result.all_messages) == 2
        assert len(result.steps) == (2 if n % 3 == 0 else 1)
        assert result.messages[-1].content.metadata == {"chunks": 4 if n % 3 == 0 else 2}
    assert len({id(message) for result in results for message in result.all_messages}) == 2000
    for call in model.calls:
        (question,) = [line for line in call.prompt_text.split("\n") if line.startswith("question ")]
        assert f"run {question.removeprefix('question ')}" in call.prompt_text.split("\n")


@pytest.mark.anyio
async def test_state_is_fresh_for_each_call_and_one_for_all_hooks() -> None:
    """R6: one dict per processor id and call, the same in all its hooks, lists and steps; two ids, two dicts."""
    seen: dict[str, list[Any]] = {"one": [], "two": []}

    class Keep(Processor):
        def __init__(self, id: str) -> None:
            self.id = id

        def _note(self, subject: Any, ctx: Any) -> Any:
            ctx.state["n"] = ctx.state.get("n", 0) + 1
            seen[self.id].append(ctx.state)
            return subject if isinstance(subject, Chunk) else None

        process_input = process_input_step = process_output_stream = _note  # pyright: ignore[reportAssignmentType]
        process_output_step = process_tool_result = process_output_result = _note  # pyright: ignore[reportAssignmentType]

    model = ScriptedModel([tool_call("look")], [text("ok")], [text("ok")])
    one, other_one, two = Keep("one"), Keep("one"), Keep("two")
    agent = Agent(
        id="a", model=model, tools=[look], input_processors=[one, two], output_processors=[other_one, two]
    )
    await agent.generate("hi")
    first = seen["one"][0]
    assert all(state is first for state in seen["one"])
    assert all(state is not first for state in seen["two"])
    count = first["n"]
    await agent.generate("hi")
    assert seen["one"][-1] is not first
    assert first["n"] == count


@pytest.mark.anyio
async def test_what_a_step_hook_changes_never_reaches_the_agent() -> None:
    """R4.2, R6: tools, settings and options in a hook's hands are the step's own."""

    class Vandal(Processor):
        id = "vandal"

        def process_input_step(self, step: Any, ctx: Any) -> None:
            step.tools.clear()
            step.model_settings["temperature"] = 9
            step.provider_options["x"] = {}

    model = saying("ok")
    agent = Agent(id="a", model=model, tools=[look], model_settings={"temperature": 0})
    await agent.generate("hi", input_processors=[Vandal()])
    await agent.generate("hi")
    assert [spec.name for spec in model.calls[1].tools] == ["look"]
    assert model.calls[1].settings == {"temperature": 0}
    assert model.calls[1].request.provider_options == {}


@pytest.mark.anyio
async def test_generate_and_stream_are_one_path() -> None:
    """R10.4: a processor cannot tell which it runs in; both give the same result."""
    agent = Agent(id="a", model=saying("a", "b"), output_processors=[Tagger("t")])
    generated = await agent.generate("hi")
    async with agent.stream("hi") as stream:
        streamed = await stream.result()
    for field in ("text", "finish_reason", "usage", "reasoning", "tool_calls", "released_text"):
        assert getattr(generated, field) == getattr(streamed, field), field
    assert [s.text for s in generated.steps] == [s.text for s in streamed.steps]
