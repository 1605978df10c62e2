"""Memory's options ``semantic_recall`` and ``working_memory``, read: the processors they stand for."""

from __future__ import annotations

from typing import Any

from interlock.core.errors import UsageError
from interlock.core.shapes import described, is_mapping
from interlock.embeddings import resolve_embedder
from interlock.memory.numpy_index import NumpyIndex
from interlock.memory.recall import SemanticRecall
from interlock.memory.store import ConversationStore, Store
from interlock.memory.vectors import VectorIndex
from interlock.memory.working import WorkingMemory

RECALL = ("top_k", "message_range", "scope", "threshold", "error_strategy", "cache_size")
WORKING = ("template", "schema", "scope", "read_only")


def semantic_recall(
    given: Any, store: Store, embedder: Any, index: VectorIndex | None
) -> SemanticRecall | None:
    """The processor for Memory's ``semantic_recall``.

    Args:
        given: a truth value, or a mapping of the processor's options.
        store: where the messages are.
        embedder: what :func:`interlock.embeddings.resolve_embedder` takes; None for the local one.
        index: where the vectors are; None for the store's own, or one in this process.

    Raises:
        UsageError: an option there is not, or one that cannot be; a missing package.
    """
    options = _options("semantic_recall", given, RECALL)
    if options is None:
        if index is not None or embedder is not None:
            raise UsageError(
                "Memory: embedder and vector_index are for semantic recall; give semantic_recall=True"
            )
        return None
    if index is not None and not isinstance(index, VectorIndex):
        raise UsageError(f"Memory: vector_index must have the methods of VectorIndex, not {described(index)}")
    where = index if index is not None else _index_of(store)
    return SemanticRecall(
        _conversations(store, "semantic_recall"),
        where,
        resolve_embedder("local" if embedder is None else embedder),
        **options,
    )


def working_memory(given: Any, store: Store, *, read_only: bool) -> WorkingMemory | None:
    """The processor for Memory's ``working_memory``.

    Args:
        given: a truth value, or a mapping of the processor's options.
        store: where it is kept.
        read_only: the memory's; then it is shown only.

    Raises:
        UsageError: an option there is not, or one that cannot be.
    """
    options = _options("working_memory", given, WORKING)
    if options is None:
        return None
    if read_only:
        options["read_only"] = True
    return WorkingMemory(_conversations(store, "working_memory"), **options)


def _options(name: str, given: Any, known: tuple[str, ...]) -> dict[str, Any] | None:
    if given is None or isinstance(given, bool):
        return {} if given else None
    if not is_mapping(given):
        raise UsageError(
            f"Memory: {name} must be True, False or a mapping of {', '.join(known)}, not {described(given)}"
        )
    unknown = [str(key) for key in given if key not in known]
    if unknown:
        raise UsageError(f"Memory: {name} has no option {', '.join(unknown)}; it takes {', '.join(known)}")
    return {str(key): value for key, value in given.items()}


def _conversations(store: Store, name: str) -> ConversationStore:
    if isinstance(store, ConversationStore):
        return store
    raise UsageError(
        f"Memory: {name} needs a store with all methods of ConversationStore; {type(store).__name__} has not"
    )


def _index_of(store: Store) -> VectorIndex:
    own: Any = getattr(store, "vector_index", None)
    return own() if callable(own) else NumpyIndex()
