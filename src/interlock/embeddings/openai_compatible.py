"""Embeddings behind OpenAI's ``POST /embeddings``: OpenAI, Ollama, vLLM, llama.cpp, most gateways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import httpx
import msgspec

from interlock.core.errors import ModelError, UsageError
from interlock.embeddings.embedder import Kind
from interlock.models.http import Endpoint
from interlock.models.openai_errors import excerpt
from interlock.models.retrying import retried


class OpenAIEmbedder:
    """A model behind an OpenAI-compatible embeddings endpoint.

    Args:
        model_id: the model's name there.
        base_url: up to and without ``/embeddings``, for example ``https://api.openai.com/v1``.
        api_key: sent as a bearer token.
        headers: sent with each request.
        provider: the name under which its vectors are filed, before the model's.
        dimensions: how long vectors shall be, for models that let one choose.
        max_retries: how often a failed request is tried again, where that may help.
        timeout: seconds of silence from the server until a request fails.
        client: an HTTP client to use instead of own ones; its timeouts apply, and it is not closed.

    Raises:
        UsageError: a base_url that is no http address, a key or header that cannot be sent, no dimensions.
    """

    def __init__(
        self,
        model_id: str,
        *,
        base_url: str,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        provider: str = "openai-compatible",
        dimensions: int | None = None,
        max_retries: int = 2,
        timeout: float = 60.0,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        if dimensions is not None and (not isinstance(dimensions, int) or dimensions < 1):
            raise UsageError(f"dimensions must be a whole number from 1, not {dimensions!r}")
        self._model_id = model_id
        self._provider = provider
        self._dimensions = dimensions
        self._max_retries = max_retries
        self._endpoint = Endpoint(
            base_url,
            "/embeddings",
            api_key=api_key,
            headers=headers or {},
            accept="application/json",
            timeout=timeout,
            client=client,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model_id!r} at {self._endpoint.where})"

    @property
    def model_id(self) -> str:
        """``provider/model``, and the dimensions where they were chosen."""
        name = f"{self._provider}/{self._model_id}"
        return name if self._dimensions is None else f"{name}/{self._dimensions}"

    async def embed(self, texts: Sequence[str], *, kind: Kind) -> list[list[float]]:
        """A vector for each text, in one request; these models make no difference between kinds.

        Raises:
            ModelError: the provider refused, failed or answered something unreadable.
        """
        body: dict[str, Any] = {"model": self._model_id, "input": list(texts), "encoding_format": "float"}
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        ask = partial(self._ask, msgspec.json.encode(body))
        try:
            answer = await retried(ask, retries=self._max_retries)
            return _vectors(answer, len(texts), self._endpoint.where)
        except ModelError as problem:
            raise self._endpoint.without_secrets(problem) from None

    async def aclose(self) -> None:
        """Close this event loop's idle connections. A loop that shuts down properly does so by itself."""
        await self._endpoint.aclose()

    async def _ask(self, content: bytes) -> bytes:
        async with self._endpoint.post(content) as response:
            return await response.aread()


def _vectors(answer: bytes, count: int, where: str) -> list[list[float]]:
    """The vectors of an answer, in the order of the texts, whatever order they came in."""
    try:
        data: Any = msgspec.json.decode(answer)["data"]
        vectors = {int(item["index"]): item["embedding"] for item in data}
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        text = answer.decode("utf-8", "replace")
        raise ModelError(f"{where} answered no embeddings: {excerpt(text)}", body=text) from None
    if sorted(vectors) != list(range(count)):
        raise ModelError(f"{where} answered {len(vectors)} embeddings for {count} texts")
    return [vectors[index] for index in range(count)]
