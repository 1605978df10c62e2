"""Models that stand in for one another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from fault_server import HANG, RESET, Action, FaultServer, answer, delta, head, sse, whole
from wired import HELLO, each_wire, model_at

from interlock import Agent
from interlock.core.chunks import Chunk, ErrorChunk, StepStart, TextDelta
from interlock.core.errors import ModelError, UsageError
from interlock.core.model import LanguageModel, ModelRequest, PromptMessage, PromptText
from interlock.models.fallback import THE_REQUESTS_FAULT, FallbackModel
from interlock.models.openai_compatible import OpenAICompatible
from interlock.testing import ScriptedModel, error, text

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest(prompt=(PromptMessage(role="user", content=(PromptText(text="Hi"),)),))


def endpoint(server: FaultServer, name: str) -> OpenAICompatible:
    """A model behind that server."""
    return OpenAICompatible(name, base_url=server.base_url, provider="acme")


async def collect(model: LanguageModel) -> list[Chunk]:
    """All chunks of one call."""
    async with aclosing(model.stream(REQUEST)) as chunks:
        return [chunk async for chunk in chunks]


def text_of(chunks: Sequence[Chunk]) -> str:
    """The text in the chunks."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


FAILURES: dict[str, list[Action]] = {
    "overloaded": [whole(b"busy", 503)],
    "key refused": [whole(b"no such key", 401)],
    "no such model": [whole(b"gone", 404)],
    "reset": [RESET],
    "web page": [whole(b"<html>", content_type="text/html")],
    "empty": [whole(b"")],
    "broken off after its head": [head() + sse(delta(role="assistant")), 0.01, RESET],
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_next_model_answers(failure: str) -> None:
    """A failure that is not the request's fault is followed by the next model; the step's warnings tell."""
    async with FaultServer(FAILURES[failure], [whole(answer("Hello"))]) as server:
        model = FallbackModel([endpoint(server, "first"), endpoint(server, "second")])
        result = await Agent(id="a", model=model).generate("Hi")
    assert result.text == "Hello"
    assert [request.body["model"] for request in server.requests] == ["first", "second"]
    (warning,) = result.steps[0].warnings
    assert (warning["type"], warning["model"]) == ("model-failed", "acme/first")
    assert warning["details"]


@each_wire()
@pytest.mark.parametrize("status", [500, 401, 429, 404])
@pytest.mark.parametrize("own_first", [True, False], ids=["own first", "own second"])
async def test_one_of_pydantic_ais_among_them(wire: Any, status: int, own_first: bool) -> None:
    """Our own adapter and a pydantic-ai model follow one another, in either order; who failed is in the warnings,
    with the provider's words and without the key.
    """
    failed: list[Action] = [
        whole(wire.error(status, f"not now, {wire.KEY}"), status, "application/json", retry_after="0")
    ]
    said = b"not now" if own_first else answer("Hello")
    own_script = [whole(said, status if own_first else 200, "text/event-stream")]
    wire_script = [whole(wire.body(HELLO))] if own_first else failed
    async with (
        FaultServer(own_script) as own_server,
        FaultServer(wire_script) as wire_server,
        model_at(wire_server, wire) as foreign,
    ):
        own = endpoint(own_server, "own")
        result = await Agent(id="a", model=[own, foreign] if own_first else [foreign, own]).generate("Hi")
        await own.aclose()
    assert result.text == "Hello"
    assert (len(own_server.requests), len(wire_server.requests)) == (1, 1)
    (warning,) = result.steps[0].warnings
    assert warning["type"] == "model-failed"
    assert warning["model"] == ("acme/own" if own_first else f"{foreign.provider}/{wire.MODEL}")
    assert "not now" in warning["details"]
    assert str(status) in warning["details"]
    assert wire.KEY not in repr(result)


@each_wire()
async def test_all_failed_pydantic_ais_among_them(wire: Any) -> None:
    """The last one's error names those before it, whatever they are."""
    busy = whole(wire.error(503, "busy"), 503, "application/json")
    async with (
        FaultServer([whole(b"first", 401)]) as own_server,
        FaultServer([busy]) as wire_server,
        model_at(wire_server, wire) as foreign,
    ):
        with pytest.raises(ModelError, match=r"busy.*tried before it: acme/own: .*first") as caught:
            await collect(FallbackModel([endpoint(own_server, "own"), foreign]))
    assert caught.value.status == 503


@pytest.mark.parametrize("status", sorted(THE_REQUESTS_FAULT))
async def test_a_bad_request_is_not_passed_on(status: int) -> None:
    """What the request itself is at fault for no other model is asked about: error processors see it."""
    async with FaultServer([whole(b"too long", status)], [whole(answer("Hello"))]) as server:
        with pytest.raises(ModelError, match="too long") as caught:
            await collect(FallbackModel([endpoint(server, "a"), endpoint(server, "b")]))
    assert caught.value.status == status
    assert len(server.requests) == 1


async def test_no_way_back_after_a_chunk() -> None:
    """Once text is out, a broken stream is an error and no other model is asked."""
    async with FaultServer([head() + sse(delta(content="Hel")), 0.05, RESET], [whole(answer("x"))]) as server:
        with pytest.raises(ModelError, match="broke off"):
            await collect(FallbackModel([endpoint(server, "a"), endpoint(server, "b")]))
    assert len(server.requests) == 1


async def test_all_failed() -> None:
    """When all failed the last one's error is raised, naming those before it."""
    async with FaultServer([whole(b"first", 401)], [whole(b"second", 503)]) as server:
        with pytest.raises(ModelError, match=r"second.*tried before it: acme/a: .*first") as caught:
            await collect(FallbackModel([endpoint(server, "a"), endpoint(server, "b")]))
    assert (caught.value.status, caught.value.retryable) == (503, True)


async def test_an_error_chunk_counts_as_failure() -> None:
    """A model that says its failure with a chunk is followed as one that raises."""

    class Says:
        provider = model_id = "says"

        async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
            yield ErrorChunk(error="out of order")

    chunks = await collect(FallbackModel([Says(), ScriptedModel([text("ok")])]))
    assert isinstance(chunks[0], StepStart)
    assert chunks[0].warnings[0]["details"] == "out of order"
    assert text_of(chunks) == "ok"


async def test_first_model_that_answers() -> None:
    """Without a failure the others are not asked, and nothing is warned of."""
    second = ScriptedModel([text("other")])
    result = await Agent(id="a", model=[ScriptedModel([text("ok")]), second]).generate("Hi")
    assert (result.text, result.steps[0].warnings, second.calls) == ("ok", [], [])


async def test_cancelling_hangs_up() -> None:
    """Closing the stream closes the connection of the model that answers."""
    async with FaultServer([whole(b"", 503)], [head() + sse(delta(content="a")), HANG]) as server:
        model = FallbackModel([endpoint(server, "a"), endpoint(server, "b")])
        async with aclosing(model.stream(REQUEST)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextDelta):
                    break
        async with asyncio.timeout(1):
            await server.hung_up.wait()
        await model.aclose()


async def test_its_names() -> None:
    """It goes by its first model's name, lists all, and needs one."""
    model = FallbackModel([ScriptedModel([error(500, "x")]), ScriptedModel([])])
    assert (model.provider, model.model_id) == (model.models[0].provider, model.models[0].model_id)
    assert repr(model).count("scripted") >= 2
    with pytest.raises(UsageError, match="at least one"):
        FallbackModel([])
