"""The order of a thread is that of its turns: times are made to say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from interlock.core.messages import Message

TICK = timedelta(milliseconds=1)
"""The smallest difference that storage keeps (the reference's times have milliseconds)."""

LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""Later times, which a client can send, count as this one: what is said after them needs times too."""


def dated(
    messages: Sequence[Message], known: Mapping[str, datetime], newest: datetime | None
) -> list[datetime]:
    """The times a turn's messages are stored with.

    Times increase within a thread by at least a millisecond, whatever the clocks of its writers say, so that a
    turn's messages stay together, in order, behind what was saved before (spec R3.3).

    Args:
        messages: the turn's.
        known: the times of those that are stored already; they keep them.
        newest: the time of the thread's newest message.

    >>> from interlock.core.messages import Content
    >>> at = datetime(2026, 1, 2, tzinfo=UTC)
    >>> new = [Message(id=id, role="user", content=Content(), created_at=at) for id in ("a", "b")]
    >>> [time.isoformat(timespec="milliseconds") for time in dated(new, {}, at)]
    ['2026-01-02T00:00:00.001+00:00', '2026-01-02T00:00:00.002+00:00']
    """
    times: list[datetime] = []
    for message in messages:
        time = known.get(message.id)
        if time is None:
            time = _milliseconds(min(message.created_at or datetime.now(UTC), LATEST))
            if newest is not None and time <= newest:
                time = _milliseconds(newest) + TICK
            newest = time
        times.append(time)
    return times


def _milliseconds(time: datetime) -> datetime:
    return time.replace(microsecond=time.microsecond // 1000 * 1000)
