"""Titles of threads, made by a model in the background: no run waits for one, or fails with one."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from interlock.core.chunks import TextDelta
from interlock.core.errors import UsageError
from interlock.core.model import LanguageModel, ModelRequest, PromptMessage, PromptText
from interlock.core.result import Turn
from interlock.core.shapes import described, is_mapping
from interlock.memory.store import ConversationStore
from interlock.memory.working_text import storable

log = logging.getLogger("interlock")

INSTRUCTIONS = (
    "Write a title for the conversation that begins like this: at most eight words, in its language, "
    "without quotes or a full stop at the end. Answer with the title only."
)
LONGEST = 80
"""Characters of a title."""
SHOWN = 2000
"""Characters of each message that the model is shown."""


class Titles:
    """Gives a thread a title after its first turn, if it has none by then.

    Args:
        store: where the threads are.
        model: who writes them; None for the agent's own model.
        instructions: what that model is told.
    """

    def __init__(
        self, store: ConversationStore, model: LanguageModel | None = None, instructions: str = INSTRUCTIONS
    ) -> None:
        self._store = store
        self._model = model
        self._instructions = instructions
        self._running: set[asyncio.Task[None]] = set()
        self._titled: set[str] = set()

    def start(self, turn: Turn, model: LanguageModel) -> None:
        """Begin to make a title, if this turn's thread may need one."""
        if turn.thread_id in self._titled or not any(message.role == "user" for message in turn.messages):
            return
        self._titled.add(turn.thread_id)
        task = asyncio.create_task(self._make(turn, self._model or model), name="interlock title")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def finish(self) -> None:
        """Wait for the titles that this event loop is making."""
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(task for task in self._running if task.get_loop() is loop))

    async def _make(self, turn: Turn, model: LanguageModel) -> None:
        try:
            thread = await self._store.thread(turn.thread_id, resource_id=turn.resource_id)
            if thread is None or thread.title:
                return
            title = await self._written(turn, model)
            if title:
                await self._store.update_thread(turn.thread_id, resource_id=turn.resource_id, title=title)
        except Exception as problem:
            # the next turn may try again; what was said does not belong in logs
            self._titled.discard(turn.thread_id)
            log.warning("no title for a thread: %s", type(problem).__name__)

    async def _written(self, turn: Turn, model: LanguageModel) -> str:
        said = [
            f"{message.role}: {message.text[:SHOWN]}"
            for message in turn.messages
            if message.role in ("user", "assistant") and message.text
        ]
        prompt = (
            PromptMessage(role="system", content=self._instructions),
            PromptMessage(role="user", content=(PromptText(text="\n\n".join(said)),)),
        )
        pieces: list[str] = []
        stream = model.stream(ModelRequest(prompt=prompt, tool_choice="none"))
        try:
            async for chunk in stream:
                if isinstance(chunk, TextDelta):
                    pieces.append(chunk.text)
        finally:
            await stream.aclose()
        return " ".join(storable("".join(pieces)).split()).strip("\"'“”«»")[:LONGEST]


def titles_of(given: Any, store: Any, resolve: Any) -> Titles | None:
    """What Memory's ``generate_title`` stands for.

    Args:
        given: a truth value, or a mapping with ``model`` and ``instructions``.
        store: where the threads are.
        resolve: turns what may be given as a model into one.

    Raises:
        UsageError: an option there is not; a store without threads.
    """
    if given is None or given is False:
        return None
    options: dict[str, Any] = {}
    if is_mapping(given):
        options = {str(key): value for key, value in given.items()}
    if (given is not True and not is_mapping(given)) or set(options) - {"model", "instructions"}:
        raise UsageError(
            "Memory: generate_title must be True, False or a mapping with model and instructions, "
            f"not {described(given)}"
        )
    if not isinstance(store, ConversationStore):
        raise UsageError("Memory: generate_title needs a store with all methods of ConversationStore")
    if options.get("model") is not None:
        options["model"] = resolve(options["model"])
    return Titles(store, **options)
