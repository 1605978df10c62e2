"""The embedder a user means."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

from interlock.core.errors import UsageError
from interlock.core.shapes import described
from interlock.embeddings.embedder import Embedder
from interlock.embeddings.local import LocalEmbedder
from interlock.embeddings.pydantic_ai import PydanticAIEmbedder
from interlock.models.router import ENDPOINTS

KEYS = ("id", "url", "api_key", "headers", "dimensions")


def resolve_embedder(given: Any) -> Embedder:
    """The embedder a user means; nothing is called or loaded yet.

    Args:
        given: ``"local"``; a string such as ``openai/text-embedding-3-small`` or ``ollama/nomic-embed-text``; a
            mapping with ``id`` and ``url`` (and ``api_key``, ``headers``, ``dimensions``) of an OpenAI-compatible
            one; a ``pydantic_ai.Embedder``; or anything with ``model_id`` and ``embed``.

    Raises:
        UsageError: none of these, an unknown provider, a missing key or package; the text says what to do.
    """
    if isinstance(given, str):
        return _by_name(given)
    if isinstance(given, Mapping):
        return _by_address(cast("Mapping[Any, Any]", given))
    if hasattr(given, "embed_query") and hasattr(given, "embed_documents") and hasattr(given, "model"):
        return PydanticAIEmbedder(given)
    if not isinstance(given, type) and isinstance(given, Embedder):
        return given
    raise UsageError(
        f"embedder {described(given)} is none: give 'local', 'openai/text-embedding-3-small', a mapping with id "
        "and url, a pydantic_ai.Embedder, or an object with model_id and embed"
    )


def _by_name(given: str) -> Embedder:
    provider, slash, model_id = given.partition("/")
    if provider == "local":
        return LocalEmbedder(model_id) if slash else LocalEmbedder()
    if not (provider and model_id):
        raise UsageError(
            f"embedder {given!r}: write 'local', or provider/model such as 'openai/text-embedding-3-small'"
        )
    if provider not in ENDPOINTS:
        known = ", ".join(["local", *ENDPOINTS])
        raise UsageError(
            f"embedder {given!r}: no provider {provider!r}; known are {known}. Another OpenAI-compatible one: "
            '{"id": "provider/model", "url": "https://...", "api_key": "..."}'
        )
    base_url, variable = ENDPOINTS[provider]
    key = None
    if variable is not None:
        key = os.environ.get(variable, "").strip()
        if not key:
            raise UsageError(
                f"embedder {given!r}: the environment variable {variable} is not set; put the API key there"
            )
    return _remote(model_id, base_url, provider=provider, api_key=key)


def _by_address(given: Mapping[Any, Any]) -> Embedder:
    # the values are not shown: one of them may be a key
    unknown = [str(name) for name in given if name not in KEYS]
    if unknown:
        raise UsageError(f"embedder mapping: no key {', '.join(unknown)}; it takes {', '.join(KEYS)}")
    for name in ("id", "url"):
        if not isinstance(given.get(name), str) or not given[name]:
            raise UsageError(f"embedder mapping: {name} is missing or no string; it takes {', '.join(KEYS)}")
    provider, slash, model_id = str(given["id"]).partition("/")
    named = {"model_id": model_id, "provider": provider} if slash else {"model_id": provider}
    options = {name: given[name] for name in ("api_key", "headers", "dimensions") if given.get(name)}
    return _remote(base_url=given["url"], **named, **options)


def _remote(model_id: str, base_url: str, **options: Any) -> Embedder:
    # httpx takes as long to import as the rest of the library
    from interlock.embeddings.openai_compatible import OpenAIEmbedder

    return OpenAIEmbedder(model_id, base_url=base_url, **options)
