"""A server that says the same again and again: one streamed chat completion, for ``bench/providers.py``.

``python bench/sse_server.py`` prints its port and ends with its standard input. A request to ``/burst/v1/...`` gets
the whole answer at once, one HTTP chunk an event; one to ``/paced/v1/...`` gets fifty events a second.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

BURST = 2_000
"""Text chunks of an answer sent at once."""
PACED = 150
RATE = 50
"""Events a second of a paced answer."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def event(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    """One event as OpenAI sends it, framed as an HTTP chunk."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return framed(
        {
            "id": "chatcmpl-9y4cGx1Ih5HkVzJgUvX2mDqPbNQxA",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": "gpt-4o-mini-2024-07-18",
            "service_tier": "default",
            "system_fingerprint": "fp_0ba0d124f1",
            "choices": [choice],
            "usage": None,
            "obfuscation": "Wq3kPz",
        }
    )


def framed(data: Any) -> bytes:
    """A piece of data as an event in an HTTP chunk."""
    text = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    body = f"data: {text}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(body), body)


def answer(n: int) -> list[bytes]:
    """The events of an answer of n text chunks."""
    usage = {"prompt_tokens": 8, "completion_tokens": n, "total_tokens": n + 8}
    last = {"id": "chatcmpl-9y4cGx1Ih5HkVzJgUvX2mDqPbNQxA", "object": "chat.completion.chunk"}
    last |= {"created": 1_700_000_000, "model": "gpt-4o-mini-2024-07-18", "choices": [], "usage": usage}
    return [
        event({"role": "assistant", "content": "", "refusal": None}),
        *(event({"content": f" word{i}"}) for i in range(n)),
        event({}, "stop"),
        framed(last),
        framed("[DONE]"),
        b"0\r\n\r\n",
    ]


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests until the client goes."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(HEAD)
            if b" /burst/" in head.split(b"\r\n")[0]:
                writer.write(b"".join(answer(BURST)))
            else:
                await write_paced(writer)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def write_paced(writer: asyncio.StreamWriter) -> None:
    """An answer at its rate, whatever the time a write takes."""
    clock = asyncio.get_running_loop()
    began = clock.time()
    for number, data in enumerate(answer(PACED)):
        await asyncio.sleep(max(0.0, began + number / RATE - clock.time()))
        writer.write(data)


async def main() -> None:
    """Serve until standard input ends."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.buffer.read)
    os._exit(0)  # whoever is still connected is of no interest any more


if __name__ == "__main__":
    asyncio.run(main())
