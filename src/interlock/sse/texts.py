"""The texts in a choice: where their pieces stand in an event, and their way through the guards."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from interlock.guarding import Guard, feed, open_tracks, passed
from interlock.release.channels import Channel
from interlock.release.track import Track
from interlock.release.unit_track import UnitTrack
from interlock.sse.shapes import Json, object_of

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

COPIES = "provider_specific_fields"
"""Where LiteLLM repeats fields of the delta."""

NO_TEXT = frozenset({"type", "id", "index", "format", "signature", "data", "image_url"})
"""Keys of a part under which no text stands."""

Path: TypeAlias = tuple[str, ...]
"""The keys that lead to a text. Pieces with the same path are one text."""


class Piece:
    """An event's piece of a text: where it stands in the event, and what has been decided of it.

    Attributes:
        holder: the object or array it stands in.
        key: its place there.
        text: as it came.
        out: what stands for it, as far as it is decided and has not left.
        cut: a part of it has left in an event of its own.
        done: all of it is decided.
    """

    __slots__ = ("cut", "done", "holder", "key", "out", "text")

    def __init__(self, holder: Any, key: Any) -> None:
        self.holder = holder
        self.key = key
        self.text: str = holder[key]
        self.out = ""
        self.cut = False
        self.done = False

    @property
    def unchanged(self) -> bool:
        """Whether it stays as it came."""
        return self.out == self.text and not self.cut


class Found(NamedTuple):
    """A piece, and which text it is of."""

    channel: Channel
    path: Path
    piece: Piece


def texts_of(choice: Json) -> Iterator[Found]:
    """The pieces of texts in a choice of an event.

    Raises:
        Unreadable: the delta is no object.
    """
    if isinstance(choice.get("text"), str):  # a completion, not a chat completion
        yield Found("text", ("text",), Piece(choice, "text"))
    if choice.get("delta") is None:
        return
    delta = object_of(choice["delta"], "a delta")
    yield from _in_fields(delta, ())
    if delta.get(COPIES) is not None:
        yield from _in_fields(object_of(delta[COPIES], COPIES), (COPIES,))


def _in_fields(holder: Json, path: Path) -> Iterator[Found]:
    for field, channel in FIELDS.items():
        if field in holder:
            for inner, piece in pieces_at(holder, field, (*path, field)):
                yield Found(channel, inner, piece)


def pieces_at(holder: Any, key: Any, path: Path) -> Iterator[tuple[Path, Piece]]:
    """The texts at a place, a string or parts of any depth. Parts' ``text`` and a plain string are one text."""
    value: Any = holder[key]
    if isinstance(value, str):
        yield path, Piece(holder, key)
    elif isinstance(value, list):
        for number in range(len(cast("list[Any]", value))):
            yield from pieces_at(value, number, path)
    elif isinstance(value, dict):
        for name in cast(Json, value):
            if name not in NO_TEXT:
                yield from pieces_at(value, name, path if name == "text" else (*path, name))


async def guarded_whole(text: str, guards: Sequence[Guard], channel: Channel) -> str:
    """A complete text through guards.

    Raises:
        TripWireError: a guard blocks.
    """
    return await passed(open_tracks(guards, [], channel), text, final=True)


class _Stage:
    """A guard's track, and the pieces whose text is in it: each with its length there and whether more is to come."""

    __slots__ = ("track", "waiting")

    def __init__(self, track: Track | UnitTrack) -> None:
        self.track = track
        self.waiting: deque[tuple[Piece, int, bool]] = deque()


class Passage:
    """One text through its guards. What is decided of it is in its pieces (``out``, ``done``).

    Args:
        channel: where the text belongs.
        tracks: its way through the guards, in order.
    """

    __slots__ = ("_stages", "channel")

    def __init__(self, channel: Channel, tracks: list[Track | UnitTrack]) -> None:
        self.channel: Channel = channel
        self._stages = [_Stage(track) for track in tracks]

    async def push(self, piece: Piece) -> None:
        """The next piece of the text.

        Raises:
            TripWireError: a guard blocks.
        """
        await self._hand(0, piece, piece.text, last=True)

    async def finish(self) -> None:
        """There is no more of the text.

        Raises:
            TripWireError: a guard blocks.
        """
        for number, stage in enumerate(self._stages):
            await feed(stage.track, "", final=True)
            await self._drain(number)

    async def finish_units(self) -> None:
        """Another text follows: a unit under way is complete; else that text would wait for the end.

        Raises:
            TripWireError: a guard blocks.
        """
        for number, stage in enumerate(self._stages):
            if isinstance(stage.track, UnitTrack):
                await feed(stage.track, "", final=True)
                await self._drain(number)

    async def _hand(self, number: int, piece: Piece, text: str, *, last: bool) -> None:
        """Text of a piece to a guard, or out behind the last; ``last``: of this piece there is no more."""
        if number == len(self._stages):
            piece.out += text
            piece.done = last
            return
        stage = self._stages[number]
        stage.waiting.append((piece, len(text), last))
        if text:
            await feed(stage.track, text)
        await self._drain(number)

    async def _drain(self, number: int) -> None:
        """What a guard has decided, to the next one."""
        stage = self._stages[number]
        while stage.waiting:
            piece, length, last = stage.waiting[0]
            taken, text = stage.track.take(length)
            complete = taken == length
            if complete:
                stage.waiting.popleft()
            else:
                stage.waiting[0] = (piece, length - taken, last)
            if text or (complete and last):
                await self._hand(number + 1, piece, text, last=complete and last)
            if not complete:
                return
