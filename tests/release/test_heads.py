"""What a match can begin with (spec R4.6)."""

from __future__ import annotations

import re
import warnings

import regex
from hypothesis import HealthCheck, assume, given, settings
from streaming import PATTERNS, TEXTS, compiles

from interlock.release.heads import any_start
from interlock.release.pattern import ExactPattern


@given(source=PATTERNS, text=TEXTS)
@settings(
    max_examples=1_000,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much),
    deadline=None,
)
def test_every_match_begins_like_one(source: str, text: str) -> None:
    """Where a match begins, one of its beginnings is found (spec R0.2)."""
    assume(compiles(source))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        starts = ExactPattern("r", source).starts
        assume(starts is not None)
        begins = re.compile(any_start(starts or ()))
        for match in regex.finditer(source, text, timeout=1):
            assert match.end() == match.start() or begins.match(text, match.start())


def test_what_is_rare() -> None:
    """Digits, capitals in a row and a key's prefix are rare in a text; a word is not."""
    assert ExactPattern("r", r"\d{4}").starts == ((frozenset("0123456789"),),)
    assert ExactPattern("r", r"AKIA\w{16}").starts == ((frozenset("A"), frozenset("K"), frozenset("I")),)
    assert ExactPattern("r", r"\w+@x").starts is None
    assert ExactPattern("r", r"\d*").starts is None


def test_an_end_or_another_script_may_be_a_beginning() -> None:
    """What the text ends in may become a match, and so may what is beyond ASCII."""
    begins = re.compile(any_start(ExactPattern("r", "AKIA").starts or ())).search
    assert begins("xAK") is not None
    assert begins("xAx") is None
    assert begins("é") is not None
