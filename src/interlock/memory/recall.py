"""SemanticRecall: what was said earlier about the same, wherever it stands in the thread or in other ones."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from interlock.core.context import HookContext
from interlock.core.errors import InterlockError, ModelError, UsageError
from interlock.core.message_list import MessageList
from interlock.core.messages import Message
from interlock.core.processor import InputProcessor
from interlock.core.result import RunOutcome
from interlock.embeddings import Embedder
from interlock.embeddings.cache import EmbeddingCache
from interlock.memory.pieces import pieces_of, query_of
from interlock.memory.remembered import TAG, other_conversations
from interlock.memory.store import ConversationStore
from interlock.memory.vectors import MessageVectors, Scope, VectorIndex

log = logging.getLogger("interlock")

MessageRange: TypeAlias = int | tuple[int, int] | Mapping[str, int]
ErrorStrategy: TypeAlias = Literal["warn", "strict"]


class SemanticRecall(InputProcessor):
    """Finds earlier messages that mean about what the user now says, and shows them to the model for this run.

    Messages of this thread stand where they were said, before the remembered ones that are newer; those of other
    threads are quoted in a system message. Neither is ever saved again (spec R3.5).

    What is embedded is what was saved of a turn, after every processor, once it is saved: blocked text never.

    Args:
        store: where the messages are.
        index: where their vectors are.
        embedder: who makes vectors.
        top_k: the most messages found; those the run has anyway do not count.
        message_range: how many messages around each are shown too: a number, or (before, after).
        scope: ``resource``: in all threads of the call's resource; ``thread``: in the call's thread. A call without
            a resource searches its thread.
        threshold: the least similarity, from -1 to 1; None: whatever is nearest.
        error_strategy: what happens when the embedder fails. ``warn`` (default): the run goes on without recall,
            and a violation tells so. ``strict``: it ends with the ModelError. A turn is saved all the same when
            its vectors cannot be made; they are made at the end of the thread's next turn.
        cache_size: how many vectors are remembered, so that a text is not embedded twice.

    Raises:
        UsageError: a number or word that cannot be; numpy is missing.
    """

    id = "semantic-recall"
    is_framework = True

    def __init__(
        self,
        store: ConversationStore,
        index: VectorIndex,
        embedder: Embedder,
        *,
        top_k: int = 4,
        message_range: MessageRange = 1,
        scope: Literal["thread", "resource"] = "resource",
        threshold: float | None = None,
        error_strategy: ErrorStrategy = "warn",
        cache_size: int = 1000,
    ) -> None:
        self.store = store
        self.index = index
        self.top_k = _checked_number("top_k", top_k, least=1)
        self.before, self.after = _checked_range(message_range)
        self.scope = _one_of("scope", scope, ("resource", "thread"))
        self.error_strategy = _one_of("error_strategy", error_strategy, ("warn", "strict"))
        if threshold is not None and not -1 <= threshold <= 1:
            raise UsageError(f"semantic recall: threshold must be a number from -1 to 1, not {threshold!r}")
        self.threshold = threshold
        self._embeddings = EmbeddingCache(embedder, size=_checked_number("cache_size", cache_size, least=0))

    @property
    def embedder(self) -> Embedder:
        """Who makes vectors."""
        return self._embeddings.embedder

    @property
    def model_id(self) -> str:
        """The model whose vectors are searched."""
        return self._embeddings.embedder.model_id

    # -------------------------------------------------------------------------------------------------- recalling

    async def process_input(
        self, messages: list[Message], ctx: HookContext
    ) -> MessageList | list[Message] | None:
        """Add what is found to the remembered messages, in the order it was said."""
        if ctx.thread_id is None:
            return None
        conversation = ctx.message_list
        ctx.state["remembered"] = [message.id for message in conversation.get.remembered.db()]
        query = _question(conversation.get.input.db())
        if not query:
            return None
        try:
            found = await self.recall(
                query,
                thread_id=ctx.thread_id,
                resource_id=ctx.resource_id,
                exclude=[message.id for message in messages],
            )
        except ModelError as problem:
            if self.error_strategy == "strict":
                raise
            log.warning("semantic recall: %s", problem)
            ctx.violation("the embedder failed; the run went on without recall", {"check_failed": True})
            return None
        here = {message.id for message in messages}
        fresh = [message for message in found if message.id not in here]
        own = [message for message in fresh if message.thread_id == ctx.thread_id]
        others = [m for m in fresh if m.thread_id != ctx.thread_id and m.text.strip()]
        if others:
            conversation.add_system(other_conversations(others), tag=TAG)
        return _in_order(conversation.add(own, "memory")) if own else None

    async def recall(
        self, text: str, *, thread_id: str | None, resource_id: str | None, exclude: Sequence[str] = ()
    ) -> list[Message]:
        """The messages found for a text, with those around them, thread by thread, oldest first in each.

        Args:
            text: what is searched with.
            thread_id: the thread, which with scope ``thread`` is the only one searched.
            resource_id: whose messages.
            exclude: ids of messages that need not be found.

        Raises:
            ModelError: the embedder failed.
            StorageError: store or index failed.
            UsageError: neither thread nor resource.
        """
        narrow = self.scope == "thread" or resource_id is None
        scope = Scope(resource_id, thread_id if narrow else None)
        [vector] = await self._embeddings.embed([query_of(text)], kind="query")
        matches = await self.index.search(
            self.model_id, vector, scope=scope, top_k=self.top_k, threshold=self.threshold, exclude=exclude
        )
        if not matches:
            return []
        return await self.store.messages_around(
            [match.message_id for match in matches],
            resource_id=resource_id,
            before=self.before,
            after=self.after,
        )

    # --------------------------------------------------------------------------------------------------- indexing

    async def on_run_end(self, outcome: RunOutcome, ctx: HookContext) -> None:
        """Embed what was saved, and what earlier turns of the thread could not embed."""
        turn = outcome.saved
        if (
            turn is None or outcome.kind == "cancelled"
        ):  # who cancels does not want to wait; the next turn will do it
            return
        try:
            remembered: list[str] = ctx.state.get("remembered", [])
            scope = Scope(turn.resource_id, turn.thread_id)
            known = await self.index.known(self.model_id, remembered, scope=scope)
            missing = [each for each in remembered if each not in known]
            earlier = (
                await self.store.messages_around(missing, resource_id=turn.resource_id) if missing else []
            )
            await self.add([*earlier, *turn.messages], thread_id=turn.thread_id, resource_id=turn.resource_id)
        except InterlockError as problem:
            log.warning("semantic recall: what was saved is not searchable yet: %s", problem)

    async def add(self, messages: Sequence[Message], *, thread_id: str, resource_id: str | None) -> int:
        """Make messages of a thread searchable.

        Args:
            messages: stored messages; those without text are passed over.
            thread_id: their thread.
            resource_id: the resource it belongs to.

        Returns:
            How many have vectors now.

        Raises:
            ModelError: the embedder failed.
            StorageError: the index failed.
        """
        parts = [(message, pieces_of(message)) for message in messages if message.role != "system"]
        parts = [(message, texts) for message, texts in parts if texts]
        if not parts:
            return 0
        vectors = iter(
            await self._embeddings.embed([text for _, texts in parts for text in texts], kind="document")
        )
        rows = [
            MessageVectors(
                message_id=message.id,
                thread_id=thread_id,
                resource_id=resource_id,
                vectors=[next(vectors) for _ in texts],
            )
            for message, texts in parts
        ]
        await self.index.upsert(self.model_id, rows)
        return len(rows)


def _question(given: Sequence[Message]) -> str:
    """The text of the last user message that has any."""
    return next((m.text for m in reversed(given) if m.role == "user" and m.text.strip()), "")


def _in_order(conversation: MessageList) -> list[Message]:
    """All messages, the remembered ones in front, in the order they were said."""
    remembered = conversation.get.remembered.db()
    ids = {message.id for message in remembered}
    rest = [message for message in conversation.get.all.db() if message.id not in ids]
    return [*sorted(remembered, key=_said_at), *rest]


def _said_at(message: Message) -> float:
    return 0.0 if message.created_at is None else message.created_at.timestamp()


def _one_of(name: str, given: Any, choices: tuple[str, ...]) -> Any:
    if given not in choices:
        raise UsageError(f"semantic recall: {name} is {' or '.join(map(repr, choices))}, not {given!r}")
    return given


def _checked_number(name: str, given: Any, *, least: int) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise UsageError(f"semantic recall: {name} must be a whole number from {least}, not {given!r}")
    return given


def _checked_range(given: Any) -> tuple[int, int]:
    if isinstance(given, int) and not isinstance(given, bool):
        given = (given, given)
    elif isinstance(given, Mapping) and set(cast("Mapping[Any, Any]", given)) <= {"before", "after"}:
        pair = cast("Mapping[str, Any]", given)
        given = (pair.get("before", 0), pair.get("after", 0))
    if not isinstance(given, tuple) or len(cast("tuple[Any, ...]", given)) != 2:
        raise UsageError(
            f"semantic recall: message_range is a number or (before, after), for example (2, 1), not {given!r}"
        )
    before, after = cast("tuple[Any, Any]", given)
    return (
        _checked_number("message_range", before, least=0),
        _checked_number("message_range", after, least=0),
    )
