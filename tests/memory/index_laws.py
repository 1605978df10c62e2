"""What every index of vectors has to do: exact, scoped, by model. Each index's tests go through these laws."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from interlock.core.errors import StorageError
from interlock.memory import MessageVectors, Scope, VectorIndex

MODEL = "m"


def unit(*numbers: float) -> Any:
    """The numbers as a vector of length 1."""
    vector = numpy.array(numbers, dtype=numpy.float32)
    return vector / numpy.linalg.norm(vector)


def row(message_id: str, *vectors: Any, thread: str = "t", resource: str | None = "r") -> MessageVectors:
    """The vectors of a message."""
    return MessageVectors(message_id=message_id, thread_id=thread, resource_id=resource, vectors=vectors)


async def fill(index: VectorIndex) -> None:
    """Messages of two resources, and of none."""
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


async def found(index: VectorIndex, scope: Scope, **options: Any) -> list[str]:
    """What is nearest to the first axis."""
    options = {"top_k": 9, **options}
    matches = await index.search(MODEL, unit(1, 0), scope=scope, **options)
    return [match.message_id for match in matches]


async def every_search_is_within_its_scope(index: VectorIndex) -> None:
    """A resource's threads, or one thread: nothing else is found, deleted or known."""
    await fill(index)
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


async def a_message_is_found_once_by_its_best_piece(index: VectorIndex) -> None:
    """The score is that of the nearest piece, threshold and top_k count messages."""
    await fill(index)
    matches = await index.search(MODEL, unit(1, 0), scope=Scope("r", "t"), top_k=2)
    assert [(m.message_id, round(m.score, 2)) for m in matches] == [("a", 1.0), ("b", 1.0)]
    assert await found(index, Scope("r"), threshold=0.999, exclude=["a"]) == ["c"]
    assert len(await found(index, Scope("r"), top_k=1)) == 1


async def new_vectors_replace_what_a_message_had(index: VectorIndex) -> None:
    """upsert: the message's old pieces are gone."""
    await fill(index)
    await index.upsert(MODEL, [row("b", unit(-1, 0))])
    assert await found(index, Scope("r", "t"), threshold=0) == ["a"]
    await index.upsert(MODEL, [row("b", unit(1, 0))])
    assert sorted(await found(index, Scope("r", "t"), threshold=0)) == ["a", "b"]


async def models_do_not_mix(index: VectorIndex) -> None:
    """Vectors of another model are not compared; a model whose vectors change their length is told."""
    await fill(index)
    await index.upsert("other", [row("x", unit(1, 0, 0))])
    assert "x" not in await found(index, Scope("r"))

    async def add_and_search() -> None:
        await index.upsert(MODEL, [row("y", unit(1, 0, 0))])
        await found(index, Scope("r"))

    with pytest.raises(StorageError, match=r"dimensions|length"):
        await add_and_search()


async def names_are_values(index: VectorIndex) -> None:
    """Ids may hold anything: they are never part of a statement."""
    odd = "x'; DROP TABLE interlock_vectors; --"
    await index.upsert(MODEL, [row(odd, unit(1, 0), thread=odd, resource=odd)])
    assert await found(index, Scope(odd, odd)) == [odd]
    assert await index.known(MODEL, [odd], scope=Scope(odd)) == {odd}
    assert await found(index, Scope(odd), exclude=[odd]) == []
    await index.delete(scope=Scope(odd), message_ids=[odd])
    assert await found(index, Scope(odd)) == []


LAWS = (
    every_search_is_within_its_scope,
    a_message_is_found_once_by_its_best_piece,
    new_vectors_replace_what_a_message_had,
    models_do_not_mix,
    names_are_values,
)
