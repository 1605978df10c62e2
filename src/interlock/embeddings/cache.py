"""Embeddings in batches, each text only once: repeated texts come from a small memory."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from interlock.core.errors import InterlockError, ModelError, UsageError
from interlock.embeddings.embedder import Embedder, Kind
from interlock.embeddings.local import INSTALL

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[numpy.float32]


def require_numpy() -> Any:
    """numpy, or the command that installs it.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return import_module("numpy")
    except ImportError:
        raise UsageError(
            f"semantic recall needs numpy: {INSTALL}, or pip install numpy where the embedder is a remote one"
        ) from None


class EmbeddingCache:
    """An embedder behind a memory of its latest answers.

    Args:
        embedder: who makes the vectors.
        size: how many vectors are remembered (384 dimensions: 1.5 KB each).
        batch_size: the most texts of one request.

    Raises:
        UsageError: numpy is missing.
    """

    def __init__(self, embedder: Embedder, *, size: int = 1000, batch_size: int = 100) -> None:
        self._numpy = require_numpy()
        self.embedder = embedder
        self._size = size
        self._batch_size = batch_size
        # by hash: texts may be long, and need not be kept
        self._known: OrderedDict[bytes, Vector] = OrderedDict()

    async def embed(self, texts: Sequence[str], *, kind: Kind) -> list[Vector]:
        """A vector of length 1 for each text.

        Raises:
            ModelError: the embedder failed, or answered something that is no vector for each text.
        """
        keys = [_key(text, kind) for text in texts]
        wanted = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        found = {key: self._known[key] for key in keys if key in self._known}
        missing = list(wanted.items())
        for start in range(0, len(missing), self._batch_size):
            batch = missing[start : start + self._batch_size]
            vectors = await self._ask([text for _, text in batch], kind)
            found.update(zip((key for key, _ in batch), vectors, strict=True))
        for key, vector in found.items():
            self._known[key] = vector
            self._known.move_to_end(key)
        while len(self._known) > self._size:
            self._known.popitem(last=False)
        return [found[key] for key in keys]

    async def _ask(self, texts: list[str], kind: Kind) -> list[Vector]:
        where = f"the embedding model {self.embedder.model_id}"
        # a lone surrogate, which a cut may leave, cannot be sent anywhere
        sendable = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        try:
            answer = await self.embedder.embed(sendable, kind=kind)
        except InterlockError:
            raise
        except Exception as problem:  # an embedder of one's own may raise anything
            raise ModelError(f"{where} failed: {type(problem).__name__}") from problem
        try:
            matrix = self._numpy.array(answer, dtype=self._numpy.float32)
        except (TypeError, ValueError):
            raise ModelError(f"{where} answered something that is no list of vectors") from None
        if matrix.ndim != 2 or len(matrix) != len(texts) or not matrix.shape[1]:
            raise ModelError(f"{where} answered {matrix.shape} numbers for {len(texts)} texts")
        lengths = self._numpy.linalg.norm(matrix, axis=1, keepdims=True)
        if not self._numpy.isfinite(lengths).all():
            raise ModelError(f"{where} answered numbers that are not finite")
        return list(matrix / self._numpy.maximum(lengths, 1e-12))


def _key(text: str, kind: Kind) -> bytes:
    return hashlib.blake2b(f"{kind} {text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
