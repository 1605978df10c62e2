"""Models behind OpenAI's chat completions: OpenAI, Ollama, vLLM, llama.cpp, OpenRouter, most gateways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias

import httpx
from httpx_sse import EventSource, ServerSentEvent

from interlock.core.chunks import Chunk
from interlock.core.errors import ModelError
from interlock.core.model import ModelRequest
from interlock.models.http import Endpoint, read_body, waiting_time, worth_waiting
from interlock.models.openai_errors import status_error, unreadable_error
from interlock.models.openai_messages import build_body, encode
from interlock.models.openai_stream import AnswerReader

Json: TypeAlias = dict[str, Any]


class OpenAICompatible:
    """A model behind an OpenAI-compatible chat completions endpoint.

    Args:
        model_id: the model's name there.
        base_url: up to and without ``/chat/completions``, for example ``https://api.openai.com/v1``.
        api_key: sent as a bearer token.
        headers: sent with each request; an ``Authorization`` among them replaces the bearer token.
        provider: the name under which the model's options and metadata are filed.
        timeout: seconds of silence from the server until the call fails.
        client: an HTTP client to use instead of own ones; its timeouts apply, and it is not closed.

    Raises:
        UsageError: a base_url that is no http address, a key or header that cannot be sent.
    """

    def __init__(
        self,
        model_id: str,
        *,
        base_url: str,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        provider: str = "openai-compatible",
        timeout: float = 300.0,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._model_id = model_id
        self._provider = provider
        self._endpoint = Endpoint(
            base_url,
            "/chat/completions",
            api_key=api_key,
            headers=headers or {},
            accept="text/event-stream",
            timeout=timeout,
            client=client,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model_id!r} at {self._endpoint.where})"

    @property
    def provider(self) -> str:
        """The provider's name."""
        return self._provider

    @property
    def model_id(self) -> str:
        """The model's name at that provider."""
        return self._model_id

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Call the model. Closing the generator hangs up at once.

        Args:
            request: what to ask; ``settings["max_retries"]`` is how often to try again before a chunk.

        Raises:
            ModelError: the provider refused, failed, broke off or answered something unreadable.
            UsageError: the request cannot be expressed.
        """
        body, warnings = build_body(request, model_id=self._model_id, provider=self._provider)
        retries = int(request.settings.get("max_retries") or 0)
        for attempt in range(retries + 1):
            started = False
            try:
                async with aclosing(self._attempt(body, warnings)) as chunks:
                    async for chunk in chunks:
                        started = True
                        yield chunk
                return
            except ModelError as problem:
                if started or attempt == retries or not worth_waiting(problem):
                    raise self._endpoint.without_secrets(problem) from None
                wait = waiting_time(attempt, problem.retry_after)
            await asyncio.sleep(wait)

    async def aclose(self) -> None:
        """Close this event loop's idle connections. A loop that shuts down properly does so by itself."""
        await self._endpoint.aclose()

    async def _attempt(self, body: Json, warnings: list[Json]) -> AsyncGenerator[Chunk, None]:
        client = await self._endpoint.client()
        reader = AnswerReader(provider=self._provider, request=body, warnings=warnings)
        try:
            async with client.stream(
                "POST", self._endpoint.url, content=encode(body), headers=self._endpoint.headers
            ) as response:
                await self._check(response)
                reader.headers = {k: v for k, v in response.headers.items() if k != "set-cookie"}
                async with aclosing(EventSource(response).aiter_sse()) as events:
                    async for event in events:
                        if event.data.strip() == "[DONE]":
                            reader.done = True
                            await _drain(events)
                            break
                        if event.data:
                            for chunk in reader.read(event.data, is_error=event.event == "error"):
                                yield chunk
        except httpx.HTTPError as problem:
            if reader.finish_reason is None and not reader.done:
                raise self._endpoint.transport_error(problem) from None
        for chunk in reader.end():
            yield chunk

    async def _check(self, response: httpx.Response) -> None:
        content_type = response.headers.get("content-type", "")
        if not response.is_success:
            body = await read_body(response)
            raise status_error(response.status_code, response.headers, body, where=self._endpoint.where)
        if "text/event-stream" not in content_type:
            body = await read_body(response)
            raise unreadable_error(response.status_code, content_type, body, where=self._endpoint.where)
        response.encoding = "utf-8"  # event streams are, whatever the header says


async def _drain(events: AsyncGenerator[ServerSentEvent, None]) -> None:
    """Read on to the response's end, normally there already, so that the connection can be used again."""
    try:
        async with asyncio.timeout(0.1):
            async for _ in events:
                pass
    except TimeoutError:
        pass
