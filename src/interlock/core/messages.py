"""Messages and their parts (spec R3.6): what the model is asked, what it answered, what is stored.

``parts`` is the truth; ``content.content`` is a flattened fallback that old stored rows may have. Parts are
mutable, and an in-place change of ``message.content.parts`` is seen by every later processor and is saved.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from interlock.core.record import FrozenRecord, Metadata, Record

Role: TypeAlias = Literal["user", "assistant", "system", "tool"]
ToolState: TypeAlias = Literal[
    "partial-call",
    "call",
    "result",
    "output-error",
    "output-denied",
    "approval-requested",
    "approval-responded",
]
"""The last three are states of the reference's stored calls that a run here never makes."""


class Mark(FrozenRecord, frozen=True):
    """Where a response part comes from: its step, and a serial number that survives edits and copies of it.

    ``kind`` is the part's class: a part of another class in its place is another part.

    The runtime sets it; it is no part of the message's value and is never written anywhere.
    """

    step: int
    serial: int
    kind: str = ""


class Part(Record, kw_only=True, eq=False):
    """Base of all parts. ``type`` may be given another value in place; unknown types survive untouched.

    ``extra`` has stored fields this version does not read; they are written back as they came.
    """

    type: str = ""
    provider_metadata: Metadata | None = None
    extra: dict[str, Any] | None = None
    mark: Mark | None = None

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(
            getattr(self, name) == getattr(other, name) for name in self.__struct_fields__ if name != "mark"
        )

    def __repr__(self) -> str:
        shown = ((name, getattr(self, name)) for name in self.__struct_fields__ if name != "mark")
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown if value is not None)})"


class TextPart(Part, kw_only=True, eq=False):
    """A text block. ``id`` is the block's id in the stream, while the run lasts."""

    text: str
    type: str = "text"
    id: str | None = None


class ReasoningPart(Part, kw_only=True, eq=False):
    """A reasoning block. ``redacted`` holds what a provider sent encrypted instead of text."""

    text: str
    type: str = "reasoning"
    id: str | None = None
    redacted: str | None = None


class ToolInvocationPart(Part, kw_only=True, eq=False):
    """A tool call and, once there is one, its result or error."""

    tool_call_id: str
    tool_name: str
    args: Any = None
    state: ToolState = "call"
    result: Any = None
    error_text: str | None = None
    provider_executed: bool | None = None
    invalid: str | None = None
    type: str = "tool-invocation"


class FilePart(Part, kw_only=True, eq=False):
    """A file: base64 text, a data URL or a URL."""

    mime_type: str
    data: str
    filename: str | None = None
    type: str = "file"


class SourcePart(Part, kw_only=True, eq=False):
    """A citation, in the provider-neutral form ``{sourceType, id, url, title, ...}``."""

    source: dict[str, Any]
    type: str = "source"


class StepStartPart(Part, kw_only=True, eq=False):
    """The border between two steps of one message; it stands nowhere else."""

    type: str = "step-start"


class DataPart(Part, kw_only=True, eq=False):
    """A custom ``data-*`` part (spec R8.4)."""

    data: Any = None
    id: str | None = None
    type: str = "data-"


class OtherPart(Part, kw_only=True, eq=False):
    """A part of a type we do not know, kept as it is."""

    fields: dict[str, Any] = {}


class Content(Record, kw_only=True):
    """A message's content, stored format 2. Never a bare string."""

    parts: list[Part] = []
    content: str | None = None
    metadata: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None
    format: int = 2


class Message(Record, kw_only=True):
    """One message of a conversation.

    >>> Message(id="m1", role="user", content=Content(parts=[TextPart(text="Hi")])).text
    'Hi'
    """

    id: str
    role: Role
    content: Content
    created_at: datetime | None = None
    thread_id: str | None = None
    resource_id: str | None = None

    @property
    def text(self) -> str:
        """The text parts joined; without any text, the flattened fallback of old rows (spec R3.7)."""
        text = "".join(
            part.text for part in self.content.parts if part.type == "text" and isinstance(part, TextPart)
        )
        return text or self.content.content or ""


class SystemMessage(FrozenRecord, kw_only=True, frozen=True):
    """A system message: an untagged one counts for hooks and prompt, a tagged one only for the prompt."""

    content: str
    tag: str | None = None
