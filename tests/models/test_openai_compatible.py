"""OpenAICompatible against a real server that misbehaves as scripted."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from email.utils import formatdate
from typing import Any

import httpx
import pytest
from fault_server import (
    HANG,
    KEEP,
    RESET,
    Action,
    FaultServer,
    answer,
    chunked,
    delta,
    head,
    sse,
    usage,
    whole,
)

from interlock.core.chunks import (
    Chunk,
    Finish,
    ReasoningDelta,
    ResponseMetadata,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    Usage,
)
from interlock.core.errors import ModelError, UsageError
from interlock.core.model import LanguageModel, ModelRequest, PromptMessage, PromptText
from interlock.models import http
from interlock.models.openai_compatible import OpenAICompatible

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret-0123456789"
HELLO = whole(answer("Hel", "lo"))


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "FIRST_WAIT", 0.01)


def ask(text: str = "Hi", **settings: Any) -> ModelRequest:
    """A request with one user message."""
    message = PromptMessage(role="user", content=(PromptText(text=text),))
    return ModelRequest(prompt=(message,), settings=settings)


def model(server: FaultServer, **options: Any) -> OpenAICompatible:
    """The model behind that server."""
    return OpenAICompatible("m", base_url=server.base_url, **options)


async def collect(model: LanguageModel, request: ModelRequest | None = None) -> list[Chunk]:
    """All chunks of one call."""
    async with aclosing(model.stream(request or ask())) as chunks:
        return [chunk async for chunk in chunks]


async def failure(
    *scripts: Sequence[Action], request: ModelRequest | None = None, **options: Any
) -> ModelError:
    """The error that a call against these scripts raises."""
    async with FaultServer(*scripts) as server:
        with pytest.raises(ModelError) as caught:
            await collect(model(server, **options), request)
    return caught.value


def text_of(chunks: list[Chunk]) -> str:
    """The text in the chunks."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


# ---------------------------------------------------------------------------------------------- the usual way


async def test_plain_answer() -> None:
    """An answer comes as step start, metadata, one text block and a finish with the usage that follows it."""
    async with FaultServer([HELLO]) as server:
        chunks = await collect(model(server, api_key=KEY, headers={"X-Title": "t"}), ask(top_k=3))
    start, metadata, *rest = chunks
    assert isinstance(start, StepStart)
    assert start.request == server.requests[0].body
    assert start.warnings == [{"type": "unsupported-setting", "setting": "top_k"}]
    assert isinstance(metadata, ResponseMetadata)
    assert (metadata.id, metadata.model_id, metadata.timestamp.timestamp()) == ("c1", "m-1", 1_700_000_000)
    assert metadata.headers is not None
    assert metadata.headers["content-type"] == "text/event-stream"
    tokens = Usage(input_tokens=3, output_tokens=2, total_tokens=5, reasoning_tokens=1, cached_input_tokens=1)
    assert rest == [
        TextStart(id="text-0"),
        TextDelta(text="Hel", id="text-0"),
        TextDelta(text="lo", id="text-0"),
        TextEnd(id="text-0"),
        Finish(finish_reason="stop", usage=tokens),
    ]
    sent = server.requests[0]
    assert sent.path == "/v1/chat/completions"
    assert (sent.headers["authorization"], sent.headers["x-title"]) == (f"Bearer {KEY}", "t")


async def test_is_a_language_model() -> None:
    """It fits the protocol, and shows its names but not its key."""
    made = OpenAICompatible(
        "m", base_url="https://u:pw-0123456@api.test/v1?k=1", api_key=KEY, provider="acme"
    )
    assert isinstance(made, LanguageModel)
    assert (made.provider, made.model_id) == ("acme", "m")
    assert repr(made) == "OpenAICompatible('m' at https://api.test/v1/chat/completions)"


async def test_connection_is_used_again() -> None:
    """A second call goes through the connection of the first."""
    async with FaultServer([HELLO, KEEP], [HELLO]) as server:
        made = model(server)
        assert text_of(await collect(made)) == text_of(await collect(made)) == "Hello"
        assert server.connections == 1
        await made.aclose()


async def test_several_event_loops() -> None:
    """One model works from several event loops, one after the other and at once, and leaks no connection."""
    async with FaultServer(*[[HELLO, KEEP]] * 4) as server:
        made = model(server)

        def in_own_loop() -> str:
            return text_of(asyncio.run(collect(made)))

        assert await asyncio.to_thread(in_own_loop) == "Hello"
        both = await asyncio.gather(asyncio.to_thread(in_own_loop), asyncio.to_thread(in_own_loop))
        assert [*both, text_of(await collect(made))] == ["Hello"] * 3
        await made.aclose()


async def test_given_client_is_used_and_left_open() -> None:
    """A client handed in carries the calls and stays open."""
    async with FaultServer([HELLO]) as server, httpx.AsyncClient(headers={"X-Mine": "1"}) as client:
        made = model(server, client=client)
        assert text_of(await collect(made)) == "Hello"
        await made.aclose()
        assert not client.is_closed
        assert server.requests[0].headers["x-mine"] == "1"


async def test_done_mark_ends_the_answer() -> None:
    """After [DONE] a server that keeps the connection open does not hold the answer up."""
    async with FaultServer([head(), answer("Hello"), HANG]) as server, asyncio.timeout(1):
        assert text_of(await collect(model(server))) == "Hello"


# ------------------------------------------------------------------------------------------------- boundaries

SMALL = sse(
    delta(role="assistant", content=""),
    delta(reasoning_content="hm"),
    delta(content="é🙂"),
    delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"q": "ü"}'}}]),
    delta("tool_calls"),
    "[DONE]",
).replace(b'"created": 1700000000, ', b"")


def without_headers(chunks: list[Chunk]) -> list[Chunk]:
    """The chunks without what depends on how the answer was framed."""
    return [chunk.replace(headers=None) if isinstance(chunk, ResponseMetadata) else chunk for chunk in chunks]


async def test_every_read_boundary() -> None:
    """Wherever a read ends, inside a UTF-8 sequence too, the chunks are the same."""
    cuts = range(1, len(SMALL))
    scripts: list[list[Action]] = [[chunked(SMALL[:cut], SMALL[cut:]), KEEP] for cut in cuts]
    async with FaultServer([whole(SMALL), KEEP], *scripts) as server:
        made = model(server)
        expected = without_headers(await collect(made))
        for cut in cuts:
            assert without_headers(await collect(made)) == expected, cut
        await made.aclose()
    assert text_of(expected) == "é🙂"
    assert ToolCall(tool_call_id="a", tool_name="f", args={"q": "ü"}) in expected


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
async def test_single_bytes(newline: bytes) -> None:
    """A stream that arrives byte by byte, with any line ends and comments in it, gives the same chunks."""
    body = (b": ping\n\n" + SMALL).replace(b"\n", newline)
    async with FaultServer([whole(SMALL)], [chunked(*(body[i : i + 1] for i in range(len(body))))]) as server:
        made = model(server)
        expected = without_headers(await collect(made))
        assert without_headers(await collect(made)) == expected


async def test_events_in_separate_packets() -> None:
    """Chunks come out as their event arrives, not when the answer is complete."""
    async with (
        FaultServer([head(), sse(delta(content="a")), HANG]) as server,
        aclosing(model(server).stream(ask())) as chunks,
        asyncio.timeout(1),
    ):
        await until_text(chunks)


# ------------------------------------------------------------------------------------------------- tool calls


async def test_two_interleaved_tool_calls() -> None:
    """Arguments of two calls that arrive in turns are put together call by call."""

    def piece(index: int, text: str, **more: Any) -> dict[str, Any]:
        return {"index": index, "function": {"arguments": text, **more.pop("function", {})}, **more}

    body = sse(
        delta(tool_calls=[piece(0, "", id="a", function={"name": "f"})]),
        delta(tool_calls=[piece(1, '{"y"', id="b", function={"name": "g"})]),
        delta(tool_calls=[piece(0, '{"x"'), piece(1, ": 2}")]),
        delta(tool_calls=[piece(0, ": 1}")]),
        delta("tool_calls"),
        usage(),
        "[DONE]",
    )
    async with FaultServer([whole(body)]) as server:
        chunks = await collect(model(server))
    assert [chunk for chunk in chunks if isinstance(chunk, ToolCall)] == [
        ToolCall(tool_call_id="a", tool_name="f", args={"x": 1}),
        ToolCall(tool_call_id="b", tool_name="g", args={"y": 2}),
    ]
    assert isinstance(chunks[-1], Finish)
    assert chunks[-1].finish_reason == "tool-calls"


# ----------------------------------------------------------------------------------------------------- errors

ERRORS: list[Any] = [
    (
        401,
        '{"error": {"message": "bad key", "code": "invalid_api_key"}}',
        "bad key",
        "invalid_api_key",
        False,
    ),
    (400, '{"error": {"message": "long", "type": "too_long", "code": 400}}', "long", "too_long", False),
    (404, '{"detail": "no such model"}', "no such model", None, False),
    (422, '{"detail": [{"loc": ["n"]}]}', '[{"loc":["n"]}]', None, False),
    (408, '{"error": "slow"}', "slow", None, True),
    (409, '{"message": "busy", "code": 7}', "busy", "7", True),
    (429, '[{"error": {"message": "quota", "status": "EXHAUSTED"}}]', "quota", "EXHAUSTED", True),
    (500, "oops", "oops", None, True),
    (503, "<html><body>Down</body></html>", "<html><body>Down", None, True),
    (529, "", "an empty body", None, True),
    (302, "", "302", None, False),
]


@pytest.mark.parametrize(("status", "body", "said", "code", "retryable"), ERRORS)
async def test_statuses(status: int, body: str, said: str, code: str | None, retryable: bool) -> None:
    """An answer that is no success becomes an error with its status, code, body and what was said."""
    problem = await failure([whole(body.encode(), status, "application/json")])
    assert (problem.status, problem.code, problem.retryable, problem.body) == (status, code, retryable, body)
    assert said in str(problem)
    assert "127.0.0.1" in str(problem)


UNREADABLE: list[Any] = [
    (
        whole(b"<html>Sign in</html>", content_type="text/html"),
        "text/html instead of an event stream: <html>",
        False,
    ),
    (whole(b"", content_type="text/html"), "an empty body", True),
    (whole(b'{"error": "no"}', content_type="application/json"), "with an error: no", False),
    (
        whole(b'{"x": 1}', content_type="application/json"),
        'json instead of an event stream: {"x"',
        False,
    ),
    (whole(b""), "no event came at all", True),
    (whole(sse("{nonsense")), "{nonsense", False),
    (whole(sse('{"choices": 5}')), "cannot be read", False),
    (whole(sse(delta(content="Hel"))), "cut off, without a finish reason", True),
    (whole(sse(delta(content="Hel"), {"error": {"message": "died", "code": 502}})), "died", True),
    (whole(sse({"error": {"message": "bad", "type": "invalid_request_error"}})), "bad", False),
    (whole(sse({"error": {"message": "full", "type": "overloaded_error"}})), "full", True),
    (whole(sse({"object": "error", "message": "old vLLM", "code": 400})), "old vLLM", False),
    (whole(b"event: error\ndata: just text\n\n"), "just text", False),
    (head(content_length="999") + sse(delta(content="Hel")), "broke off", True),
    (head(transfer_encoding="chunked") + b"5\r\nda", "broke off", True),
    (b"not HTTP at all\r\n\r\n", "broke off", True),
]


@pytest.mark.parametrize(("response", "said", "retryable"), UNREADABLE)
async def test_unreadable_answers(response: bytes, said: str, retryable: bool) -> None:
    """What is no complete event stream becomes an error that says what came."""
    problem = await failure([response])
    assert said in str(problem)
    assert problem.retryable is retryable


async def test_broken_off_after_the_finish_reason() -> None:
    """An answer whose finish reason came is complete, even if the connection then breaks."""
    events = sse(delta(content="Hello"), delta("stop"))
    async with FaultServer([head(content_length="9999") + events]) as server:
        chunks = await collect(model(server))
    assert text_of(chunks) == "Hello"
    assert chunks[-1] == Finish(finish_reason="stop", usage=Usage())


async def test_connection_faults() -> None:
    """No server, a reset and an unanswered request are errors after which a retry makes sense."""
    async with FaultServer() as server:
        unanswered, gone = model(server), server.base_url
        with pytest.raises(ModelError, match="Server disconnected without sending a response") as first:
            await collect(unanswered)
    with pytest.raises(ModelError, match=r"cannot connect to http://127\.0\.0\.1") as second:
        await collect(OpenAICompatible("m", base_url=gone))
    third = await failure([head() + sse(delta(content="a")), 0.05, RESET])
    assert [problem.value.retryable for problem in (first, second)] == [True, True]
    assert third.retryable


async def test_silence() -> None:
    """A server silent for longer than the timeout, before or inside its answer, is an error worth a retry."""
    scripts: list[list[Action]] = [[HANG], [head(), sse(delta(content="a")), HANG]]
    for script in scripts:
        problem = await failure(script, timeout=0.05)
        assert "silent for too long" in str(problem)
        assert problem.retryable


async def test_no_secret_in_errors() -> None:
    """Key, headers and password are in no error, even if the provider repeats them."""
    echo = f"Incorrect key {KEY}, X-Auth token-abcdefgh".encode()
    for response in (whole(echo, 401), whole(echo, 200, "text/plain"), whole(sse({"error": echo.decode()}))):
        problem = await failure([response], api_key=KEY, headers={"X-Auth": "Custom token-abcdefgh"})
        shown = "".join(traceback.format_exception(problem)) + repr(problem) + str(problem.__dict__)
        assert KEY not in shown
        assert "token-abcdefgh" not in shown
        assert "Incorrect key [redacted]" in str(problem)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "api.test/v1"}, "base_url"),
        ({"base_url": "ftp://api.test"}, "base_url"),
        ({"base_url": "http://[bad]"}, "base_url"),
        ({"base_url": "https://api.test", "api_key": f"{KEY}\n{KEY}"}, "api_key"),
        ({"base_url": "https://api.test", "headers": {"X-Key": f"ü{KEY}"}}, "X-Key"),
    ],
)
async def test_bad_configuration(options: dict[str, Any], said: str) -> None:
    """An address or key that cannot work is refused at once, without showing the key."""
    with pytest.raises(UsageError, match=said) as caught:
        OpenAICompatible("m", **options)
    assert KEY not in str(caught.value)


async def test_key_is_stripped() -> None:
    """A newline after the key, as files have it, does no harm."""
    async with FaultServer([HELLO]) as server:
        await collect(model(server, api_key=f"{KEY}\n"))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


# ---------------------------------------------------------------------------------------------------- retries

BUSY = whole(b"busy", 503)


@pytest.mark.parametrize(
    "first",
    [[BUSY], [], [RESET], [whole(b"")], [whole(sse({"error": {"message": "x", "code": 503}}))]],
    ids=["status", "unanswered", "reset", "empty", "error event"],
)
async def test_retries_before_the_first_chunk(first: list[Action]) -> None:
    """A transient fault before the first chunk is retried, as often as max_retries says."""
    async with FaultServer(first, first, [HELLO]) as server:
        assert text_of(await collect(model(server), ask(max_retries=2))) == "Hello"
    assert len(server.requests) == 3


async def test_no_retry_by_default_nor_beyond_the_number() -> None:
    """Without max_retries there is one try; with it, the last failure is raised."""
    for retries in (0, 1):
        async with FaultServer([BUSY], [BUSY], [HELLO]) as server:
            with pytest.raises(ModelError, match="busy"):
                await collect(model(server), ask(max_retries=retries))
        assert len(server.requests) == retries + 1


@pytest.mark.parametrize(
    "response", [whole(b"no", 400), whole(sse(delta(content="Hel")))], ids=["refused", "after a chunk"]
)
async def test_no_retry_where_it_makes_no_sense(response: bytes) -> None:
    """A refusal is not retried, nor is a stream that broke after its first chunk."""
    async with FaultServer([response], [HELLO]) as server:
        with pytest.raises(ModelError):
            await collect(model(server), ask(max_retries=2))
    assert len(server.requests) == 1


@pytest.mark.parametrize("headers", [{"retry_after_ms": "200"}, {"retry_after": "0.2"}])
async def test_retry_after_is_honoured(headers: dict[str, str]) -> None:
    """The retry comes no sooner than the provider asks."""
    async with FaultServer([whole(b"", 429, **headers)], [HELLO]) as server:
        began = time.monotonic()
        await collect(model(server), ask(max_retries=1))
    assert 0.2 <= time.monotonic() - began < 1


@pytest.mark.parametrize("as_date", [False, True])
async def test_long_retry_after_is_not_waited_for(as_date: bool) -> None:
    """A provider that asks to wait for minutes fails the call, with the seconds on the error."""
    value = formatdate(time.time() + 120, usegmt=True) if as_date else "120"
    problem = await failure([whole(b"", 429, retry_after=value)], request=ask(max_retries=3))
    assert problem.retry_after == pytest.approx(120, abs=10)


# ----------------------------------------------------------------------------------------------- cancellation


async def until_text(chunks: AsyncGenerator[Chunk, None]) -> None:
    """Read up to the first text."""
    async for chunk in chunks:
        if isinstance(chunk, TextDelta):
            return


async def test_closing_hangs_up() -> None:
    """Closing the generator closes the connection at once."""
    async with FaultServer([head(), sse(delta(content="a")), HANG]) as server:
        chunks = model(server).stream(ask())
        await until_text(chunks)
        await chunks.aclose()
        async with asyncio.timeout(0.5):
            await server.hung_up.wait()


@pytest.mark.parametrize(
    "sent", [[], [head()], [head(), sse(delta(content="a"))]], ids=["head", "first event", "next event"]
)
async def test_cancelling_hangs_up(sent: list[Action]) -> None:
    """Cancelling a task that waits for the head, first or next event closes the connection at once."""
    async with FaultServer([*sent, HANG]) as server:
        call = asyncio.create_task(collect(model(server)))
        async with asyncio.timeout(1):
            await server.asked.wait()
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(0.5):
            await server.hung_up.wait()


async def test_cancelling_a_retry_wait() -> None:
    """A call that waits for its next try is cancelled at once."""
    async with FaultServer([whole(b"", 429, retry_after="30")]) as server:
        call = asyncio.create_task(collect(model(server), ask(max_retries=1)))
        await asyncio.sleep(0.1)
        call.cancel()
        async with asyncio.timeout(0.5):
            with pytest.raises(asyncio.CancelledError):
                await call


async def test_calls_do_not_mix() -> None:
    """Answers to calls made at once, in turns on the wire, reach their own caller."""
    texts = [f"answer {n}" for n in range(20)]
    scripts: list[list[Action]] = [[head(), 0.01, answer(text[:3], text[3:])] for text in texts]
    async with FaultServer(*scripts) as server:
        made = model(server)
        answers = await asyncio.gather(*(collect(made) for _ in texts))
    assert sorted(text_of(chunks) for chunks in answers) == sorted(texts)
    assert not any(isinstance(chunk, ReasoningDelta) for chunks in answers for chunk in chunks)
