"""OpenAICompatible against a real server that misbehaves as scripted."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import traceback
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from email.utils import formatdate
from itertools import pairwise
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
from hypothesis import given
from hypothesis import strategies as st

from interlock import Agent, Processor
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
from interlock.models import retrying
from interlock.models.openai_compatible import OpenAICompatible

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret-0123456789"
PASSWORD = "pw-very-secret"
QUERY = "query-very-secret"
HELLO = whole(answer("Hel", "lo"))


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "FIRST_WAIT", 0.01)


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
    assert [warning["setting"] for warning in start.warnings] == ["top_k"]
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


class Pieces(httpx.AsyncByteStream):
    """A body that arrives in these pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        for piece in self.pieces:
            yield piece


def read_in_pieces(pieces: list[bytes]) -> list[Chunk]:
    """The chunks of an answer that arrives in these pieces."""
    head = {"content-type": "text/event-stream"}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, headers=head, stream=Pieces(pieces)))

    async def run() -> list[Chunk]:
        async with httpx.AsyncClient(transport=transport) as client:
            return await collect(OpenAICompatible("m", base_url="http://a.test", client=client))

    return asyncio.run(run())


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=6),
    newline=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    cuts=st.sets(st.integers(min_value=1, max_value=2000)),
)
def test_any_read_boundaries(texts: list[str], newline: bytes, cuts: set[int]) -> None:
    """Whatever an answer says and wherever its reads end, the joined text is what was said."""
    body = answer(*texts).replace(b"\n", newline)
    places = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    chunks = read_in_pieces([body[a:b] for a, b in pairwise(places)])
    assert text_of(chunks) == "".join(texts)
    assert isinstance(chunks[-1], Finish)


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
    "script",
    [
        [whole(f"bad key {KEY}".encode(), 401, "application/json")],
        [whole(sse({"error": {"message": f"bad key {KEY}"}}))],
        [head() + sse(delta(content="Hel")), 0.02, RESET],
        [RESET],
        [HANG],
        [whole(answer("fine"))],
    ],
    ids=["refused", "error event", "reset", "unanswered", "silent", "answered"],
)
async def test_the_key_is_nowhere(script: list[Action], caplog: pytest.LogCaptureFixture) -> None:
    """Key, password and query of the address are in nothing a run gives: chunks, result, error with all it refers to,
    logs of every level and logger.
    """
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore", "interlock"):
        caplog.set_level(logging.DEBUG, logger=name)
    shown: list[str] = []
    async with FaultServer(script) as server:
        address = server.base_url.replace("//", f"//user:{PASSWORD}@") + f"?key={QUERY}"
        made = OpenAICompatible("m", base_url=address, api_key=KEY, timeout=0.1)
        agent = Agent(id="a", model=made)
        async with agent.stream("Hi", model_settings={"top_k": 1}) as stream:
            try:
                async for chunk in stream:
                    shown.append(repr(chunk))
                shown.append(repr(await stream.result()))
            except ModelError as problem:
                shown += [str(problem), "".join(traceback.format_exception(problem)), repr(vars(problem))]
                shown += [repr(vars(each)) for each in (problem.__cause__, problem.__context__) if each]
        shown += [repr(made), caplog.text, *(repr(vars(record)) for record in caplog.records)]
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert server.requests[0].path == f"/v1/chat/completions?key={QUERY}"
    for secret in (KEY, PASSWORD, QUERY):
        assert not any(secret in text for text in shown)


async def test_a_key_sent_back_in_a_header() -> None:
    """A response's headers, which processors see, are without the key too."""
    async with FaultServer([whole(answer("fine"), x_echo=KEY)]) as server:
        metadata = (await collect(model(server, api_key=KEY)))[1]
    assert isinstance(metadata, ResponseMetadata)
    assert metadata.headers is not None
    assert metadata.headers["x-echo"] == "[redacted]"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "api.test/v1"}, "base_url"),
        ({"base_url": "ftp://api.test"}, "base_url"),
        ({"base_url": "http://[bad]"}, "base_url"),
        ({"base_url": "https://api.test/v1/chat/completions/"}, "without '/chat/completions'"),
        ({"base_url": "https://api.test", "api_key": 5}, "api_key must be a string, not int"),
        ({"base_url": "https://api.test", "headers": {"X-Team": None}}, "X-Team must be a string"),
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


# ------------------------------------------------------------------------------------------------- time limits


SLOW: dict[str, list[Action]] = {
    "silent": [HANG],
    "silent in its answer": [head(), sse(delta(content="a")), HANG],
    "comments only": [head(), *[b": ping\n\n", 0.02] * 50],
    "a chunk now and then": [head(), *[sse(delta(content="a")), 0.02] * 50],
}


@pytest.mark.parametrize("script", SLOW)
async def test_a_call_has_a_total_limit(script: str) -> None:
    """A call that takes longer than it may altogether is an error worth a retry, whatever the server sends."""
    async with asyncio.timeout(2):
        for problem in (
            await failure(SLOW[script], request=ask(timeout=0.1)),
            await failure(SLOW[script], total_timeout=0.1),
            await failure([BUSY], SLOW[script], request=ask(timeout=0.15, max_retries=3)),
        ):
            assert re.search(r"took longer than the 0\.15? s", str(problem))
            assert problem.retryable


async def test_the_limit_is_for_waiting_not_for_the_reader() -> None:
    """A reader that takes its time with what is there already is not cut off, nor cancelled."""
    async with FaultServer([HELLO]) as server, aclosing(model(server).stream(ask(timeout=0.2))) as chunks:
        seen: list[Chunk] = []
        async for chunk in chunks:
            seen.append(chunk)
            if isinstance(chunk, TextStart):
                await asyncio.sleep(0.1)
    assert text_of(seen) == "Hello"


async def test_no_retry_that_would_come_too_late() -> None:
    """A retry that could only begin after the limit is not waited for."""
    problem = await failure([whole(b"", 429, retry_after="20")], request=ask(max_retries=1, timeout=5))
    assert problem.status == 429


# ----------------------------------------------------------------------------------------- for the processors


async def test_request_and_raw_response_reach_the_processors() -> None:
    """process_llm_response sees the body that was sent and the events as they came; nobody asks, nothing is kept."""
    seen: list[Any] = []

    class Log(Processor):
        id = "log"

        def process_llm_response(self, response: Any, ctx: Any) -> None:
            seen.append(response)

    async with FaultServer([HELLO], [HELLO]) as server:
        result = await Agent(id="a", model=model(server), input_processors=[Log()]).generate("Hi")
        plain = await collect(model(server))
    assert seen[0].request == server.requests[0].body == result.steps[0].request
    assert seen[0].raw_response.encode() == answer("Hel", "lo")
    assert result.steps[0].response["id"] == "c1"
    assert result.steps[0].response["headers"]["content-type"] == "text/event-stream"
    assert [chunk.raw for chunk in plain if isinstance(chunk, ResponseMetadata)] == [None]


async def test_an_unknown_setting_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A setting that is not sent is said in the log, once, and with each step's warnings."""
    async with FaultServer([HELLO], [HELLO]) as server:
        made = model(server)
        for _ in range(2):
            start = (await collect(made, ask(max_tokens=3)))[0]
            assert isinstance(start, StepStart)
            assert "write max_output_tokens" in start.warnings[0]["details"]
    assert [record.name for record in caplog.records if "max_tokens" in record.message] == ["interlock"]


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
@pytest.mark.parametrize("retries", [0, 2])
async def test_cancelling_hangs_up(sent: list[Action], retries: int) -> None:
    """Cancelling a task that waits for the head, first or next event closes the connection at once, and there is no
    other try.
    """
    async with FaultServer([*sent, HANG], [HELLO]) as server:
        call = asyncio.create_task(collect(model(server), ask(max_retries=retries)))
        async with asyncio.timeout(1):
            await server.asked.wait()
        await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(0.5):
            await server.hung_up.wait()
    assert len(server.requests) == 1


async def test_cancelling_the_second_try_hangs_up() -> None:
    """So does cancelling it while it waits for the answer to its second try."""
    async with FaultServer([BUSY], [HANG]) as server:
        call = asyncio.create_task(collect(model(server), ask(max_retries=1)))
        async with asyncio.timeout(2):
            while len(server.requests) < 2:  # noqa: ASYNC110  # it has one event, for the first
                await asyncio.sleep(0.01)
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
