"""Models behind OpenAI's chat completions: OpenAI, Ollama, vLLM, llama.cpp, OpenRouter, most gateways."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import cache, partial
from typing import Any, TypeAlias

import httpx
from httpx_sse import EventSource, ServerSentEvent

from interlock.core.chunks import Chunk, ResponseMetadata
from interlock.core.errors import ModelError
from interlock.core.model import ModelRequest
from interlock.models.http import Endpoint, read_body
from interlock.models.openai_errors import unreadable_error
from interlock.models.openai_messages import build_body, encode
from interlock.models.openai_stream import AnswerReader
from interlock.models.retrying import retried

log = logging.getLogger("interlock")

Json: TypeAlias = dict[str, Any]


class OpenAICompatible:
    """A model behind an OpenAI-compatible chat completions endpoint.

    Args:
        model_id: the model's name there.
        base_url: up to and without ``/chat/completions``, for example ``https://api.openai.com/v1``.
        api_key: sent as a bearer token.
        headers: sent with each request; an ``Authorization`` among them replaces the bearer token.
        provider: the name under which the model's options and metadata are filed.
        timeout: seconds of silence from the server until the call fails. Connecting may take 10 of them.
        total_timeout: seconds a call may take altogether, its retries included; None: as long as something comes.
            A call's ``settings["timeout"]`` goes before it.
        client: an HTTP client to use instead of own ones; its timeouts apply, and it is not closed.

    Raises:
        UsageError: a base_url that is no http address, a key or header that cannot be sent.
    """

    native_structured_output = True
    """Answers follow ``response_format``: what a provider makes of it is checked all the same."""

    def __init__(
        self,
        model_id: str,
        *,
        base_url: str,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        provider: str = "openai-compatible",
        timeout: float = 300.0,
        total_timeout: float | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._model_id = model_id
        self._provider = provider
        self._total_timeout = total_timeout
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
            request: what to ask; ``settings["max_retries"]`` is how often to try again before a chunk, and
                ``settings["timeout"]`` how many seconds it may take altogether.

        Raises:
            ModelError: the provider refused, failed, broke off or answered something unreadable.
            UsageError: the request cannot be expressed.
        """
        body, warnings = build_body(request, model_id=self._model_id, provider=self._provider)
        for warning in warnings:
            _tell(self._endpoint.where, warning)
        retries = int(request.settings.get("max_retries") or 0)
        limit = request.settings.get("timeout") or self._total_timeout
        deadline = None if limit is None else asyncio.get_running_loop().time() + limit
        begin = partial(self._begin, body, warnings, wants_raw=request.wants_raw)
        try:
            async with asyncio.timeout_at(deadline):
                first, rest = await retried(begin, retries=retries, deadline=deadline)
            async with aclosing(rest if deadline is None else _until(rest, deadline)) as chunks:
                yield first
                async for chunk in chunks:
                    yield chunk
        except TimeoutError:
            text = f"{self._endpoint.where} took longer than the {limit} s a call may take"
            raise ModelError(text, retryable=True) from None
        except ModelError as problem:
            raise self._endpoint.without_secrets(problem) from None

    async def aclose(self) -> None:
        """Close this event loop's idle connections. A loop that shuts down properly does so by itself."""
        await self._endpoint.aclose()

    async def _begin(
        self, body: Json, warnings: list[Json], *, wants_raw: bool
    ) -> tuple[Chunk, AsyncGenerator[Chunk, None]]:
        """Everything up to the first chunk, which may be tried again; and the rest, which may not."""
        chunks = self._answer(body, warnings, wants_raw=wants_raw)
        return await anext(chunks), chunks  # cancelled while it waits, the generator has hung up

    async def _answer(
        self, body: Json, warnings: list[Json], *, wants_raw: bool
    ) -> AsyncGenerator[Chunk, None]:
        reader = AnswerReader(provider=self._provider, request=body, warnings=warnings)
        raw = list[str]()
        async with self._endpoint.post(encode(body)) as response:
            await self._check(response)
            reader.headers = self._headers_of(response)
            try:
                async with aclosing(EventSource(response).aiter_sse()) as events:
                    async for event in events:
                        if wants_raw:
                            raw.append(f"data: {event.data}\n\n")
                        if event.data.strip() == "[DONE]":
                            reader.done = True
                            await _drain(events)
                            break
                        if event.data:
                            for chunk in reader.read(event.data, is_error=event.event == "error"):
                                yield chunk
            except httpx.HTTPError:
                if reader.finish_reason is None and not reader.done:
                    raise
        if raw:
            yield ResponseMetadata(raw="".join(raw))
        for chunk in reader.end():
            yield chunk

    async def _check(self, response: httpx.Response) -> None:
        content_type = response.headers.get("content-type", "")
        if "text/event-stream" not in content_type:
            body = await read_body(response)
            raise unreadable_error(response.status_code, content_type, body, where=self._endpoint.where)
        response.encoding = "utf-8"  # event streams are, whatever the header says

    def _headers_of(self, response: httpx.Response) -> dict[str, str]:
        headers = response.headers.items()
        return {name: self._endpoint.redacted(value) for name, value in headers if name != "set-cookie"}


async def _until(chunks: AsyncGenerator[Chunk, None], deadline: float) -> AsyncGenerator[Chunk, None]:
    """The chunks as long as each comes before the deadline (the loop's time), which raises TimeoutError.

    Only the waiting is limited: a timeout must not span a yield, it would cancel whoever reads.
    """
    async with aclosing(chunks):
        while True:
            async with asyncio.timeout_at(deadline):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk


@cache
def _told(where: str, setting: str, details: str) -> None:
    log.warning("setting %r is not known to %s: %s", setting, where, details)


def _tell(where: str, warning: Json) -> None:
    """A setting that has no effect is also said in the log, once: few look at a step's warnings."""
    if warning["type"] == "unsupported-setting":
        _told(where, warning["setting"], warning.get("details", ""))


async def _drain(events: AsyncGenerator[ServerSentEvent, None]) -> None:
    """Read on to the response's end, normally there already, so that the connection can be used again."""
    try:
        async with asyncio.timeout(0.1):
            async for _ in events:
                pass
    except TimeoutError:
        pass
