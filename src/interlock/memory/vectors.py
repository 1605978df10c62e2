"""Where vectors are kept and searched: the contract of semantic recall's index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from interlock.core.errors import UsageError
from interlock.core.record import FrozenRecord

if TYPE_CHECKING:
    from interlock.embeddings.cache import Vector


class Scope(FrozenRecord, frozen=True):
    """Whose vectors are looked at: every access names it, so that one resource never sees another's.

    Attributes:
        resource_id: the resource (user); None: a thread without one.
        thread_id: only this thread of the resource; None: all of its threads.

    Raises:
        UsageError: neither: threads without a resource have nothing in common.
    """

    resource_id: str | None
    thread_id: str | None = None

    def __post_init__(self) -> None:
        if self.resource_id is None and self.thread_id is None:
            raise UsageError(
                "a scope names a resource or a thread: threads without a resource have no common one"
            )


class MessageVectors(FrozenRecord, frozen=True, kw_only=True, eq=False):
    """The vectors of one message: one for each piece of its text, each of length 1."""

    message_id: str
    thread_id: str
    resource_id: str | None
    vectors: Sequence[Vector]


class Match(FrozenRecord, frozen=True, kw_only=True):
    """A message that was found. ``score`` is the cosine of its best piece: 1 for the same direction."""

    message_id: str
    thread_id: str
    score: float


@runtime_checkable
class VectorIndex(Protocol):
    """Vectors of messages, by the name of the model that made them."""

    async def upsert(self, model_id: str, messages: Sequence[MessageVectors]) -> None:
        """Put the vectors of these messages in the place of what they had, all or none.

        Raises:
            StorageError: the index failed.
        """
        ...

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
        """The messages of the scope that are nearest to a vector of length 1, best first.

        Args:
            model_id: only vectors that this model made.
            vector: what is searched with.
            scope: whose.
            top_k: the most messages.
            threshold: the least score.
            exclude: ids of messages that are not wanted.

        Raises:
            StorageError: the index failed.
        """
        ...

    async def known(self, model_id: str, message_ids: Collection[str], *, scope: Scope) -> set[str]:
        """Which of these messages of the scope have vectors of this model.

        Raises:
            StorageError: the index failed.
        """
        ...

    async def delete(self, *, scope: Scope, message_ids: Collection[str] | None = None) -> None:
        """Forget these messages of the scope, or all of it, whatever model made their vectors.

        Raises:
            StorageError: the index failed.
        """
        ...
