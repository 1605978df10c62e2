"""From what a user may give as a model to a model: an object, ``provider/model``, an address, or several of these."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from interlock.core.errors import UsageError
from interlock.core.model import LanguageModel
from interlock.core.shapes import is_sequence
from interlock.models.fallback import FallbackModel


class Endpoint(NamedTuple):
    """Where a provider answers, and the environment variable with its key (None: it needs none)."""

    base_url: str
    key_variable: str | None


ENDPOINTS = {
    "openai": Endpoint("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "openrouter": Endpoint("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "ollama": Endpoint("http://localhost:11434/v1", None),
    "groq": Endpoint("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": Endpoint("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "deepseek": Endpoint("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "together": Endpoint("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "xai": Endpoint("https://api.x.ai/v1", "XAI_API_KEY"),
    "fireworks": Endpoint("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "cerebras": Endpoint("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "lmstudio": Endpoint("http://localhost:1234/v1", None),
    "vllm": Endpoint("http://localhost:8000/v1", None),
}
"""The OpenAI-compatible providers known by name; any other one is given as ``{"id": ..., "url": ...}``.

Another address, of a proxy say, may stand in ``OPENAI_BASE_URL``, ``OLLAMA_BASE_URL`` and so on.
"""

THROUGH_PYDANTIC_AI = (
    "anthropic", "google", "gemini", "google-cloud", "google-vertex", "bedrock", "cohere", "huggingface",
    "openai-responses", "azure", "alibaba", "github", "heroku", "moonshotai", "nebius", "ovhcloud", "sambanova",
    "vercel", "zai",
)  # fmt: skip
"""Providers with a protocol or a way to sign in of their own: they need the extra ``providers``."""

INSTALL = "pip install 'interlock[providers]'"

KEYS = ("id", "url", "api_key", "headers")


class ForeignModel(Protocol):
    """A pydantic-ai ``Model``, as far as a type checker has to know it."""

    @property
    def request_stream(self) -> Any:
        """How pydantic-ai calls it."""
        ...


ModelChoice: TypeAlias = LanguageModel | ForeignModel | str | Mapping[str, Any] | Sequence[Any]
"""What may be given as a model; see :func:`resolve_model`."""


def resolve_model(given: Any) -> LanguageModel:
    """The model a user means.

    Args:
        given: a model; a pydantic-ai ``Model``; a string such as ``local/smollm2``, ``openai/gpt-5-mini`` or
            ``openrouter/vendor/model``; a mapping with ``id`` (``provider/model``, or just the model), ``url`` and
            optionally ``api_key`` and ``headers``; or a list of these, each the fallback of those before it.

    Returns:
        The model. Nothing is called or started yet.

    Raises:
        UsageError: none of these, an unknown provider, a missing key or package; the text says what to do.
    """
    if isinstance(given, str):
        return _by_name(given)
    if isinstance(given, Mapping):
        return _by_address(cast("Mapping[Any, Any]", given))
    if hasattr(given, "stream") and hasattr(given, "model_id"):
        return given
    if is_sequence(given):
        models = [resolve_model(each) for each in given]
        return models[0] if len(models) == 1 else FallbackModel(models)
    if _is_pydantic_ai_model(given):
        return _adapter().PydanticAIModel(given)
    raise UsageError(
        f"model {given!r} is no model: give an object with stream and model_id, a string 'provider/model', "
        "a mapping with id and url, a pydantic-ai Model, or a list of these"
    )


def _by_name(given: str) -> LanguageModel:
    provider, slash, model_id = given.partition("/")
    if not (provider and slash and model_id):
        raise UsageError(
            f"model {given!r}: write provider/model, for example 'openai/gpt-5-mini' or 'local/smollm2'"
        )
    if provider == "local":
        from interlock.models.local import local_model

        return local_model(model_id)
    if provider in THROUGH_PYDANTIC_AI:
        if find_spec("pydantic_ai") is None:
            raise UsageError(f"model {given!r}: pydantic-ai is not installed; run: {INSTALL}")
        return _adapter().pydantic_ai_model(given)
    if provider not in ENDPOINTS:
        known = ["local", *ENDPOINTS, *THROUGH_PYDANTIC_AI]
        close = get_close_matches(provider.lower(), known, n=1)
        meant = f" (did you mean {close[0]!r}?)" if close else ""
        raise UsageError(
            f"model {given!r}: no provider {provider!r}{meant}; known are {', '.join(known)}. "
            'Another OpenAI-compatible one: {"id": "provider/model", "url": "https://...", "api_key": "..."}'
        )
    base_url, variable = ENDPOINTS[provider]
    base_url = os.environ.get(f"{provider.upper()}_BASE_URL", "").strip() or base_url
    return _endpoint_model(model_id, base_url, provider=provider, api_key=_key(given, variable))


def _is_pydantic_ai_model(given: Any) -> bool:
    # who has one has imported it; nobody else should wait for it
    models = sys.modules.get("pydantic_ai.models")
    return models is not None and isinstance(given, models.Model)


def _adapter() -> Any:
    try:
        return import_module("interlock.models.pydantic_ai")
    except ImportError as problem:
        raise UsageError(f"pydantic-ai cannot be imported ({problem}); run: {INSTALL}") from None


def _key(given: str, variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UsageError(
            f"model {given!r}: the environment variable {variable} is not set; put the API key there"
        )
    return key


def _by_address(given: Mapping[Any, Any]) -> LanguageModel:
    # the values are not shown: one of them may be a key
    unknown = [str(name) for name in given if name not in KEYS]
    if unknown:
        raise UsageError(f"model mapping: no key {', '.join(unknown)}; it takes {', '.join(KEYS)}")
    for name in ("id", "url"):
        if not isinstance(given.get(name), str) or not given[name]:
            raise UsageError(f"model mapping: {name} is missing or no string; it takes {', '.join(KEYS)}")
    headers: Any = given.get("headers") or {}
    if not isinstance(headers, Mapping):
        raise UsageError(f"model {given['id']!r}: headers must be a mapping, not {type(headers).__name__}")
    provider, slash, model_id = str(given["id"]).partition("/")
    named = {"model_id": model_id, "provider": provider} if slash else {"model_id": provider}
    return _endpoint_model(
        base_url=given["url"],
        api_key=given.get("api_key"),
        headers=cast("Mapping[str, str]", headers),
        **named,
    )


def _endpoint_model(model_id: str, base_url: str, **options: Any) -> LanguageModel:
    # httpx takes as long to import as the rest of the library: scripted models need not wait for it
    from interlock.models.openai_compatible import OpenAICompatible

    return OpenAICompatible(model_id, base_url=base_url, **options)
