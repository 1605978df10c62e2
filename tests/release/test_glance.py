"""One look at a text for several patterns (spec R4.6)."""

from __future__ import annotations

import warnings
from itertools import product

import pytest
import regex
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from streaming import PATTERNS, compiles

from interlock.release.glance import LOOK_CLOSER, Glance
from interlock.release.pattern import ExactPattern


def glance_of(*sources: str) -> Glance:
    return Glance([ExactPattern(f"r{i}", source) for i, source in enumerate(sources)])


EMAIL = r"[\w.+-]+@[\w-]+\.[\w.-]+"


@pytest.mark.parametrize(
    ("sources", "text", "place"),
    [
        ([EMAIL], "write to anna", 9),
        ([EMAIL], "write to ", 9),
        ([EMAIL], "write to anna@", 9),
        ([EMAIL], "write to änna", 9),
        ([EMAIL], "write to anna@b.c d", LOOK_CLOSER),
        ([r"\d{4}"], "the pin is 12", 11),
        ([r"\d{4}"], "the pin is twelve", 17),
        ([r"\d{4}", EMAIL], "the pin is 12", 11),
        ([r"\d{4}", EMAIL], "pin 12 anna", 7),
        ([r"(a+)\1b"], "xx aa", 3),
        ([], "anything", 8),
    ],
)
def test_the_first_place_that_is_not_decided(sources: list[str], text: str, place: int) -> None:
    """What is in front of it may leave; a match has to be looked at closer (spec R4.6)."""
    assert glance_of(*sources).first_undecided(text, 0) == place


GATED = st.sampled_from(
    [r"[ab.]+@b", r"[ab]*@", r"\ba+@1", r"[a1]{1,2}@", r"(?:a-)+@", r"a?[b1]+@", r"(?i)[a-b]+@a", r"\w+@\d"]
)
"""With a character that every match has."""


@given(
    sources=st.lists(PATTERNS | GATED, min_size=1, max_size=3),
    text=st.text("aab1@@.-é A\n", max_size=14),
    start=st.integers(0, 14),
)
@settings(
    max_examples=600,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much),
    deadline=None,
)
def test_nothing_begins_in_front_of_what_a_glance_says(sources: list[str], text: str, start: int) -> None:
    """No pattern has a match in front of the place, and none can come of it whatever follows (spec R0.2)."""
    assume(all(map(compiles, sources)) and start <= len(text))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        glance = glance_of(*sources)
        assume(len(text) - start <= glance.reach)
        place = glance.first_undecided(text, start)
        assume(place != LOOK_CLOSER)
        for source, later in product(sources, ("", "@", "a@b", "b@1", "-", "ba b", "é1@a", "\n")):
            try:
                match = regex.compile(source).search(text + later, start, timeout=1)
            except TimeoutError:  # a pattern that `regex` itself does not finish
                continue
            assert match is None or match.start() >= place or match.end() == match.start()


@given(source=GATED, text=st.text("aab1@.-é A", max_size=10))
def test_a_gate_holds_no_more_than_the_pattern_does(source: str, text: str) -> None:
    """Where a character that has to come is missing, what waits is what the pattern itself has undecided (R0.2)."""
    pattern = ExactPattern("r", source)
    place = Glance([pattern]).first_undecided(text, 0)
    assert place == LOOK_CLOSER or place == pattern.first_undecided(text, 0)


def test_patterns_that_a_glance_is_nothing_for() -> None:
    """One that needs the whole text, or that could take long, is looked at properly each time."""
    assert glance_of(EMAIL, r"\X").reach == 0
    assert glance_of(EMAIL, "(a+)+$").reach == 0
