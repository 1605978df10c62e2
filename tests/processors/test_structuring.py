"""StructuredOutputProcessor: a second model makes the object out of an answer in plain words."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from pydantic import BaseModel

from interlock import Agent, Processor, RunResult, StructuredOutput, UsageError, tool
from interlock.chunks import Chunk, ErrorChunk, ObjectResult, PartialObject
from interlock.processors import RegexFilter, StructuredOutputProcessor
from interlock.testing import ScriptedModel, error, text, tool_call

pytestmark = pytest.mark.anyio


class City(BaseModel):
    """What is wanted."""

    name: str
    people: int


ROME = ('{"name": "Ro', 'me", "peop', 'le": 3}')
WORDS = "Rome has three."


async def play(agent: Agent, **options: Any) -> tuple[RunResult, list[Chunk]]:
    """One streamed run."""
    async with agent.stream("Name a city.", **options) as stream:
        chunks = [chunk async for chunk in stream]
        return await stream.result(), chunks


def second(*scripts: Any, native: bool = False, repeat_last: bool = False) -> ScriptedModel:
    """The structuring model."""
    return ScriptedModel(
        *(scripts or ([text(*ROME)],)), native_structured_output=native, repeat_last=repeat_last
    )


def main(**options: Any) -> Agent:
    """An agent that answers in words."""
    return Agent(id="a", model=ScriptedModel([text("Rome ", "has three.")]), **options)


def objects(chunks: list[Chunk]) -> list[Any]:
    """What the object chunks say, in order."""
    return [chunk.object for chunk in chunks if isinstance(chunk, PartialObject | ObjectResult)]


@pytest.mark.parametrize("by", ["option", "processor"])
async def test_the_object_comes_from_the_second_model(by: str) -> None:
    """The answer's text stays in words; usage is of both calls (R5.3)."""
    structuring = second()
    if by == "option":
        agent = main()
        result, chunks = await play(agent, structured_output=StructuredOutput(City, model=structuring))
    else:
        agent = main(output_processors=[StructuredOutputProcessor(City, model=structuring)])
        result, chunks = await play(agent)
    assert result.text == WORDS
    assert result.object == City(name="Rome", people=3)
    assert objects(chunks) == [
        {"name": "Ro"},
        {"name": "Rome"},
        {"name": "Rome", "people": 3},
        City(name="Rome", people=3),
    ]
    assert result.usage.total_tokens == 30
    (call,) = structuring.calls
    assert [message["role"] for message in call.prompt] == ["system", "user"]
    assert '"people"' in call.prompt_text
    assert call.prompt_text.endswith(WORDS)
    # as an option, the first model knows what will be asked of its words
    first: Any = agent.model
    assert ('"people"' in first.calls[0].prompt_text) is (by == "option")
    assert first.calls[0].request.structured_output is None


@pytest.mark.parametrize("native", [True, False])
async def test_it_is_held_to_the_schema_if_it_can(native: bool) -> None:
    """As any model; a list then is inside an object."""
    structuring = second([text('{"elements": [1, 2]}' if native else "[1, 2]")], native=native)
    result, chunks = await play(main(), structured_output=StructuredOutput(list[int], model=structuring))
    assert result.object == [1, 2]
    assert objects(chunks) == [[1, 2], [1, 2]]
    assert (structuring.calls[0].request.structured_output is not None) is native


async def test_it_sees_what_the_guards_left_and_what_the_tools_said() -> None:
    """R0.3: what was removed from the answer is not in its prompt, and so cannot come back in the object."""

    @tool
    def look() -> dict[str, str]:
        """Look."""
        return {"people": "secret 3"}

    structuring = second()
    agent = Agent(
        id="a",
        model=ScriptedModel([tool_call("look")], [text("Rome, sec", "ret.")]),
        tools=[look],
        output_processors=[RegexFilter({"s": "secret"}, replacement="x")],
    )
    result, _ = await play(agent, structured_output=StructuredOutput(City, model=structuring))
    assert result.object == City(name="Rome", people=3)
    assert structuring.calls[0].prompt_text.endswith(
        '# Tool results\nlook: {"people":"x 3"}\n\n# Answer\nRome, x.'
    )


async def test_an_answer_that_does_not_fit_is_asked_for_again() -> None:
    """By the processor itself: the main model's answer stays, and nothing is withdrawn."""
    structuring = second([text('{"name": "Rome"}')], [text(*ROME)])
    result, _ = await play(main(), structured_output=StructuredOutput(City, model=structuring))
    assert result.object == City(name="Rome", people=3)
    assert [step.finish_reason for step in result.steps] == ["stop"]
    again = structuring.calls[1].prompt
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    assert "people" in again[-1]["content"][0]["text"]


@pytest.mark.parametrize(
    "script",
    [
        [text('{"name": 1}')],
        [text()],
        [error(500, "down")],
        [ErrorChunk("broke")],
        [ErrorChunk(error(400, "no"))],
    ],
)
@pytest.mark.parametrize("strategy", ["strict", "warn", "fallback"])
async def test_what_happens_when_no_object_can_be_made(script: Any, strategy: Any) -> None:
    """R5.4: strict is a tripwire, warn a violation, fallback a value; also when the model itself fails."""
    structuring = second(script, repeat_last=True)
    extra: Any = {"fallback": City(name="-", people=0)} if strategy == "fallback" else {}
    option = StructuredOutput(City, model=structuring, error_strategy=strategy, max_retries=1, **extra)
    result, chunks = await play(main(), structured_output=option)
    assert len(structuring.calls) == (2 if isinstance(script[0], type(text())) else 1)
    assert len(result.violations) == 1
    if strategy == "strict":
        assert result.tripwire is not None
        assert result.tripwire.processor_id == "structured-answer"
        assert result.object is None
        assert not any(isinstance(chunk, ObjectResult) for chunk in chunks)
    else:
        assert result.text == WORDS
        assert result.object == (None if strategy == "warn" else City(name="-", people=0))


async def test_instructions_of_ones_own() -> None:
    """They take the place of the task."""
    structuring = second()
    processor = StructuredOutputProcessor(
        City,
        model=structuring,
        instructions="Name and people, as JSON.",
        provider_options={"openai": {"x": 1}},
        model_settings={"temperature": 0},
    )
    await play(main(output_processors=[processor]))
    (call,) = structuring.calls
    assert call.prompt[0]["content"] == "Name and people, as JSON."
    assert call.request.provider_options == {"openai": {"x": 1}}
    assert call.settings == {"temperature": 0}


@pytest.mark.parametrize("release", ["step", "run"])
async def test_partial_objects_wait_as_the_text_does(release: Any) -> None:
    """R7.5: under ``run`` they are held until the last processor has accepted the answer."""

    class Blocks(Processor):
        id = "blocks"

        def process_output_result(self, result: Any, ctx: Any) -> None:
            ctx.abort("no")

    processors = [StructuredOutputProcessor(City, model=second()), Blocks()]
    result, chunks = await play(main(output_processors=processors), release=release)
    assert result.object is None
    assert any(isinstance(chunk, PartialObject) for chunk in chunks) == (release == "step")
    result, chunks = await play(
        main(output_processors=[StructuredOutputProcessor(City, model=second())]), release=release
    )
    kinds = [chunk.type for chunk in chunks]
    assert kinds.index("object") > kinds.index("text-delta")
    assert result.object == City(name="Rome", people=3)


async def test_leaving_hangs_up_on_the_second_model() -> None:
    """R5.5: its stream is closed when the run is cancelled."""
    import asyncio

    closed: list[bool] = []

    class Endless:
        provider = "test"
        model_id = "endless"

        async def stream(self, request: Any) -> AsyncGenerator[Chunk, None]:
            try:
                await asyncio.Event().wait()
                yield ErrorChunk()
            finally:
                closed.append(True)

    agent = main(output_processors=[StructuredOutputProcessor(City, model=Endless())])
    async with agent.stream("hi") as stream:
        async for chunk in stream:
            if chunk.type == "step-finish":
                break
        await asyncio.sleep(0.01)
    assert closed == [True]


@pytest.mark.parametrize(
    "options",
    [
        {"model": None},
        {"model": "nobody/x"},
        {"error_strategy": "loud"},
        {"error_strategy": "fallback"},
        {"max_retries": -1},
    ],
)
def test_options_that_cannot_work_are_refused(options: Any) -> None:
    """At set-up."""
    refused: Any = StructuredOutputProcessor
    with pytest.raises(UsageError):
        refused(City, **{"model": second(), **options})
