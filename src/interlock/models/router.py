"""From what a user may give as a model to a model: an object, ``provider/model``, or an address."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from interlock.core.errors import UsageError
from interlock.core.model import LanguageModel


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
}
"""The providers known by name; any other OpenAI-compatible one is given as ``{"id": ..., "url": ...}``."""

KEYS = ("id", "url", "api_key", "headers")


def resolve_model(given: Any) -> LanguageModel:
    """The model a user means.

    Args:
        given: a model; a string such as ``local/smollm2`` or ``openai/gpt-5-mini``; or a mapping with ``id``
            (``provider/model``, or just the model), ``url`` and optionally ``api_key`` and ``headers``.

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
    raise UsageError(
        f"model {given!r} is no model: give an object with stream and model_id, a string 'provider/model', "
        "or a mapping with id and url"
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
    if provider not in ENDPOINTS:
        known = ", ".join(["local", *ENDPOINTS])
        raise UsageError(
            f"model {given!r}: no provider {provider!r}; known are {known}. "
            'Another OpenAI-compatible one: {"id": "provider/model", "url": "https://...", "api_key": "..."}'
        )
    base_url, variable = ENDPOINTS[provider]
    return _endpoint_model(model_id, base_url, provider=provider, api_key=_key(given, variable))


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
