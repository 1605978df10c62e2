"""A real HTTP server on loopback that answers as scripted: whole, in pieces, late, cut off, reset.

Each request takes the next script, a list of actions: bytes are sent, a number is a pause in seconds, and
:data:`RESET`, :data:`HANG` and :data:`KEEP` do what they say. After its script the connection is closed.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self, TypeAlias

RESET: Final = "reset"
"""Break the connection off with a TCP reset."""
HANG: Final = "hang"
"""Send nothing more and wait for the client to hang up."""
KEEP: Final = "keep"
"""Take another request on the same connection."""

Action: TypeAlias = bytes | float | str


class Received(NamedTuple):
    """A request that came in."""

    path: str
    headers: dict[str, str]
    body: Any


class FaultServer:
    """The server, as an async context manager.

    Args:
        *scripts: one for each request; a request beyond them is closed unanswered.

    Attributes:
        requests: what came in.
        asked: set once a request came in.
        connections: how many connections were opened.
        hung_up: set when a client closes its connection while a script hangs.
    """

    def __init__(self, *scripts: Sequence[Action]) -> None:
        self.requests: list[Received] = []
        self.asked = asyncio.Event()
        self.connections = 0
        self.hung_up = asyncio.Event()
        self._scripts = list(scripts)
        self._server: asyncio.Server | None = None

    @property
    def base_url(self) -> str:
        """Where it listens."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        self.requests.append(await _receive(reader))
        self.asked.set()
        script = self._scripts.pop(0) if self._scripts else ()
        for action in script:
            if isinstance(action, bytes):
                writer.write(action)
                await writer.drain()
            elif isinstance(action, str):
                return await self._end(action, reader, writer)
            else:
                await asyncio.sleep(action)
        return False

    async def _end(self, action: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if action == RESET:
            connection: socket.socket = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        if action == HANG:
            await reader.read()
            self.hung_up.set()
        return action == KEEP


async def _receive(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(request.split(" ")[1], headers, json.loads(body))


def head(status: int = 200, content_type: str = "text/event-stream", **headers: str) -> bytes:
    """A response's head; underscores in header names stand for dashes."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {content_type}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def whole(body: bytes, status: int = 200, content_type: str = "text/event-stream", **headers: str) -> bytes:
    """A complete response."""
    return head(status, content_type, content_length=str(len(body)), **headers) + body


def chunked(*pieces: bytes) -> bytes:
    """A complete event stream in which each piece reaches the client as a read of its own."""
    framed = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))
    return head(transfer_encoding="chunked") + framed


def sse(*events: Any) -> bytes:
    """Server-sent events: a string as it is, anything else as JSON."""
    texts = [event if isinstance(event, str) else json.dumps(event, ensure_ascii=False) for event in events]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """One event of a streamed completion."""
    choice = {"index": 0, "delta": fields, "finish_reason": finish_reason}
    return {"id": "c1", "model": "m-1", "created": 1_700_000_000, "choices": [choice]}


def usage(prompt: int = 3, completion: int = 2) -> dict[str, Any]:
    """The event with the usage, which has no choices."""
    tokens = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    return {"id": "c1", "choices": [], "usage": tokens}


def answer(*texts: str) -> bytes:
    """The events of a plain text answer, complete."""
    return sse(*(delta(content=text) for text in texts), delta("stop"), usage(), "[DONE]")
