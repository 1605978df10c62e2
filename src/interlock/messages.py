"""Messages and their parts, to build and to match on: ``from interlock.messages import TextPart``."""

from interlock.core.messages import (
    Content,
    DataPart,
    FilePart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    SystemMessage,
    TextPart,
    ToolInvocationPart,
)

__all__ = [
    "Content",
    "DataPart",
    "FilePart",
    "Message",
    "OtherPart",
    "Part",
    "ReasoningPart",
    "SourcePart",
    "StepStartPart",
    "SystemMessage",
    "TextPart",
    "ToolInvocationPart",
]
