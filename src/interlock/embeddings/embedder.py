"""What an embedder has to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

Kind: TypeAlias = Literal["query", "document"]
"""What a text is for: some models embed what is searched with otherwise than what is searched for."""


@runtime_checkable
class Embedder(Protocol):
    """Makes vectors of texts; texts that mean the same get vectors of about the same direction."""

    @property
    def model_id(self) -> str:
        """Names the model and whatever else its vectors depend on. Vectors of two names are never compared."""
        ...

    async def embed(self, texts: Sequence[str], *, kind: Kind) -> Sequence[Sequence[float]]:
        """A vector for each text, in their order, all of one length. Any scale; only directions count.

        Args:
            texts: at least one; none is empty.
            kind: what they are for.

        Raises:
            ModelError: the model failed.
        """
        ...
