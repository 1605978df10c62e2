"""Times say the order of turns, whatever the clocks say (R3.3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from interlock.core.messages import Content, Message
from interlock.memory.order import TICK, dated

START = datetime(2026, 1, 2, tzinfo=UTC)
TIMES = st.none() | st.integers(-5_000, 5_000).map(lambda n: START + timedelta(microseconds=n))


@given(st.lists(st.tuples(TIMES, st.booleans()), max_size=8), TIMES)
def test_new_messages_stand_behind_all_that_is_there(
    turn: list[tuple[datetime | None, bool]], newest: datetime | None
) -> None:
    """R3.3: stored messages keep their times; new ones come later than the newest, in order, in whole milliseconds."""
    messages = [
        Message(id=str(n), role="user", content=Content(), created_at=time)
        for n, (time, _) in enumerate(turn)
    ]
    known = {message.id: START for message, (_, stored) in zip(messages, turn, strict=True) if stored}
    times = dated(messages, known, newest)
    fresh = [time for time, message in zip(times, messages, strict=True) if message.id not in known]
    assert all(time == START for time, m in zip(times, messages, strict=True) if m.id in known)
    assert all(later - earlier >= TICK for earlier, later in pairwise(fresh))
    assert newest is None or all(time > newest for time in fresh)
    assert all(time.microsecond % 1000 == 0 for time in fresh)


@given(st.datetimes(timezones=st.just(UTC)))
def test_no_time_that_a_client_sends_ends_a_thread(time: datetime) -> None:
    """R3.3: also behind the last moment that there is, the next turn finds a time."""
    newest = None
    for n in range(3):
        message = Message(id=str(n), role="user", content=Content(), created_at=time)
        [stored] = dated([message], {}, newest)
        assert newest is None or stored > newest
        newest = stored
