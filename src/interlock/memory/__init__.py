"""Memory: conversations that last, as processors around the user's (spec R8)."""

from interlock.core.result import Turn
from interlock.memory.history import MessageHistory
from interlock.memory.in_memory import InMemoryStore
from interlock.memory.memory import Memory
from interlock.memory.store import ConversationStore, MessagePage, Store, Thread, ThreadPage, TurnUsage

__all__ = [
    "ConversationStore",
    "InMemoryStore",
    "Memory",
    "MessageHistory",
    "MessagePage",
    "Store",
    "Thread",
    "ThreadPage",
    "Turn",
    "TurnUsage",
]
