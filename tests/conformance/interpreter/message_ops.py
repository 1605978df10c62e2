"""Ops on the messages a hook was given: on copies (the hook then returns them) or in place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from interlock import Message
from interlock.messages import Content, TextPart

if TYPE_CHECKING:
    from interpreter.ops import HookRun

TICK = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _copied(message: Message) -> Message:
    parts = [part.replace() for part in message.content.parts]
    return message.replace(content=message.content.replace(parts=parts))


def _array(run: HookRun) -> list[Message]:
    """The working array, begun with the hook's messages."""
    if run.working is None:
        run.working = list(run.messages)
    return run.working


def _targets(run: HookRun, mode: str | None, wanted: Callable[[int, Message], bool]) -> list[Message]:
    """The messages to edit: the given ones themselves, or copies of them in the working array."""
    if mode == "mutate":
        return [message for index, message in enumerate(run.messages) if wanted(index, message)]
    array = _array(run)
    targets: list[Message] = []
    for index, message in enumerate(array):
        if wanted(index, message):
            array[index] = _copied(message)
            targets.append(array[index])
    return targets


def _text_parts(message: Message) -> list[Any]:
    return [part for part in message.content.parts if part.type == "text" and hasattr(part, "text")]


def _of_role(role: str | None) -> Callable[[int, Message], bool]:
    return lambda _, message: role is None or message.role == role


def lowercase_text(run: HookRun, role: str | None = None) -> None:
    """Lower-case every text part."""
    for message in _targets(run, None, _of_role(role)):
        for part in _text_parts(message):
            part.text = part.text.lower()


def replace_text(
    run: HookRun, find: str, replace: str, role: str | None = None, mode: str | None = None
) -> None:
    """Replace all occurrences in text parts."""
    for message in _targets(run, mode, _of_role(role)):
        for part in _text_parts(message):
            part.text = part.text.replace(find, replace)


def append_text_part(run: HookRun, index: int, text: str, mode: str | None = None) -> None:
    """Add a text part to a message."""
    count = len(run.messages if mode == "mutate" else _array(run))
    place = index if index >= 0 else count + index
    for message in _targets(run, mode, lambda number, _: number == place):
        message.content.parts.append(TextPart(text=text))


def retype_parts(run: HookRun, **types: str) -> None:
    """Give parts another type, in place."""
    for message in run.messages:
        for part in message.content.parts:
            if part.type == types["from"]:
                part.type = types["to"]


def set_metadata(run: HookRun, role: str, metadata: dict[str, Any]) -> None:
    """Merge into the messages' metadata."""
    for message in _targets(run, None, _of_role(role)):
        message.content.metadata = {**(message.content.metadata or {}), **metadata}


def remove_message(run: HookRun, index: int) -> None:
    """The array without a message."""
    array = _array(run)
    if -len(array) <= index < len(array):
        del array[index]


def reverse_messages(run: HookRun) -> None:
    """The array reversed."""
    _array(run).reverse()


def add_message(
    run: HookRun, role: Any, text: str, position: str = "end", created_at: str | None = None
) -> None:
    """A new message at an end of the array."""
    array = _array(run)
    times = [message.created_at for message in array if message.created_at is not None]
    if created_at == "epoch":
        moment = EPOCH
    elif position == "start":
        moment = min(times) - TICK if times else datetime.now(UTC)
    else:
        moment = max(times) + TICK if times else datetime.now(UTC)
    message = Message(id="", role=role, content=Content(parts=[TextPart(text=text)]), created_at=moment)
    array.insert(0 if position == "start" else len(array), message)


OPS: dict[str, Callable[..., None]] = {
    each.__name__: each
    for each in (
        lowercase_text,
        replace_text,
        append_text_part,
        retype_parts,
        set_metadata,
        remove_message,
        reverse_messages,
        add_message,
    )
}
