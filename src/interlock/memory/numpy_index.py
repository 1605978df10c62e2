"""An index in this process: for tests, demos, and beside a store that is in this process too."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from interlock.core.errors import StorageError
from interlock.memory.matrix import Matrix
from interlock.memory.vectors import Match, MessageVectors, Scope

if TYPE_CHECKING:
    from interlock.embeddings.cache import Vector


class NumpyIndex:
    """Vectors in memory, a matrix for each model and thread.

    >>> index = NumpyIndex()
    """

    def __init__(self) -> None:
        self._matrices: dict[tuple[str, str | None, str], Matrix] = {}

    async def upsert(self, model_id: str, messages: Sequence[MessageVectors]) -> None:
        """Put the vectors of these messages in the place of what they had. See :class:`VectorIndex`."""
        for message in messages:
            key = (model_id, message.resource_id, message.thread_id)
            matrix = self._matrices.setdefault(key, Matrix())
            try:
                matrix.put(message.message_id, message.thread_id, message.vectors)
            except ValueError as problem:
                raise StorageError(f"model {model_id!r}: {problem}") from None

    async def search(
        self,
        model_id: str,
        vector: Vector,
        *,
        scope: Scope,
        top_k: int,
        threshold: float | None = None,
        exclude: Collection[str] = (),
    ) -> list[Match]:
        """The messages of the scope that are nearest to a vector, best first. See :class:`VectorIndex`."""
        found: list[Match] = []
        for matrix in self._of(scope, model_id):
            found += matrix.nearest(vector, top_k=top_k, threshold=threshold, exclude=exclude)
        return sorted(found, key=lambda match: -match.score)[:top_k]

    async def known(self, model_id: str, message_ids: Collection[str], *, scope: Scope) -> set[str]:
        """Which of these messages of the scope have vectors. See :class:`VectorIndex`."""
        matrices = self._of(scope, model_id)
        return {each for each in message_ids if any(each in matrix for matrix in matrices)}

    async def delete(self, *, scope: Scope, message_ids: Collection[str] | None = None) -> None:
        """Forget these messages of the scope, or all of it. See :class:`VectorIndex`."""
        for key in [key for key in self._matrices if _within(key, scope)]:
            if message_ids is None:
                del self._matrices[key]
                continue
            for message_id in message_ids:
                self._matrices[key].remove(message_id)

    def _of(self, scope: Scope, model_id: str) -> list[Matrix]:
        return [
            matrix for key, matrix in self._matrices.items() if key[0] == model_id and _within(key, scope)
        ]


def _within(key: tuple[str, str | None, str], scope: Scope) -> bool:
    _, resource_id, thread_id = key
    return resource_id == scope.resource_id and scope.thread_id in (None, thread_id)
