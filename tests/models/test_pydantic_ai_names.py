"""Models by name: what is missing is told when the model is made."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

from interlock.core.errors import UsageError
from interlock.models.pydantic_ai import pydantic_ai_model
from interlock.models.pydantic_ai_names import ModelMaker

KEY = "a-key-0123456789"


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys for the providers of the extra."""
    for name in ("ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.mark.anyio
@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("anthropic/claude-sonnet-4-5", AnthropicModel),
        ("google/gemini-2.5-pro", GoogleModel),
        ("gemini/gemini-2.5-pro", GoogleModel),
        ("openai/gpt-5", OpenAIResponsesModel),
        ("openai-chat/gpt-5", OpenAIChatModel),
    ],
)
async def test_providers_have_their_models(name: str, kind: type[Any]) -> None:
    """The name's first part chooses the protocol, its second is the model."""
    maker = ModelMaker(name, timeout=9.0)
    assert isinstance(await maker.current(), kind)
    assert pydantic_ai_model(name).model_id == name.partition("/")[2]
    await maker.aclose()


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("google/gemini-2.5-pro", "GOOGLE_API_KEY"),
        ("openai/gpt-5", "OPENAI_API_KEY"),
        ("deepseek/deepseek-chat", "DEEPSEEK_API_KEY"),
        ("azure/gpt-5", "AZURE_OPENAI_ENDPOINT"),
    ],
)
def test_a_missing_key_names_its_variable(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable to set is in the error."""
    for unset in (variable, "GEMINI_API_KEY"):
        monkeypatch.delenv(unset, raising=False)
    with pytest.raises(UsageError, match=f"{variable} is not set"):
        pydantic_ai_model(name)


@pytest.mark.parametrize("name", ["nowhere/m", "claude", "/m", "anthropic/"])
def test_a_name_that_means_nothing(name: str) -> None:
    """The error repeats the name."""
    with pytest.raises(UsageError, match=name):
        pydantic_ai_model(name)


def test_a_missing_package_names_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider of the extra points to it, another one to pydantic-ai's own extra."""
    from interlock.models import pydantic_ai_names

    def missing(name: str) -> None:
        raise ImportError("no such package")

    monkeypatch.setattr(pydantic_ai_names, "infer_provider_class", missing)
    with pytest.raises(UsageError, match=r"pip install 'interlock\[providers\]'"):
        pydantic_ai_model("anthropic/m")
    with pytest.raises(UsageError, match=r"pip install 'pydantic-ai-slim\[groq\]'"):
        pydantic_ai_model("groq/m")


@pytest.mark.usefixtures("keys")
def test_each_event_loop_has_its_own_model() -> None:
    """An HTTP client belongs to one loop; within it the model stays, and it is closed with the loop."""
    maker = ModelMaker("anthropic/claude-sonnet-4-5", timeout=9.0)

    async def twice() -> tuple[Any, Any]:
        return await maker.current(), await maker.current()

    first, again = asyncio.run(twice())
    other, _ = asyncio.run(twice())
    assert first is again is maker.first
    assert other is not first
    assert first.client._client.is_closed
