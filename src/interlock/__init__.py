"""interlock: a processor pipeline around an LLM agent's loop that holds while text is streaming.

The public names are here, in ``interlock.chunks``, ``interlock.processors``, ``interlock.memory``,
``interlock.models`` and ``interlock.testing``; everything is a selection from ``interlock.core`` and the edges.
"""

from interlock.agent import Agent, CallOptions
from interlock.call_options import ProcessorList, Release
from interlock.core.chunks import StepRecord
from interlock.core.context import HookContext
from interlock.core.errors import (
    InterlockError,
    ModelError,
    StorageError,
    TripWire,
    TripWireError,
    UsageError,
)
from interlock.core.message_list import MessageList
from interlock.core.messages import Message
from interlock.core.model import LanguageModel, ModelRequest
from interlock.core.processor import (
    ErrorProcessor,
    InputProcessor,
    OutputProcessor,
    Processor,
    ProcessorViolation,
)
from interlock.core.request_context import RequestContext
from interlock.core.result import RunOutcome, RunResult
from interlock.core.step import (
    CachedResponse,
    InputChange,
    LLMRequest,
    LLMResponse,
    OutputResult,
    OutputStep,
    Retry,
    StepChange,
    StepInput,
)
from interlock.core.tool import Tool, ToolContext, Writer, tool
from interlock.guarding import GuardedText, guard_stream, guard_text
from interlock.guarding_sse import guard_sse
from interlock.processors import Chain, Parallel, StructuredOutput, When
from interlock.stream import RunStream

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "CachedResponse",
    "CallOptions",
    "Chain",
    "ErrorProcessor",
    "GuardedText",
    "HookContext",
    "InputChange",
    "InputProcessor",
    "InterlockError",
    "LLMRequest",
    "LLMResponse",
    "LanguageModel",
    "Message",
    "MessageList",
    "ModelError",
    "ModelRequest",
    "OutputProcessor",
    "OutputResult",
    "OutputStep",
    "Parallel",
    "Processor",
    "ProcessorList",
    "ProcessorViolation",
    "Release",
    "RequestContext",
    "Retry",
    "RunOutcome",
    "RunResult",
    "RunStream",
    "StepChange",
    "StepInput",
    "StepRecord",
    "StorageError",
    "StructuredOutput",
    "Tool",
    "ToolContext",
    "TripWire",
    "TripWireError",
    "UsageError",
    "When",
    "Writer",
    "guard_sse",
    "guard_stream",
    "guard_text",
    "tool",
]
