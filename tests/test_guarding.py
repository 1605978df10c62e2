"""The guards without the agent: a text, and any stream of text."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from interlock import Agent, Chain, TripWireError, UsageError, guard_stream, guard_text
from interlock.processors import RegexFilter, Unit, UnitGuard, Verdict
from interlock.testing import ScriptedModel, text

PATTERNS = {
    "word": r"\bd\w*\b",
    "ahead": r"bb(?=[ !])",
    "behind": r"(?<=a )c+",
    "end": r"!+$",
    "lazy": r"x.*?y",
}
PIECES = st.lists(st.text("abcdxy! ", max_size=5), max_size=6)
ROWS = st.lists(st.sampled_from(sorted(PATTERNS)), max_size=3, unique=True)
SLOW = {"slow": r"(?:a|aa)+$"}
SLOW_TEXT = "x " + "a" * 60 + "b and the rest"


def guards(names: Sequence[str], **options: Any) -> list[RegexFilter]:
    return [RegexFilter({name: PATTERNS[name]}, id=name, **options) for name in names]


def whole(said: str, names: Sequence[str]) -> str:
    for name in names:
        said = regex.sub(PATTERNS[name], f"[{name.upper()}]", said)
    return said


async def spoken(pieces: Sequence[str]) -> AsyncGenerator[str, None]:
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece


async def into(out: list[str], stream: Any, row: Any) -> None:
    async for piece in guard_stream(stream, row):
        out.append(piece)


async def collect(stream: Any, row: Any) -> list[str]:
    return [piece async for piece in guard_stream(stream, row)]


@given(pieces=PIECES, names=ROWS)
def test_a_text_a_stream_and_a_run_give_the_same(pieces: list[str], names: list[str]) -> None:
    """guard_text, guard_stream over a sync and an async stream, cut anyhow, and a run with the same guards give
    what the guards in a row make of the whole text; no piece that is given out is empty.

    R0.2.
    """

    async def check() -> None:
        said = "".join(pieces)
        expected = whole(said, names)
        assert (await guard_text(said, guards(names))).text == expected
        for stream in (pieces, iter(pieces), spoken(pieces)):
            out = await collect(stream, guards(names))
            assert "".join(out) == expected
            assert all(out)
        agent = Agent(id="a", model=ScriptedModel([text(*pieces)]), output_processors=guards(names))
        assert (await agent.generate("hi")).text == expected

    asyncio.run(check())


@given(pieces=PIECES, names=ROWS)
def test_detections_are_each_guards_in_order(pieces: list[str], names: list[str]) -> None:
    """The finds are those of each guard in what the one before it left, with their places; text only on demand.

    R2.6.
    """
    said = "".join(pieces)
    found = asyncio.run(guard_text(said, guards(names, report_text=True))).detections
    expected: list[Any] = []
    for name in names:
        expected += [(name, m.start(), len(m[0]), m[0]) for m in regex.finditer(PATTERNS[name], said) if m[0]]
        said = whole(said, [name])
    assert [(each.rule, each.offset, each.length, each.text) for each in found] == expected
    assert all(each.channel == "text" for each in found)


@pytest.mark.anyio
async def test_a_piece_leaves_as_soon_as_it_is_decided() -> None:
    """The stream is not read further than needed for what is given out. R4.6."""
    read: list[str] = []

    async def source() -> AsyncGenerator[str, None]:
        for piece in ("one ", "d", "oor", " two"):
            read.append(piece)
            yield piece

    stream = guard_stream(source(), guards(["word"]))
    assert await anext(stream) == "one "
    assert read == ["one "]
    assert await anext(stream) == "[WORD] two"
    assert read == ["one ", "d", "oor", " two"]
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


@given(places=st.lists(st.integers(0, 18), max_size=6))
def test_a_block_stops_the_stream_in_front_of_the_find(places: list[int]) -> None:
    """The error says who, what and where, never the text; neither the find's beginning nor anything behind it was
    given out. R0.3, R5.2.
    """
    said = "fine, x hidden y!!"
    ends = [0, *sorted(places), len(said)]
    pieces = [said[a:b] for a, b in itertools.pairwise(ends)]
    told: list[Any] = []
    row = [*guards(["word"]), *guards(["lazy"], strategy="block", on_detection=told.append)]

    async def check() -> None:
        out: list[str] = []
        with pytest.raises(TripWireError) as caught:
            await into(out, pieces, row)
        assert "fine, ".startswith("".join(out))
        assert caught.value.processor_id == "lazy"
        assert caught.value.metadata == {"rule": "lazy", "channel": "text", "offset": 6, "strategy": "block"}
        assert "hidden" not in str(caught.value)
        assert [each.rule for each in told] == ["lazy"]
        with pytest.raises(TripWireError):
            await guard_text(said, row)

    asyncio.run(check())


@pytest.mark.anyio
@pytest.mark.parametrize("strategy", ["warn", "detect"])
async def test_finds_that_are_only_told_change_nothing(strategy: Any) -> None:
    """warn and detect leave the text and tell of the find, once. R2.6."""
    told: list[Any] = []
    row = guards(["word"], strategy=strategy, on_detection=told.append)
    done = await guard_text("a door", row)
    assert done.text == "a door"
    assert done.detections == told
    assert [(each.offset, each.replacement) for each in told] == [(2, None)]
    assert "".join(await collect(["a do", "or"], row)) == "a door"
    assert len(told) == 2


@pytest.mark.anyio
@pytest.mark.parametrize("size", [1, 9, 500])
async def test_a_failed_check(size: int, caplog: pytest.LogCaptureFixture) -> None:
    """strict: the error says so and nothing of the text was given out; warn: the text goes on unchanged and in
    order, and the log says so, without the text. R5.4.
    """
    pieces = [SLOW_TEXT[at : at + size] for at in range(0, len(SLOW_TEXT), size)]
    strict = [RegexFilter(SLOW, id="slow", timeout=0.01)]
    out: list[str] = []
    with pytest.raises(TripWireError) as caught:
        await into(out, pieces, strict)
    assert caught.value.metadata == {"check_failed": True}
    assert caught.value.processor_id == "slow"
    assert "".join(out) in ("", "x ")
    with pytest.raises(TripWireError):
        await guard_text(SLOW_TEXT, strict)

    caplog.set_level(logging.WARNING, "interlock")
    lenient = [RegexFilter(SLOW, id="slow", timeout=0.01, error_strategy="warn"), *guards(["ahead"])]
    assert "".join(await collect(pieces, lenient)) == SLOW_TEXT
    assert (await guard_text(SLOW_TEXT + "bb!", lenient)).text == SLOW_TEXT + "[AHEAD]!"
    assert [record.getMessage()[:44] for record in caplog.records] == [
        "guard 'slow': a check could not be made: rul"[:44]
    ] * 2
    assert "aaa" not in caplog.text


@pytest.mark.anyio
@pytest.mark.parametrize("wrong", [[object()], ["pin"], [RegexFilter], [Chain(RegexFilter({"a": "a"}))]])
async def test_what_is_no_guard_is_refused(wrong: Any) -> None:
    """The error names what was given, before anything of the text is looked at. R2.4."""
    with pytest.raises(UsageError, match="take guards such as RegexFilter, not"):
        await guard_text("text", wrong)
    with pytest.raises(UsageError, match="take guards such as RegexFilter, not"):
        await collect(["text"], wrong)


@pytest.mark.anyio
async def test_one_guard_that_is_not_in_a_list_is_refused() -> None:
    """A lone guard is a mistake that is easy to make; the error says how it goes. R2.4."""
    lone = cast(Any, RegexFilter({"a": "a"}))
    with pytest.raises(UsageError, match="list of guards"):
        await guard_text("text", lone)
    with pytest.raises(UsageError, match="list of guards"):
        await collect(["text"], lone)


@pytest.mark.anyio
async def test_no_guards_and_no_text() -> None:
    """Without guards the text is what it was; without text nothing is given out. R0.2."""
    assert (await guard_text("a door", [])).text == "a door"
    assert await collect(["a ", "", "door"], []) == ["a ", "door"]
    assert await collect([], guards(["word"])) == []
    assert (await guard_text("", guards(["word"]))).text == ""


@pytest.mark.anyio
async def test_a_streams_own_error_comes_through() -> None:
    """What the stream raises is raised; what was held is not given out. R5.4."""

    async def source() -> AsyncGenerator[str, None]:
        yield "one doo"
        raise KeyError("gone")

    out: list[str] = []
    with pytest.raises(KeyError):
        await into(out, source(), guards(["word"]))
    assert out == ["one "]


@pytest.mark.anyio
async def test_leaving_early_closes_the_stream() -> None:
    """Closing the guarded stream, or a block in it, closes the one behind it at once. R5.1, R5.5."""
    source = spoken(["one ", "two ", "door "])
    stream = guard_stream(source, guards(["word"]))
    assert await anext(stream) == "one "
    await stream.aclose()
    assert closed(source)
    source = spoken(["one ", "door ", "two "])
    with pytest.raises(TripWireError):
        await collect(source, guards(["word"], strategy="block"))
    assert closed(source)


def closed(source: AsyncGenerator[str, None]) -> bool:
    return source.ag_frame is None  # type: ignore[attr-defined]


@pytest.mark.anyio
async def test_streams_at_the_same_time_share_nothing() -> None:
    """One guard object for many streams: each has its own text under way. R6."""
    row = guards(["word", "lazy"])
    streams = [collect(spoken([f"{n} x", "d", "oor", f" y{n}"]), row) for n in range(20)]
    assert ["".join(out) for out in await asyncio.gather(*streams)] == [f"{n} [LAZY]{n}" for n in range(20)]


class Slow(UnitGuard):
    """A judge that has to wait; objects to sentences with a digit in them."""

    async def judge(self, unit: Unit, ctx: Any) -> Verdict:
        await asyncio.sleep(0)
        if any(char.isdigit() for char in unit.text):
            return Verdict.replace(f"<{len(unit.text)}>", reason="digits")
        return Verdict.allow()


@given(pieces=st.lists(st.text("ab1. ", max_size=5), max_size=6), behind=st.booleans())
def test_judges_are_guards_without_the_agent_too(pieces: list[str], behind: bool) -> None:
    """A UnitGuard whose judge waits, in a row with patterns: guard_text and guard_stream give what a run gives, for
    every way of cutting. R0.2.
    """

    def row() -> list[Any]:
        judge = Slow(id="slow", unit="sentence", strategy="redact")
        return [RegexFilter({"aa": "a+"}), judge] if behind else [judge, RegexFilter({"aa": "a+"})]

    async def check() -> None:
        said = "".join(pieces)
        whole = (await guard_text(said, row())).text
        out = await collect(spoken(pieces), row())
        assert "".join(out) == whole
        assert all(out)
        agent = Agent(id="a", model=ScriptedModel([text(*pieces)]), output_processors=row())
        assert (await agent.generate("hi")).text == whole

    asyncio.run(check())


@pytest.mark.anyio
async def test_what_a_judge_says_is_told() -> None:
    """Its finds are in the detections and go to on_detection; a block is a TripWireError, nothing of it is out.

    R2.6, R5.2.
    """
    told: list[Any] = []
    guard = Slow(id="slow", strategy="detect", on_detection=told.append)
    found = await guard_text("One. 22. Three.", [guard])
    assert found.text == "One. 22. Three."
    assert [(each.rule, each.offset, each.length, each.reason) for each in told] == [("slow", 5, 4, "digits")]
    assert found.detections == told
    out: list[str] = []
    with pytest.raises(TripWireError, match="digits"):
        await into(out, ["One. 2", "2. Three."], [Slow(id="slow", strategy="block")])
    assert out == ["One. "]


class Asks(UnitGuard):
    """A judge that does with its ctx what it is told to."""

    async def judge(self, unit: Unit, ctx: Any) -> Verdict:
        ctx.violation("seen")
        ctx.state["seen"] = unit.index
        assert ctx.request_context.get("tenant") is None
        assert not ctx.cancelled
        if "stop" in unit.text:
            ctx.abort("stopped", metadata={"why": "asked"})
        if "run" in unit.text:
            ctx.message_list.get.all.db()
        return Verdict.allow()


@pytest.mark.anyio
@pytest.mark.parametrize("late", ["closed", "open"])
async def test_a_judge_without_a_run(late: Any, caplog: pytest.LogCaptureFixture) -> None:
    """It may abort; what only a run has is missing, which counts as a failed check and is told. R5.4."""
    guard = Asks(id="asks", error_strategy="warn" if late == "open" else "strict")
    assert (await guard_text("fine", [guard])).text == "fine"
    with pytest.raises(TripWireError) as stopped:
        await guard_text("stop", [guard])
    assert (stopped.value.reason, stopped.value.metadata) == ("stopped", {"why": "asked"})
    if late == "open":
        assert (await guard_text("run", [guard])).text == "run"
    else:
        with pytest.raises(TripWireError) as failed:
            await guard_text("run", [guard])
        assert failed.value.metadata == {"check_failed": True, "cause": "UsageError"}
    assert "asks for ctx.message_list" in caplog.text


class Never(UnitGuard):
    """A judge that never comes to a verdict."""

    async def judge(self, unit: Unit, ctx: Any) -> Verdict:
        await asyncio.Event().wait()
        return Verdict.allow()


@pytest.mark.anyio
async def test_a_late_verdict_is_closed_or_open_as_declared() -> None:
    """The latency budget of a judge holds without the agent too. R4.6."""
    with pytest.raises(TripWireError, match="no verdict within"):
        await guard_text("late", [Never(id="never", latency_budget=0.01)])
    open_guard = Never(id="never", latency_budget=0.01, late="open")
    assert (await guard_text("late", [open_guard])).text == "late"
