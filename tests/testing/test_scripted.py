"""The scripted model: public API for tests (R10.6)."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Agent, ModelError, UsageError, tool
from interlock.chunks import (
    Chunk,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    Usage,
)
from interlock.core.model import LanguageModel, ModelRequest, PromptMessage, PromptText
from interlock.testing import ScriptedModel, error, reasoning, text, tool_call

REQUEST = ModelRequest(prompt=(PromptMessage(role="user", content=(PromptText(text="hi"),)),))


async def said(model: ScriptedModel) -> list[Chunk]:
    """The chunks of the next call."""
    return [chunk async for chunk in model.stream(REQUEST)]


def test_it_is_a_model() -> None:
    """R10.6: it can stand wherever a model can."""
    assert isinstance(ScriptedModel([text("a")]), LanguageModel)


@pytest.mark.anyio
async def test_blocks_become_framed_chunks() -> None:
    """R10.6: text and reasoning with their deltas, each in its own block, then a finish with usage 10 in, 5 out."""
    chunks = await said(ScriptedModel([reasoning("r1", "r2"), text("a", "b"), text("c")]))
    assert [type(chunk) for chunk in chunks] == [
        *(ReasoningStart, ReasoningDelta, ReasoningDelta, ReasoningEnd),
        *(TextStart, TextDelta, TextDelta, TextEnd),
        *(TextStart, TextDelta, TextEnd),
        Finish,
    ]
    ids = [chunk.id for chunk in chunks if isinstance(chunk, TextStart)]
    assert len(set(ids)) == 2
    finish = chunks[-1]
    assert isinstance(finish, Finish)
    assert finish.finish_reason == "stop"
    assert finish.usage == Usage(input_tokens=10, output_tokens=5, total_tokens=15)


@pytest.mark.anyio
async def test_tool_calls_get_ids_and_their_finish_reason() -> None:
    """R10.6: ids that were given are kept, others differ, also between calls; the reason is tool-calls."""
    model = ScriptedModel([tool_call("a", {"x": 1}, id="mine"), tool_call("b")], [tool_call("b")])
    first, second = await said(model), await said(model)
    calls = [chunk for chunk in [*first, *second] if isinstance(chunk, ToolCall)]
    assert [(c.tool_name, c.args) for c in calls] == [("a", {"x": 1}), ("b", {}), ("b", {})]
    assert calls[0].tool_call_id == "mine"
    assert len({c.tool_call_id for c in calls}) == 3
    assert isinstance(first[-1], Finish)
    assert first[-1].finish_reason == "tool-calls"


@pytest.mark.anyio
async def test_chunks_are_passed_as_they_are() -> None:
    """R10.6: a script may hold chunks; its own finish replaces the default one."""
    usage = Usage(input_tokens=1, output_tokens=2, total_tokens=3)
    script = [Source(id="s", url="u"), Finish(finish_reason="length", usage=usage)]
    chunks = await said(ScriptedModel(script))
    assert chunks == script
    assert chunks[0] is not script[0], "a processor's edit must not reach the script"


@pytest.mark.anyio
async def test_an_error_is_raised_where_it_stands() -> None:
    """R10.6: what comes before it is said first."""
    model = ScriptedModel([text("a"), error(429, "slow down", code="rate_limit")])
    chunks: list[Chunk] = []

    async def read() -> None:
        async for chunk in model.stream(REQUEST):
            chunks.append(chunk)

    with pytest.raises(ModelError, match="slow down") as caught:
        await read()
    assert [type(chunk) for chunk in chunks] == [TextStart, TextDelta, TextEnd]
    assert (caught.value.status, caught.value.code, caught.value.retryable) == (429, "rate_limit", True)


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        (400, False),
        (401, False),
        (408, True),
        (409, True),
        (429, True),
        (500, True),
        (503, True),
        (None, False),
    ],
)
def test_which_errors_are_retryable(status: int | None, retryable: bool) -> None:
    """R4.5: as a provider's would be, unless the test says otherwise."""
    assert error(status, "x").retryable is retryable
    assert error(status, "x", retryable=not retryable).retryable is not retryable


@pytest.mark.anyio
async def test_what_the_model_was_asked() -> None:
    """R10.6: calls[i] has prompt, prompt_text, tools and settings."""

    @tool
    def look(query: str) -> str:
        """Look something up."""
        return f"found {query}"

    model = ScriptedModel([tool_call("look", {"query": "x"})], [text("done")])
    agent = Agent(id="a", model=model, tools=[look], instructions="be kind", model_settings={"seed": 1})
    await agent.generate("hi")
    first, second = model.calls
    assert first.prompt == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    ]
    assert first.prompt_text == "be kind\nhi"
    assert [(spec.name, spec.description) for spec in first.tools] == [("look", "Look something up.")]
    assert first.settings == {"seed": 1}
    assert [m["role"] for m in second.prompt] == ["system", "user", "assistant", "tool"]
    assert "found x" in second.prompt_text


@pytest.mark.anyio
async def test_a_call_beyond_the_script_is_an_error() -> None:
    """R10.6: and says how long the script is."""
    model = ScriptedModel([text("a")])
    agent = Agent(id="a", model=model)
    await agent.generate("hi")
    with pytest.raises(Exception, match="beyond the script of 1"):
        await agent.generate("hi")


@pytest.mark.anyio
async def test_repeat_last_goes_on_for_ever() -> None:
    """R10.6: with repeat_last the last list is said again and again."""
    agent = Agent(id="a", model=ScriptedModel([text("a")], [text("b")], repeat_last=True))
    assert [(await agent.generate("hi")).text for _ in range(4)] == ["a", "b", "b", "b"]


@pytest.mark.anyio
async def test_rewind_starts_again() -> None:
    """R10.6: the script from its beginning, and no calls."""
    model = ScriptedModel([text("a")], [text("b")])
    agent = Agent(id="a", model=model)
    await agent.generate("hi")
    model.rewind()
    assert model.calls == []
    assert (await agent.generate("hi")).text == "a"
    assert len(model.calls) == 1


@pytest.mark.anyio
async def test_assert_used_reports_what_was_left() -> None:
    """R10.6: silent when the script was used up; else it says what was not said."""
    model = ScriptedModel([text("a")], [text("the rest")])
    agent = Agent(id="a", model=model)
    await agent.generate("hi")
    with pytest.raises(AssertionError, match="the rest"):
        model.assert_used()
    await agent.generate("hi")
    model.assert_used()


@pytest.mark.anyio
async def test_an_edit_of_a_processor_does_not_reach_the_script() -> None:
    """R6: the same script said again is the same, whatever was done to its chunks and arguments."""
    model = ScriptedModel([tool_call("t", {"x": [1]}, id="c"), text("a")], repeat_last=True)
    first = await said(model)
    for chunk in first:
        if isinstance(chunk, TextDelta):
            chunk.text = "edited"
        if isinstance(chunk, ToolCall):
            chunk.args["x"].append(2)
    second = await said(model)
    assert [c.text for c in second if isinstance(c, TextDelta)] == ["a"]
    assert [c.args for c in second if isinstance(c, ToolCall)] == [{"x": [1]}]


@pytest.mark.parametrize("call", ["text", text("a"), error(400, "x"), 5, None])
def test_a_call_that_is_no_list_is_refused(call: Any) -> None:
    """R10.6: the usual slip is told, with what to write."""
    with pytest.raises(UsageError, match="list"):
        ScriptedModel(call)


@pytest.mark.parametrize("item", ["text", 5, None, ["nested"]])
def test_what_is_no_part_of_a_script_is_refused(item: Any) -> None:
    """R10.6: told when the model is made, not when it is asked."""
    with pytest.raises(UsageError, match="text"):
        ScriptedModel([item])
