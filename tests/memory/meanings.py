"""An embedder whose vectors are known: a dimension for each subject, counted by the words of a text."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.errors import ModelError
from interlock.embeddings import Kind

SUBJECTS = ("cat", "dog", "tax", "sea")


class Meanings:
    """Texts of the same subjects are near each other.

    Attributes:
        asked: every text it was given, with its kind.
        away: whether it fails.
    """

    model_id = "test/meanings"

    def __init__(self) -> None:
        self.asked: list[tuple[str, Kind]] = []
        self.requests = 0
        self.away = False

    async def embed(self, texts: Sequence[str], *, kind: Kind) -> list[list[float]]:
        """A vector for each text."""
        if self.away:
            raise ModelError("the embedder is away", status=503)
        self.requests += 1
        self.asked += [(text, kind) for text in texts]
        return [[*(float(text.lower().count(word)) for word in SUBJECTS), 0.01] for text in texts]
