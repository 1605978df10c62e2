"""The matrix of a scope: what it finds is what looking at every vector finds."""

from __future__ import annotations

from typing import Any

import numpy
from hypothesis import given
from hypothesis import strategies as st

from interlock.memory.matrix import Matrix

NUMBERS = st.integers(-3, 3)
VECTORS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=0, max_size=4)
CHANGES = st.lists(st.tuples(st.integers(0, 200), VECTORS), max_size=120)


@given(
    CHANGES, st.tuples(NUMBERS, NUMBERS, NUMBERS), st.integers(1, 8), st.sets(st.integers(0, 200), max_size=9)
)
def test_it_finds_what_looking_at_everything_finds(
    changes: list[Any], query: Any, top_k: int, hidden: set[int]
) -> None:
    """After any puts (an empty one forgets), the best messages by their best piece, whatever is excluded."""
    matrix = Matrix()
    plain: dict[str, list[Any]] = {}
    for number, vectors in changes:
        matrix.put(str(number), "t", [numpy.array(v, dtype=numpy.float32) for v in vectors])
        plain.pop(str(number), None)
        if vectors:
            plain[str(number)] = vectors
    exclude = {str(number) for number in hidden}
    scores = {
        key: max(sum(a * b for a, b in zip(v, query, strict=True)) for v in vectors)
        for key, vectors in plain.items()
        if key not in exclude
    }
    expected = sorted(scores.values(), reverse=True)[:top_k]
    vector = numpy.array(query, dtype=numpy.float32)
    found = matrix.nearest(vector, top_k=top_k, threshold=None, exclude=exclude)
    assert [match.score for match in found] == expected
    assert all(scores[match.message_id] == match.score for match in found)
    assert len({match.message_id for match in found}) == len(found)
    assert len(matrix) == len(plain)
