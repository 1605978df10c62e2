"""What went over the wire in one call: request body, raw response, headers, and the secrets in them.

The provider's SDK uses an HTTP client of ours, or one the user made; hooks on it note what the call under way
(known by a context variable) sends and gets.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from ssl import SSLContext
from typing import Any, NamedTuple, TypeVar

import httpx
import httpx2
import msgspec

from interlock.core.errors import ModelError

AnyClient = TypeVar("AnyClient", httpx.AsyncClient, httpx2.AsyncClient)

CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 300.0
KEEPALIVE = 3.0  # as in openai_compatible
LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=KEEPALIVE)
SHORTEST_SECRET = 8
LAST_PIECES = 32
"""Reads of a response that are kept for the text of an error."""
SECRET = re.compile("auth|key|token|secret|cookie|signature|credential", re.IGNORECASE)
HOP = frozenset({"content-length", "transfer-encoding", "connection"})

_under_way: ContextVar[Exchange | None] = ContextVar("interlock_exchange", default=None)


class WebPage(NamedTuple):
    """What came instead of an event stream."""

    status: int
    content_type: str
    text: str


class Exchange:
    """One call's traffic; of several attempts, the last one's.

    Args:
        keep_raw: whether somebody will look at the whole response; else only its end is kept.

    Attributes:
        status: of the response, None before there is one.
        headers: of the response, names in lower case, without cookies.
        secrets: values of the request that must not show, longest first.
    """

    def __init__(self, *, keep_raw: bool = True) -> None:
        self.keeps_raw = keep_raw
        self.status: int | None = None
        self.headers: dict[str, str] | None = None
        self.secrets: tuple[str, ...] = ()
        self._response: httpx.Response | httpx2.Response | None = None
        self._sent: bytes | None = None
        self._pieces: list[bytes] | deque[bytes] = []

    @contextmanager
    def watch(self) -> Generator[None]:
        """Note what is sent meanwhile; the response is noted for as long as it is read."""
        token = _under_way.set(self)
        try:
            yield
        finally:
            _under_way.reset(token)

    def note_request(self, request: httpx.Request | httpx2.Request) -> None:
        """A request goes out."""
        self.status, self.headers = None, None
        self._pieces = [] if self.keeps_raw else deque(maxlen=LAST_PIECES)
        self.secrets = _secrets(request)
        try:
            self._sent = request.content
        except (httpx.RequestNotRead, httpx2.RequestNotRead):
            self._sent = None

    def note_response(self, response: httpx.Response | httpx2.Response) -> None:
        """Its response begins."""
        self._response = response
        self.status = response.status_code
        self.headers = {name.lower(): self._redacted(value) for name, value in response.headers.items()}
        self.headers.pop("set-cookie", None)
        response.stream = _Noted(response.stream, self._pieces)

    async def aclose(self) -> None:
        """Hang up, whether or not the provider's SDK has done so."""
        if self._response is not None:
            await self._response.aclose()

    @property
    def request_body(self) -> Any:
        """The body that was sent: JSON as values, None if there is none or it is no JSON."""
        try:
            return msgspec.json.decode(self._sent) if self._sent else None
        except msgspec.DecodeError:
            return None

    @property
    def raw(self) -> str | None:
        """The response's body as far as it was read, or its last pieces."""
        if self.status is None or not self._pieces:
            return None
        if not self.keeps_raw and (self.headers or {}).get("content-encoding"):
            return None  # the end of a compressed body cannot be read
        headers = {name: value for name, value in (self.headers or {}).items() if name not in HOP}
        body = b"".join(self._pieces)
        try:
            return httpx2.Response(self.status, headers=headers, content=body).content.decode(
                "utf-8", "replace"
            )
        except httpx2.DecodingError:
            return None  # cut off inside a compressed body

    def _tail(self) -> bytes:
        return b"".join(list(self._pieces)[-LAST_PIECES:])

    @property
    def ends_with_done(self) -> bool:
        """Whether the body ends with the mark of OpenAI's streams."""
        return self._tail().rstrip().endswith(b"[DONE]")

    @property
    def ends_inside_an_event(self) -> bool:
        """Whether the body breaks off before the empty line that ends an event."""
        tail = self._tail()
        return bool(tail) and not tail.endswith((b"\n\n", b"\r\n\r\n", b"\r\r"))

    @property
    def web_page(self) -> WebPage | None:
        """A response that is a success, but no event stream: a web page, nothing at all."""
        content_type = (self.headers or {}).get("content-type", "")
        if self.status is None or not 200 <= self.status < 300:
            return None
        is_stream = "event-stream" in content_type and self._pieces
        return None if is_stream else WebPage(self.status, content_type, self.raw or "")

    def without_secrets(self, problem: ModelError) -> ModelError:
        """The error with every secret of the request taken out of its text and body."""
        problem.message = self._redacted(problem.message)
        problem.body = problem.body and self._redacted(problem.body)
        problem.args = (problem.message,)
        return problem

    def _redacted(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "[redacted]")
        return text


class _Noted(httpx.AsyncByteStream, httpx2.AsyncByteStream):
    """A response's bytes, noted as they pass. No generator: there is nothing a forgotten one would leave open."""

    def __init__(self, stream: Any, pieces: list[bytes] | deque[bytes]) -> None:
        self._stream = stream
        self._next: Callable[[], Awaitable[bytes]] | None = None
        self._note = pieces.append

    def __aiter__(self) -> _Noted:
        self._next = aiter(self._stream).__anext__
        return self

    async def __anext__(self) -> bytes:
        assert self._next is not None
        piece = await self._next()
        self._note(piece)
        return piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def observed(client: AnyClient) -> AnyClient:
    """The client, after its calls have begun to be noted.

    Give it to the provider of a model you make yourself, to have request bodies and raw responses there and
    keys out of error texts::

        AnthropicProvider(http_client=observed(httpx2.AsyncClient()))

    Args:
        client: an httpx or httpx2 client; it stays yours to close.

    Returns:
        The same client.
    """
    hooks = client.event_hooks
    if _note_request not in hooks["request"]:
        client.event_hooks = {
            "request": [*hooks["request"], _note_request],
            "response": [*hooks["response"], _note_response],
        }
    return client


def make_client(*, timeout: float = READ_TIMEOUT) -> httpx2.AsyncClient:
    """An observed client with our limits.

    Args:
        timeout: seconds of silence from the server until a call fails.
    """
    limits = httpx2.Timeout(timeout, connect=min(CONNECT_TIMEOUT, timeout))
    return observed(httpx2.AsyncClient(timeout=limits, limits=LIMITS, verify=_ssl_context()))


async def _note_request(request: Any) -> None:
    exchange = _under_way.get()
    if exchange is not None:
        exchange.note_request(request)


async def _note_response(response: Any) -> None:
    exchange = _under_way.get()
    if exchange is not None:
        exchange.note_response(response)


def key_of(model: Any) -> str | None:
    """The key of a pydantic-ai model whose HTTP client nobody observes, where its SDK's client shows it."""
    client = getattr(getattr(model, "provider", None), "client", None)
    for holder in (client, getattr(client, "_api_client", None)):  # Google's has it further in
        key = getattr(holder, "api_key", None)
        if isinstance(key, str) and len(key) >= SHORTEST_SECRET:
            return key
    return None


def _secrets(request: httpx.Request | httpx2.Request) -> tuple[str, ...]:
    values = [value for name, value in request.headers.items() if SECRET.search(name)]
    values += [value.partition(" ")[2] for value in values]
    values += [request.url.password or "", *(v for k, v in request.url.params.items() if SECRET.search(k))]
    return tuple(sorted({value for value in values if len(value) >= SHORTEST_SECRET}, key=len, reverse=True))


@cache
def _ssl_context() -> SSLContext:
    return httpx2.create_ssl_context()  # takes some 20 ms, too long for each client
