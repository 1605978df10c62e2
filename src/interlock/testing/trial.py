"""A guard tried over many ways of cutting its texts (spec R0): every way has to give what the whole text gives."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from copy import copy
from typing import Any, TypeAlias, cast

from interlock.core.errors import TripWireError, UsageError
from interlock.core.record import FrozenRecord, Record
from interlock.core.shapes import described, is_sequence
from interlock.guarding import guard_stream, guard_text
from interlock.testing.cutting import random_cuts

Example: TypeAlias = str | tuple[str, str | None]
"""A text, or a text and what a guard has to make of it; None where it has to block."""

TEXTS: tuple[str, ...] = (
    "Write to bob.smith@example.com today, or to anna@mail.example.org.",
    "Card 4111 1111 1111 1111, exp 09/31, and the order 4111-1111 is no card.",
    "key=sk-test-a1B2c3D4e5F6g7H8i9J0k1L2 and the word sk-short; then sk-test-",
    "Call +49 151 2345 6789 or (020) 7946 0958. Room 42, floor 3.",
    "a@b, @home, bob@, x@y.z: what is an address and what is none?",
    "Zoë and José 👩‍👩‍👧 wrote from zoë@example.com: naïve, e\u0301 and é look the same.",
    "First line\nsecond line: root:hunter2@db.example.net:5432\r\nthird\n\n",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@example.com",
    "192.0.2.17 and 192.0.2.256, 2001:db8::1, 00:00:5e:00:53:af",
    "Nothing to see here: one ordinary sentence of ordinary words.",
    "bob@example.comanna@example.com,bob@example.com;bob@example.com",
    "",
)
"""Texts for guards that bring none, all invented."""

SHRINKING = 500
"""How many smaller cuts are tried to find the smallest that still fails."""


class TriedCut(FrozenRecord, frozen=True, kw_only=True):
    """One cut that was tried.

    Attributes:
        pieces: how the text was cut.
        expected: what the whole text gives.
        got: what the pieces gave, joined.
        sent: what left for each.
        held: the most characters that were held at once.
        difference: what is wrong, or None.
    """

    pieces: list[str]
    expected: str
    got: str
    sent: list[str]
    held: int
    difference: str | None = None

    def __str__(self) -> str:
        shown = [
            f"cut       {' | '.join(map(repr, self.pieces))}",
            f"sent      {' | '.join(map(repr, self.sent))}",
        ]
        if self.difference is not None:
            shown = [self.difference, *shown, f"expected  {self.expected!r}", f"got       {self.got!r}"]
        return "\n".join(shown)


class CutReport(Record, kw_only=True):
    """What came out of trying a guard.

    Attributes:
        cuts: how many were tried.
        equal: how many gave what the whole text gives.
        texts: how many texts were cut.
        seed: gives the same cuts again.
        longest_held: the most characters of a text that were held at once.
        worst: the cut that held most or, once one has failed, the first failure, with as few cuts as fail.
    """

    cuts: int = 0
    equal: int = 0
    texts: int = 0
    seed: int = 0
    longest_held: int = 0
    worst: TriedCut | None = None

    @property
    def ok(self) -> bool:
        """Whether all were equal."""
        return self.equal == self.cuts

    def __str__(self) -> str:
        lines = [
            f"{self.equal} of {self.cuts} cuts of {self.texts} texts equal to the whole text (seed {self.seed}); "
            f"longest held text: {self.longest_held} characters"
        ]
        if self.worst is not None:
            lines += ["the first that differs:" if not self.ok else "held most:", str(self.worst)]
        return "\n".join(lines)


def check_guard(
    guard: Any,
    *,
    examples: Sequence[Example] | None = None,
    cuts: int = 1000,
    seed: int = 0,
    progress: Callable[[int], object] | None = None,
) -> CutReport:
    """Try a guard, or a list of them, over random cuts. Each text is also tried whole and a character at a time.

    A guard that blocks has to block every cut for the same reason, with nothing sent from the find on.

    Args:
        guard: a guard such as ``RegexFilter``, or several in order.
        examples: texts, or (text, expected) pairs, expected None for a block; by default the guard's own
            ``examples``, else texts of this library.
        cuts: how many cuts, of all texts together.
        seed: other cuts with another seed.
        progress: told how many cuts have been tried.

    Returns:
        A report; ``report.ok`` tells whether all were equal, ``str(report)`` what there is to see.

    Raises:
        UsageError: no guard, or no examples.
        Exception: what the guard raises for a whole text.

    >>> from interlock.processors import RegexFilter
    >>> check_guard(RegexFilter({"pin": r"[0-9]{4}"}), examples=["my pin is 1234."], cuts=50).ok
    True
    """
    if isinstance(guard, type):
        raise UsageError(f"check_guard: {guard.__name__} is a class; write {guard.__name__}(...)")
    guards = list(guard) if is_sequence(guard) else [guard]
    trial = _Trial(guards, _checked(examples, guards), seed)
    if cuts < 1:
        raise UsageError(f"check_guard: cuts is a number from 1, not {cuts}")
    return _run(lambda: asyncio.run(trial.run(cuts, progress or (lambda done: None))))


def _checked(given: Sequence[Example] | None, guards: Sequence[Any]) -> list[tuple[str, bool, str | None]]:
    """Text, whether something is expected of it, and what."""
    if given is None:
        given = [each for guard in guards for each in getattr(guard, "examples", None) or ()] or TEXTS
    if isinstance(given, str):
        given = [given]
    examples: list[tuple[str, bool, str | None]] = []
    for each in cast("Sequence[Any]", given):
        if isinstance(each, str):
            examples.append((each, False, None))
        elif is_sequence(each) and len(each) == 2 and isinstance(each[0], str):
            examples.append((each[0], True, each[1]))
        else:
            raise UsageError(f"check_guard: an example is a text or (text, expected), not {described(each)}")
    if not examples:
        raise UsageError("check_guard: no examples; leave examples out to take the guard's own")
    return examples


class _Whole(FrozenRecord, frozen=True, kw_only=True):
    """What the whole text gives: a text, or a block; and how much of the text each length of output stands for."""

    text: str
    result: str
    stopped: str | None
    stopped_at: int | None
    source_at: list[int]
    problem: str | None = None


class _Trial:
    def __init__(self, guards: list[Any], examples: list[tuple[str, bool, str | None]], seed: int) -> None:
        self.guards = guards
        self.examples = examples
        self.seed = seed
        self.report = CutReport(texts=len(examples), seed=seed)

    async def run(self, cuts: int, progress: Callable[[int], object]) -> CutReport:
        wholes = [await self._whole(*example) for example in self.examples]
        ways = [_ways(whole.text, cuts, self.seed + index) for index, whole in enumerate(wholes)]
        for done in range(cuts):
            whole = wholes[done % len(wholes)]
            tried = await self._try(whole, next(ways[done % len(wholes)]))
            await self._note(whole, tried)
            progress(done + 1)
        return self.report

    async def _note(self, whole: _Whole, tried: TriedCut) -> None:
        report = self.report
        failed_before = not report.ok
        report.cuts += 1
        report.equal += tried.difference is None
        longer = report.worst is None or tried.held > report.longest_held
        report.longest_held = max(report.longest_held, tried.held)
        if failed_before:
            return
        if tried.difference is not None:
            report.worst = await self._shrunk(whole, tried)
        elif longer:
            report.worst = tried

    async def _whole(self, text: str, has_expected: bool, expected: str | None) -> _Whole:
        problem = None
        result, stopped, detections = "", None, cast("list[Any]", [])
        try:
            guarded = await guard_text(text, self.guards)
            result, detections = guarded.text, list(guarded.detections)
        except TripWireError as block:
            stopped = str(block)
        got = None if stopped is not None else result
        if has_expected and got != expected:
            problem = f"the whole text does not give what its example says: {expected!r}"
        return _Whole(
            text=text,
            result=result,
            stopped=stopped,
            stopped_at=None if stopped is None else await self._first_find(text),
            source_at=_source_places(text, result, detections if len(self.guards) == 1 else []),
            problem=problem,
        )

    async def _first_find(self, text: str) -> int | None:
        """Where a guard that blocks finds something first."""
        if len(self.guards) != 1 or not hasattr(self.guards[0], "strategy"):
            return None
        looking = copy(self.guards[0])
        looking.strategy, looking.on_detection = "detect", None
        try:
            found = (await guard_text(text, [looking])).detections
        except TripWireError:  # a check that failed
            return None
        return min((each.offset for each in found), default=None)

    async def _try(self, whole: _Whole, pieces: list[str]) -> TriedCut:
        sent: list[str] = []
        held = fed = given = 0

        async def source() -> AsyncGenerator[str, None]:
            nonlocal held, fed
            for piece in pieces:
                yield piece
                fed += len(piece)
                held = max(held, fed - (whole.source_at[given] if given < len(whole.source_at) else given))

        stopped: str | None = None
        try:
            async for out in guard_stream(source(), self.guards):
                sent.append(out)
                given += len(out)
        except TripWireError as block:
            stopped = str(block)
        except Exception as problem:
            stopped = f"{type(problem).__name__}: {problem}"
        got = "".join(sent)
        return TriedCut(
            pieces=pieces,
            expected=whole.result if whole.stopped is None else f"({whole.stopped})",
            got=got if stopped is None else f"{got} ({stopped})",
            sent=sent,
            held=held,
            difference=_difference(whole, got, stopped),
        )

    async def _shrunk(self, whole: _Whole, tried: TriedCut) -> TriedCut:
        """A cut with as few pieces as still differ."""
        left = SHRINKING
        smaller = True
        while smaller and left > 0:
            smaller = False
            for at in range(len(tried.pieces) - 1):
                left -= 1
                pieces = tried.pieces
                again = await self._try(whole, [*pieces[:at], pieces[at] + pieces[at + 1], *pieces[at + 2 :]])
                if again.difference is not None:
                    tried, smaller = again, True
                    break
                if left <= 0:
                    break
        return tried


def _ways(text: str, count: int, seed: int) -> Iterator[list[str]]:
    yield [text]
    yield list(text)
    yield from random_cuts(text, count=count, seed=seed)


def _difference(whole: _Whole, got: str, stopped: str | None) -> str | None:
    if whole.problem is not None:
        return whole.problem
    if stopped != whole.stopped:
        told = "was not blocked" if stopped is None else f"was stopped: {stopped}"
        wanted = "is not" if whole.stopped is None else f"is blocked: {whole.stopped}"
        return f"the cut text {told}; the whole text {wanted}"
    if stopped is None:
        return None if got == whole.result else "the cut text gives something else than the whole text"
    if whole.stopped_at is not None and not whole.text[: whole.stopped_at].startswith(got):
        return f"before the block more was sent than the {whole.stopped_at} characters in front of the find"
    return None


def _source_places(text: str, result: str, detections: Sequence[Any]) -> list[int]:
    """For each length of the result, how many characters of the text it stands for; without finds, the same."""
    places = [0]
    at = 0
    for found in sorted(detections, key=lambda each: each.offset):
        if found.replacement is None or found.offset < at:
            continue
        places += range(at + 1, found.offset + 1)
        places += [found.offset] * len(found.replacement)
        at = places[-1] = found.offset + found.length
    places += range(at + 1, len(text) + 1)
    return places if len(places) == len(result) + 1 else list(range(len(result) + 1))


def _run(function: Callable[[], CutReport]) -> CutReport:
    """Run it here or, inside an event loop, in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return function()
    outcome: list[CutReport | BaseException] = []

    def work() -> None:
        try:
            outcome.append(function())
        except BaseException as problem:
            outcome.append(problem)

    thread = threading.Thread(target=work, name="interlock check_guard")
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]
