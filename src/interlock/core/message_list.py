"""MessageList: the live conversation of a run, as processors work on it (spec R3.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlock.core.errors import UsageError
from interlock.core.forms import core_message, ui_message
from interlock.core.given import given_messages
from interlock.core.jsonable import jsonable
from interlock.core.ledger import Entry, Ledger, MessageSource
from interlock.core.messages import Message, SystemMessage
from interlock.core.prompt import build_messages
from interlock.core.shapes import described, is_mapping

SOURCES: tuple[MessageSource, ...] = ("input", "response", "memory", "context")


class View:
    """The messages of one source, in the form that is wanted."""

    __slots__ = ("_ledger", "_sources")

    def __init__(self, ledger: Ledger, *sources: MessageSource) -> None:
        self._ledger = ledger
        self._sources = sources

    def db(self) -> list[Message]:
        """Message objects: the live ones, so a change of their parts is a change of the conversation."""
        return self._ledger.messages(*self._sources)

    def ui(self) -> list[dict[str, Any]]:
        """The form chat clients keep: ``{id, role, parts, metadata}``."""
        return [ui_message(message) for message in self.db()]

    def core(self) -> list[dict[str, Any]]:
        """The form of prompts: ``{role, content}``, tool results in messages of their own."""
        return [core_message(message) for message in build_messages(self.db())]


class Views:
    """``message_list.get``: views by source."""

    __slots__ = ("_ledger",)

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @property
    def all(self) -> View:
        """Every message but system messages."""
        return View(self._ledger)

    @property
    def input(self) -> View:
        """What this call brought."""
        return View(self._ledger, "input")

    @property
    def response(self) -> View:
        """What this run answered so far."""
        return View(self._ledger, "response")

    @property
    def remembered(self) -> View:
        """What memory brought. Edits to these last for this run; storage keeps what it has (spec R3.5)."""
        return View(self._ledger, "memory")

    @property
    def context(self) -> View:
        """The call's ``context``: in the prompt, never saved."""
        return View(self._ledger, "context")


class MessageList:
    """The conversation of one run: system messages beside one ordered list of messages with their sources.

    Args:
        ledger: the list behind it (the runtime's).
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._system: list[SystemMessage] = []
        self._answered: set[str] | None = None

    @property
    def get(self) -> Views:
        """Views by source: ``get.all.db()``, ``get.response.ui()``, ``get.remembered.core()`` ..."""
        return Views(self._ledger)

    # ----------------------------------------------------------------------------------------------------- messages

    def add(self, messages: Any, source: MessageSource = "input") -> MessageList:
        """Add messages at the end; one whose id is in the list already replaces that message.

        Args:
            messages: anything ``generate`` takes as input.
            source: ``input``, ``response`` (belongs to the step under way), ``memory`` or ``context``.

        Returns:
            This list.

        Raises:
            UsageError: nothing that could be a message, or an unknown source.
        """
        if source not in SOURCES:
            raise UsageError(f"MessageList.add: unknown source {source!r}; it is one of {', '.join(SOURCES)}")
        self.place(given_messages(messages, new_id=self._ledger.new_id), source)
        return self

    def place(self, messages: Iterable[Message], source: MessageSource) -> None:
        """Add messages that are known to be messages; see :meth:`add`."""
        self._ledger.sync()
        for message in messages:
            if message.role == "system":
                self.add_system(message.text)
            else:
                self._put(message, source)
        self._ledger.settle()

    def _put(self, message: Message, source: MessageSource) -> None:
        if message.created_at is None:
            message.created_at = self._ledger.now()
        entry = self._entry(message.id)
        if entry is not None:
            message.created_at = entry.message.created_at
            entry.message = message
        elif source == "memory":  # what was said before stands before what is said now
            entries = self._ledger.entries
            place = max((i + 1 for i, e in enumerate(entries) if e.source == "memory"), default=0)
            entries.insert(place, Entry(message, source))
        else:
            self._ledger.entries.append(Entry(message, source))

    def remove_by_ids(self, ids: Iterable[str]) -> list[Message]:
        """Remove messages.

        Returns:
            Those that were removed.
        """
        doomed = {ids} if isinstance(ids, str) else set(ids)
        removed = [e.message for e in self._ledger.entries if e.message.id in doomed]
        self._ledger.entries = [e for e in self._ledger.entries if e.message.id not in doomed]
        return removed

    def replace(self, message: Message) -> None:
        """Put a message in the place of the one with its id.

        Raises:
            UsageError: no message has that id.
        """
        entry = self._entry(message.id)
        if entry is None:
            raise UsageError(
                f"MessageList.replace: no message has the id {message.id!r}; use add for a new one"
            )
        message.created_at = entry.message.created_at
        entry.message = message
        self._ledger.settle()

    def clear(self, source: MessageSource | None = None) -> list[Message]:
        """Remove all messages, or all of one source.

        Returns:
            Those that were removed.
        """
        removed = self._ledger.messages() if source is None else self._ledger.messages(source)
        self.remove_by_ids({message.id for message in removed})
        return removed

    def _entry(self, message_id: str) -> Entry | None:
        return next((e for e in self._ledger.entries if e.message.id == message_id), None)

    def update_tool_invocation(self, tool_call_id: str, *, result: Any) -> None:
        """Give a tool call its result, or another one (spec R4.7, R4.8).

        In process_output_step this answers a call that has not run; the first answer stays.

        Raises:
            UsageError: no call has that id.
        """
        call = self._ledger.find_call(tool_call_id)
        if call is None:
            raise UsageError(f"update_tool_invocation: no tool call has the id {tool_call_id!r}")
        if self._answered is not None:
            if tool_call_id in self._answered:
                return
            self._answered.add(tool_call_id)
        call.state, call.result, call.error_text = "result", jsonable(result), None

    def first_answer_stays(self, on: bool) -> None:
        """For the runtime: whether a call's first answer is final (while process_output_step runs)."""
        self._answered = set() if on else None

    # ----------------------------------------------------------------------------------------------- system messages

    @property
    def system_messages(self) -> list[SystemMessage]:
        """The untagged system messages."""
        return [message for message in self._system if message.tag is None]

    def tagged_system_messages(self, tag: str | None = None) -> list[SystemMessage]:
        """Those with this tag, or all tagged ones."""
        return [m for m in self._system if m.tag is not None and (tag is None or m.tag == tag)]

    def add_system(self, message: Any, tag: str | None = None) -> MessageList:
        """Add a system message; untagged ones last for the step (from process_input: for the run), tagged ones stay.

        Args:
            message: a text, a SystemMessage, a role/content dict or a list of these.
            tag: a name to find and clear it by.
        """
        for each in system_messages(message, tag=tag, where="add_system"):
            if each.tag is None or each not in self._system:
                self._system.append(each)
        return self

    def clear_system(self, tag: str | None = None) -> MessageList:
        """Remove the system messages with this tag, or the untagged ones."""
        self._system = [message for message in self._system if message.tag != tag]
        return self

    def replace_system(self, messages: Any) -> MessageList:
        """Put these in the place of the untagged system messages."""
        fresh = system_messages(messages, tag=None, where="replace_system")
        self._system = [*fresh, *self.tagged_system_messages()]
        return self

    def restore_system(self, untagged: list[SystemMessage]) -> None:
        """For the runtime: begin a step with the untagged ones it had after process_input; tagged ones stay."""
        if untagged or self._system:
            self._system = [*untagged, *self.tagged_system_messages()]

    def prompt_system(self) -> list[SystemMessage]:
        """For the prompt: the untagged ones, then the tagged ones as they came."""
        return [*self.system_messages, *self.tagged_system_messages()]


def system_messages(given: Any, *, tag: str | None, where: str) -> list[SystemMessage]:
    """System messages from a text, a message, a role/content dict or a list of these.

    Raises:
        UsageError: something else.
    """
    if given is None:
        return []
    single = isinstance(given, str | SystemMessage | Message) or is_mapping(given)
    if not single and not hasattr(given, "__iter__"):
        raise UsageError(f"{where}: a system message is a text, or a list of texts, not {described(given)}")
    items: list[Any] = [given] if single else list(given)  # type: ignore[arg-type]
    made: list[SystemMessage] = []
    for item in items:
        if isinstance(item, SystemMessage):
            made.append(item if tag is None else item.replace(tag=tag))
            continue
        text: Any = (
            item.text if isinstance(item, Message) else item.get("content") if is_mapping(item) else item
        )
        if not isinstance(text, str):
            raise UsageError(f"{where}: a system message is a text, not {described(item)}")
        made.append(SystemMessage(content=text, tag=tag))
    return made
