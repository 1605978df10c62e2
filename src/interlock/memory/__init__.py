"""Memory: conversations that last, as processors around the user's (spec R8)."""

from interlock.core.result import Turn
from interlock.memory.history import MessageHistory
from interlock.memory.in_memory import InMemoryStore
from interlock.memory.input_filter import MemoryInputFilter
from interlock.memory.memory import Memory
from interlock.memory.numpy_index import NumpyIndex
from interlock.memory.recall import SemanticRecall
from interlock.memory.store import ConversationStore, MessagePage, Store, Thread, ThreadPage, TurnUsage
from interlock.memory.vectors import Match, MessageVectors, Scope, VectorIndex
from interlock.memory.working import WorkingMemory

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
    "Store",
    "Thread",
    "ThreadPage",
    "Turn",
    "TurnUsage",
    "VectorIndex",
    "WorkingMemory",
]
