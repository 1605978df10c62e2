"""Tool calls through structured output."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Agent, StepChange, tool
from interlock.demo.schema_tools import SchemaTools
from interlock.testing import ScriptedModel, text


@tool
def weather(city: str) -> dict[str, Any]:
    """Current weather of a city."""
    return {"city": city, "celsius": 21}


@tool
def clock() -> str:
    """The time."""
    return "noon"


def ask(model: ScriptedModel) -> Any:
    """A run in which the first step must call a tool."""
    agent = Agent(id="a", model=SchemaTools(model), instructions="Be brief.", tools=[weather, clock])
    return agent.generate_sync(
        "How warm is it in Oslo?",
        prepare_step=lambda step, ctx: StepChange(tool_choice="none" if ctx.steps else "required"),
    )


def test_the_model_writes_a_call_and_reads_its_result() -> None:
    """The written JSON becomes a real tool call; the answer's prompt has the result as text."""
    model = ScriptedModel(
        [text('{"name": "weather", ', '"arguments": {"city": "Oslo"}}')], [text("21 degrees.")]
    )
    result = ask(model)
    assert result.text == "21 degrees."
    assert [(call.tool_name, call.args) for call in result.tool_calls] == [("weather", {"city": "Oslo"})]
    assert [message["role"] for message in model.calls[1].prompt] == ["system", "user"]
    assert "From weather: city Oslo, celsius 21." in model.calls[1].prompt_text


def test_the_schema_has_an_object_for_each_tool() -> None:
    """The model can write nothing but a call of one of them."""
    model = ScriptedModel([text('{"name": "clock", "arguments": {}}')], [text("Noon.")])
    ask(model)
    schema = model.calls[0].request.structured_output
    assert [call["properties"]["name"] for call in schema["anyOf"]] == [
        {"const": "weather"},
        {"const": "clock"},
    ]
    assert model.calls[0].tools == []
    assert "weather: Current weather of a city." in model.calls[0].prompt_text
    assert "From clock: it says noon." in model.calls[1].prompt_text


@pytest.mark.parametrize("written", ['{"name": "wea', "[]", '{"name": "weather"}'])
def test_a_broken_call_is_told_to_the_model(written: str) -> None:
    """As an invalid call like any other: the run goes on."""
    model = ScriptedModel([text(written)], [text("Sorry.")])
    assert ask(model).text == "Sorry."
