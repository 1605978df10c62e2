"""Models behind OpenAI's chat completions: OpenAI, Ollama, vLLM, llama.cpp, OpenRouter, most gateways."""

from __future__ import annotations

import asyncio
import logging
import random
import re
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import cache
from ssl import SSLContext
from typing import Any, TypeAlias

import httpx
from httpx_sse import EventSource, ServerSentEvent

from interlock.core.chunks import Chunk, ResponseMetadata
from interlock.core.errors import ModelError, UsageError
from interlock.core.model import ModelRequest
from interlock.models.openai_errors import status_error, unreadable_error
from interlock.models.openai_messages import build_body, encode
from interlock.models.openai_stream import AnswerReader

log = logging.getLogger("interlock")

Json: TypeAlias = dict[str, Any]

FIRST_WAIT = 0.5
"""Seconds before the first retry, doubled for each further one."""
LONGEST_WAIT = 8.0
LONGEST_RETRY_AFTER = 60.0
"""Seconds; a provider that asks for more gets no retry, the caller is told instead."""
CONNECT_TIMEOUT = 10.0
# less than the 5 s after which uvicorn, Node and llama.cpp hang up, so that none does so under a new request
KEEPALIVE = 3.0
LONGEST_BODY = 65_536
SHORTEST_SECRET = 8


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
        given = _endpoint(base_url)
        # what httpx logs, and shows of a request, is its URL: query and password go another way
        self._url = given.copy_with(query=None, userinfo=b"")
        self._target = given.raw_path
        self._where = f"{self._url.scheme}://{self._url.netloc.decode()}{self._url.path}"
        self._headers = _headers(api_key, headers or {}, given)
        self._secrets = _secrets(self._headers, given)
        self._timeout = timeout
        self._total_timeout = total_timeout
        self._given = client
        self._clients = _ClientPerLoop(self._make_client)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model_id!r} at {self._where})"

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
            _tell(self._where, warning)
        retries = int(request.settings.get("max_retries") or 0)
        limit = request.settings.get("timeout") or self._total_timeout
        deadline = None if limit is None else asyncio.get_running_loop().time() + limit
        for attempt in range(retries + 1):
            started = False
            try:
                answer = self._attempt(body, warnings, wants_raw=request.wants_raw)
                async with aclosing(answer if deadline is None else _until(answer, deadline)) as chunks:
                    async for chunk in chunks:
                        started = True
                        yield chunk
                return
            except TimeoutError:
                text = f"{self._where} took longer than the {limit} s a call may take"
                raise ModelError(text, retryable=True) from None
            except ModelError as problem:
                wait = _wait(attempt, problem.retry_after)
                in_time = deadline is None or asyncio.get_running_loop().time() + wait < deadline
                if started or attempt == retries or not (_worth_waiting(problem) and in_time):
                    raise self._without_secrets(problem) from None
            await asyncio.sleep(wait)

    async def aclose(self) -> None:
        """Close this event loop's idle connections. A loop that shuts down properly does so by itself."""
        await self._clients.aclose()

    async def _attempt(
        self, body: Json, warnings: list[Json], *, wants_raw: bool
    ) -> AsyncGenerator[Chunk, None]:
        client = self._given or await self._clients.current()
        reader = AnswerReader(provider=self._provider, request=body, warnings=warnings)
        raw = list[str]()
        try:
            async with client.stream(
                "POST",
                self._url,
                content=encode(body),
                headers=self._headers,
                extensions={"target": self._target},
            ) as response:
                await self._check(response)
                reader.headers = {
                    name: self._redacted(value)
                    for name, value in response.headers.items()
                    if name != "set-cookie"
                }
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
        except httpx.HTTPError as problem:
            if reader.finish_reason is None and not reader.done:
                raise self._transport_error(problem) from None
        if raw:
            yield ResponseMetadata(raw="".join(raw))
        for chunk in reader.end():
            yield chunk

    async def _check(self, response: httpx.Response) -> None:
        content_type = response.headers.get("content-type", "")
        if not response.is_success:
            body = await _read(response)
            raise status_error(response.status_code, response.headers, body, where=self._where)
        if "text/event-stream" not in content_type:
            body = await _read(response)
            raise unreadable_error(response.status_code, content_type, body, where=self._where)
        response.encoding = "utf-8"  # event streams are, whatever the header says

    def _transport_error(self, problem: httpx.HTTPError) -> ModelError:
        # not chained: an httpx error refers to the request, and that to the key
        match problem:
            case httpx.ConnectTimeout() | httpx.PoolTimeout():
                text = f"no connection to {self._where} in time"
            case httpx.TimeoutException():
                text = f"{self._where} was silent for too long ({type(problem).__name__})"
            case httpx.ConnectError():
                text = f"cannot connect to {self._where}: {problem}"
            case _:
                text = f"{self._where} broke off: {str(problem) or type(problem).__name__}"
        return ModelError(text, retryable=isinstance(problem, httpx.TransportError))

    def _without_secrets(self, problem: ModelError) -> ModelError:
        problem.message = self._redacted(problem.message)
        problem.body = problem.body and self._redacted(problem.body)
        problem.args = (problem.message,)
        problem.__context__ = None  # httpx's error refers to the request, and that to the key
        return problem

    def _redacted(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[redacted]")
        return text

    def _make_client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            timeout=httpx.Timeout(self._timeout, connect=min(CONNECT_TIMEOUT, self._timeout)),
            limits=httpx.Limits(keepalive_expiry=KEEPALIVE),
            verify=_ssl_context(),
            # a proxy set for the outside world does not know this machine's own servers
            trust_env=self._url.host not in ("localhost", "127.0.0.1", "::1"),
        )


class _ClientPerLoop:
    """An HTTP client for each running event loop: a connection is of no use to another loop."""

    def __init__(self, make: Callable[[], httpx.AsyncClient]) -> None:
        self._make = make
        self._open: dict[asyncio.AbstractEventLoop, tuple[httpx.AsyncClient, AsyncGenerator[None, None]]] = {}

    async def current(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._open:
            for other in [other for other in self._open if other.is_closed()]:
                self._open.pop(other, None)
            client = self._make()
            closing = _close_at_shutdown(client)
            await anext(closing)
            self._open[loop] = (client, closing)
        return self._open[loop][0]

    async def aclose(self) -> None:
        opened = self._open.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened[1].aclose()


async def _close_at_shutdown(client: httpx.AsyncClient) -> AsyncGenerator[None, None]:
    # a loop closes the generators still open before it stops, and a forgotten one when it is collected
    try:
        yield
    finally:
        await client.aclose()


@cache
def _ssl_context() -> SSLContext:
    return httpx.create_ssl_context()  # takes some 20 ms, too long for each loop


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


async def _read(response: httpx.Response) -> str:
    received = bytearray()
    try:
        async for piece in response.aiter_bytes():
            received += piece
            if len(received) >= LONGEST_BODY:
                break
    except httpx.HTTPError:
        pass  # what came says more than why the rest did not
    return received[:LONGEST_BODY].decode("utf-8", "replace")


def _worth_waiting(problem: ModelError) -> bool:
    return problem.retryable and (problem.retry_after or 0) <= LONGEST_RETRY_AFTER


def _wait(attempt: int, retry_after: float | None) -> float:
    if retry_after is not None:
        return retry_after * random.uniform(1.0, 1.1)
    return min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * random.uniform(0.5, 1.0)


# ---------------------------------------------------------------------------------------------- configuration


def _endpoint(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError):
        raise UsageError("base_url cannot be read as an address") from None  # it may hold a password
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError("base_url must be a full address such as 'https://api.openai.com/v1'")
    return url.copy_with(path=f"{url.path.rstrip('/')}/chat/completions")


def _headers(api_key: str | None, given: Mapping[str, str], url: httpx.URL) -> httpx.Headers:
    key = (api_key or "").strip()
    for name, value in [("api_key", key), *given.items()]:
        if not (value.isascii() and value.isprintable()):
            raise UsageError(f"{name} holds a character that no HTTP header may carry")
    headers = httpx.Headers({"Content-Type": "application/json", "Accept": "text/event-stream"})
    if url.userinfo:
        login = f"{url.username}:{url.password}".encode()
        headers["Authorization"] = f"Basic {b64encode(login).decode()}"
    if key:
        headers["Authorization"] = f"Bearer {key}"
    headers.update(given)
    return headers


def _secrets(headers: httpx.Headers, url: httpx.URL) -> tuple[str, ...]:
    """What must not show in an error's text, longest first."""
    values = [v for k, v in headers.items() if re.search("auth|key|token|secret|cookie", k)]
    values += [value.partition(" ")[2] for value in values]
    values += [url.password, *url.params.values()]
    return tuple(sorted({v for v in values if len(v) >= SHORTEST_SECRET}, key=len, reverse=True))
