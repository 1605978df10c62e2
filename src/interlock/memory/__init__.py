"""Memory: conversations that last, as processors around the user's (spec R8)."""

from typing import TYPE_CHECKING, Any

from interlock.core.result import Turn
from interlock.memory.history import MessageHistory
from interlock.memory.in_memory import InMemoryStore
from interlock.memory.input_filter import MemoryInputFilter
from interlock.memory.memory import Memory
from interlock.memory.numpy_index import NumpyIndex
from interlock.memory.recall import SemanticRecall
from interlock.memory.store import ConversationStore, MessagePage, Store, Thread, ThreadPage, TurnUsage
from interlock.memory.threads import Threads
from interlock.memory.vectors import Match, MessageVectors, Scope, VectorIndex
from interlock.memory.working import WorkingMemory

if TYPE_CHECKING:
    from interlock.memory.sql import SqlStore

__all__ = [
    "ConversationStore",
    "InMemoryStore",
    "Match",
    "Memory",
    "MemoryInputFilter",
    "MessageHistory",
    "MessagePage",
    "MessageVectors",
    "NumpyIndex",
    "Scope",
    "SemanticRecall",
    "SqlStore",
    "Store",
    "Thread",
    "ThreadPage",
    "Threads",
    "Turn",
    "TurnUsage",
    "VectorIndex",
    "WorkingMemory",
]


def __getattr__(name: str) -> Any:
    """SqlStore is imported when it is first used: it needs the extra ``sql``."""
    if name == "SqlStore":
        from interlock.memory.sql import SqlStore

        return SqlStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
