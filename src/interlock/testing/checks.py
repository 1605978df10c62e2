"""What a client never got, and what it got is what was kept: assertions for tests (spec R0)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

import msgspec

from interlock.core.chunks import Chunk, ReasoningDelta, StepFinish, StepStart, TextDelta, ToolInputDelta
from interlock.core.errors import UsageError
from interlock.core.given import given_messages
from interlock.core.jsonable import jsonable
from interlock.core.record import FrozenRecord, Record
from interlock.core.result import RunResult
from interlock.core.shapes import described, is_mapping, is_sequence
from interlock.testing.places import Leak, Span, first_leak
from interlock.wire import from_wire

Sent: TypeAlias = "Iterable[str | Chunk | Mapping[str, Any]]"


class Matcher(Protocol):
    """A compiled pattern, of ``re`` or of ``regex``."""

    @property
    def pattern(self) -> Any:
        """Its source."""
        ...

    def finditer(self, string: str, /) -> Iterator[Any]:
        """Its matches."""
        ...


class Piece(FrozenRecord, frozen=True):
    """A text somewhere in what was sent: ``sent[index]``, and where in it."""

    index: int
    where: str
    text: str

    def __str__(self) -> str:
        return f"sent[{self.index}]{self.where}"


# ---------------------------------------------------------------------------------------------------------- never sent


def never_sent(
    sent: Sent,
    forbidden: str | Matcher | set[str] | frozenset[str] | Sequence[Any],
    *,
    whole: str | None = None,
    min_piece: int = 3,
    replacements: Sequence[str] = (),
) -> None:
    """Fail if the client got anything forbidden, in one chunk or in pieces over several.

    Chunks are looked through in every channel: text, reasoning, tool arguments and results, data, titles, errors,
    steps and messages. What a client joins is joined, for each attempt at a step by itself; withdrawn attempts were
    sent too.

    Args:
        sent: pieces of text of one stream, or chunks (also in their JSON form).
        forbidden: one of

            * a pattern (``regex`` syntax, or compiled): neither a chunk by itself nor the joined text may match it;
            * a set of characters that occur in nothing but what was to be removed: none of them may appear;
            * the removed spans of the ``whole`` text: (start, end) pairs or a guard's detections. What stands in
              their places is looked at, so that the same words elsewhere are no alarm.
        whole: the text before its spans were removed; of chunks, that of each step.
        min_piece: how many characters of a span, next to each other, are a leak. A shorter span leaks only whole.
        replacements: texts that stand for spans and look like a piece of one, such as ``["[email]"]``.

    Raises:
        AssertionError: says what was sent, and in which pieces.
        UsageError: nothing that can be checked.

    >>> never_sent(["write to ", "[EMAIL]"], r"bob|smith")
    >>> never_sent(["ask bob: bo", "b@x.org"], [(9, 18)], whole="ask bob: bob@x.org")
    Traceback (most recent call last):
    AssertionError: never_sent: 'bob@x.org' of whole[9:18] was sent in sent[0] and sent[1]: 'ask bob: bo' | 'b@x.org'
    """
    pieces, streams = _read(sent)
    if isinstance(forbidden, set | frozenset):
        _no_match(pieces, streams, _alphabet(forbidden), "of the forbidden characters")
    elif isinstance(forbidden, str) or hasattr(forbidden, "finditer"):
        pattern = _compiled(forbidden) if isinstance(forbidden, str) else cast(Matcher, forbidden)
        _no_match(pieces, streams, pattern, f"pattern {pattern.pattern!r}")
    else:
        if whole is None:
            raise UsageError("never_sent: spans are places in a text; give it as whole=...")
        if min_piece < 1:
            raise UsageError(f"never_sent: min_piece is a number from 1, not {min_piece}")
        spans = _spans(cast(Sequence[Any], forbidden), whole)
        for name, stream in streams.items():
            if name[1] == "text" and (text := _joined(stream)):
                leak = first_leak(text, whole, spans, min_piece, replacements)
                if leak is not None:
                    raise AssertionError(f"never_sent: {_told(leak, stream, whole)}")


def _no_match(pieces: list[Piece], streams: Mapping[Any, list[Piece]], pattern: Matcher, what: str) -> None:
    for piece in pieces:
        for start, end in _matches(pattern, piece.text):
            raise AssertionError(
                f"never_sent: {piece} holds {piece.text[start:end]!r} ({what}): {_excerpt(piece.text, start, end)}"
            )
    for stream in streams.values():
        text = _joined(stream)
        for start, end in _matches(pattern, text):
            raise AssertionError(
                f"never_sent: {text[start:end]!r} ({what}) was sent in {_over(stream, start, end)}"
            )


def _matches(pattern: Matcher, text: str) -> Iterator[tuple[int, int]]:
    return ((found.start(), found.end()) for found in pattern.finditer(text) if found.end() > found.start())


def _compiled(source: str) -> Matcher:
    import regex

    try:
        return cast(Matcher, regex.compile(source))
    except regex.error as problem:
        raise UsageError(f"never_sent: the pattern does not compile: {problem}") from None


def _alphabet(characters: set[str] | frozenset[str]) -> Matcher:
    if not characters or any(len(each) != 1 for each in characters):
        raise UsageError(
            "never_sent: a set holds single characters, such as set('€§'); for words write a pattern"
        )
    return re.compile(f"[{''.join(re.escape(each) for each in sorted(characters))}]+")


def _spans(given: Sequence[Any], whole: str) -> list[Span]:
    spans: list[Span] = []
    for each in given:
        if hasattr(each, "offset") and hasattr(each, "length"):
            start, end = each.offset, each.offset + each.length
        elif hasattr(each, "start") and hasattr(each, "end"):
            start, end = each.start, each.end
        elif isinstance(each, tuple | list) and len(pair := cast("list[Any]", each)) == 2:
            start, end = pair
        else:
            raise UsageError(
                f"never_sent: a span is a pair (start, end) or a detection, not {described(cast(Any, each))}"
            )
        if not isinstance(start, int) or not isinstance(end, int):
            raise UsageError("never_sent: a span's start and end are numbers")
        if not 0 <= start <= end <= len(whole):
            raise UsageError(
                f"never_sent: the span {start}:{end} is not inside the whole text of {len(whole)} characters"
            )
        spans.append((start, end))
    return spans


def _told(leak: Leak, stream: list[Piece], whole: str) -> str:
    if leak.span is None:
        return (
            f"what was sent is not the whole text with these spans replaced: from character {leak.start} on it does "
            f"not fit, {_excerpt(_joined(stream), leak.start, leak.start)}, in {_over(stream, leak.start, leak.end)}"
        )
    start, end = leak.span
    sent_there = _joined(stream)[leak.start : leak.end]
    return f"{sent_there!r} of whole[{start}:{end}] was sent in {_over(stream, leak.start, leak.end)}"


def _over(stream: list[Piece], start: int, end: int) -> str:
    """The pieces that make up this part of the joined text."""
    at = 0
    touched: list[Piece] = []
    for piece in stream:
        if piece.text and at < max(end, start + 1) and at + len(piece.text) > start:
            touched.append(piece)
        at += len(piece.text)
    touched = touched or stream[-1:]
    names = [str(piece) for piece in touched]
    named = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"{named}: {' | '.join(repr(_short(piece.text)) for piece in touched)}"


def _excerpt(text: str, start: int, end: int, around: int = 20) -> str:
    before, after = max(start - around, 0), end + around
    return f"{'…' if before else ''}{text[before:after]!r}{'…' if after < len(text) else ''}"


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-most // 2 :]}"


# ---------------------------------------------------------------------------------------------------- saved equals sent


def saved_equals_sent(sent: Sent, messages: RunResult | Sequence[Any]) -> None:
    """Fail unless the text the client is left with is the assistant's text that was kept.

    Args:
        sent: pieces of text, or a run's chunks (also in their JSON form). What a step-finish with reason ``retry``
            withdraws does not count.
        messages: what was stored, in any form of a message. Only what follows the last user message counts: the turn.
            A result stands for its messages.

    Raises:
        AssertionError: says where the two differ.

    >>> from interlock.messages import Content, Message, TextPart
    >>> stored = Message(id="m", role="assistant", content=Content(parts=[TextPart(text="Hello")]))
    >>> saved_equals_sent(["Hel", "lo"], [stored])
    """
    client, stored = client_text(sent), _turn_text(messages)
    if client != stored:
        at = next((i for i, (a, b) in enumerate(zip(client, stored, strict=False)) if a != b), None)
        at = min(len(client), len(stored)) if at is None else at
        raise AssertionError(
            f"saved_equals_sent: from character {at} on the client has {_excerpt(client, at, at)} and storage has "
            f"{_excerpt(stored, at, at)} ({len(client)} and {len(stored)} characters)"
        )


def client_text(sent: Sent) -> str:
    """The text a client is left with: all of it but what was withdrawn."""
    steps: list[list[str]] = []
    under_way = False
    for each in sent:
        chunk = _chunk(each)
        match chunk:
            case StepStart():
                steps.append([])
                under_way = True
            case StepFinish(finish_reason="retry"):
                del steps[
                    -1:
                ]  # the attempt under way, or, after process_output_result, the step just finished
                under_way = False
            case StepFinish():
                under_way = False
            case str() | TextDelta():
                if not under_way:
                    steps.append([])
                    under_way = True
                steps[-1].append(chunk if isinstance(chunk, str) else chunk.text)
            case _:
                pass
    return "".join(text for step in steps for text in step)


def _turn_text(messages: RunResult | Sequence[Any]) -> str:
    given = messages.messages if isinstance(messages, RunResult) else list(messages)
    kept = given_messages(given, new_id=str) if given else []
    turn: list[str] = []
    for message in kept:
        if message.role == "user":
            turn.clear()
        elif message.role == "assistant":
            turn.append(message.text)
    return "".join(turn)


# -------------------------------------------------------------------------------------------------- what was sent, read

_UNREAD = frozenset(
    {"type", "id", "tool_call_id", "message_id", "thread_id", "resource_id", "processor_id"}
) | {
    "finish_reason",
    "mark",
    "role",
    "state",
    "created_at",
}
"""Fields of our own records that hold names and marks, no content."""


def _read(sent: Sent) -> tuple[list[Piece], dict[tuple[Any, ...], list[Piece]]]:
    """Every text in what was sent; and what a client joins, by attempt, channel and id."""
    if isinstance(sent, str):
        sent = [sent]
    pieces: list[Piece] = []
    streams: dict[tuple[Any, ...], list[Piece]] = {}
    attempt = 0
    for index, each in enumerate(sent):
        chunk = _chunk(each)
        if isinstance(chunk, str):
            piece = Piece(index, "", chunk)
            pieces.append(piece)
            streams.setdefault((0, "text"), []).append(piece)
            continue
        pieces += [Piece(index, where, text) for where, text in _texts(chunk, "", ())]
        match chunk:
            case StepStart() | StepFinish():
                attempt += 1
            case TextDelta():
                streams.setdefault((attempt, "text"), []).append(Piece(index, ".text", chunk.text))
            case ReasoningDelta():
                streams.setdefault((attempt, "reasoning"), []).append(Piece(index, ".text", chunk.text))
            case ToolInputDelta():
                name = (attempt, "tool-input", chunk.tool_call_id)
                streams.setdefault(name, []).append(Piece(index, ".args_text", chunk.args_text))
            case _:
                pass
    return pieces, streams


def _joined(stream: list[Piece]) -> str:
    return "".join(piece.text for piece in stream)


def _chunk(each: Any) -> str | Chunk:
    if isinstance(each, str | Chunk):
        return each
    if is_mapping(each):
        return from_wire(each)
    raise UsageError(f"what was sent is texts or chunks, not {described(each)}")


def _texts(value: Any, where: str, above: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    """Every text in a value, with the way to it."""
    if isinstance(value, str):
        if value:
            yield where, value
        return
    if value is None or isinstance(value, int | float) or id(value) in above:
        return
    inside = (*above, id(value))
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name not in _UNREAD or not isinstance(value, Record | FrozenRecord):
                yield from _texts(getattr(value, name), f"{where}.{name}", inside)
    elif is_mapping(value):
        for key, inner in value.items():
            yield f"{where} (a key)", str(key)
            yield from _texts(inner, f"{where}[{key!r}]", inside)
    elif is_sequence(value):
        for index, inner in enumerate(value):
            yield from _texts(inner, f"{where}[{index}]", inside)
    else:
        yield from _texts(jsonable(value), where, inside)
