"""The guards in front of an existing application: an OpenAI chat completion's SSE bytes in, the same form out."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, NoReturn, TypeAlias, cast

import msgspec
from msgspec import json

from interlock.core.errors import TripWireError
from interlock.guarding import Guard, feed, open_tracks, passed, pieces_of
from interlock.release.channels import Channel, texts_in_value, visit_async
from interlock.release.track import Track
from interlock.release.unit_track import UnitTrack

log = logging.getLogger("interlock")

Json: TypeAlias = dict[str, Any]

FIELDS: dict[str, Channel] = {
    "content": "text",
    "refusal": "text",
    "audio": "text",
    "reasoning_content": "reasoning",
    "reasoning": "reasoning",
    "reasoning_details": "reasoning",
    "thinking": "reasoning",
    "thinking_blocks": "reasoning",
}
"""Fields of a delta that are texts, or hold them in parts, by the channel that guards them."""

NO_TEXT = frozenset({"type", "id", "index", "format", "signature", "data", "image_url"})
"""Keys of a part under which no text stands."""

FRAME = ("id", "object", "created", "model", "system_fingerprint", "service_tier", "provider")
"""What an event repeats of the answer; an event that is added repeats it too."""

ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
LINE_END = re.compile(rb"\r\n|\n|\r")
BOM = b"\xef\xbb\xbf"
DONE = b"data: [DONE]\n\n"


async def guard_sse(
    stream: AsyncIterable[bytes] | Iterable[bytes], guards: Sequence[Guard]
) -> AsyncGenerator[bytes, None]:
    """The SSE bytes of a streamed OpenAI chat completion through guards, as they arrive.

    Each choice's content, reasoning and refusal is one text, whose pieces leave as soon as they are decided; the
    arguments of a tool call leave at once, before the choice's finish reason. Everything else passes as it is and in
    its order, behind the text in front of it. A guard sees what its ``channels`` name: content and refusals are
    ``text``, ``reasoning`` and ``tool-arguments`` are what they say.

    Log probabilities repeat the text token by token: they stay where they belong to text that passed as it came, and
    are null elsewhere. A choice's ``message``, which some providers send along with its deltas, is left out.

    A block ends the stream: an event ``{"error": {"message": ..., "type": "tripwire", "code": "<processor id>"}}``,
    then ``[DONE]``. So does what cannot be read, unless all guards have the ``error_strategy`` ``warn``: then it is
    left out. It is never passed on.

    Args:
        stream: the response's bytes, sync or async, cut anywhere. An async generator is closed at the end.
        guards: guards such as ``RegexFilter``, or of your own (SpanGuard, UnitGuard), in order; see
            :func:`interlock.guard_stream`. A unit of reasoning ends where text follows it.

    Yields:
        Whole events; never an empty piece.

    Raises:
        UsageError: something that is no guard.
    """
    reader = _Reader(guards)
    async with aclosing(pieces_of(stream)) as pieces:
        try:
            try:
                async for piece in pieces:
                    for line in reader.lines(piece):
                        await reader.read_line(line)
                        for out in reader.taken():
                            yield out
                await reader.end()
                for out in reader.taken():
                    yield out
            except TripWireError as block:
                yield reader.ending(block)
        finally:
            if isinstance(stream, AsyncGenerator):
                await cast("AsyncGenerator[bytes, None]", stream).aclose()


class _Unreadable(Exception):
    """Something in the stream that is not what it should be."""


class _Piece:
    """An event's piece of a text: where it stands in the event, and what has been decided of it."""

    __slots__ = ("cut", "done", "holder", "key", "out", "text")

    def __init__(self, holder: Any, key: Any) -> None:
        self.holder = holder  # an object or an array
        self.key = key
        self.text: str = holder[key]
        self.out = ""
        self.cut = False  # a part of it has left in an event of its own
        self.done = False

    @property
    def unchanged(self) -> bool:
        return self.out == self.text and not self.cut


class _Text:
    """One text through its guards, each with the pieces that wait in front of it."""

    __slots__ = ("_stages",)

    def __init__(self, tracks: list[Track | UnitTrack]) -> None:
        self._stages: list[tuple[Track | UnitTrack, deque[tuple[_Piece, int, bool]]]] = [
            (each, deque()) for each in tracks
        ]

    async def push(self, piece: _Piece) -> None:
        await self._hand(0, piece, piece.text, last=True)

    async def finish(self) -> None:
        for number, (track, _) in enumerate(self._stages):
            await feed(track, "", final=True)
            await self._drain(number)

    async def finish_units(self) -> None:
        """Another text follows: a unit under way is complete; else that text would wait for the end."""
        for number, (track, _) in enumerate(self._stages):
            if isinstance(track, UnitTrack):
                await feed(track, "", final=True)
                await self._drain(number)

    async def _hand(self, number: int, piece: _Piece, text: str, *, last: bool) -> None:
        """Text of a piece to a guard, or out behind the last; ``last``: of this piece there is no more."""
        if number == len(self._stages):
            piece.out += text
            piece.done = last
            return
        track, waiting = self._stages[number]
        waiting.append((piece, len(text), last))
        if text:
            await feed(track, text)
        await self._drain(number)

    async def _drain(self, number: int) -> None:
        track, waiting = self._stages[number]
        while waiting:
            piece, length, last = waiting[0]
            taken, text = track.take(length)
            complete = taken == length
            if complete:
                waiting.popleft()
            else:
                waiting[0] = (piece, length - taken, last)
            if text or (complete and last):
                await self._hand(number + 1, piece, text, last=complete and last)
            if not complete:
                return


_Found: TypeAlias = tuple[Channel, tuple[str, ...], _Piece]
"""A piece of a text: its channel, its way there, itself."""


class _Call:
    """A tool call whose arguments are kept until the choice is finished."""

    __slots__ = ("ambiguous", "arguments", "id", "index", "legacy", "name")

    def __init__(self, index: int | None, *, legacy: bool = False) -> None:
        self.index = index
        self.legacy = legacy
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.ambiguous = index is None

    def delta(self, arguments: str) -> Json:
        function = {"arguments": arguments}
        if self.legacy:
            return {"function_call": function}
        call: Json = {} if self.index is None else {"index": self.index}
        if self.ambiguous and self.id:
            call["id"] = self.id
        return {"tool_calls": [{**call, "function": function}]}


class _Choice:
    """The texts and calls of one choice."""

    __slots__ = ("_by_index", "calls", "finished", "texts")

    def __init__(self) -> None:
        self.texts: dict[tuple[str, ...], _Text] = {}
        self.calls: list[_Call] = []
        self.finished = False
        self._by_index: dict[int | None, _Call] = {}

    async def finish_reasoning(self) -> None:
        """Text follows: the units of reasoning that are under way are complete."""
        for path, text in self.texts.items():
            if FIELDS.get(path[0]) == "reasoning":
                await text.finish_units()

    def call_of(self, index: int | None, id: str, name: str) -> _Call:
        """The call a piece belongs to. Some providers leave the index out, or number every call 0."""
        same = self._by_index.get(index)
        known = next((call for call in self.calls if id and call.id == id), None) or same
        begins = bool(known and id and name and known.id and id != known.id)
        if known is None or begins:
            known = _Call(index)
            self.calls.append(known)
            if same is not None:
                same.ambiguous = known.ambiguous = True
        self._by_index[index] = known
        known.id = known.id or id
        known.name = known.name or name
        return known

    def legacy_call(self) -> _Call:
        known = next((call for call in self.calls if call.legacy), None)
        if known is None:
            known = _Call(None, legacy=True)
            self.calls.append(known)
        return known


class _Entry:
    """What waits in the line: lines as they came, or an event that may have to change."""

    __slots__ = ("changed", "event", "lines", "pieces")

    def __init__(self, lines: list[bytes], event: Json | None = None) -> None:
        self.lines = lines
        self.event = event
        self.changed = False
        self.pieces: list[tuple[Json, _Piece]] = []  # with the choice each is of


class _Reader:
    """Bytes in, whole events out. No I/O."""

    def __init__(self, guards: Sequence[Guard]) -> None:
        open_tracks(guards, [])  # tells whether these are guards
        self._guards = list(guards)
        self._buffer = bytearray()
        self._searched = 0
        self._begun = False
        self._block: list[bytes] = []
        self._data: list[bytes] = []
        self._choices: dict[int, _Choice] = {}
        self._frame: Json = {}
        self._line: deque[_Entry] = deque()
        self._out: list[bytes] = []
        self._unended = False

    def lines(self, piece: bytes) -> Iterator[bytes]:
        """The lines that are complete now."""
        self._buffer += piece
        return self._lines(final=False)

    def taken(self) -> list[bytes]:
        """What may leave now; asked once."""
        out, self._out = self._out, []
        return out

    async def end(self) -> None:
        """The stream has ended, perhaps within an event."""
        for line in self._lines(final=True):
            await self.read_line(line)
        if self._block:
            await self._close_block()
        await self._finish_all()
        self._leave()

    def ending(self, block: TripWireError) -> bytes:
        error = {"message": block.reason, "type": "tripwire", "code": block.processor_id}
        before = b"\n\n" if self._unended else b""
        return before + b"data: " + json.encode({"error": error}) + b"\n\n" + DONE

    # ---------------------------------------------------------------------------------------------------------- lines

    def _lines(self, *, final: bool) -> Iterator[bytes]:
        """The complete lines, with their ends: CR, LF or both."""
        buffer = self._buffer
        if not self._begun:
            if not final and len(buffer) < len(BOM) and BOM.startswith(buffer):
                return
            self._begun = True
            if buffer.startswith(BOM):
                self._line.append(_Entry([BOM]))
                del buffer[: len(BOM)]
        if not final and buffer.find(b"\n", self._searched) < 0 and buffer.find(b"\r", self._searched) < 0:
            self._searched = len(buffer)
            return
        text, at, start = bytes(buffer), self._searched, 0
        while (found := LINE_END.search(text, at)) is not None:
            if found[0] == b"\r" and found.end() == len(text) and not final:
                break  # an LF may follow
            yield text[start : found.end()]
            start = at = found.end()
        if final and start < len(text):
            yield text[start:]
            start = len(text)
        del buffer[:start]
        self._searched = len(buffer) - buffer.endswith(b"\r")

    async def read_line(self, line: bytes) -> None:
        """One line, with its end."""
        content = line.rstrip(b"\r\n")
        if not content:
            self._block.append(line)
            await self._close_block()
            return
        name, _, value = content.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name not in (b"", b"event", b"id", b"retry"):
            self._unread("a line that is no SSE field")
            return
        elif not name and not self._block:
            self._line.append(_Entry([line]))  # a comment between events does not wait for more
            self._leave()
            return
        self._block.append(line)

    async def _close_block(self) -> None:
        lines, self._block = self._block, []
        data, self._data = b"\n".join(self._data), []
        try:
            await self._read_event(lines, data)
        except _Unreadable as problem:
            self._unread(str(problem))
        except RecursionError:
            self._unread("an event is nested too deeply")
        self._leave()

    def _unread(self, what: str) -> None:
        for guard in self._guards:
            if guard.error_strategy == "strict":
                reason = f"the stream could not be read: {what}"
                raise TripWireError(reason, processor_id=guard.id, metadata={"check_failed": True})
        log.warning("guard_sse left out what could not be read: %s", what)

    # --------------------------------------------------------------------------------------------------------- events

    async def _read_event(self, lines: list[bytes], data: bytes) -> None:
        if data.strip() == b"[DONE]":
            await self._finish_all()
            self._line.append(_Entry(lines))
            return
        if not data.strip():
            self._line.append(_Entry(lines))
            return
        try:
            event = _dict(json.decode(data), "an event")
        except (msgspec.DecodeError, RecursionError):
            raise _Unreadable("an event is not valid JSON") from None
        entry = _Entry(lines, event)
        choices = [_dict(choice, "a choice") for choice in _list(event.get("choices"), "choices")]
        self._frame = {key: event[key] for key in FRAME if key in event} or self._frame
        fresh: list[_Entry] = []
        for choice in choices:
            await self._read_choice(choice, entry, fresh)
        self._line.extend([*fresh, entry])

    async def _read_choice(self, given: Json, entry: _Entry, before: list[_Entry]) -> None:
        index = given.get("index", 0)
        if not isinstance(index, int):
            raise _Unreadable("a choice's index is no number")
        choice = self._choices.setdefault(index, _Choice())
        if self._guards and "message" in given:
            del given["message"]
            entry.changed = True
        found: list[_Found] = []
        found.extend(("text", ("text",), piece) for piece in _texts(given, "text"))
        delta = given.get("delta")
        calls: list[tuple[_Call, Json]] = []
        if delta is not None:
            delta = _dict(delta, "a delta")
            for field, channel in FIELDS.items():
                if field in delta:
                    found.extend((channel, path, piece) for path, piece in _pieces(delta, field, (field,)))
            if self._of("tool-arguments"):
                calls = list(self._calls(choice, delta))
        await self._push(choice, given, entry, found)
        self._keep(choice, entry, calls)
        if given.get("finish_reason"):
            await self._finish(choice)
            here = {id(call): function for call, function in calls}
            for call, arguments in await self._arguments(choice):
                if id(call) in here:
                    here[id(call)]["arguments"] = arguments
                    entry.changed = True
                else:
                    before.append(self._added(index, call.delta(arguments)))

    async def _push(
        self,
        choice: _Choice,
        given: Json,
        entry: _Entry,
        found: list[_Found],
    ) -> None:
        for channel, path, piece in found:
            guards = self._of(channel)
            if choice.finished and piece.text and guards:
                raise _Unreadable("text came behind the finish reason")
            if channel == "text" and piece.text:
                await choice.finish_reasoning()
            if path not in choice.texts:
                choice.texts[path] = _Text(open_tracks(guards, [], channel))
            entry.pieces.append((given, piece))
            await choice.texts[path].push(piece)

    def _of(self, channel: Channel) -> list[Guard]:
        return [guard for guard in self._guards if channel in guard.channels]

    # ---------------------------------------------------------------------------------------------------------- calls

    def _calls(self, choice: _Choice, delta: Json) -> Iterator[tuple[_Call, Json]]:
        """The calls a delta speaks of, each with the object its arguments stand in."""
        for item in _list(delta.get("tool_calls"), "tool_calls"):
            piece = _dict(item, "a tool call")
            if piece.get("function") is None:
                continue
            function = _dict(piece["function"], "a tool call's function")
            index, id, name = piece.get("index"), piece.get("id"), function.get("name")
            yield (
                choice.call_of(
                    index if isinstance(index, int) else None,
                    id if isinstance(id, str) else "",
                    name if isinstance(name, str) else "",
                ),
                function,
            )
        if delta.get("function_call") is not None:
            yield choice.legacy_call(), _dict(delta["function_call"], "a function call")

    def _keep(self, choice: _Choice, entry: _Entry, calls: list[tuple[_Call, Json]]) -> None:
        for call, function in calls:
            arguments = function.get("arguments")
            if not arguments:
                continue
            if not isinstance(arguments, str):
                arguments = json.encode(arguments).decode()
            if choice.finished:
                raise _Unreadable("arguments came behind the finish reason")
            call.arguments.append(arguments)
            function["arguments"] = ""
            entry.changed = True

    async def _arguments(self, choice: _Choice) -> list[tuple[_Call, str]]:
        """The calls of a finished choice, with what stands for their arguments."""
        found: list[tuple[_Call, str]] = []
        for call in choice.calls:
            if text := "".join(call.arguments):
                call.arguments.clear()
                found.append((call, await self._guarded_arguments(text)))
        return found

    async def _guarded_arguments(self, text: str) -> str:
        try:
            texts = texts_in_value(json.decode(text), "tool-arguments")
            return json.encode(await visit_async(texts, self._all_guarded)).decode()
        except (msgspec.DecodeError, RecursionError):
            pass  # cut off at the token limit, say
        plain = ESCAPE.sub(_unescaped, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        guarded = await self._guarded(plain)
        return guarded if guarded != plain else await self._guarded(text)

    async def _all_guarded(self, texts: list[str], channel: Channel) -> list[str]:
        return [await self._guarded(text) for text in texts]

    async def _guarded(self, text: str) -> str:
        return await passed(open_tracks(self._of("tool-arguments"), [], "tool-arguments"), text, final=True)

    # -------------------------------------------------------------------------------------------------------- the end

    async def _finish(self, choice: _Choice) -> None:
        if not choice.finished:
            choice.finished = True
            for text in choice.texts.values():
                await text.finish()

    async def _finish_all(self) -> None:
        for index, choice in self._choices.items():
            await self._finish(choice)
            for call, arguments in await self._arguments(choice):
                self._line.append(self._added(index, call.delta(arguments)))

    def _added(self, index: int, delta: Json) -> _Entry:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
        entry = _Entry([b"data:\n", b"\n"], {**self._frame, "choices": [choice]})
        entry.changed = True
        return entry

    # -------------------------------------------------------------------------------------------------------- leaving

    def _leave(self) -> None:
        """What may leave: all in front of the first event that waits, and what is decided of that one's texts."""
        while self._line:
            entry = self._line[0]
            if not all(piece.done for _, piece in entry.pieces):
                if part := self._part(entry):
                    self._send(part)
                return
            self._line.popleft()
            self._send(self._rendered(entry))

    def _part(self, entry: _Entry) -> bytes:
        choices: list[Json] = []
        for choice, piece in entry.pieces:
            delta: Json | None = choice.get("delta")
            if delta is None or not piece.out or piece.holder is not delta:
                continue
            part: Json = {"role": delta["role"]} if delta.get("role") else {}
            part[piece.key] = piece.out
            choices.append({"index": choice.get("index", 0), "delta": part, "finish_reason": None})
            piece.out, piece.cut = "", True
        if not choices:
            return b""
        frame = {key: value for key, value in (entry.event or {}).items() if key in FRAME}
        return _with_data(entry.lines, {**frame, "choices": choices})

    def _send(self, out: bytes) -> None:
        if out:
            before = b"\n\n" if self._unended else b""
            self._unended = not _ended(out)
            self._out.append(before + out)

    def _rendered(self, entry: _Entry) -> bytes:
        """An event whose texts are decided; as it came, where they did not change."""
        event = entry.event
        if event is None:
            return b"".join(entry.lines)
        changed = entry.changed
        for choice in cast("list[Json]", event.get("choices") or ()):
            pieces = [piece for of, piece in entry.pieces if of is choice]
            whole = all(piece.unchanged for piece in pieces)
            if (
                self._guards
                and choice.get("logprobs")
                and not (
                    whole and _tokens(choice["logprobs"]) in ("", "".join(piece.text for piece in pieces))
                )
            ):
                choice["logprobs"] = None
                changed = True
            if not whole:
                changed = True
                for piece in pieces:
                    piece.holder[piece.key] = piece.out
        if not changed:
            return b"".join(entry.lines)
        return b"" if _says_nothing(event) else _with_data(entry.lines, event)


def _ended(out: bytes) -> bool:
    """Whether the next line begins an event of its own; not so where the stream ended within one."""
    if out == BOM or not out.strip(b"\r\n"):
        return True
    line_ends = out[-4:].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return line_ends.endswith(b"\n\n") or (out.startswith(b":") and line_ends.endswith(b"\n"))


def _with_data(lines: list[bytes], event: Json) -> bytes:
    """An event's lines with other data."""
    out: list[bytes] = []
    written = False
    for line in lines:
        if not (line.startswith(b"data:") or line.rstrip(b"\r\n") == b"data"):
            out.append(line)
        elif not written:
            written = True
            out.append(b"data: " + json.encode(event) + (line[len(line.rstrip(b"\r\n")) :] or b"\n"))
    if lines[-1].strip(b"\r\n"):
        out.append(b"\n")  # the stream ended within the event
    return b"".join(out)


def _says_nothing(event: Json) -> bool:
    """Whether nothing is left of an event but its frame."""
    for key, value in event.items():
        if value and key not in (*FRAME, "choices", "obfuscation"):
            return False
    choices = cast("list[Json]", event.get("choices") or [])
    for choice in choices:
        if any(value for key, value in choice.items() if key not in ("index", "delta")):
            return False
        for key, value in cast(Json, choice.get("delta") or {}).items():
            if value and not (key == "tool_calls" and all(_empty_call(call) for call in value)):
                if key == "function_call" and not any(value.values()):
                    continue
                return False
    return bool(choices)


def _empty_call(call: Json) -> bool:
    function: Json = call.get("function") or {}
    return not any(function.values()) and not any(
        value for key, value in call.items() if key not in ("index", "type", "function")
    )


def _texts(holder: Json, key: str) -> list[_Piece]:
    return [_Piece(holder, key)] if isinstance(holder.get(key), str) else []


def _pieces(holder: Any, key: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], _Piece]]:
    """The texts at a place, a string or parts of any depth. Parts' ``text`` and a plain string are one text."""
    value: Any = holder[key]
    if isinstance(value, str):
        yield path, _Piece(holder, key)
    elif isinstance(value, list):
        for number in range(len(cast("list[Any]", value))):
            yield from _pieces(value, number, path)
    elif isinstance(value, dict):
        for name in cast(Json, value):
            if name not in NO_TEXT:
                yield from _pieces(value, name, path if name == "text" else (*path, name))


def _tokens(logprobs: Any) -> str | None:
    """The text log probabilities repeat; None where they are of an unknown form."""
    if not isinstance(logprobs, dict) or not set(cast(Json, logprobs)) <= {"content", "refusal"}:
        return None
    found: list[str] = []
    for items in cast(Json, logprobs).values():
        for item in items or ():
            if not isinstance(item, dict) or not isinstance(token := cast(Json, item).get("token"), str):
                return None
            found.append(token)
    return "".join(found)


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return ESCAPED.get(escape[2], escape[2])


def _dict(value: Any, what: str) -> Json:
    if not isinstance(value, dict):
        _wrong(what)
    return cast(Json, value)


def _list(value: Any, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        _wrong(what)
    return cast("list[Any]", value)


def _wrong(what: str) -> NoReturn:
    raise _Unreadable(f"{what} is not of the form it should be")
