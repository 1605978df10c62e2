"""Memory: a store, and how much of it a run sees."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from interlock.core.errors import InterlockError, SavedAnyway, StorageError, UsageError
from interlock.core.messages import Message
from interlock.core.model import LanguageModel
from interlock.core.processor import InputProcessor, OutputProcessor
from interlock.core.result import Turn
from interlock.memory import options
from interlock.memory.history import MessageHistory
from interlock.memory.in_memory import InMemoryStore
from interlock.memory.input_filter import MemoryInputFilter
from interlock.memory.store import ConversationStore, MessagePage, Store, TurnUsage, whose
from interlock.memory.threads import Threads, check_page
from interlock.memory.titles import titles_of
from interlock.memory.to_the_end import to_the_end
from interlock.memory.vectors import Scope, VectorIndex
from interlock.models.router import resolve_model

PER_CALL = (
    "last_messages", "read_only", "save_unfinished", "semantic_recall", "working_memory", "generate_title",
    "retain_full_input",
)  # fmt: skip
"""Options that a call may give another value: ``memory={"thread": ..., "options": {"last_messages": 5}}``."""


class Memory:
    """Conversations that last from call to call.

    Give it to an agent, and name the thread with each call::

        async with Memory("sqlite:///agent.db") as memory:
            agent = Agent(..., memory=memory)
            await agent.generate("Hi", memory={"thread": "t1", "resource": "user-1"})

    A call may change options for itself: ``memory={"thread": ..., "options": {"last_messages": 5}}``.

    Args:
        store: where threads are kept: an address (``sqlite:///agent.db``, ``postgresql://user:password@host/db``;
            extra ``sql``) or a store; by default in this process, until it ends.
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
        generate_title: whether a thread without a title gets one after its first turn, in the background: True, or
            a mapping with ``model`` (default: the agent's) and ``instructions``. No output processor sees it; it is
            made of the turn as it was saved. Closing the memory waits for it.

    Raises:
        UsageError: no store, a wrong address or number, or a missing extra.
    """

    def __init__(
        self,
        store: Store | str | None = None,
        *,
        last_messages: int | None = 20,
        read_only: bool = False,
        save_unfinished: bool = True,
        semantic_recall: bool | Mapping[str, Any] = False,
        working_memory: bool | Mapping[str, Any] = False,
        embedder: Any = None,
        vector_index: VectorIndex | None = None,
        retain_full_input: bool = False,
        generate_title: bool | Mapping[str, Any] = False,
    ) -> None:
        if isinstance(store, str):
            store = _sql_store(store)
        if store is not None and not isinstance(store, Store):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"Memory: store must be an address or have messages() and save_turn(), not {store!r}"
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
        self.titles = titles_of(generate_title, self.store, resolve_model)
        self._given: dict[str, Any] = {
            "last_messages": last_messages,
            "read_only": read_only,
            "save_unfinished": save_unfinished,
            "semantic_recall": semantic_recall,
            "working_memory": working_memory,
            "retain_full_input": retain_full_input,
            "generate_title": generate_title,
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish the titles under way and close the connections of this event loop; they open again when needed."""
        try:
            if self.titles is not None:
                await self.titles.finish()
        finally:
            close = getattr(self.store, "close", None)
            if close is not None:
                await close()

    # -------------------------------------------------------------------------------------------------- conversations

    @property
    def threads(self) -> Threads:
        """The threads: create, get, list, update, delete, export and import.

        Raises:
            UsageError: the store keeps turns only.
        """
        return Threads(self._conversations(), self._forget)

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
        return await self.store.messages(thread, resource_id=whose(resource), last=last)

    async def message_page(
        self, thread: str, *, resource: str | None = None, page: int = 0, per_page: int = 40
    ) -> MessagePage:
        """A page of a thread's messages, oldest first; ``page`` counts from 0.

        Raises:
            UsageError: the thread belongs to another resource; a page that cannot be.
            StorageError: the store failed.
        """
        check_page(page, per_page)
        store = self._conversations()
        return await store.message_page(thread, resource_id=whose(resource), page=page, per_page=per_page)

    async def search(
        self, text: str, *, resource: str | None = None, thread: str | None = None, limit: int = 20
    ) -> list[Message]:
        """The resource's newest messages with this text in them, whatever the case, newest first.

        Args:
            text: what is looked for.
            resource: whose messages.
            thread: only in this thread.
            limit: the most messages.

        Raises:
            UsageError: the thread belongs to another resource; nothing to look for.
            StorageError: the store failed.
        """
        if not text or limit < 1:
            raise UsageError(f"search needs some text and a limit from 1, not {text!r} and {limit}")
        store = self._conversations()
        return await store.search_messages(text, resource_id=whose(resource), thread_id=thread, limit=limit)

    async def delete_messages(self, messages: Sequence[str], *, resource: str | None = None) -> int:
        """Delete messages by id; those of other resources are as if they were not there.

        Returns:
            How many were there.

        Raises:
            StorageError: the store failed.
        """
        store = self._conversations()
        if isinstance(messages, str):
            raise UsageError(f"delete_messages takes a list of ids, not the string {messages!r}")
        if self.semantic_recall is not None:
            found = await store.messages_around(messages, resource_id=whose(resource))
            for thread_id in {message.thread_id for message in found}:
                scope = Scope(resource_id=whose(resource), thread_id=thread_id)
                await self.semantic_recall.index.delete(scope=scope, message_ids=list(messages))
        return await store.delete_messages(messages, resource_id=whose(resource))

    async def usage(self, thread: str, *, resource: str | None = None) -> list[TurnUsage]:
        """What the thread's turns cost, oldest first.

        Raises:
            UsageError: the thread belongs to another resource.
            StorageError: the store failed.
        """
        return await self._conversations().usage(thread, resource_id=whose(resource))

    def _conversations(self) -> ConversationStore:
        if isinstance(self.store, ConversationStore):
            return self.store
        raise UsageError(
            f"{type(self.store).__name__} keeps turns only; this needs all methods of ConversationStore"
        )

    async def _forget(self, thread_id: str, resource_id: str | None) -> None:
        if self.semantic_recall is not None:
            await self.semantic_recall.index.delete(scope=Scope(resource_id=resource_id, thread_id=thread_id))

    # ------------------------------------------------------------------------------------------------ for a run's use

    def for_call(self, changes: Mapping[str, Any]) -> Memory:
        """This memory with other options, for one call; store, vectors and titles under way are shared.

        Raises:
            UsageError: an option that a call cannot change.
        """
        unknown = [str(name) for name in changes if name not in PER_CALL]
        if unknown:
            raise UsageError(f"memory's options have no {', '.join(unknown)}; they are {', '.join(PER_CALL)}")
        given = {**self._given, **changes}
        recall = self.semantic_recall
        if given["semantic_recall"] and recall is None:
            raise UsageError("semantic_recall must be set on the Memory before a call can change it")
        if given["semantic_recall"] and recall is not None:
            given |= {"vector_index": recall.index, "embedder": recall.embedder}
        changed = Memory(self.store, **given)
        if changed.titles is not None and self.titles is not None:
            changed.titles = self.titles
        return changed

    def recorder(self, model: LanguageModel) -> _Recorder:
        """What saves a run's turns. ``model``: who writes the thread's title, when no other model is named."""
        return _Recorder(self, model)

    async def save_turn(self, turn: Turn) -> bool:
        """Save a turn, in one transaction; the runtime calls it. A cancellation meanwhile waits until it is saved.

        Returns:
            Whether it was saved: not by a memory that only reads.

        Raises:
            StorageError: the store failed.
        """
        if self.read_only:
            return False
        await to_the_end(_save(self.store, turn))
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


class _Recorder:
    """Saves turns, and has titles made."""

    def __init__(self, memory: Memory, model: LanguageModel) -> None:
        self._memory = memory
        self._model = model

    async def save_turn(self, turn: Turn) -> bool:
        if self._memory.read_only:
            return False
        saved = False

        async def save() -> None:
            nonlocal saved
            await _save(self._memory.store, turn)
            saved = True

        late: asyncio.CancelledError | None = None
        try:
            await to_the_end(save())
        except asyncio.CancelledError as cancellation:
            if not saved:
                raise
            late = cancellation
        if self._memory.titles is not None:
            self._memory.titles.start(turn, self._model)
        if late is not None:
            raise SavedAnyway(late)
        return True


async def _save(store: Store, turn: Turn) -> None:
    try:
        await store.save_turn(turn)
    except InterlockError:
        raise
    except Exception as problem:
        raise StorageError(f"the turn could not be saved: {problem}") from problem


def _sql_store(url: str) -> Store:
    try:
        from interlock.memory.sql import SqlStore
    except ImportError as problem:
        raise UsageError(
            f"Memory({url.partition(':')[0]}://...) needs the extra sql ({problem.name} is missing): "
            "pip install 'interlock[sql]'"
        ) from problem
    return SqlStore(url)
