"""A text on its way through a judge: each unit once, in order, whole."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.core.errors import TripWire
from interlock.release.scanner import HeldTooLong
from interlock.release.unit_track import Unit, UnitTrack, Verdict
from interlock.release.units import UnitCutter, UnitKind

pytestmark = pytest.mark.anyio

KINDS: list[UnitKind] = ["word", "sentence", "answer", 3]


def _passes(problem: HeldTooLong) -> None:
    """What waits too long goes on unjudged."""


def _stops(problem: HeldTooLong) -> None:
    raise TripWire("too long", processor_id="p")


async def _judged(pieces: list[str], unit: UnitKind) -> tuple[str, list[Unit]]:
    seen: list[Unit] = []

    async def decide(unit: Unit) -> str | None:
        seen.append(unit)
        return f"<{len(unit.text)}>" if "b" in unit.text else None

    track = UnitTrack(UnitCutter(unit), "text", 100, decide, _passes)
    left: list[str] = []
    for piece in pieces:
        await track.judge(piece)
        left.append(track.take(1 << 30)[1])
    await track.judge("", final=True)
    return "".join([*left, track.take(1 << 30)[1]]), seen


@given(
    st.text(st.sampled_from("ab. \n中"), max_size=30), st.lists(st.integers(0, 30)), st.sampled_from(KINDS)
)
async def test_units_are_the_same_however_the_text_comes(text: str, cuts: list[int], unit: UnitKind) -> None:
    """R0.1: what is judged and what leaves is that of the whole text, for any cut."""
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    whole = await _judged([text], unit)
    assert await _judged([text[start:end] for start, end in pairwise(edges)], unit) == whole


@given(st.text(st.sampled_from("ab. \n中"), max_size=30), st.sampled_from(KINDS))
async def test_units_say_where_they_are(text: str, unit: UnitKind) -> None:
    """Units are the text, one behind the other: number and offset tell where (R0)."""
    _, units = await _judged(list(text), unit)
    assert "".join(each.text for each in units) == text
    assert [each.index for each in units] == list(range(len(units)))
    assert all(text[each.offset :].startswith(each.text) for each in units)


@pytest.mark.parametrize("pieces", [["a" * 11], ["aaaa"] * 3, ["a" * 300]])
async def test_what_waits_too_long_is_told_once_and_goes_on(pieces: list[str]) -> None:
    """A unit longer than may wait: told once, by the kind of unit; it passes unjudged, the next one is judged."""
    told: list[HeldTooLong] = []
    seen: list[str] = []

    async def decide(unit: Unit) -> str | None:
        seen.append(unit.text)
        return None

    track = UnitTrack(UnitCutter("word"), "text", 10, decide, told.append)
    for piece in [*pieces, " bb "]:
        await track.judge(piece)
    await track.judge("", final=True)
    assert [(each.rules, each.cap) for each in told] == [(["the word under way"], 10)]
    assert seen == ["bb "]
    assert track.take(1 << 30)[1] == "".join(pieces) + " bb "


async def test_what_waits_too_long_may_stop() -> None:
    """Told of it, the guard may raise: nothing of the unit has left then."""

    async def decide(unit: Unit) -> str | None:
        raise AssertionError("not judged")

    track = UnitTrack(UnitCutter("answer"), "text", 10, decide, _stops)
    await track.judge("a" * 10)
    with pytest.raises(TripWire):
        await track.judge("a")
    assert track.take(1 << 30) == (0, "")


def test_verdicts() -> None:
    """The three things a judge can say."""
    assert Verdict.allow(scores={"x": 0.1}).kind == "allow"
    assert (Verdict.replace("a").kind, Verdict.replace("a").text) == ("replace", "a")
    assert (Verdict.block("rude").kind, Verdict.block("rude").reason) == ("block", "rude")
