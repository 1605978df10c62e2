"""One look at a text for several patterns (spec R4.6)."""

from __future__ import annotations

import pytest

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


def test_patterns_that_a_glance_is_nothing_for() -> None:
    """One that needs the whole text, or that could take long, is looked at properly each time."""
    assert glance_of(EMAIL, r"\X").reach == 0
    assert glance_of(EMAIL, "(a+)+$").reach == 0
