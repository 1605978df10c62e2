"""The nine hooks as a table. Compiling, validation, documentation and tests are driven by it."""

from __future__ import annotations

from interlock.core.processor import BaseProcessor, ErrorProcessor, InputProcessor, Lane, OutputProcessor
from interlock.core.record import FrozenRecord


class Hook(FrozenRecord, frozen=True):
    """One of the nine points.

    Attributes:
        name: the method.
        lane: the list whose processors have it.
        when: in words.
        subject: its first argument.
        returns: what it may return.
        none: what returning None means.
    """

    name: str
    lane: Lane
    when: str
    subject: str
    returns: str
    none: str


HOOKS: tuple[Hook, ...] = (
    Hook("process_input", "input", "once, before the loop", "list[Message]",
         "MessageList, list[Message], InputChange", "no change"),
    Hook("process_input_step", "input", "before each step", "StepInput",
         "StepChange, MessageList, list[Message]", "no change"),
    Hook("process_llm_request", "input", "on the final provider request", "LLMRequest",
         "LLMRequest, CachedResponse", "no change"),
    Hook("process_api_error", "error", "when the provider rejects a call", "Exception", "Retry", "not handled"),
    Hook("process_output_stream", "output", "on each chunk", "Chunk", "Chunk, list[Chunk]", "drop the chunk"),
    Hook("process_llm_response", "input", "when a step's stream is complete", "LLMResponse", "nothing", "nothing"),
    Hook("process_output_step", "output", "after each response, before its tools run", "OutputStep",
         "MessageList, list[Message]", "no change"),
    Hook("process_tool_result", "output", "on each tool result", "ToolResult",
         "ToolResult, MessageList, list[Message]", "no change"),
    Hook("process_output_result", "output", "once, on the final answer", "OutputResult",
         "MessageList, list[Message]", "no change"),
)  # fmt: skip

LANES: dict[Lane, type[BaseProcessor]] = {
    "input": InputProcessor,
    "output": OutputProcessor,
    "error": ErrorProcessor,
}


def hooks_of(lane: Lane) -> tuple[str, ...]:
    """The names of a lane's hooks."""
    return tuple(hook.name for hook in HOOKS if hook.lane == lane)


def implemented(processor: BaseProcessor, lane: Lane) -> tuple[str, ...]:
    """The lane's hooks that this processor has: methods it overrides or callables assigned to it."""
    base = LANES[lane]
    return tuple(
        hook
        for hook in hooks_of(lane)
        if hook in getattr(processor, "__dict__", ())
        or getattr(type(processor), hook, getattr(base, hook)) is not getattr(base, hook)
    )
