"""guard_sse in a proxy: a real upstream, a real endpoint that pipes through it, OpenAI's own SDK as the client."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from openai import APIConnectionError, APIError, AsyncOpenAI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from completion_events import DONE, FRAME, ROLE, call, choice, event, stop, text
from interlock import guard_sse, guard_text
from interlock.processors import RegexFilter, Unit, UnitGuard, Verdict
from interlock.testing import random_cuts
from models.fault_server import HANG, RESET, Action, FaultServer, chunked, head, whole

pytestmark = pytest.mark.anyio
PIN = RegexFilter({"pin": r"\d{4}"}, id="pin")
ASKED: Any = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
TOKENS = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def proxy(upstream: str, guards: Sequence[Any]) -> Starlette:
    """An endpoint as an application would write it: the upstream's bytes through guards, as they come."""

    async def completions(request: Request) -> StreamingResponse:
        body = await request.body()

        async def answer() -> AsyncIterator[bytes]:
            async with (
                httpx.AsyncClient(timeout=9) as client,
                client.stream("POST", f"{upstream}/chat/completions", content=body) as response,
                aclosing(guard_sse(response.aiter_bytes(), guards)) as pieces,
            ):
                async for piece in pieces:
                    yield piece

        return StreamingResponse(answer(), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/chat/completions", completions, methods=["POST"])])


@asynccontextmanager
async def client_of(upstream: FaultServer, *guards: Any) -> AsyncGenerator[AsyncOpenAI]:
    """The SDK, behind the proxy, behind which the upstream is."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = proxy(upstream.base_url, guards)
    config = uvicorn.Config(app, lifespan="off", ws="none", log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    try:
        async with AsyncOpenAI(base_url=address, api_key="key-of-the-test", max_retries=0) as client:
            yield client
    finally:
        server.should_exit = True
        await serving


class Judge(UnitGuard):
    """A judge that has to wait; thinks no digit should be thought."""

    async def judge(self, unit: Unit, ctx: Any) -> Verdict:
        await asyncio.sleep(0)
        return Verdict.replace("hm. ") if any(each.isdigit() for each in unit.text) else Verdict.allow()


SAID = ["Zoë's pin: 12", "34, 😀 ", "and 567", "8."]
THOUGHT = ["The pin is 1", "234. ", "Fine. "]
ARGS = [json.dumps({"note": "pin 4321", "n": 7}), json.dumps({"list": ["8765", "é"]})]
ANSWER = b"".join(
    [
        b": PROCESSING\n\n",
        ROLE,
        *(event(choice({"reasoning_content": piece})) for piece in THOUGHT),
        *map(text, SAID),
        *(call("", number, id=f"c{number}", type="function", name="save") for number in range(2)),
        *(call(piece, number) for number in range(2) for piece in (ARGS[number][:9], ARGS[number][9:])),
        stop(reason="tool_calls"),
        event(usage=TOKENS),
        DONE,
    ]
)


@pytest.mark.parametrize("seed", range(4))
async def test_the_sdk_reads_what_the_guards_make_of_an_answer(seed: int) -> None:
    """However the network cuts it: text and thought as of the whole, calls complete before the finish reason, usage,
    ids and order as they were. R0.2, R4.6.
    """
    (pieces,) = random_cuts(ANSWER.decode("latin-1"), seed=seed, empty_chunks=False)
    script = [chunked(*(piece.encode("latin-1") for piece in pieces))]
    judge = Judge(id="judge", strategy="redact", channels=["reasoning"])
    async with FaultServer(script) as upstream, client_of(upstream, PIN, judge) as client:
        stream = await client.chat.completions.create(**ASKED, stream_options={"include_usage": True})
        got = [chunk async for chunk in stream]
    assert upstream.requests[0].body["messages"] == ASKED["messages"]
    assert all((chunk.id, chunk.model, chunk.created) == ("c-1", FRAME["model"], 1) for chunk in got)
    assert got[-1].usage is not None
    assert got[-1].usage.total_tokens == 5
    choices = [each for chunk in got for each in chunk.choices]
    said, thought = "", ""
    calls: dict[int, str] = {}
    for each in choices:
        assert not calls or not each.delta.content
        said += each.delta.content or ""
        thought += getattr(each.delta, "reasoning_content", None) or ""
        for part in each.delta.tool_calls or []:
            assert part.function is not None
            calls[part.index] = calls.get(part.index, "") + (part.function.arguments or "")
    assert said == (await guard_text("".join(SAID), [PIN])).text == "Zoë's pin: [PIN], 😀 and [PIN]."
    assert thought == "The pin is [PIN]. Fine. "
    assert [json.loads(calls[number]) for number in range(2)] == [
        {"note": "pin [PIN]", "n": 7},
        {"list": ["[PIN]", "é"]},
    ]
    assert [each.finish_reason for each in choices][-1] == "tool_calls"


async def test_the_sdks_own_accumulation_takes_it() -> None:
    """Its stream helper builds the whole message of the events, and parses the calls' arguments. R4.6."""
    async with FaultServer([whole(ANSWER)]) as upstream, client_of(upstream, PIN) as client:
        asked = {name: value for name, value in ASKED.items() if name != "stream"}
        async with client.chat.completions.stream(**asked) as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_completion()
    (only,) = final.choices
    assert only.message.content == "Zoë's pin: [PIN], 😀 and [PIN]."
    assert only.message.tool_calls is not None
    assert [each.id for each in only.message.tool_calls] == ["c0", "c1"]
    assert json.loads(only.message.tool_calls[0].function.arguments) == {"note": "pin [PIN]", "n": 7}
    assert only.finish_reason == "tool_calls"
    raw = final.model_dump_json()
    assert not any(pin in raw for pin in ("1234", "5678", "4321", "8765"))


async def test_a_compressed_answer() -> None:
    """What is decoded on the way is guarded; the client gets it plain."""
    answer = whole(gzip.compress(ANSWER), content_encoding="gzip")
    async with FaultServer([answer]) as upstream, client_of(upstream, PIN) as client:
        stream = await client.chat.completions.create(**ASKED)
        got = [each async for chunk in stream for each in chunk.choices]
    assert "".join(each.delta.content or "" for each in got) == "Zoë's pin: [PIN], 😀 and [PIN]."


async def test_text_leaves_while_the_upstream_is_still_at_it_and_leaving_closes_it() -> None:
    """What is decided is with the client before the next is there; when the client goes, the upstream's connection is
    closed, and what is held is sent to nobody. R5.5.
    """
    script: list[Action] = [head(), ROLE, text("part one 12"), HANG]
    async with FaultServer(script) as upstream, client_of(upstream, PIN) as client:
        stream = await client.chat.completions.create(**ASKED)
        said = ""
        async for chunk in stream:
            said += chunk.choices[0].delta.content or ""
            if said:
                break
        assert said == "part one "
        assert not upstream.hung_up.is_set()
        await stream.close()
        await asyncio.wait_for(upstream.hung_up.wait(), 9)


async def test_a_block_is_an_error_of_the_sdk() -> None:
    """It says who blocked and why, nothing of the span has left, and the upstream is closed although it had not ended.
    The next request is answered. R5.1, R5.2.
    """
    guard = RegexFilter({"pin": r"\d{4}"}, id="no-pins", strategy="block")
    first: list[Action] = [head(), ROLE, text("my pin is 12"), text("34 ok"), HANG]
    async with (
        FaultServer(first, [whole(text("ok") + stop() + DONE)]) as upstream,
        client_of(upstream, guard) as client,
    ):
        said: list[str] = []

        async def read() -> None:
            async for chunk in await client.chat.completions.create(**ASKED):
                said.append(chunk.choices[0].delta.content or "")

        with pytest.raises(APIError) as caught:
            await read()
        assert (caught.value.code, caught.value.type) == ("no-pins", "tripwire")
        assert caught.value.message == "pin found in text"
        assert "".join(said) == "my pin is "
        await asyncio.wait_for(upstream.hung_up.wait(), 9)
        said.clear()
        await read()
        assert "".join(said) == "ok"


async def test_an_answer_that_breaks_off_is_no_whole_one() -> None:
    """The client's connection breaks too; what was held is not sent. R5.4."""
    script: list[Action] = [head(transfer_encoding="chunked"), _framed(text("so far 12")), 0.05, RESET]
    async with FaultServer(script) as upstream, client_of(upstream, PIN) as client:
        said: list[str] = []

        async def read() -> None:
            async for chunk in await client.chat.completions.create(**ASKED):
                said.append(chunk.choices[0].delta.content or "")

        with pytest.raises((APIConnectionError, APIError)):
            await read()
        assert "".join(said) == "so far "


def _framed(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)
