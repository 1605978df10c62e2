"""Memory: a store, and how much of it a run sees."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from interlock.core.errors import InterlockError, StorageError, UsageError
from interlock.core.messages import Message
from interlock.core.processor import InputProcessor, OutputProcessor
from interlock.core.result import Turn
from interlock.memory import options
from interlock.memory.history import MessageHistory
from interlock.memory.in_memory import InMemoryStore
from interlock.memory.input_filter import MemoryInputFilter
from interlock.memory.store import ConversationStore, Store
from interlock.memory.vectors import VectorIndex


class Memory:
    """Conversations that last from call to call.

    Give it to an agent, and name the thread with each call::

        agent = Agent(..., memory=Memory())
        await agent.generate("Hi", memory={"thread": "t1", "resource": "user-1"})

    Args:
        store: where threads are kept; by default in this process, until it ends.
        last_messages: how many remembered messages a run sees; None for all, 0 for none.
        read_only: remember, but save nothing.
        save_unfinished: whether a turn that failed or was cancelled is saved, marked ``unfinished`` (spec R8.2).
        semantic_recall: whether earlier messages that mean the same are found: True, or a mapping of the options of
            :class:`interlock.memory.SemanticRecall`.
        working_memory: whether the model keeps a page about the user: True, or a mapping of the options of
            :class:`interlock.memory.WorkingMemory`.
        embedder: what makes the vectors of semantic recall, as :func:`interlock.embeddings.resolve_embedder` takes
            it; the local one by default.
        vector_index: where vectors are; by default beside the messages.
        retain_full_input: take the input as it is, also of clients that send the whole history back.

    Raises:
        UsageError: no store, or a negative number.
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        last_messages: int | None = 20,
        read_only: bool = False,
        save_unfinished: bool = True,
        semantic_recall: bool | Mapping[str, Any] = False,
        working_memory: bool | Mapping[str, Any] = False,
        embedder: Any = None,
        vector_index: VectorIndex | None = None,
        retain_full_input: bool = False,
    ) -> None:
        if store is not None and not isinstance(store, Store):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"Memory: store must have messages() and save_turn(), as InMemoryStore, not {store!r}"
            )
        if last_messages is not None and last_messages < 0:
            raise UsageError(
                f"Memory: last_messages must be a number from 0, or None for all, not {last_messages}"
            )
        self.store: Store = store if store is not None else InMemoryStore()
        self.last_messages = last_messages
        self.read_only = read_only
        self.save_unfinished = save_unfinished
        self.retain_full_input = retain_full_input
        self.semantic_recall = options.semantic_recall(semantic_recall, self.store, embedder, vector_index)
        self.working_memory = options.working_memory(working_memory, self.store, read_only=read_only)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def messages(
        self, thread: str, *, resource: str | None = None, last: int | None = None
    ) -> list[Message]:
        """A thread's messages, oldest first.

        Args:
            thread: the thread's id.
            resource: the resource it belongs to.
            last: only the last so many.

        Raises:
            UsageError: the thread belongs to another resource.
            StorageError: the store failed.
        """
        return await self.store.messages(thread, resource_id=resource, last=last)

    async def save_turn(self, turn: Turn) -> bool:
        """Save a turn, in one transaction; the runtime calls it.

        Returns:
            Whether it was saved: not by a memory that only reads.

        Raises:
            StorageError: the store failed.
        """
        if self.read_only:
            return False
        try:
            await self.store.save_turn(turn)
        except InterlockError:
            raise
        except Exception as problem:
            raise StorageError(f"the turn could not be saved: {problem}") from problem
        return True

    def input_processors(self) -> list[InputProcessor]:
        """The processors that run before the user's on input, in the reference's order."""
        processors: list[InputProcessor] = []
        if isinstance(self.store, ConversationStore):
            processors.append(MemoryInputFilter(self.store, retain_full_input=self.retain_full_input))
        if self.working_memory is not None:
            processors.append(self.working_memory)
        processors.append(MessageHistory(self.store, self.last_messages))
        if self.semantic_recall is not None:
            processors.append(self.semantic_recall)
        return processors

    def output_processors(self) -> list[OutputProcessor]:
        """The processors that run after the user's on output: none, since saving comes after all of them."""
        return []
