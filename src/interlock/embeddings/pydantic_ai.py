"""pydantic-ai's embedders: OpenAI, Google, Cohere, VoyageAI, Bedrock, sentence-transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.core.errors import ModelError
from interlock.embeddings.embedder import Kind


class PydanticAIEmbedder:
    """An embedder of pydantic-ai as one of ours.

    Args:
        embedder: a ``pydantic_ai.Embedder``.
    """

    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder

    def __repr__(self) -> str:
        return f"PydanticAIEmbedder({self.model_id!r})"

    @property
    def model_id(self) -> str:
        """The model's name there, with its number of dimensions where one is set."""
        model = self._embedder.model
        name = model if isinstance(model, str) else f"{model.system}:{model.model_name}"
        dimensions = _dimensions(self._embedder) or (None if isinstance(model, str) else _dimensions(model))
        return f"{name}/{dimensions}" if dimensions else name

    async def embed(self, texts: Sequence[str], *, kind: Kind) -> Sequence[Sequence[float]]:
        """A vector for each text.

        Raises:
            ModelError: whatever pydantic-ai raised.
        """
        ask = self._embedder.embed_query if kind == "query" else self._embedder.embed_documents
        try:
            result = await ask(list(texts))
        except Exception as problem:
            status = getattr(problem, "status_code", None)
            # not chained: what it refers to may hold the request, and that the key
            raise ModelError(
                f"the embedding model {self.model_id} failed: {type(problem).__name__}",
                status=status if isinstance(status, int) else None,
            ) from None
        return result.embeddings


def _dimensions(owner: Any) -> int | None:
    settings: Any = getattr(owner, "settings", None) or getattr(owner, "_settings", None) or {}
    return settings.get("dimensions")
