"""Guards made at random, in every channel: the same text everywhere, however it is cut; nothing of a block (R0)."""

from __future__ import annotations

import asyncio
import os

import pytest
from drawn import SENTINELS, Drawn, all_compile, covers, forbidden, innocent, through_all
from guarded import ALPHABET, CHANNELS, Case, ChannelName, a_run_of, cases, seen
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st

from interlock.testing import never_sent

PARTS = 4
"""So many tests share the examples of a channel, so that several workers have something to do."""
EXAMPLES = int(os.environ.get("INTERLOCK_EXAMPLES", "2000"))
"""Texts through each channel, in all of its parts."""
TEXTS = 10
"""So many are tried with the same guards."""
LISTS = ("tool-arguments", "tool-results", "data", "sources")
QUIET = settings(
    max_examples=max(1, EXAMPLES // PARTS // TEXTS),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]
)

long = pytest.mark.timeout(0 if EXAMPLES > 2_000 else 120)
in_parts = pytest.mark.parametrize("part", range(PARTS))
of_each_channel = pytest.mark.parametrize("channel", CHANNELS)


@long
@in_parts
@of_each_channel
def test_every_channel_has_what_guards_make_of_the_whole_text(channel: ChannelName, part: int) -> None:
    """Joined client text = guards of the whole text = result = storage = next prompt, for any patterns, words and
    judged units in a row, any text and any cut; so no piece of a removed span was sent.

    ``INTERLOCK_EXAMPLES=100000`` runs so many for each channel. R0.1 to R0.3.
    """

    @QUIET
    @seed(part)
    @given(drawn=cases(channel, TEXTS))
    def law(drawn: list[Case]) -> None:
        assume(all_compile(drawn[0].row))
        for case in drawn:
            wanted = case.wanted
            ran = loop.run(seen(case))
            assert ran.result.tripwire is None, case
            assert ran.places == dict.fromkeys(ran.places, [wanted] if channel in LISTS else wanted), case

    with asyncio.Runner() as loop:
        law()


@st.composite
def blocked(draw: st.DrawFn, channel: ChannelName) -> tuple[list[Case], int]:
    """Texts with a forbidden phrase in them, through guards of which one (its number) blocks it."""
    blocker, phrase = draw(forbidden())
    before, after = draw(innocent), draw(innocent)
    row: tuple[Drawn, ...] = (*before, blocker, *after)
    innocents = st.text(ALPHABET, max_size=6)
    texts = [draw(innocents) + phrase + draw(innocents) for _ in range(TEXTS)]
    return [draw(a_run_of(channel, row, whole)) for whole in texts], len(before)


@long
@in_parts
@of_each_channel
def test_a_blocking_guard_never_lets_the_first_part_of_a_phrase_out(channel: ChannelName, part: int) -> None:
    """However a forbidden phrase is cut, and under every release policy, ``live`` included: the run is blocked, and
    nothing of the phrase reaches the client, the tool, the result or storage. R0.3, R0.4, R5.
    """

    @QUIET
    @seed(part)
    @given(drawn=blocked(channel))
    def law(drawn: tuple[list[Case], int]) -> None:
        cases, blocker = drawn
        for case in cases:
            if covers(case.row[blocker], through_all(case.row[:blocker], case.text)):
                judged(case, blocker)

    def judged(case: Case, blocker: int) -> None:
        options = [{"strategy": "block"} if number == blocker else {} for number in range(len(case.row))]
        ran = loop.run(seen(case, options))
        assert ran.result.tripwire is not None
        assert ran.result.tripwire.processor_id == f"g{blocker}"
        never_sent(ran.chunks, set(SENTINELS))
        kept = [repr(message) for message in (*ran.result.messages, *ran.stored)]
        never_sent([*kept, ran.result.text, ran.result.released_text, *map(repr, ran.asked)], set(SENTINELS))
        assert ran.calls == (0 if channel == "input" else 1)

    with asyncio.Runner() as loop:
        law()
