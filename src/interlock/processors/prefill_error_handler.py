"""PrefillErrorHandler: a conversation that ends with the assistant, at a provider that refuses those."""

from __future__ import annotations

import re

from interlock.core.context import HookContext
from interlock.core.processor import ErrorProcessor
from interlock.core.step import Retry
from interlock.processors.error_texts import texts_of

REMINDER = "<system-reminder>continue</system-reminder>"

_REFUSALS = re.compile(
    r"assistant message prefill"  # Anthropic
    r"|prefill is incompatible with .?enable_thinking"  # Qwen, llama.cpp
    r"|requests ending with a model turn are not supported",  # Gemini
    re.IGNORECASE,
)


class PrefillErrorHandler(ErrorProcessor):
    """Asks again with a hidden reminder to continue when the provider refuses a prompt that ends with the assistant.

    The reminder is a user message of this run only: it is in the prompt, and neither stored nor shown. Once a step.

    >>> from interlock import Agent
    >>> from interlock.testing import ScriptedModel, error, text
    >>> refused = error(400, "This model does not support assistant message prefill.")
    >>> agent = Agent(id="a", model=ScriptedModel([refused], [text("...")]), error_processors=[PrefillErrorHandler()])
    >>> agent.generate_sync([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Well"}]).text
    '...'
    """

    id = "prefill-error-handler"
    name = "Prefill Error Handler"

    def process_api_error(self, error: Exception, ctx: HookContext) -> Retry | None:
        """Add the reminder, if that is what went wrong and it has not been tried yet (spec R4.5)."""
        if ctx.retry_count > 0 or not any(_REFUSALS.search(text) for text in texts_of(error)):
            return None
        ctx.message_list.add([{"role": "user", "content": REMINDER}], "context")
        return Retry()
