"""Letters: what belongs to one, and what it is compared as."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.release.letters import Folding, continues, narrow, settled

ACUTE, BELOW = "\u0301", "\u0323"
TEXTS = st.text(st.sampled_from("aAß1 éİᾳが中한👩") | st.sampled_from([ACUTE, BELOW, "\u0345", "\u200d"]))


@pytest.mark.parametrize("char", [ACUTE, BELOW, "\u200d", "\U0001f3fd", "ᆫ", "\ufe0f", "\u0345"])
def test_what_continues_a_letter(char: str):
    """R0.2: marks, joiners, skin tones and the later parts of a syllable belong to what is in front of them."""
    assert continues(char)


@pytest.mark.parametrize("char", ["a", "é", "1", " ", "中", "👩", "한", "ᄒ"])
def test_what_begins_a_letter(char: str):
    """R0.2: anything else is a letter of its own."""
    assert not continues(char)


@given(TEXTS, st.booleans(), st.booleans())
def test_both_spellings_are_the_same(text: str, case: bool, diacritics: bool):
    """R0.2: composed or decomposed, a text is compared as the same."""
    folding = Folding(case=case, diacritics=diacritics)
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert folding.fold(composed) == folding.fold(decomposed)


@given(TEXTS, st.booleans(), st.booleans())
def test_letters_can_be_folded_one_at_a_time(text: str, case: bool, diacritics: bool):
    """R0.1: what a text is compared as does not depend on how it comes, as long as letters are whole."""
    folding = Folding(case=case, diacritics=diacritics)
    begins = [0, *(at for at, char in enumerate(text) if at and not continues(char)), len(text)]
    letters = [text[start:end] for start, end in pairwise(begins)]
    assert "".join(map(folding.fold, letters)) == folding.fold(text)


@pytest.mark.parametrize(
    ("case", "diacritics", "folded"),
    [(True, True, "cafess"), (True, False, "cafe" + ACUTE + "ss"), (False, True, "Cafeß")],
)
def test_what_is_left_of_a_word(case: bool, diacritics: bool, folded: str):
    """Case and diacritics count or not, as asked."""
    assert Folding(case=case, diacritics=diacritics).fold("Caféß") == folded


def test_a_vowel_sign_is_no_diacritic():
    """What makes another letter stays: a vowel sign, a voiced consonant's mark."""
    folding = Folding(case=True, diacritics=True)
    assert folding.fold("が") != folding.fold("か")
    assert folding.fold("कि") != folding.fold("क")


def test_it_remembers_a_bounded_number_of_characters():
    """Bounded buffers: a text of all there is does not fill the memory."""
    folding = Folding(case=True, diacritics=True)
    for code in range(0x20, 0xD800):
        folding[chr(code)]
    assert len(folding) <= 8192


@pytest.mark.parametrize(
    ("letter", "left"), [("é", "e"), ("a" + BELOW + ACUTE, "a"), ("b", "b"), (ACUTE, "")]
)
def test_what_no_further_mark_can_change(letter: str, left: str):
    """R0: marks that follow are sorted among those at the end, so these are not settled."""
    assert settled(letter) == left


@given(st.text(), st.text())
def test_narrow_text_is_comparable(one: str, other: str):
    """R0.2: as bytes, texts begin with one another exactly where they do as characters."""
    assert narrow(one).startswith(narrow(other)) == one.startswith(other)
