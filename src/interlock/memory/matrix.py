"""The vectors of one scope in one numpy matrix: searched whole, which is exact and, for 10,000, takes a millisecond."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from interlock.embeddings.cache import require_numpy
from interlock.memory.vectors import Match

if TYPE_CHECKING:
    from interlock.embeddings.cache import Vector

SMALLEST = 64


class Matrix:
    """Rows of vectors, each a piece of a message. Room doubles as it fills, so that any number of rows is cheap."""

    def __init__(self) -> None:
        self._numpy = require_numpy()
        self._data: Any = None
        self._owners: list[tuple[str, str] | None] = []
        self._places: dict[str, list[int]] = {}

    def __len__(self) -> int:
        """How many messages there are."""
        return len(self._places)

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._places

    @property
    def pieces(self) -> int:
        """How many vectors there are."""
        return sum(map(len, self._places.values()))

    @property
    def nbytes(self) -> int:
        """How much memory the vectors take, in bytes."""
        return 0 if self._data is None else self._data.nbytes

    def put(self, message_id: str, thread_id: str, vectors: Sequence[Vector]) -> None:
        """Put a message's vectors in the place of what it had.

        Raises:
            ValueError: vectors of another length than those that are there.
        """
        places = self._places.get(message_id, [])
        if places and len(places) == len(vectors):
            self._check(len(vectors[0]))
            self._data[places] = vectors
            return
        self.remove(message_id)
        if not vectors:
            return
        start = len(self._owners)
        self._make_room(start + len(vectors), len(vectors[0]))
        self._data[start : start + len(vectors)] = vectors
        self._owners.extend([(message_id, thread_id)] * len(vectors))
        self._places[message_id] = list(range(start, start + len(vectors)))

    def remove(self, message_id: str) -> None:
        """Forget a message; its rows are empty until the matrix is made anew."""
        for place in self._places.pop(message_id, ()):
            self._owners[place] = None
            self._data[place] = 0

    def nearest(
        self, vector: Vector, *, top_k: int, threshold: float | None, exclude: Collection[str] = ()
    ) -> list[Match]:
        """The messages nearest to a vector, best first, each once, with the score of its best piece."""
        used = len(self._owners)
        if not used or top_k < 1:
            return []
        scores = self._data[:used] @ vector
        wanted = min(used, 4 * (top_k + len(exclude)) + SMALLEST)
        while True:
            matches, all_seen = self._best(scores, wanted, top_k, threshold, exclude)
            if all_seen or wanted == used:
                return matches
            wanted = min(used, wanted * 8)  # many pieces of the same messages stood in front

    def _best(
        self, scores: Any, wanted: int, top_k: int, threshold: float | None, exclude: Collection[str]
    ) -> tuple[list[Match], bool]:
        numpy = self._numpy
        if wanted < len(scores):
            candidates = numpy.argpartition(scores, -wanted)[-wanted:]
        else:
            candidates = numpy.arange(len(scores))
        order = candidates[numpy.argsort(-scores[candidates], kind="stable")]
        matches: dict[str, Match] = {}
        rows: list[int] = order.tolist()
        for row in rows:
            score = float(scores[row])
            if threshold is not None and score < threshold:
                return list(matches.values()), True
            owner = self._owners[row]
            if owner is None or owner[0] in matches or owner[0] in exclude:
                continue
            matches[owner[0]] = Match(message_id=owner[0], thread_id=owner[1], score=score)
            if len(matches) == top_k:
                return list(matches.values()), True
        return list(matches.values()), False

    def _make_room(self, rows: int, dimensions: int) -> None:
        numpy = self._numpy
        if self._data is None:
            self._data = numpy.zeros((max(SMALLEST, rows), dimensions), dtype=numpy.float32)
        self._check(dimensions)
        if rows > len(self._data):
            grown = numpy.zeros((max(rows, 2 * len(self._data)), dimensions), dtype=numpy.float32)
            grown[: len(self._owners)] = self._data[: len(self._owners)]
            self._data = grown

    def _check(self, dimensions: int) -> None:
        if self._data.shape[1] != dimensions:
            raise ValueError(f"a vector of {dimensions} dimensions among vectors of {self._data.shape[1]}")
