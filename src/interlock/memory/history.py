"""MessageHistory: what was said before, in front of what is said now."""

from __future__ import annotations

from interlock.core.context import HookContext
from interlock.core.message_list import MessageList
from interlock.core.messages import Message
from interlock.core.processor import InputProcessor
from interlock.memory.store import Store


class MessageHistory(InputProcessor):
    """Brings a thread's last messages into the run; edits to them last for the run (spec R3.5).

    Args:
        store: where threads are.
        last_messages: how many, the newest; None for all, 0 for none.
    """

    id = "message-history"
    is_framework = True

    def __init__(self, store: Store, last_messages: int | None = 20) -> None:
        self.store = store
        self.last_messages = last_messages

    async def process_input(self, messages: list[Message], ctx: HookContext) -> MessageList | None:
        """Put the remembered messages in front; those the call brought again stay what the call brought."""
        if ctx.thread_id is None or self.last_messages == 0:
            return None
        remembered = await self.store.messages(
            ctx.thread_id, resource_id=ctx.resource_id, last=self.last_messages
        )
        here = {message.id for message in messages}
        fresh = [message for message in remembered if message.id not in here]
        if fresh:
            ctx.message_list.add(fresh, "memory")
        return ctx.message_list
