"""A guard tried over cuts: what is equal, what differs, what is held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from interlock import UsageError
from interlock.processors import RegexFilter
from interlock.release.scanner import Span, TextScanner
from interlock.testing import check_guard
from interlock.testing.trial import TEXTS

EMAIL = {"email": r"[\w.]+@[\w.]+\w"}
WHOLE = "write to bob.smith@example.com today"


class ForgetfulScanner(TextScanner):
    """Judges each piece as if it were the last, as so many filters do."""

    def feed(self, text: str, *, final: bool = False) -> tuple[str, Sequence[Span]]:
        return super().feed(text, final=True)


class ForgetfulFilter(RegexFilter):
    """A filter that leaks when a find is cut."""

    def new_scanner(self) -> TextScanner:
        return ForgetfulScanner(self.rules)


@pytest.mark.parametrize("strategy", ["redact", "filter", "block", "warn", "detect"])
def test_an_exact_guard_is_equal_for_every_cut(strategy: Any) -> None:
    """R0.2: for texts of ours, whatever is done with a find."""
    seen: list[int] = []
    report = check_guard(RegexFilter(EMAIL, strategy=strategy), cuts=120, progress=seen.append)
    assert report.ok, str(report)
    assert (report.cuts, report.equal, report.texts) == (120, 120, len(TEXTS))
    assert seen == list(range(1, 121))


def test_a_leak_is_found_and_made_small() -> None:
    """The first failure is shown with as few cuts as still fail, and with what was expected."""
    report = check_guard(ForgetfulFilter(EMAIL), examples=[WHOLE], cuts=50)
    assert not report.ok
    assert report.worst is not None
    assert report.worst.difference == "the cut text gives something else than the whole text"
    assert len(report.worst.pieces) == 2
    assert "".join(report.worst.pieces) == WHOLE
    assert report.worst.expected == "write to [EMAIL] today"
    assert report.worst.got != report.worst.expected
    for shown in (f"{report.equal} of 50 cuts", "differs", repr(report.worst.pieces[0]), report.worst.got):
        assert shown in str(report)


def test_a_block_that_comes_too_late_or_not_at_all() -> None:
    """A guard that blocks the whole text blocks every cut, and sends nothing of the find before."""
    report = check_guard(ForgetfulFilter(EMAIL, strategy="block"), examples=[WHOLE], cuts=50)
    assert not report.ok
    assert report.worst is not None
    assert report.worst.difference is not None
    assert "block" in report.worst.difference
    assert check_guard(RegexFilter(EMAIL, strategy="block"), examples=[(WHOLE, None)], cuts=50).ok


class LateFilter(RegexFilter):
    """Blocks when a find is complete, having sent what came before it."""

    def open_track(self, *args: Any, **options: Any) -> Any:
        track = super().open_track(*args, **options)
        take_all, whole = track.take_all, self.strategy == "detect"

        class Eager:
            scanner = track.scanner

            def feed(self, text: str, *, final: bool = False) -> None:
                self.text = text
                track.feed(text, final=final)

            def take_all(self) -> str:
                decided = take_all()
                return decided if whole else self.text

            def take(self, length: int) -> Any:
                return track.take(length)

        return Eager()


def test_what_was_sent_before_a_block_ends_where_the_find_begins() -> None:
    """Blocking alone is not enough: nothing of the find may have left."""
    report = check_guard(LateFilter(EMAIL, strategy="block"), examples=[WHOLE], cuts=50)
    assert not report.ok
    assert report.worst is not None
    assert report.worst.difference == (
        "before the block more was sent than the 9 characters in front of the find"
    )


def test_how_much_was_held() -> None:
    """Characters that came in and for which nothing had left; the cut that held most is shown."""
    report = check_guard(RegexFilter({"pin": r"\d{4}"}), examples=["pin 1234, 98765"], cuts=2)
    assert report.longest_held == 3
    assert report.worst is not None
    assert report.worst.pieces == list("pin 1234, 98765")
    assert "held most" in str(report)
    whole = check_guard(RegexFilter(EMAIL), examples=["a@b.c and " * 3 + "x"], cuts=1)
    assert whole.longest_held == 1, "what was replaced is not counted as held"


def test_what_the_whole_text_has_to_give() -> None:
    """An example's expected text is checked, too; None expects a block."""
    guard = RegexFilter(EMAIL)
    assert check_guard(guard, examples=[("to a@b.c", "to [EMAIL]")], cuts=5).ok
    for wrong in ("to [MAIL]", None):
        report = check_guard(guard, examples=[("to a@b.c", wrong)], cuts=5)
        assert report.equal == 0
        assert "what its example says" in str(report)


class Exemplary(RegexFilter):
    """A guard with examples of its own."""

    examples = ("call a@b.c", ("none", "none"))


def test_a_guard_brings_its_examples() -> None:
    """The guard's own come first, those of all guards of a list; else texts of ours."""
    guard = Exemplary(EMAIL, id="own")
    assert check_guard(guard, cuts=10).texts == 2
    assert check_guard([RegexFilter({"a": "a"}), guard], cuts=10).texts == 2
    assert check_guard(RegexFilter(EMAIL), cuts=20).texts == len(TEXTS)
    assert check_guard(guard, examples=["x"], cuts=10).texts == 1


def test_guards_in_a_row() -> None:
    """R0.2: each sees what the one before made of the text."""
    guards = [RegexFilter(EMAIL, id="a"), RegexFilter({"mark": r"\[\w+\] today"}, id="b")]
    assert check_guard(guards, examples=[(WHOLE, "write to [MARK]")], cuts=100).ok


def test_the_same_seed_gives_the_same_report() -> None:
    """A failure can be repeated."""
    one, two = (check_guard(ForgetfulFilter(EMAIL), cuts=60, seed=3) for _ in range(2))
    assert str(one) == str(two)
    assert "seed 3" in str(one)


class Broken(RegexFilter):
    """A guard that cannot stand an empty piece in the middle."""

    def open_track(self, *args: Any, **options: Any) -> Any:
        track = super().open_track(*args, **options)
        feed = track.feed

        class Fragile:
            take, take_all = track.take, track.take_all

            def feed(self, text: str, *, final: bool = False) -> None:
                if not text and not final:
                    raise ZeroDivisionError("an empty piece")
                feed(text, final=final)

        return Fragile()


def test_an_exception_is_a_difference() -> None:
    """What a guard raises for some cut only is shown with that cut."""
    report = check_guard(Broken(EMAIL), examples=[WHOLE], cuts=50)
    assert not report.ok
    assert "ZeroDivisionError: an empty piece" in str(report)
    assert report.worst is not None
    assert len(report.worst.pieces) == 2


@pytest.mark.anyio
async def test_inside_an_event_loop() -> None:
    """It can be called from async tests as it is."""
    assert check_guard(RegexFilter(EMAIL), cuts=20).ok
    with pytest.raises(UsageError, match="take guards"):
        check_guard(5)


@pytest.mark.parametrize(
    ("given", "options", "told"),
    [
        (RegexFilter, {}, r"is a class; write RegexFilter\(\.\.\.\)"),
        (5, {}, "take guards such as RegexFilter"),
        (RegexFilter(EMAIL), {"examples": []}, "no examples"),
        (RegexFilter(EMAIL), {"examples": [5]}, "an example is"),
        (RegexFilter(EMAIL), {"cuts": 0}, "cuts"),
    ],
)
def test_what_cannot_be_tried_is_refused(given: Any, options: Any, told: str) -> None:
    """Nothing is tried in silence."""
    with pytest.raises(UsageError, match=told):
        check_guard(given, **options)
