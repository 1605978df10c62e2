"""The guards without the agent: one text, or any stream of text of any framework, through the same processors."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

from interlock.core.errors import TripWire, TripWireError, UsageError
from interlock.core.record import Record
from interlock.core.request_context import RequestContext
from interlock.release.channels import Channel
from interlock.release.guard import Detection, SpanGuard
from interlock.release.track import Track
from interlock.release.unit_guard import UnitGuard
from interlock.release.unit_track import Failed, UnitTrack

T = TypeVar("T")
Guard: TypeAlias = SpanGuard | UnitGuard

log = logging.getLogger("interlock")


class GuardedText(Record, kw_only=True):
    """What guards made of a text, and what they found."""

    text: str
    detections: list[Detection]


async def guard_text(text: str, guards: Sequence[Guard]) -> GuardedText:
    """One text through guards, each seeing what the one before made of it.

    Args:
        text: the text.
        guards: guards such as ``RegexFilter``, or of your own (SpanGuard, UnitGuard), in order. A judge gets a context
            with ``request_context``, ``state`` and ``abort`` only: there is no run.

    Returns:
        The text and the finds.

    Raises:
        TripWireError: a guard with strategy ``block`` found something.
        UsageError: something that is no guard.
    """
    detections: list[Detection] = []
    text = await passed(open_tracks(guards, detections), text, final=True)
    return GuardedText(text=text, detections=detections)


async def guard_stream(
    stream: AsyncIterable[str] | Iterable[str], guards: Sequence[Guard]
) -> AsyncGenerator[str, None]:
    """A stream of text through guards, as it arrives. The pieces joined are what the guards make of the whole text.

    Args:
        stream: pieces of one text, sync or async; an async generator is closed with this one, and after a block.
        guards: guards such as ``RegexFilter``, or of your own (SpanGuard, UnitGuard), in order. A judge gets a context
            with ``request_context``, ``state`` and ``abort`` only: there is no run.

    Yields:
        Pieces that are decided; never an empty one.

    Raises:
        TripWireError: a guard with strategy ``block`` found something; nothing from there on was given out.
        UsageError: something that is no guard.
    """
    tracks = open_tracks(guards, [])
    async with aclosing(pieces_of(stream)) as pieces:
        async for piece in pieces:
            if out := await passed(tracks, piece, final=False):
                yield out
    if out := await passed(tracks, "", final=True):
        yield out


async def feed(track: Track | UnitTrack, text: str, *, final: bool = False) -> None:
    """More of a text into a guard's track; a judge is waited for.

    Raises:
        TripWireError: the guard blocks.
    """
    if not isinstance(track, UnitTrack):
        track.feed(text, final=final)
        return
    try:
        await track.judge(text, final=final)
    except TripWire as trip:  # the judge's own ctx.abort
        raise TripWireError(trip.reason, processor_id=trip.processor_id, metadata=trip.metadata) from None


async def passed(tracks: Sequence[Track | UnitTrack], text: str, *, final: bool) -> str:
    """More of a text through guards in a row. Returns what is decided of it.

    Raises:
        TripWireError: a guard blocks.
    """
    for track in tracks:
        await feed(track, text, final=final)
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
    guards: Sequence[Guard], detections: list[Detection], channel: Channel = "text"
) -> list[Track | UnitTrack]:
    """A text's way through guards, one track each.

    Args:
        guards: the guards, in order.
        detections: takes what they find.
        channel: where the text belongs.

    Raises:
        UsageError: something that is no guard.
    """
    tracks: list[Track | UnitTrack] = []
    if isinstance(guards, Guard):
        raise UsageError("guard_text and guard_stream take a list of guards; write [guard]")
    for guard in guards:
        if not isinstance(guard, Guard):
            raise UsageError(
                "guard_text, guard_stream and guard_sse take guards such as RegexFilter, "
                f"not {type(guard).__name__}"
            )
        tell, failed = _teller(guard, detections), _failure(guard)
        if isinstance(guard, SpanGuard):
            tracks.append(guard.open_track(channel, tell, failed))
        else:
            tracks.append(guard.open_track(channel, tell, failed, cast(Any, _NoRun(guard.id))))
    return tracks


class _NoRun:
    """What a judge gets in place of a run's context."""

    def __init__(self, processor_id: str) -> None:
        self._processor_id = processor_id
        self.request_context = RequestContext()
        self.state: dict[str, Any] = {}
        self.cancelled = False

    def abort(self, reason: str | None = None, *, retry: bool = False, metadata: Any = None) -> NoReturn:
        """Block the text; there is nothing that could be tried again."""
        said = reason or f"blocked by {self._processor_id}"
        raise TripWire(said, processor_id=self._processor_id, retry=retry, metadata=metadata)

    def violation(self, message: str, detail: Any = None) -> None:
        """There is no result that could list it."""
        log.info("guard %r: %s", self._processor_id, message)

    def __getattr__(self, name: str) -> NoReturn:
        said = (
            f"guard {self._processor_id!r} asks for ctx.{name}, but runs without an agent (guard_text, guard_stream, "
            "guard_sse); there ctx has request_context, state, cancelled, abort and violation"
        )
        log.warning("%s", said)  # what a judge raises is told by its kind only
        raise UsageError(said)


def _failure(guard: Guard) -> Failed:
    def failed(problem: object, *, closed: bool | None = None, cause: str | None = None) -> None:
        if guard.error_strategy == "strict" if closed is None else closed:
            detail = {"check_failed": True} if cause is None else {"check_failed": True, "cause": cause}
            reason = f"a check could not be made: {problem}"
            before = problem if isinstance(problem, Exception) else None
            raise TripWireError(reason, processor_id=guard.id, metadata=detail) from before
        log.warning("guard %r: a check could not be made: %s", guard.id, problem)

    return failed


def _teller(guard: Guard, detections: list[Detection]) -> Callable[[Detection], None]:
    def tell(detection: Detection) -> None:
        detections.append(detection)
        if guard.on_detection is not None:
            guard.on_detection(detection)
        if guard.strategy == "block":
            metadata = {**detection.detail, "strategy": "block"}
            raise TripWireError(detection.message, processor_id=guard.id, metadata=metadata)

    return tell
