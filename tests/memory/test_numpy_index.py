"""The index in this process: exact, scoped, by model."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from interlock.core.errors import StorageError, UsageError
from interlock.memory import MessageVectors, NumpyIndex, Scope, VectorIndex

pytestmark = pytest.mark.anyio

MODEL = "m"


def unit(*numbers: float) -> Any:
    """The numbers as a vector of length 1."""
    vector = numpy.array(numbers, dtype=numpy.float32)
    return vector / numpy.linalg.norm(vector)


def row(message_id: str, *vectors: Any, thread: str = "t", resource: str | None = "r") -> MessageVectors:
    """The vectors of a message."""
    return MessageVectors(message_id=message_id, thread_id=thread, resource_id=resource, vectors=vectors)


async def filled() -> NumpyIndex:
    """An index with messages of two resources."""
    index = NumpyIndex()
    assert isinstance(index, VectorIndex)
    await index.upsert(
        MODEL,
        [
            row("a", unit(1, 0)),
            row("b", unit(0, 1), unit(1, 0.1)),
            row("c", unit(1, 0), thread="u"),
            row("d", unit(1, 0), thread="v", resource="other"),
            row("e", unit(1, 0), thread="w", resource=None),
        ],
    )
    return index


async def found(index: NumpyIndex, scope: Scope, **options: Any) -> list[str]:
    """What is nearest to the first axis."""
    options = {"top_k": 9, **options}
    matches = await index.search(MODEL, unit(1, 0), scope=scope, **options)
    return [match.message_id for match in matches]


async def test_every_search_is_within_its_scope() -> None:
    """A resource's threads, or one thread: nothing else is found, deleted or known."""
    index = await filled()
    assert sorted(await found(index, Scope("r"))) == ["a", "b", "c"]
    assert await found(index, Scope("r", "u")) == ["c"]
    assert await found(index, Scope("other", "t")) == []
    assert await found(index, Scope(None, "w")) == ["e"]
    assert await index.known(MODEL, ["a", "d"], scope=Scope("r")) == {"a"}
    await index.delete(scope=Scope("r"), message_ids=["a", "d"])
    assert sorted(await found(index, Scope("r"))) == ["b", "c"]
    assert await found(index, Scope("other")) == ["d"]
    await index.delete(scope=Scope("r", "t"))
    assert await found(index, Scope("r")) == ["c"]


def test_a_scope_names_somebody() -> None:
    """Threads without a resource have no common scope."""
    with pytest.raises(UsageError):
        Scope(None)


async def test_a_message_is_found_once_by_its_best_piece() -> None:
    """The score is that of the nearest piece, threshold and top_k count messages."""
    index = await filled()
    matches = await index.search(MODEL, unit(1, 0), scope=Scope("r", "t"), top_k=2)
    assert [(m.message_id, round(m.score, 2)) for m in matches] == [("a", 1.0), ("b", 1.0)]
    assert await found(index, Scope("r"), threshold=0.999, exclude=["a"]) == ["c"]
    assert len(await found(index, Scope("r"), top_k=1)) == 1


async def test_new_vectors_replace_what_a_message_had() -> None:
    """upsert: the message's old pieces are gone."""
    index = await filled()
    await index.upsert(MODEL, [row("b", unit(-1, 0))])
    assert await found(index, Scope("r", "t"), threshold=0) == ["a"]
    await index.upsert(MODEL, [row("b", unit(1, 0))])
    assert sorted(await found(index, Scope("r", "t"), threshold=0)) == ["a", "b"]


async def test_models_do_not_mix() -> None:
    """Vectors of another model are not compared; a model whose vectors change their length is told."""
    index = await filled()
    await index.upsert("other", [row("x", unit(1, 0, 0))])
    assert "x" not in await found(index, Scope("r"))
    with pytest.raises(StorageError, match="3 dimensions"):
        await index.upsert(MODEL, [row("y", unit(1, 0, 0))])
