"""Texts as vectors, so that what means the same is found: the embedders of semantic recall.

=====================  =============================================================================
:class:`LocalEmbedder`   a small multilingual model on this machine: no key, no network
:class:`OpenAIEmbedder`  OpenAI, Ollama, vLLM, llama.cpp, most gateways: ``POST /embeddings``
pydantic-ai's            ``pydantic_ai.Embedder("openai:text-embedding-3-small")``, given as it is
=====================  =============================================================================

Anything with ``model_id`` and ``embed`` will do (:class:`Embedder`).
"""

from typing import TYPE_CHECKING, Any

from interlock.embeddings.embedder import Embedder, Kind
from interlock.embeddings.local import LocalEmbedder
from interlock.embeddings.pydantic_ai import PydanticAIEmbedder
from interlock.embeddings.resolve import resolve_embedder

if TYPE_CHECKING:
    from interlock.embeddings.openai_compatible import OpenAIEmbedder

__all__ = [
    "Embedder",
    "Kind",
    "LocalEmbedder",
    "OpenAIEmbedder",
    "PydanticAIEmbedder",
    "resolve_embedder",
]


def __getattr__(name: str) -> Any:
    if name == "OpenAIEmbedder":  # httpx takes as long to import as the rest of the library
        from interlock.embeddings.openai_compatible import OpenAIEmbedder

        return OpenAIEmbedder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
