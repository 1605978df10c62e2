"""HTTP clients, one for each event loop: a connection is of no use to another loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import cache
from ssl import SSLContext

import httpx

CONNECT_TIMEOUT = 10.0
# less than the 5 s after which uvicorn, Node and llama.cpp hang up, so that none does so under a new request
KEEPALIVE = 3.0


def make_client(*, timeout: float, host: str) -> httpx.AsyncClient:
    """A client for one host.

    Args:
        timeout: seconds of silence from the server until a request fails.
        host: whom it will ask.
    """
    return httpx.AsyncClient(
        timeout=httpx.Timeout(timeout, connect=min(CONNECT_TIMEOUT, timeout)),
        limits=httpx.Limits(keepalive_expiry=KEEPALIVE),
        verify=_ssl_context(),
        # a proxy set for the outside world does not know this machine's own servers
        trust_env=host not in ("localhost", "127.0.0.1", "::1"),
    )


class ClientPerLoop:
    """An HTTP client for each running event loop, closed with its loop.

    Args:
        make: makes one.
    """

    def __init__(self, make: Callable[[], httpx.AsyncClient]) -> None:
        self._make = make
        self._open: dict[asyncio.AbstractEventLoop, tuple[httpx.AsyncClient, AsyncGenerator[None, None]]] = {}

    async def current(self) -> httpx.AsyncClient:
        """The running loop's."""
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
        """Close the running loop's."""
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
