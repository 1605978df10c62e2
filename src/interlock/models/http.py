"""One address of a provider, for all adapters over httpx: headers, requests, and errors without secrets."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import httpx

from interlock.core.errors import ModelError, UsageError
from interlock.models.connections import ClientPerLoop, make_client
from interlock.models.openai_errors import status_error

LONGEST_BODY = 65_536
SHORTEST_SECRET = 8
ADDRESS = "base_url (a mapping's url)"


class Endpoint:
    """One address of a provider, with everything a request to it needs.

    Args:
        base_url: for example ``https://api.openai.com/v1``. A query and a password in it are sent, but shown nowhere.
        path: what is asked there, for example ``/chat/completions``.
        api_key: sent as a bearer token.
        headers: sent with each request; an ``Authorization`` among them replaces the bearer token.
        accept: the content type that is asked for.
        timeout: seconds of silence from the server until a request fails. Connecting may take 10 of them.
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
        given = _address(base_url, path)
        # what httpx logs, and shows of a request, is its URL: query and password go another way
        self._url = given.copy_with(query=None, userinfo=b"")
        self._target = given.raw_path
        self.where = f"{self._url.scheme}://{self._url.netloc.decode()}{self._url.path}"
        self._headers = _headers(api_key, headers, accept, given)
        self._secrets = _secrets(self._headers, given)
        self._given = client
        self._clients = ClientPerLoop(partial(make_client, timeout=timeout, host=given.host))

    @asynccontextmanager
    async def post(self, content: bytes) -> AsyncGenerator[httpx.Response, None]:
        """Ask, with this body. The response is a success and is still to be read; leaving the block hangs up.

        Raises:
            ModelError: the provider cannot be reached, refused or broke off, within the block too.
        """
        try:
            client = self._given or await self._clients.current()
            async with client.stream(
                "POST",
                self._url,
                content=content,
                headers=self._headers,
                extensions={"target": self._target},
            ) as response:
                if not response.is_success:
                    said = await read_body(response)
                    raise status_error(response.status_code, response.headers, said, where=self.where)
                yield response
        except httpx.HTTPError as problem:
            raise self._transport_error(problem) from None

    async def aclose(self) -> None:
        """Close this event loop's idle connections. A loop that shuts down properly does so by itself."""
        await self._clients.aclose()

    def without_secrets(self, problem: ModelError) -> ModelError:
        """The error, with keys and passwords that the provider repeats taken out, and alone."""
        problem.message = self.redacted(problem.message)
        problem.body = problem.body and self.redacted(problem.body)
        problem.args = (problem.message,)
        problem.__context__ = None  # httpx's error refers to the request, and that to the key
        return problem

    def redacted(self, text: str) -> str:
        """The text, with keys and passwords taken out."""
        for secret in self._secrets:
            text = text.replace(secret, "[redacted]")
        return text

    def _transport_error(self, problem: httpx.HTTPError) -> ModelError:
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


def _address(base_url: str, path: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError):
        raise UsageError(f"{ADDRESS} cannot be read as an address") from None  # it may hold a password
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(f"{ADDRESS} must be a full address such as 'https://api.openai.com/v1'")
    if url.path.rstrip("/").endswith(path):
        raise UsageError(f"{ADDRESS} is written without {path!r}, which is added to it")
    return url.copy_with(path=f"{url.path.rstrip('/')}{path}")


def _headers(api_key: str | None, given: Mapping[str, str], accept: str, url: httpx.URL) -> httpx.Headers:
    for name, value in [("api_key", api_key or ""), *given.items()]:
        if not isinstance(value, str):
            raise UsageError(f"{name} must be a string, not {type(value).__name__}")
    key = (api_key or "").strip()
    for name, value in [("api_key", key), *given.items()]:
        if not (value.isascii() and value.isprintable()):
            raise UsageError(f"{name} holds a character that no HTTP header may carry")
    headers = httpx.Headers({"Content-Type": "application/json", "Accept": accept})
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
