"""What is read of a pattern: its tail, its look, the ways to read it (spec R4.6)."""

from __future__ import annotations

import warnings

import pytest
import regex
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from streaming import PATTERNS, TEXTS, compiles

from interlock.release.pattern import ExactPattern
from interlock.release.read import WINDOWS
from interlock.release.reading import read_pattern


@given(source=PATTERNS, text=TEXTS, start=st.integers(0, 16))
@settings(
    max_examples=1_500,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much),
    deadline=None,
)
def test_a_look_leaves_no_undecided_place_in_front_of_it(source: str, text: str, start: int) -> None:
    """In front of what one look finds there is no match, and none can come of it whatever follows (spec R0.2)."""
    assume(compiles(source) and start <= len(text))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pattern = ExactPattern("r", source)
        assume(pattern.look is not None and len(text) - start <= pattern.untimed)
        found = pattern.look(text, start) if pattern.look is not None else None
        place = len(text) if found is None else found.start()
        for later in ("", "a", "b", "ab", "\n", "-", "ba b", "é1"):
            match = regex.compile(source).search(text + later, start)
            assert match is None or match.start() >= place or match.end() == match.start()


@pytest.mark.parametrize(
    ("source", "longest"),
    [
        (r"\d{4}", WINDOWS[-1]),
        (r"[\w.+-]+@[\w-]+\.[\w.-]+", 64),
        ("(a+)+$", 0),
        ("(?:a|a)*b", 16),
        (r"(?:\.[\w-]+)+", 4096),
        (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", 64),
        (r"(?>,\d{1,3})*", 4096),
        (r"(?:\.a?a?)+b", 0),
        (r"(?:a\w+)+b", 0),
        (r"(?i)(?:A[a-z]+)+", 0),
        ("(?i:A[b-z]+)+", 0),
        (r"(?:\.|,[\w-]+)+b", 0),
        (r"(?:(?:\.\d+)+)+b", 0),
    ],
)
def test_the_ways_to_read_a_text(source: str, longest: int) -> None:
    """Long texts are searched without a clock only where there are few ways to read them (spec R4.6)."""
    assert ExactPattern("r", source).untimed == longest


def test_a_run_parted_from_what_follows_is_tried_once() -> None:
    """A run that cannot hold the character behind it needs no backtracking; one that can does."""
    parted, mixed = read_pattern(r"\w+@x"), read_pattern(r"[\w@]+@x")
    assert parted is not None
    assert mixed is not None
    assert r"\w++" in (parted.look or "")
    assert r"[\w@]++" not in (mixed.look or "").replace(r"[\w@]*+\Z", "")


def test_what_a_group_had_cannot_be_told() -> None:
    """A back-reference has no tail: two searches are made instead of one look."""
    assert ExactPattern("r", r"(a+)\1b").look is None
