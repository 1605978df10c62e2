"""A step's chunks in the order they came, waiting behind the text that is not decided yet (spec R0, R4.6)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from interlock.core.chunks import Chunk, ReasoningDelta, TextDelta
from interlock.release.track import Decided


class Line:
    """The queue of one step.

    A delta leaves as soon as its text is decided, cut where the decision ends; everything else waits for the text in
    front of it. Ids, provider metadata and empty deltas come through untouched.

    Args:
        open_track: makes the track of a channel (``text``, ``reasoning``) when its first delta comes; None for a
            channel that is not guarded.
    """

    __slots__ = ("_open_track", "_tracks", "_waiting")

    def __init__(self, open_track: Callable[[str], Decided | None]) -> None:
        self._open_track = open_track
        self._tracks: dict[str, Decided | None] = {}
        self._waiting: deque[tuple[Chunk, Decided | None, int]] = deque()

    def push(self, chunk: Chunk) -> list[Chunk]:
        """Take a chunk; give what may leave now."""
        track = self._track_of(chunk)
        if track is None:
            if not self._waiting:
                return [chunk]
            self._waiting.append((chunk, None, 0))
            return []
        assert isinstance(chunk, TextDelta | ReasoningDelta)
        track.feed(chunk.text)
        self._waiting.append((chunk, track, len(chunk.text)))
        return self._drained()

    def _track_of(self, chunk: Chunk) -> Decided | None:
        if type(chunk) is TextDelta:
            channel = "text"
        elif type(chunk) is ReasoningDelta:
            channel = "reasoning"
        else:
            return None
        if channel not in self._tracks:
            self._tracks[channel] = self._open_track(channel)
        return self._tracks[channel]

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
        while self._waiting:
            chunk, track, length = self._waiting[0]
            if track is None or length == 0:
                out.append(chunk)
                self._waiting.popleft()
                continue
            taken, text = track.take(length)
            if taken == 0:
                break
            if taken < length:
                if text:
                    out.append(chunk.replace(text=text, provider_metadata=None))
                self._waiting[0] = (chunk, track, length - taken)
                break
            self._waiting.popleft()
            if text == getattr(chunk, "text", None):
                out.append(chunk)
            elif text or getattr(chunk, "provider_metadata", None) is not None:
                out.append(chunk.replace(text=text))
        return out
