"""Settings, tools, schema and tool choice in pydantic-ai's terms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx2
import pytest
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from interlock.core.errors import UsageError
from interlock.core.model import ModelRequest, PromptMessage, ToolSpec
from interlock.models.pydantic_ai_request import Call, build_call, has_native_schema

CLIENT = httpx2.AsyncClient(timeout=9.0)
CLAUDE = AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(api_key="k", http_client=CLIENT))
OPENAI = OpenAIProvider(api_key="k", http_client=CLIENT)
TOOL = ToolSpec(name="f", description="d", parameters={"type": "object", "properties": {}})
SCHEMA = {"title": "An answer!", "type": "object", "properties": {"n": {"type": "integer"}}}


def call(model: Any = CLAUDE, **fields: Any) -> Call:
    """The call of a request with these fields."""
    prompt = (PromptMessage(role="user", content="Hi"),)
    return build_call(model, ModelRequest(prompt=prompt, **fields))


def test_settings_by_our_names_and_by_pydantic_ais() -> None:
    """Ours are renamed, pydantic-ai's pass, unknown ones are warned of; retries are none unless asked for."""
    made = call(settings={"max_output_tokens": 9, "top_k": 3, "thinking": "low", "nonsense": 1, "seed": None})
    assert made.settings == {"max_tokens": 9, "top_k": 3, "thinking": "low", "max_retries": 0}
    assert made.warnings == [{"type": "unsupported-setting", "setting": "nonsense"}]
    assert call(settings={"max_retries": 2}).settings == {"max_retries": 2}


def test_what_a_model_has_no_setting_for_is_warned_of() -> None:
    """Each model says which settings it ignores."""

    class Deaf(TestModel):
        unsupported_settings = frozenset({"seed", "max_retries"})

    made = call(Deaf(), settings={"seed": 1, "max_retries": 2})
    assert made.settings == {}
    assert made.warnings == [{"type": "unsupported-setting", "setting": "seed"}]


def test_provider_options_are_the_providers_settings() -> None:
    """With or without the provider in front, in our or the reference's spelling; others' do not count."""
    options = {
        "anthropic": {
            "thinking": {"type": "enabled"},
            "serviceTier": "x",
            "anthropic_effort": "low",
            "topK": 1,
        },
        "openai": {"store": True},
    }
    settings: Any = call(provider_options=options).settings
    assert settings["anthropic_thinking"] == {"type": "enabled"}
    assert settings["anthropic_effort"] == "low"
    assert settings["service_tier"] == "x"
    assert settings["top_k"] == 1
    assert "openai_store" not in settings


@pytest.mark.parametrize(
    ("choice", "sent"),
    [("required", "required"), ("none", "none"), ({"type": "tool", "toolName": "f"}, ["f"]), ("auto", None)],
)
def test_tool_choice(choice: Any, sent: Any) -> None:
    """Our words for it, and the tool itself."""
    made = call(tools=(TOOL,), tool_choice=choice)
    assert made.settings.get("tool_choice") == sent
    (tool,) = made.parameters.function_tools
    assert (tool.name, tool.description, tool.parameters_json_schema) == ("f", "d", TOOL.parameters)


def test_a_tool_choice_there_is_no_word_for() -> None:
    """The error shows what was given and what to write."""
    with pytest.raises(UsageError, match=r"'sometimes'.*'auto'"):
        call(tools=(TOOL,), tool_choice="sometimes")


def test_structured_output() -> None:
    """By the provider where it can, in words where it cannot."""
    native = call(structured_output=SCHEMA).parameters
    assert has_native_schema(CLAUDE)
    assert native.output_mode == "native"
    assert native.output_object is not None
    assert (native.output_object.json_schema, native.output_object.name) == (SCHEMA, "An_answer_")
    assert not has_native_schema(TestModel(profile={"supports_json_schema_output": False}))
    plain = TestModel(profile={"supports_json_schema_output": False})
    assert call(plain, structured_output=SCHEMA).parameters.output_mode == "prompted"


def test_native_tools() -> None:
    """Tools the provider runs are handed on."""
    request = ModelRequest(prompt=(PromptMessage(role="user", content="Hi"),))
    made = build_call(CLAUDE, request, [WebSearchTool()])
    assert [tool.kind for tool in made.parameters.native_tools] == ["web_search"]


def test_openai_stores_nothing_unless_asked() -> None:
    """A stored item would come back as the model wrote it, whatever a guard made of it (spec R0.1)."""
    responses = OpenAIResponsesModel("gpt-5", provider=OPENAI)
    settings: Any = call(responses).settings
    assert settings["openai_store"] is False
    wanted: Any = call(responses, provider_options={"openai": {"store": True}}).settings
    assert wanted["openai_store"] is True
    own = OpenAIResponsesModel("gpt-5", provider=OPENAI, settings={"openai_store": True})  # type: ignore[typeddict-unknown-key]
    assert "openai_store" not in call(own).settings
    assert "openai_store" not in call(OpenAIChatModel("gpt-5", provider=OPENAI)).settings


def test_the_same_request_twice() -> None:
    """Building a call changes nothing."""
    first, second = call(tools=(TOOL,)), call(tools=(TOOL,))
    assert first.settings == second.settings
    assert replace(first.parameters) == second.parameters
