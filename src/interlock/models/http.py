"""What all OpenAI-compatible endpoints have in common: addresses, headers, connections, errors without secrets."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import cache
from ssl import SSLContext

import httpx

from interlock.core.errors import ModelError, UsageError

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


class Endpoint:
    """One address of a provider, with everything a request to it needs.

    Args:
        base_url: for example ``https://api.openai.com/v1``.
        path: what is asked there, for example ``/chat/completions``.
        api_key: sent as a bearer token.
        headers: sent with each request; an ``Authorization`` among them replaces the bearer token.
        accept: the content type that is asked for.
        timeout: seconds of silence from the server until a request fails.
        client: an HTTP client to use instead of own ones; its timeouts apply, and it is not closed.

    Attributes:
        where: the address, without anything secret.

    Raises:
        UsageError: a base_url that is no http address, a key or header that cannot be sent.
    """

    def __init__(
        self,
        base_url: str,
        path: str,
        *,
        api_key: str | None,
        headers: Mapping[str, str],
        accept: str,
        timeout: float,
        client: httpx.AsyncClient | None,
    ) -> None:
        self.url = _address(base_url, path)
        self.where = f"{self.url.scheme}://{self.url.netloc.decode()}{self.url.path}"
        self.headers = _headers(api_key, headers, accept)
        self._secrets = _secrets(self.headers, self.url)
        self._timeout = timeout
        self._given = client
        self._clients = _ClientPerLoop(self._make_client)

    async def client(self) -> httpx.AsyncClient:
        """The client to ask with: the given one, or this event loop's."""
        return self._given or await self._clients.current()

    async def aclose(self) -> None:
        """Close this event loop's idle connections. A loop that shuts down properly does so by itself."""
        await self._clients.aclose()

    def transport_error(self, problem: httpx.HTTPError) -> ModelError:
        """What went wrong on the way, as a ModelError."""
        # not chained: an httpx error refers to the request, and that to the key
        match problem:
            case httpx.ConnectTimeout() | httpx.PoolTimeout():
                text = f"no connection to {self.where} in time"
            case httpx.TimeoutException():
                text = f"{self.where} was silent for too long ({type(problem).__name__})"
            case httpx.ConnectError():
                text = f"cannot connect to {self.where}: {problem}"
            case _:
                text = f"{self.where} broke off: {str(problem) or type(problem).__name__}"
        return ModelError(text, retryable=isinstance(problem, httpx.TransportError))

    def without_secrets(self, problem: ModelError) -> ModelError:
        """The error, with keys and passwords that the provider repeats taken out."""
        for secret in self._secrets:
            problem.message = problem.message.replace(secret, "[redacted]")
            problem.body = problem.body and problem.body.replace(secret, "[redacted]")
        problem.args = (problem.message,)
        return problem

    def _make_client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            timeout=httpx.Timeout(self._timeout, connect=min(CONNECT_TIMEOUT, self._timeout)),
            limits=httpx.Limits(keepalive_expiry=KEEPALIVE),
            verify=_ssl_context(),
            # a proxy set for the outside world does not know this machine's own servers
            trust_env=self.url.host not in ("localhost", "127.0.0.1", "::1"),
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


async def read_body(response: httpx.Response) -> str:
    """The beginning of a response's body, as far as it comes."""
    received = bytearray()
    try:
        async for piece in response.aiter_bytes():
            received += piece
            if len(received) >= LONGEST_BODY:
                break
    except httpx.HTTPError:
        pass  # what came says more than why the rest did not
    return received[:LONGEST_BODY].decode("utf-8", "replace")


# --------------------------------------------------------------------------------------------------- trying again


def worth_waiting(problem: ModelError) -> bool:
    """Whether the same request may succeed, soon enough."""
    return problem.retryable and (problem.retry_after or 0) <= LONGEST_RETRY_AFTER


def waiting_time(attempt: int, retry_after: float | None) -> float:
    """Seconds to wait after so many retries, spread so that clients do not come back all at once."""
    if retry_after is not None:
        return retry_after * random.uniform(1.0, 1.1)
    return min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * random.uniform(0.5, 1.0)


# -------------------------------------------------------------------------------------------------- configuration


def _address(base_url: str, path: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError):
        raise UsageError("base_url cannot be read as an address") from None  # it may hold a password
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError("base_url must be a full address such as 'https://api.openai.com/v1'")
    return url.copy_with(path=f"{url.path.rstrip('/')}{path}")


def _headers(api_key: str | None, given: Mapping[str, str], accept: str) -> httpx.Headers:
    key = (api_key or "").strip()
    for name, value in [("api_key", key), *given.items()]:
        if not (value.isascii() and value.isprintable()):
            raise UsageError(f"{name} holds a character that no HTTP header may carry")
    headers = httpx.Headers({"Content-Type": "application/json", "Accept": accept})
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
