"""The guards without the agent: one text, or any stream of text of any framework, through the same processors."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import TypeVar, cast

from interlock.core.errors import InterlockError, TripWireError, UsageError
from interlock.core.record import Record
from interlock.release.guard import Detection, SpanGuard
from interlock.release.track import Track, through

T = TypeVar("T")

log = logging.getLogger("interlock")


class GuardedText(Record, kw_only=True):
    """What guards made of a text, and what they found."""

    text: str
    detections: list[Detection]


async def guard_text(text: str, guards: Sequence[SpanGuard]) -> GuardedText:
    """One text through guards, each seeing what the one before made of it.

    Args:
        text: the text.
        guards: guards such as ``RegexFilter``, in order.

    Returns:
        The text and the finds.

    Raises:
        TripWireError: a guard with strategy ``block`` found something.
        UsageError: something that is no guard.
    """
    detections: list[Detection] = []
    for track in open_tracks(guards, detections):
        (text,) = through(track, [text])
    return GuardedText(text=text, detections=detections)


async def guard_stream(
    stream: AsyncIterable[str] | Iterable[str], guards: Sequence[SpanGuard]
) -> AsyncGenerator[str, None]:
    """A stream of text through guards, as it arrives. The pieces joined are what the guards make of the whole text.

    Args:
        stream: pieces of one text, sync or async; an async generator is closed with this one, and after a block.
        guards: guards such as ``RegexFilter``, in order.

    Yields:
        Pieces that are decided; never an empty one.

    Raises:
        TripWireError: a guard with strategy ``block`` found something; nothing from there on was given out.
        UsageError: something that is no guard.
    """
    tracks = open_tracks(guards, [])
    async with aclosing(pieces_of(stream)) as pieces:
        async for piece in pieces:
            if out := _passed(tracks, piece, final=False):
                yield out
    if out := _passed(tracks, "", final=True):
        yield out


def _passed(tracks: list[Track], text: str, *, final: bool) -> str:
    for track in tracks:
        track.feed(text, final=final)
        text = track.take_all()
    return text


async def pieces_of(stream: AsyncIterable[T] | Iterable[T]) -> AsyncGenerator[T, None]:
    """What a stream gives, whether it is sync or async."""
    if isinstance(stream, AsyncGenerator):
        async with aclosing(cast("AsyncGenerator[T, None]", stream)) as pieces:
            async for piece in pieces:
                yield piece
    elif isinstance(stream, AsyncIterable):
        async for piece in stream:
            yield piece
    else:
        for piece in stream:
            yield piece


def open_tracks(
    guards: Sequence[SpanGuard], detections: list[Detection], channel: str = "text"
) -> list[Track]:
    """A text's way through guards, one track each.

    Args:
        guards: the guards, in order.
        detections: takes what they find.
        channel: where the text belongs.

    Raises:
        UsageError: something that is no guard.
    """
    tracks: list[Track] = []
    if isinstance(guards, SpanGuard):
        raise UsageError("guard_text and guard_stream take a list of guards; write [guard]")
    for guard in guards:
        if not isinstance(guard, SpanGuard):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                "guard_text, guard_stream and guard_sse take guards such as RegexFilter, "
                f"not {type(guard).__name__}"
            )
        tracks.append(guard.open_track(channel, _teller(guard, detections), _failure(guard)))
    return tracks


def _failure(guard: SpanGuard) -> Callable[[InterlockError], None]:
    def failed(problem: InterlockError) -> None:
        if guard.error_strategy == "strict":
            reason = f"a check could not be made: {problem}"
            raise TripWireError(reason, processor_id=guard.id, metadata={"check_failed": True}) from problem
        log.warning("guard %r: a check could not be made: %s", guard.id, problem)

    return failed


def _teller(guard: SpanGuard, detections: list[Detection]) -> Callable[[Detection], None]:
    def tell(detection: Detection) -> None:
        detections.append(detection)
        if guard.on_detection is not None:
            guard.on_detection(detection)
        if guard.strategy == "block":
            metadata = {**detection.detail, "strategy": "block"}
            raise TripWireError(detection.message, processor_id=guard.id, metadata=metadata)

    return tell
