"""The one ordered list behind a MessageList: which message stands where, where it came from, whose parts are whose.

Rules kept here:

1. Every response part carries a mark (its step, a serial number). Parts a hook adds are marked with the step
   under way; a part that replaces another inherits its mark (spec R3.3).
2. Withdrawing a step removes the parts of that step and nothing else (spec R7.3).
3. What a hook returns as a list is reconciled with the part of the list it was shown (spec R3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Literal, TypeAlias

from interlock.core.messages import (
    Content,
    Mark,
    Message,
    Part,
    StepStartPart,
    TextPart,
    ToolInvocationPart,
)

MessageSource: TypeAlias = Literal["input", "response", "memory", "context"]

BEFORE_THE_STEPS = -1


class Entry:
    """A message in the list.

    Attributes:
        message: the message itself, shared with every hook that looks at it.
        source: where it came from.
        own: the run made it for its answer, so the answer may go on in it.
        marks: the marks of its parts when the list was last settled.
        last_step: the latest step that has parts in it.
    """

    __slots__ = ("last_step", "marks", "message", "own", "source")

    def __init__(self, message: Message, source: MessageSource, *, own: bool = False) -> None:
        self.message = message
        self.source: MessageSource = source
        self.own = own
        self.marks: list[Mark | None] = []
        self.last_step = BEFORE_THE_STEPS

    def remember(self) -> None:
        """Take the parts as they stand for known."""
        self.marks = [part.mark for part in self.message.content.parts]
        self.last_step = max(map(step_of, self.message.content.parts), default=BEFORE_THE_STEPS)


class Ledger:
    """The ordered list of entries of one run.

    Args:
        new_id: makes a message id.
        now: the time new messages are made.
    """

    def __init__(self, new_id: Callable[[], str], now: Callable[[], datetime]) -> None:
        self.entries: list[Entry] = []
        self.step = BEFORE_THE_STEPS
        self.new_id = new_id
        self.now = now
        self.before_read: Callable[[], None] | None = None
        self._serial = 0
        self._last_place: tuple[Entry, int] | None = None

    # ------------------------------------------------------------------------------------------------------ reading

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def sync(self) -> None:
        """Let text that is still in the recorder's hands reach its part before somebody looks."""
        if self.before_read is not None:
            self.before_read()

    def messages(self, *sources: MessageSource) -> list[Message]:
        """The messages of these sources (all, when none is named), in order."""
        self.sync()
        return [e.message for e in self.entries if not sources or e.source in sources]

    def response_parts(self, step: int | None = None) -> Iterator[Part]:
        """The answer's parts in order, of one step or of all; a message of another role is no answer."""
        for entry in self.entries:
            if entry.source == "response" and entry.message.role == "assistant":
                for part in entry.message.content.parts:
                    if step is None or (part.mark is not None and part.mark.step == step):
                        yield part

    def response_text(self) -> str:
        """All text of the response."""
        self.sync()
        return joined_text(self.response_parts())

    def find_call(self, tool_call_id: str) -> ToolInvocationPart | None:
        """The latest tool invocation with this call id."""
        for entry in reversed(self.entries):
            for part in reversed(entry.message.content.parts):
                if isinstance(part, ToolInvocationPart) and part.tool_call_id == tool_call_id:
                    return part
        return None

    def has_call(self, tool_call_id: str) -> bool:
        """Whether the step under way has a call with this id already."""
        return any(
            isinstance(part, ToolInvocationPart) and part.tool_call_id == tool_call_id
            for part in self.response_parts(self.step)
        )

    # ------------------------------------------------------------------------------------------------------ changing

    def new_mark(self, part: Part, step: int | None = None) -> Mark:
        """A mark for a part of this step, by default of the one under way."""
        self._serial += 1
        return Mark(self.step if step is None else step, self._serial, _kind(part))

    def append_part(self, part: Part, *, keep_mark: bool = False) -> None:
        """Add a part to the answer: to its last message when that is the run's own, else to a new one (R3.6)."""
        entry = self.own_tail() or self._new_answer()
        if not keep_mark or part.mark is None:
            part.mark = self.new_mark(part)
        parts = entry.message.content.parts
        if len(parts) != len(entry.marks):
            self._settle_entry(entry)
        if parts and 0 <= entry.last_step < part.mark.step:
            border = StepStartPart()
            border.mark = self.new_mark(border)
            parts.append(border)
            entry.marks.append(border.mark)
        parts.append(part)
        entry.marks.append(part.mark)
        entry.last_step = max(entry.last_step, part.mark.step)

    def append_to(self, message_id: str, part: Part) -> bool:
        """Add a part to the message with this id, if there is one."""
        entry = next((e for e in self.entries if e.message.id == message_id), None)
        if entry is not None:
            part.mark = self.new_mark(part)
            entry.message.content.parts.append(part)
            entry.remember()
        return entry is not None

    def insert_unsent(self, part: Part, sent: set[Mark]) -> bool:
        """Add a part in front of the first part of the answer that the client does not have; False if it has all."""
        place = self._first_unsent(sent)
        if place is None:
            return False
        entry, index = place
        if isinstance(entry.message.content.parts[index], StepStartPart):
            index += 1  # a border stays in front of what its step brings
        part.mark = self.new_mark(part)
        entry.message.content.parts.insert(index, part)
        entry.marks.insert(index, part.mark)
        self._last_place = (entry, index + 1)
        return True

    def _first_unsent(self, sent: set[Mark]) -> tuple[Entry, int] | None:
        start = self._last_place  # the next one usually goes where the last one went
        for entry in self.entries:
            if entry.source != "response":
                continue
            parts = entry.message.content.parts
            first = start[1] if start is not None and start[0] is entry and start[1] <= len(parts) else 0
            if first and not all(part.mark in sent for part in parts[first - 1 : first]):
                first = 0
            for index in range(first, len(parts)):
                if parts[index].mark not in sent:
                    return entry, index
        return None

    def own_tail(self) -> Entry | None:
        """The last entry, if it is the run's own answer."""
        last = self.entries[-1] if self.entries else None
        return last if last is not None and last.own else None

    def _new_answer(self) -> Entry:
        message = Message(
            id=self.new_id(), role="assistant", content=Content(parts=[]), created_at=self.now()
        )
        entry = Entry(message, "response", own=True)
        self.entries.append(entry)
        return entry

    def settle(self) -> None:
        """Mark what hooks added or put in the place of something else since the last time."""
        for entry in self.entries:
            if entry.source == "response":
                self._settle_entry(entry)

    def _settle_entry(self, entry: Entry) -> None:
        parts = entry.message.content.parts
        marks = [part.mark for part in parts]
        if entry.marks == marks and None not in marks:
            return
        present = {part.mark for part in parts}
        seen: set[Mark] = set()
        for index, part in enumerate(parts):
            before = entry.marks[index] if index < len(entry.marks) else None
            if (
                part.mark is None
                and before is not None
                and before not in present
                and before.kind == _kind(part)
            ):
                part.mark = before
            elif part.mark is None or part.mark in seen:
                part.mark = self.new_mark(part, part.mark.step if part.mark else max(self.step, 0))
            seen.add(part.mark)
        entry.remember()

    def reconcile(self, shown: Iterable[Message], returned: Sequence[Message], source: MessageSource) -> None:
        """Make a hook's returned list the truth for the messages it was shown (spec R3.3).

        Absent messages go, changed ones take their place's new content, unknown ids are new messages of the
        stage's source, and the returned order becomes the order of the list.
        """
        self.sync()
        scope = {message.id for message in shown}
        known = {entry.message.id: entry for entry in self.entries}
        placed = [self._placed(message, known, source) for message in returned]
        chosen = {id(entry) for entry in placed}
        kept: list[Entry] = []
        queue = iter(placed)
        for entry in self.entries:
            if entry.message.id in scope or id(entry) in chosen:
                following = next(queue, None)
                if following is not None:
                    kept.append(following)
            else:
                kept.append(entry)
        kept.extend(queue)
        self.entries = kept
        self.settle()

    def _placed(self, message: Message, known: dict[str, Entry], source: MessageSource) -> Entry:
        entry = known.get(message.id)
        if entry is None:
            message.created_at = message.created_at or self.now()
            return Entry(message, source)
        if entry.message is not message:
            if message.created_at != entry.message.created_at:
                message.created_at = entry.message.created_at
            entry.message = message
        return entry

    def withdraw(self, step: int) -> None:
        """Remove what belongs to a step: its parts, and messages that are empty without them (spec R7.3)."""
        self.settle()
        kept: list[Entry] = []
        for entry in self.entries:
            parts = entry.message.content.parts
            if entry.source != "response" or not any(step_of(part) == step for part in parts):
                kept.append(entry)
                continue
            parts[:] = [part for part in parts if step_of(part) != step]
            entry.remember()
            if parts:
                kept.append(entry)
        self.entries = kept

    def keep_calls_only(self) -> None:
        """Reduce the response to tool calls that have a result: what a refused final answer leaves (spec R5.3)."""
        self.settle()
        for entry in self.entries:
            if entry.source == "response":
                parts = entry.message.content.parts
                parts[:] = _with_borders([part for part in parts if _is_answered_call(part)])
                entry.remember()
        self.entries = [e for e in self.entries if e.source != "response" or e.message.content.parts]

    def drop_open_calls(self) -> None:
        """Remove calls that were never answered: nothing that is kept may hold an open call (spec R8.2)."""
        for entry in self.entries:
            if entry.source == "response":
                parts = entry.message.content.parts
                parts[:] = [
                    p
                    for p in parts
                    if not (isinstance(p, ToolInvocationPart) and p.state in ("call", "partial-call"))
                ]
                entry.remember()
        self.entries = [e for e in self.entries if e.source != "response" or e.message.content.parts]

    def drop_empty_blocks(self) -> None:
        """Remove text and reasoning parts that stayed empty and carry nothing else."""
        for entry in self.entries:
            if entry.own:
                parts = entry.message.content.parts
                if any(_is_empty_block(part) for part in parts):
                    parts[:] = [part for part in parts if not _is_empty_block(part)]
                    if parts and isinstance(parts[-1], StepStartPart):
                        parts.pop()  # a border with nothing behind it
                    entry.remember()
        self.entries = [e for e in self.entries if not e.own or e.message.content.parts]


def joined_text(parts: Iterable[Part]) -> str:
    """The text of the text parts among these."""
    return "".join(part.text for part in parts if part.type == "text" and isinstance(part, TextPart))


def _kind(part: Part) -> str:
    return type(part).__name__


def step_of(part: Part) -> int:
    """The step a part belongs to."""
    return part.mark.step if part.mark is not None else BEFORE_THE_STEPS


def _is_empty_block(part: Part) -> bool:
    if part.type == "text" or part.type == "reasoning":
        return (
            not getattr(part, "text", "x")
            and part.provider_metadata is None
            and not getattr(part, "redacted", None)
        )
    return False


def _is_answered_call(part: Part) -> bool:
    return isinstance(part, ToolInvocationPart) and part.state in ("result", "output-error")


def _with_borders(parts: list[Part]) -> list[Part]:
    """The parts with a step-start wherever the step changes."""
    bordered: list[Part] = []
    for part in parts:
        if bordered and part.mark and bordered[-1].mark and part.mark.step != bordered[-1].mark.step:
            bordered.append(
                StepStartPart(mark=Mark(part.mark.step, -part.mark.serial, StepStartPart.__name__))
            )
        bordered.append(part)
    return bordered
