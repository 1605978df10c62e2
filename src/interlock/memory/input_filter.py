"""MemoryInputFilter: of a client that sends the whole conversation back, only what is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock.core.context import HookContext
from interlock.core.message_list import MessageList
from interlock.core.messages import Message, ToolInvocationPart
from interlock.core.processor import InputProcessor
from interlock.memory.store import ConversationStore

PENDING = ("call", "partial-call", "approval-requested")
OUTCOMES = ("result", "output-error", "output-denied", "approval-responded")
RECENT = 20
"""How many of a thread's last messages may hold a call that the client answers."""


class MemoryInputFilter(InputProcessor):
    """Takes out of the input what the thread has already: the stored copy is the truth, never the client's.

    Many chat clients send everything they show with each request. For a thread with stored messages:

    - an input that ends with user messages: those are kept, everything before them goes;
    - answers a client gives to tool calls that are still open in the stored thread are kept, in the stored message;
    - an input that ends with an assistant message: it goes if it is stored, with everything before it; if it is
      not (instructions, a beginning to go on from), everything that is not stored stays.

    A message with a stored message's id is that message, as stored. For a thread without stored messages the
    whole input begins it; assistant messages lose their provider metadata, which refers to another conversation.

    Args:
        store: where threads are.
        retain_full_input: leave the input as it is.
    """

    id = "memory-input-filter"
    is_framework = True

    def __init__(self, store: ConversationStore, *, retain_full_input: bool = False) -> None:
        self.store = store
        self.retain_full_input = retain_full_input

    async def process_input(self, messages: list[Message], ctx: HookContext) -> MessageList | None:
        """Reduce the input to what is new."""
        given = ctx.message_list.get.input.db()
        if ctx.thread_id is None or self.retain_full_input or not given:
            return None
        if all(message.role == "user" for message in given):
            stored = await self._stored(given, ctx)
            kept = [stored.get(message.id, message) for message in given]
        else:
            recent = await self.store.messages(ctx.thread_id, resource_id=ctx.resource_id, last=RECENT)
            if not recent:
                _forget_origin(given)
                return None
            stored = await self._stored(given, ctx) | {message.id: message for message in recent}
            kept = _what_is_new(given, stored, recent)
        if all(mine is its for mine, its in zip(kept, given, strict=False)) and len(kept) == len(given):
            return None
        ctx.message_list.remove_by_ids(message.id for message in given)
        return ctx.message_list.add(kept, "input")

    async def _stored(self, given: Sequence[Message], ctx: HookContext) -> dict[str, Message]:
        """Those of the given messages that the thread has, as stored."""
        found = await self.store.messages_around(
            [message.id for message in given], resource_id=ctx.resource_id
        )
        return {message.id: message for message in found if message.thread_id == ctx.thread_id}


def _what_is_new(
    given: Sequence[Message], stored: Mapping[str, Message], recent: Sequence[Message]
) -> list[Message]:
    border = next((i for i in range(len(given), 0, -1) if given[i - 1].role != "user"), 0)
    said = [stored.get(message.id, message) for message in given[border:]]
    answered = _answered(given[:border], recent)
    if said or answered:
        return [*answered, *said]
    if given[-1].id in stored:
        return []
    return [message for message in given if message.id not in stored]


def _answered(given: Sequence[Message], recent: Sequence[Message]) -> list[Message]:
    """Stored messages whose open calls the client answers in its last messages, with those answers."""
    answers: dict[str, ToolInvocationPart] = {}
    for message in reversed(given):
        if message.role != "assistant":
            break
        for part in _calls(message):
            if part.state in OUTCOMES:
                answers.setdefault(part.tool_call_id, part)
    changed: list[Message] = []
    for message in recent:
        calls = [part for part in _calls(message) if part.state in PENDING and part.tool_call_id in answers]
        for part in calls:
            answer = answers[part.tool_call_id]
            part.state, part.result, part.error_text = answer.state, answer.result, answer.error_text
        if calls:
            changed.append(message)
    return changed


def _calls(message: Message) -> list[ToolInvocationPart]:
    return [part for part in message.content.parts if isinstance(part, ToolInvocationPart)]


def _forget_origin(given: Sequence[Message]) -> None:
    for message in given:
        if message.role == "assistant":
            for part in message.content.parts:
                part.provider_metadata = None
