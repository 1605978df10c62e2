"""PydanticAIModel over real HTTP, in the wire formats of four providers."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import anyio
import httpx2
import pytest
from fault_server import HANG, RESET, Action, FaultServer, chunked, head, whole
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from wired import (
    HELLO,
    TOOLS,
    TURN,
    Shape,
    ask,
    chunks_of,
    collect,
    each_wire,
    failure,
    model_at,
    shape_of,
    text_of,
)
from wires import CACHED_TOKENS, INPUT_TOKENS, OUTPUT_TOKENS, REASONING_TOKENS

from interlock.core.chunks import (
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Usage,
)
from interlock.core.errors import ModelError, UsageError
from interlock.models import pydantic_ai
from interlock.models.pydantic_ai import PydanticAIModel, pydantic_ai_model

pytestmark = pytest.mark.anyio


# ------------------------------------------------------------------------------------------------ the usual way


@each_wire(own=True)
async def test_a_turn_gives_the_same_chunks_whoever_answers(wire: Any, own: bool) -> None:
    """Thinking, text and two tool calls: the chunks do not tell the providers apart."""
    chunks = await chunks_of(wire, whole(wire.body(TURN)), own=own, request=ask(tools=TOOLS))
    shape = shape_of(chunks)
    assert shape.chunks == (
        ReasoningStart(id="reasoning-0"),
        ReasoningDelta(text="Let me think…", id="reasoning-0"),
        ReasoningEnd(id="reasoning-0"),
        TextStart(id="text-1"),
        TextDelta(text="Héllo 🌍 wörld", id="text-1"),
        TextEnd(id="text-1"),
        ToolInputStart(tool_call_id="call_1", tool_name="weather"),
        ToolInputDelta(tool_call_id="call_1", args_text='{"city":"Zürich"}', tool_name="weather"),
        ToolInputStart(tool_call_id="call_2", tool_name="clock"),
        ToolInputDelta(tool_call_id="call_2", args_text="{}", tool_name="clock"),
        ToolInputEnd(tool_call_id="call_1"),
        ToolCall(tool_call_id="call_1", tool_name="weather", args={"city": "Zürich"}),
        ToolInputEnd(tool_call_id="call_2"),
        ToolCall(tool_call_id="call_2", tool_name="clock", args={}),
    )
    assert shape.finish.finish_reason == "tool-calls"
    # Anthropic does not say how many of the tokens were for thinking
    thoughts = 0 if wire.PROVIDER == "anthropic" else REASONING_TOKENS
    assert shape.finish.usage == Usage(
        input_tokens=INPUT_TOKENS,
        output_tokens=OUTPUT_TOKENS,
        total_tokens=INPUT_TOKENS + OUTPUT_TOKENS,
        reasoning_tokens=thoughts,
        cached_input_tokens=CACHED_TOKENS,
    )


@each_wire()
async def test_the_request_and_the_response_can_be_looked_at(wire: Any) -> None:
    """The body sent, the raw response, its headers, id and model are there, for process_llm_response."""
    sent = wire.body(HELLO)
    async with FaultServer([whole(sent, x_request_id="r1")]) as server, model_at(server, wire) as model:
        chunks = await collect(model, ask("Hello?", max_output_tokens=99))
    assert isinstance(chunks[0], StepStart)
    assert chunks[0].request == server.requests[0].body
    assert "Hello?" in str(chunks[0].request)
    assert "99" in str(chunks[0].request)
    first, last = (chunk for chunk in chunks if isinstance(chunk, ResponseMetadata))
    assert first.headers is not None
    assert first.headers["x-request-id"] == "r1"
    assert first.id
    assert first.model_id == wire.MODEL
    assert first.timestamp is not None
    assert last.raw == sent.decode()


@each_wire()
async def test_a_model_needs_no_agent_and_keeps_nothing(wire: Any) -> None:
    """Calls after one another on one model: each is its own."""
    answers = [[whole(wire.body(HELLO))] for _ in range(2)]
    async with FaultServer(*answers) as server, model_at(server, wire) as model:
        assert [text_of(await collect(model)) for _ in range(2)] == ["Hello", "Hello"]


async def test_a_model_without_a_server() -> None:
    """pydantic-ai's own doubles work too: no request, no headers, no hang-up."""
    chunks = await collect(PydanticAIModel(TestModel(custom_output_text="one two")))
    assert text_of(chunks) == "one two"
    assert shape_of(chunks).finish.finish_reason == "unknown"


# -------------------------------------------------------------------------------------------------- the network

FEW = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])


def read(wire: Any, own: bool, *pieces: bytes) -> Shape:
    """What is made of the answer when it comes in these pieces."""

    async def run() -> Shape:
        return shape_of(await chunks_of(wire, chunked(*pieces), own=own, request=ask(tools=TOOLS)))

    return anyio.run(run)


@each_wire(own=True)
@FEW
@given(places=st.lists(st.integers(0, 20_000), max_size=40))
def test_every_byte_boundary_may_be_a_read_boundary(wire: Any, own: bool, places: list[int]) -> None:
    """However the network cuts the answer, also inside a character, the chunks are the same."""
    body = wire.body(TURN)
    edges = sorted({0, len(body), *(place % len(body) for place in places)})
    pieces = [body[begin:end] for begin, end in pairwise(edges)]
    assert read(wire, own, *pieces) == read(wire, own, body)


@each_wire(own=True)
def test_an_answer_may_come_byte_by_byte(wire: Any, own: bool) -> None:
    """Every boundary at once."""
    body = wire.body(TURN)
    assert read(wire, own, *(body[i : i + 1] for i in range(len(body)))) == read(wire, own, body)


# ----------------------------------------------------------------------------------------------------- failures


@each_wire()
async def test_cancelling_hangs_up(wire: Any) -> None:
    """Cancelling a task that waits for the head or the next event closes the connection at once."""
    for sent in ([], [head(), wire.body(HELLO)[:-60]]):
        async with FaultServer([*sent, HANG]) as server, model_at(server, wire) as model:
            call = asyncio.create_task(collect(model))
            async with asyncio.timeout(2):
                await server.asked.wait()
            await asyncio.sleep(0.05)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            async with asyncio.timeout(0.5):
                await server.hung_up.wait()


@each_wire()
async def test_leaving_early_hangs_up(wire: Any) -> None:
    """Closing the generator in the middle of the answer closes the connection at once."""
    body = wire.body(HELLO)
    async with FaultServer([head(), body[:-60], HANG]) as server, model_at(server, wire) as model:
        async with aclosing(model.stream(ask())) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextDelta):
                    break
        async with asyncio.timeout(0.5):
            await server.hung_up.wait()


@each_wire()
async def test_an_answer_that_is_no_success(wire: Any) -> None:
    """The provider's words, its status and code, when to try again; never the key (spec R0.3)."""
    refused = wire.error(401, f"incorrect key {wire.KEY}")
    error = await failure(wire, [whole(refused, 401, "application/json")])
    assert (error.status, error.retryable) == (401, False)
    assert error.code
    assert "incorrect key [redacted]" in str(error)
    assert wire.KEY not in repr((str(error), error.body, error.args, error.__context__, error.__cause__))
    busy = await failure(
        wire, [whole(wire.error(429, "slow down"), 429, "application/json", retry_after="7")]
    )
    assert (busy.status, busy.retryable, busy.retry_after) == (429, True, 7.0)
    assert "slow down" in str(busy)
    bad = await failure(wire, [whole(wire.error(400, "too long"), 400, "application/json")])
    assert (bad.status, bad.retryable) == (400, False)


@each_wire()
async def test_a_client_nobody_observes(wire: Any) -> None:
    """A model with an HTTP client that was not handed to ``observed``: its key is in no error all the same."""
    refused = whole(wire.error(401, f"incorrect key {wire.KEY}"), 401, "application/json")
    async with FaultServer([refused]) as server, httpx2.AsyncClient(timeout=9) as client:
        with pytest.raises(ModelError, match="incorrect key") as caught:
            await collect(PydanticAIModel(wire.model(server.base_url, client)))
    assert wire.KEY not in repr((str(caught.value), vars(caught.value), caught.value.args))


@each_wire()
@pytest.mark.parametrize("status", [200, 401])
async def test_no_log_has_the_key(wire: Any, status: int, caplog: pytest.LogCaptureFixture) -> None:
    """Not even with every logger on: neither ours, nor the SDK's, nor the HTTP client's (spec R0.3)."""
    caplog.set_level(logging.DEBUG)
    if status == 200:
        await chunks_of(wire, whole(wire.body(HELLO)))
    else:
        await failure(wire, [whole(wire.error(status), status, "application/json")])
    assert caplog.records
    assert wire.KEY not in caplog.text


@each_wire()
async def test_an_error_inside_the_stream(wire: Any) -> None:
    """It ends the answer, says so, and may be tried again if the provider is overloaded."""
    error = await failure(wire, [whole(wire.stream_error("come back later"))])
    assert "come back later" in str(error)
    assert error.retryable


CUT = 60


@each_wire()
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(lambda body: [head(), body[:-CUT]], id="closed"),
        pytest.param(lambda body: [head(content_length=str(len(body))), body[:-CUT]], id="too short"),
        pytest.param(lambda body: [head(content_length=str(len(body))), body[:-CUT], RESET], id="reset"),
    ],
)
async def test_a_stream_that_is_cut_off(wire: Any, script: Any) -> None:
    """An answer that ends before its end is no answer, also where pydantic-ai takes it for one."""
    half = wire.body(HELLO)
    half = half[: len(half) // 2] + b"x" * CUT
    error = await failure(wire, script(half))
    assert error.retryable
    assert "cut off" in str(error) or "broke off" in str(error)


@each_wire()
async def test_silence(wire: Any) -> None:
    """A server that stops sending is left after the time limit."""
    body = wire.body(HELLO)
    error = await failure(wire, [head(), body[: len(body) // 2], HANG], silence=0.2)
    assert error.retryable
    assert "silent" in str(error)


@each_wire()
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([whole(b"<html>gateway</html>", 200, "text/html")], ["text/html", "gateway"]),
        ([whole(b"<html>down</html>", 502, "text/html")], ["502", "down"]),
        ([whole(b"", 200)], ["empty body"]),
        ([], ["broke off"]),
    ],
    ids=["page", "error page", "nothing", "no answer"],
)
async def test_what_is_no_event_stream(wire: Any, answer: list[Action], words: list[str]) -> None:
    """A web page, nothing, a closed connection: the error says what came."""
    error = await failure(wire, answer)
    assert all(word in str(error) for word in words)


@each_wire()
async def test_the_sdk_tries_again_as_often_as_asked(wire: Any) -> None:
    """``max_retries`` is the provider's SDK's; without it there is one try."""
    busy = [whole(wire.error(503), 503, "application/json", retry_after_ms="1", retry_after="0")]
    async with FaultServer(busy, [whole(wire.body(HELLO))]) as server, model_at(server, wire) as model:
        assert text_of(await collect(model, ask(max_retries=1))) == "Hello"
    assert (await failure(wire, busy, [whole(wire.body(HELLO))])).status == 503


# ------------------------------------------------------------------------------------------------------- set-up


def test_only_a_pydantic_ai_model_will_do() -> None:
    """Anything else is refused at set-up, by its type's name: it may hold a key."""
    with pytest.raises(UsageError, match="not dict"):
        PydanticAIModel({"api_key": "sk-1"})  # type: ignore[arg-type]


def test_without_pydantic_ai_the_command_to_install_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing extra is an error at set-up that names the command."""
    monkeypatch.setattr(pydantic_ai, "find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType]
    with pytest.raises(UsageError, match=r"pip install 'interlock\[providers\]'"):
        pydantic_ai_model("anthropic/claude-sonnet-4-5")


def test_what_it_is_called() -> None:
    """Provider and model are pydantic-ai's names; the repr has nothing else."""
    model = PydanticAIModel(FunctionModel(lambda messages, info: None, model_name="f"))  # type: ignore[arg-type, return-value]
    assert (model.provider, model.model_id) == ("function", "f")
    assert repr(model) == "PydanticAIModel(function/f)"
