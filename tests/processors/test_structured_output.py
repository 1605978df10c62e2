"""Structured output: an answer that is an object, and says what the released text says."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from interlock import (
    Agent,
    ModelError,
    Processor,
    RunResult,
    StepChange,
    StructuredOutput,
    UsageError,
    tool,
)
from interlock.chunks import Chunk, Finish, ObjectResult, PartialObject, TextDelta
from interlock.memory import InMemoryStore, Memory
from interlock.processors import RegexFilter
from interlock.testing import ScriptedModel, error, text, tool_call

pytestmark = pytest.mark.anyio


class City(BaseModel):
    """What the answers are to be."""

    name: str
    people: int


ROME = '{"name": "Rome", "people": 3}'
in_both_modes = pytest.mark.parametrize("mode", ["stream", "generate"])


def cut(answer: str, size: int = 3) -> Any:
    """An answer in pieces."""
    return text(*(answer[at : at + size] for at in range(0, len(answer), size)))


class Ran:
    """What a run gave."""

    def __init__(self, result: RunResult | None, chunks: list[Chunk], error: Exception | None) -> None:
        self.result: Any = result
        self.chunks = chunks
        self.error = error

    @property
    def partial(self) -> list[Any]:
        return [chunk.object for chunk in self.chunks if isinstance(chunk, PartialObject)]

    @property
    def final(self) -> list[Any]:
        return [chunk.object for chunk in self.chunks if isinstance(chunk, ObjectResult)]


async def play(agent: Agent, mode: str = "stream", given_: Any = "Name a city.", **options: Any) -> Ran:
    """One run."""
    chunks: list[Chunk] = []
    try:
        if mode == "generate":
            return Ran(await agent.generate(given_, **options), chunks, None)
        async with agent.stream(given_, **options) as stream:
            async for chunk in stream:
                chunks.append(chunk)
            return Ran(await stream.result(), chunks, None)
    except Exception as problem:
        return Ran(None, chunks, problem)


def says(*answers: str, native: bool = False, repeat_last: bool = False) -> ScriptedModel:
    """A model that gives these answers."""
    return ScriptedModel(
        *([cut(answer)] for answer in answers), native_structured_output=native, repeat_last=repeat_last
    )


# --------------------------------------------------------------------------------------------------- asking for it


@in_both_modes
async def test_a_model_that_can_is_held_to_the_schema(mode: str) -> None:
    """The schema goes along with the call, and no words about it (R10.5)."""
    model = says(ROME, native=True)
    ran = await play(Agent(id="a", model=model, instructions="Be."), mode, structured_output=City)
    assert ran.result.object == City(name="Rome", people=3)
    (call,) = model.calls
    assert call.request.structured_output == City.model_json_schema()
    assert [message["content"] for message in call.prompt if message["role"] == "system"] == ["Be."]


@in_both_modes
async def test_any_other_is_told_in_words(mode: str) -> None:
    """A system message of this step has the schema; the conversation that is kept does not (R3.1, R8.3)."""
    model = says(ROME)
    memory = Memory(InMemoryStore())
    agent = Agent(id="a", model=model, instructions="Be.", memory=memory)
    ran = await play(agent, mode, structured_output=City, memory={"thread": "t"})
    assert ran.result.object == City(name="Rome", people=3)
    (call,) = model.calls
    assert call.request.structured_output is None
    told = [message["content"] for message in call.prompt if message["role"] == "system"]
    assert told[0] == "Be."
    assert json.dumps(City.model_json_schema(), separators=(",", ":")) in told[1]
    assert [message.text for message in await memory.messages("t")] == ["Name a city.", ROME]


async def test_the_choice_can_be_made_by_hand() -> None:
    """``native`` overrides what the model says of itself; own words take the place of the schema."""
    model = says(ROME, native=True)
    option = StructuredOutput(City, native=False, instructions="JSON with name and people.")
    await play(Agent(id="a", model=model), structured_output=option)
    assert model.calls[0].request.structured_output is None
    assert model.calls[0].prompt[0] == {"role": "system", "content": "JSON with name and people."}
    model = says(ROME)
    await play(Agent(id="a", model=model), structured_output=StructuredOutput(City, native=True))
    assert model.calls[0].request.structured_output == City.model_json_schema()


@in_both_modes
@pytest.mark.parametrize("native", [True, False])
async def test_lists_are_answers_too(mode: str, native: bool) -> None:
    """Where the provider takes objects only, the list is inside one; the object is the list."""
    model = says('{"elements": [1, 2]}' if native else "[1, 2]", native=native)
    ran = await play(Agent(id="a", model=model), mode, structured_output=list[int])
    assert ran.result.object == [1, 2]
    if mode == "stream":
        assert ran.partial[-1] == [1, 2]


@pytest.mark.parametrize("by", ["processor", "prepare_step"])
async def test_a_step_can_ask_for_it(by: str) -> None:
    """R4.2: a StepChange lasts for its step; only the last step's answer is read."""

    def change(step: Any, ctx: Any) -> StepChange | None:
        return StepChange(structured_output=City) if ctx.step_number == 1 else None

    class Changes(Processor):
        id = "changes"

        def process_input_step(self, step: Any, ctx: Any) -> StepChange | None:
            return change(step, ctx)

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    model = ScriptedModel(
        [text('{"name": "not this"}'), tool_call("look")], [cut(ROME)], native_structured_output=True
    )
    options: Any = {"prepare_step": change} if by == "prepare_step" else {"input_processors": [Changes()]}
    ran = await play(Agent(id="a", model=model, tools=[look]), **options)
    assert [call.request.structured_output is None for call in model.calls] == [True, False]
    assert ran.result.object == City(name="Rome", people=3)
    assert ran.partial[0] == {}
    assert {"name": "not this"} not in ran.partial


async def test_a_wrong_schema_in_a_step_change_is_its_processors_mistake() -> None:
    """The error names the processor that gave it (R5.4)."""

    class Changes(Processor):
        id = "changes"

        def process_input_step(self, step: Any, ctx: Any) -> StepChange:
            return StepChange(structured_output="city")

    ran = await play(Agent(id="a", model=says(ROME), input_processors=[Changes()]))
    assert isinstance(ran.error, UsageError)
    assert "changes" in str(ran.error)


async def test_without_it_nothing_of_it_is_there() -> None:
    """An answer that happens to be JSON is text."""
    model = says(ROME)
    ran = await play(Agent(id="a", model=model))
    assert ran.result.object is None
    assert (ran.partial, ran.final) == ([], [])
    assert len(model.calls[0].prompt) == 1


# ------------------------------------------------------------------------------------------------ while it streams


@pytest.mark.parametrize("release", ["live", "step", "run"])
async def test_the_object_grows_while_the_text_comes(release: Any) -> None:
    """``object`` chunks behind the deltas, the validated object right before the run's finish, under any policy."""
    ran = await play(Agent(id="a", model=says(ROME)), structured_output=City, release=release)
    assert ran.partial[-1] == {"name": "Rome", "people": 3}
    assert ran.final == [City(name="Rome", people=3)]
    assert isinstance(ran.chunks[-2], ObjectResult)
    assert isinstance(ran.chunks[-1], Finish)
    if release == "live":
        assert ran.partial[:3] == [{}, {"name": "Ro"}, {"name": "Rome"}]


SECRET = re.compile(r"\d{3}")


class Masks(Processor):
    """Masks three digits in the text at different places."""

    id = "masks"

    def __init__(self, hook: str) -> None:
        setattr(self, hook, self.step if hook == "process_output_step" else self.result)

    def step(self, output: Any, ctx: Any) -> None:
        self.edit(ctx)

    def result(self, result: Any, ctx: Any) -> None:
        self.edit(ctx)

    def edit(self, ctx: Any) -> None:
        for message in ctx.message_list.get.response.db():
            for part in message.content.parts:
                if part.type == "text":
                    part.text = SECRET.sub("0", part.text)


@pytest.mark.parametrize(
    ("guard", "release"),
    [
        (RegexFilter({"digits": r"\d{3}"}, replacement="0"), "live"),
        (RegexFilter({"digits": r"\d{3}"}, replacement="0"), "run"),
        (Masks("process_output_step"), "step"),
        (Masks("process_output_step"), "run"),
        (Masks("process_output_result"), "run"),
    ],
)
async def test_what_a_guard_changed_is_in_no_object(guard: Any, release: Any) -> None:
    """R0.1, R0.3: text, result, partial objects and the object say the same, whoever edited the text, and when."""
    model = says('{"name": "agent 007", "people": 123}')
    agent = Agent(id="a", model=model, output_processors=[guard])
    ran = await play(agent, structured_output=City, release=release)
    assert ran.result.text == '{"name": "agent 0", "people": 0}'
    assert ran.result.object == City(name="agent 0", people=0)
    assert ran.partial[-1] == {"name": "agent 0", "people": 0}
    assert "007" not in repr(ran.partial)
    assert "12" not in repr(ran.partial)


@given(
    sizes=st.lists(st.integers(1, 8), min_size=1, max_size=6),
    name=st.text(alphabet="ab1", max_size=12),
    mode=st.sampled_from(["live", "step", "run"]),
)
@settings(max_examples=60, deadline=None)
def test_the_object_is_what_the_released_text_says(sizes: list[int], name: str, mode: Any) -> None:
    """R0.1, R0.2: however the stream is cut, with a guard in it, under every policy."""
    import asyncio

    answer = json.dumps({"name": name, "people": 1})
    pieces: list[str] = []
    at = 0
    while at < len(answer):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(answer[at : at + size])
        at += size
    guard = RegexFilter({"a": r"a+b"}, replacement="x")
    agent = Agent(id="a", model=ScriptedModel([text(*pieces)]), output_processors=[guard])
    ran = asyncio.run(play(agent, structured_output=City, release=mode))
    expected = re.sub("a+b", "x", name)
    assert ran.result.object == City(name=expected, people=1)
    assert json.loads(ran.result.released_text) == ran.result.object.model_dump()
    for partial in ran.partial:
        assert expected.startswith(partial.get("name", ""))


async def test_a_guard_is_not_passed_by_escapes() -> None:
    """R0.3: what the text spells by escapes is asked for in plain letters, and is then the guard's."""
    guard = RegexFilter({"s": "secret"}, replacement="x")
    model = says(r'{"name": "\u0073ecret", "people": 1}', '{"name": "secret", "people": 1}')
    ran = await play(Agent(id="a", model=model, output_processors=[guard]), structured_output=City)
    assert len(model.calls) == 2
    assert ran.result.object == City(name="x", people=1)
    assert "secret" not in repr(ran.partial)


async def test_a_blocked_answer_has_no_object() -> None:
    """R5.2, R5.3: a tripwire leaves no object, and no object-result goes out."""

    class Blocks(Processor):
        id = "blocks"

        def process_output_result(self, result: Any, ctx: Any) -> None:
            ctx.abort("no")

    ran = await play(Agent(id="a", model=says(ROME), output_processors=[Blocks()]), structured_output=City)
    assert ran.result.tripwire.processor_id == "blocks"
    assert ran.result.object is None
    assert ran.final == []


# ---------------------------------------------------------------------------------------------- answers that do not fit


@in_both_modes
async def test_an_answer_that_does_not_fit_is_asked_for_again(mode: str) -> None:
    """R7.3: the model reads what was wrong, the client is told that it is withdrawn, the step keeps its number."""
    model = says('{"name": "Rome"}', ROME)
    ran = await play(Agent(id="a", model=model), mode, structured_output=City)
    assert ran.result.object == City(name="Rome", people=3)
    assert ran.result.text == ROME
    assert "people" in model.calls[1].prompt_text.partition("not accepted")[2]
    assert [step.finish_reason for step in ran.result.steps] == ["retry", "stop"]
    assert ran.result.steps[0].step_number == ran.result.steps[1].step_number == 0
    assert [violation.processor_id for violation in ran.result.violations] == ["structured-answer"]


@in_both_modes
@pytest.mark.parametrize(
    ("strategy", "extra"),
    [("strict", {}), ("warn", {}), ("fallback", {"fallback": {"name": "-", "people": 0}})],
)
async def test_what_happens_when_no_answer_fits(mode: str, strategy: Any, extra: Any) -> None:
    """strict raises a ModelError, warn leaves the object None, fallback gives its value; all of them tell."""
    model = says('{"name": "Rome"}', repeat_last=True)
    option = StructuredOutput(City, error_strategy=strategy, **extra)
    ran = await play(Agent(id="a", model=model), mode, structured_output=option)
    assert len(model.calls) == 3
    if strategy == "strict":
        assert isinstance(ran.error, ModelError)
        assert ran.error.code == "schema-mismatch"
        assert "people" in str(ran.error)
        assert not any(isinstance(chunk, ObjectResult | Finish) for chunk in ran.chunks)
        return
    assert ran.error is None
    assert ran.result.text == '{"name": "Rome"}'
    assert ran.result.object == (None if strategy == "warn" else City(name="-", people=0))
    assert ran.result.violations[-1].detail == {"schema": "City", "fallback": strategy == "fallback"}
    assert len(ran.final) == (mode == "stream" and strategy == "fallback")


@pytest.mark.parametrize(
    ("option", "cap", "calls"),
    [(0, None, 1), (1, None, 2), (5, None, 6), (5, 1, 2), (5, 0, 1), (1, 5, 2)],
)
async def test_retries_are_bounded_by_both(option: int, cap: int | None, calls: int) -> None:
    """R7.1: its own count where the call sets none, and never more than ``max_processor_retries``."""
    model = says("no", repeat_last=True)
    structured = StructuredOutput(City, max_retries=option, error_strategy="warn")
    agent = Agent(id="a", model=model, max_processor_retries=cap)
    ran = await play(agent, structured_output=structured)
    assert len(model.calls) == calls
    assert ran.result.object is None
    assert ran.result.tripwire is None


async def test_its_retries_are_nobody_elses() -> None:
    """R7.1: with no value set, another processor's request to retry is a plain abort, as without an object."""

    class Retries(Processor):
        id = "retries"

        def process_output_step(self, output: Any, ctx: Any) -> None:
            assert ctx.may_retry is False
            ctx.abort("again", retry=True)

    model = says(ROME, repeat_last=True)
    ran = await play(Agent(id="a", model=model, output_processors=[Retries()]), structured_output=City)
    assert len(model.calls) == 1
    assert (ran.result.tripwire.processor_id, ran.result.tripwire.retry) == ("retries", True)


@pytest.mark.parametrize("release", ["step", "run"])
async def test_text_that_is_held_is_refused_before_it_leaves(release: Any) -> None:
    """R7.5: under ``step`` and ``run`` the client sees nothing of an answer that does not fit."""
    ran = await play(
        Agent(id="a", model=says('{"name": "Oslo"}', ROME)), structured_output=City, release=release
    )
    assert "Oslo" not in repr(ran.chunks)
    assert ran.result.released_text == ROME


async def test_an_edit_of_the_final_answer_is_checked_too() -> None:
    """R4.9: what process_output_result makes of the text has to fit; else the step is taken again."""

    class Breaks(Processor):
        id = "breaks"

        def process_output_result(self, result: Any, ctx: Any) -> None:
            if len(model.calls) == 1:
                ctx.message_list.get.response.db()[-1].content.parts[-1].text = "broken"

    model = says(ROME, ROME)
    ran = await play(
        Agent(id="a", model=model, output_processors=[Breaks()]), structured_output=City, release="run"
    )
    assert len(model.calls) == 2
    assert ran.result.object == City(name="Rome", people=3)


async def test_tools_come_first() -> None:
    """R1.2: a step that calls tools is no answer yet; its text is not judged."""

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    model = ScriptedModel([text("Let me see."), tool_call("look")], [cut(ROME)])
    ran = await play(Agent(id="a", model=model, tools=[look]), structured_output=City)
    assert len(model.calls) == 2
    assert ran.result.text == f"Let me see.{ROME}"
    assert ran.result.object == City(name="Rome", people=3)


async def test_a_run_that_ends_with_tool_calls_has_no_answer() -> None:
    """R1.2h: with max_steps reached, tools are not run again for the sake of an answer."""
    runs: list[int] = []

    @tool
    def look() -> str:
        """Look."""
        runs.append(1)
        return "seen"

    model = ScriptedModel([tool_call("look")], repeat_last=True)
    option = StructuredOutput(City, error_strategy="warn")
    ran = await play(Agent(id="a", model=model, tools=[look], max_steps=1), structured_output=option)
    assert runs == [1]
    assert ran.result.object is None
    assert ran.result.violations[-1].processor_id == "structured-answer"


async def test_a_providers_failure_is_that() -> None:
    """R5.4: no strategy hides that the provider failed."""
    option = StructuredOutput(City, error_strategy="warn")
    ran = await play(Agent(id="a", model=ScriptedModel([error(500, "down")])), structured_output=option)
    assert isinstance(ran.error, ModelError)
    assert ran.error.status == 500


async def test_what_the_client_reads_is_what_the_object_was_made_of() -> None:
    """The deltas joined are JSON that says the object."""
    ran = await play(Agent(id="a", model=says(ROME)), structured_output=City)
    joined = "".join(chunk.text for chunk in ran.chunks if isinstance(chunk, TextDelta))
    assert City.model_validate_json(joined) == ran.result.object


# ------------------------------------------------------------------------------------------------------ bad options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"error_strategy": "loud"}, "strict, warn, fallback"),
        ({"error_strategy": "fallback"}, "go together"),
        ({"fallback": {"name": "a", "people": 1}}, "go together"),
        ({"error_strategy": "fallback", "fallback": {"name": "a"}}, "does not fit"),
        ({"max_retries": -1}, "max_retries"),
        ({"max_retries": True}, "max_retries"),
        ({"instructions": 3}, "instructions"),
        ({"native": "yes"}, "native"),
        ({"model": "nobody/x"}, "no provider"),
    ],
)
def test_options_that_cannot_work_are_refused(options: Any, said: str) -> None:
    """At set-up, saying what to write instead."""
    with pytest.raises(UsageError, match=said):
        StructuredOutput(City, **options)


@pytest.mark.parametrize("given_", ["city", 3, {"schema": {"type": "object"}}, [City]])
def test_what_is_no_schema_is_refused_by_the_call(given_: Any) -> None:
    """Before anything runs, naming the agent."""
    with pytest.raises(UsageError, match=r"Agent 'a': structured_output"):
        Agent(id="a", model=says(ROME)).stream("hi", structured_output=given_)
