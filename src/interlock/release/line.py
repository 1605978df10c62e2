"""A step's chunks in the order they came, waiting behind the text that is not decided yet (spec R0, R4.6)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from interlock.core.chunks import Chunk, ReasoningDelta, TextDelta
from interlock.release.track import Decided

_CHANNELS: dict[type[Chunk], str] = {TextDelta: "text", ReasoningDelta: "reasoning"}


class _Place:
    """A place in the queue: a chunk, or several deltas of one block that wait as one."""

    __slots__ = ("chunk", "length", "parted", "plain", "track")

    def __init__(self, chunk: Chunk, track: Decided | None, length: int, *, plain: bool) -> None:
        self.chunk = chunk
        self.track = track
        self.length = length
        self.plain = plain  # a delta without metadata
        self.parted = False  # it does not leave as it came

    def takes(self, kind: type[Chunk], block_id: str) -> bool:
        """Whether a plain delta may leave together with this one."""
        if not self.plain or type(self.chunk) is not kind or self.chunk.id != block_id:  # type: ignore[attr-defined]
            return False
        self.parted = True
        return True

    def with_text(self, text: str) -> Chunk:
        """The delta with another text."""
        if self.plain:
            return _bare(self.chunk, text)
        return self.chunk.replace(text=text)


class Line:
    """The queue of one step.

    A delta leaves as soon as its text is decided, cut where the decision ends; everything else waits for the text in
    front of it. Deltas of one block that wait behind each other leave as one, unless they carry provider metadata. Ids,
    provider metadata and empty deltas come through untouched.

    Args:
        open_track: makes the track of a channel (``text``, ``reasoning``) when its first delta comes; None for a
            channel that is not guarded.
    """

    __slots__ = ("_open_track", "_tracks", "_waiting")

    def __init__(self, open_track: Callable[[str], Decided | None]) -> None:
        self._open_track = open_track
        self._tracks: dict[type[Chunk], Decided | None] = {}
        self._waiting: deque[_Place] = deque()

    def push(self, chunk: Chunk) -> list[Chunk]:
        """Take a chunk; give what may leave now."""
        if type(chunk) in _CHANNELS:
            return self.push_delta(chunk)  # type: ignore[arg-type]
        return self._queue(chunk)

    def push_delta(self, chunk: TextDelta | ReasoningDelta) -> list[Chunk]:
        """Take a delta; give what may leave now. This runs once per delta of a stream."""
        kind = type(chunk)
        track = self._tracks[kind] if kind in self._tracks else self._track_of(kind)
        text = chunk.text
        if track is None or not text:
            return self._queue(chunk)
        track.feed(text)
        waiting = self._waiting
        plain = chunk.provider_metadata is None
        if waiting and plain and waiting[-1].takes(kind, chunk.id):
            waiting[-1].length += len(text)
        else:
            waiting.append(_Place(chunk, track, len(text), plain=plain))
        place = waiting[0]
        if len(waiting) > 1 or not place.plain:
            return self._drained()
        taken, text = track.take(place.length)
        if taken < place.length:
            place.length -= taken
            place.parted = True
        else:
            waiting.clear()
            if text == chunk.text and not place.parted:
                return [chunk]
        return [kind(text, chunk.id)] if text else []

    def _queue(self, chunk: Chunk) -> list[Chunk]:
        if not self._waiting:
            return [chunk]
        self._waiting.append(_Place(chunk, None, 0, plain=False))
        return []

    def _track_of(self, kind: type[Chunk]) -> Decided | None:
        track = self._tracks[kind] = self._open_track(_CHANNELS[kind])
        return track

    def finish(self) -> list[Chunk]:
        """The step's texts are complete: everything is decided, everything leaves."""
        for track in self._tracks.values():
            if track is not None:
                track.feed("", final=True)
        left = self._drained()
        self._tracks.clear()
        return left

    def _drained(self) -> list[Chunk]:
        out: list[Chunk] = []
        waiting = self._waiting
        while waiting:
            place = waiting[0]
            if place.track is None:
                out.append(place.chunk)
                waiting.popleft()
                continue
            taken, text = place.track.take(place.length)
            if taken == 0:
                break
            if taken < place.length:
                if text:
                    out.append(_bare(place.chunk, text))
                place.length -= taken
                place.parted = True
                break
            waiting.popleft()
            if not place.parted and text == place.chunk.text:  # type: ignore[attr-defined]
                out.append(place.chunk)
            elif text or not place.plain:
                out.append(place.with_text(text))
        return out


def _bare(chunk: Chunk, text: str) -> Chunk:
    """A delta of the same block, without metadata: that goes with the rest."""
    return type(chunk)(text, chunk.id)  # type: ignore[call-arg, attr-defined]
