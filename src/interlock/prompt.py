"""The provider-neutral prompt, for process_llm_request and for models: ``from interlock.prompt import PromptText``."""

from interlock.core.model import (
    LanguageModel,
    ModelRequest,
    Prompt,
    PromptFile,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptText,
    PromptToolCall,
    PromptToolResult,
    ToolSpec,
)

__all__ = [
    "LanguageModel",
    "ModelRequest",
    "Prompt",
    "PromptFile",
    "PromptMessage",
    "PromptPart",
    "PromptReasoning",
    "PromptText",
    "PromptToolCall",
    "PromptToolResult",
    "ToolSpec",
]
