"""The index of terms: what it takes, and what it can be asked."""

from __future__ import annotations

import pytest

from interlock.core.errors import UsageError
from interlock.release.keywords import LONGEST, KeywordIndex

ACUTE = "\u0301"


@pytest.mark.parametrize("terms", [[""], ["a", ""], {"": "x"}, "foo", [ACUTE], ["a" * (LONGEST + 1)], [1]])
def test_terms_that_cannot_be_looked_for(terms: list[str]):
    """R10: a term that cannot be looked for is refused, in words that help."""
    with pytest.raises(UsageError):
        KeywordIndex(terms)


def test_it_knows_the_beginnings_of_its_terms():
    """R0: what is the beginning of no term is not held."""
    index = KeywordIndex(["foobar", "b"])
    assert all(index.begins(text) for text in ("", "f", "foob", "foobar", "b"))
    assert not any(index.begins(text) for text in ("o", "foobars", "ba"))


def test_matches_go_on_where_the_last_text_ended():
    """R0.2: a term is found whatever texts it is cut into, by its last character, with its length and rule."""
    matches = KeywordIndex({"foo": "metal", "oba": "other"}).matches()
    found: list[tuple[int, tuple[int, str]]] = []
    for text in ("xf", "o", "", "ob", "a"):
        matches.set(text, False)
        found.extend(matches)
    assert found == [(3, (3, "metal")), (5, (3, "other"))]


def test_the_longest_term_is_known_as_it_is_compared():
    """R0: how far back a match may begin is bounded by the longest term, in the bytes the automaton reads."""
    assert KeywordIndex([]).longest == 0
    assert KeywordIndex(["ab", "é"]).longest == len("e" + ACUTE.encode().decode("latin-1"))


@pytest.mark.parametrize(("term", "stacked"), [("é", False), ("abc", False), ("ạ" + ACUTE, True)])
def test_marks_on_marks_are_noted(term: str, stacked: bool):
    """R0: only where a term has several marks on a letter, another order of them has to be waited for."""
    assert KeywordIndex([term]).stacked is stacked
