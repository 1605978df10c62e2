"""What a letter is where texts are compared letter by letter, and what it is compared as.

A letter is a character with what continues it (combining marks, joiners, skin tones, the later parts of a Korean
syllable). Both spellings of "é" are one letter, compared in Unicode's decomposed form; "s" is none of "ß".
"""

from __future__ import annotations

from unicodedata import category, combining, normalize

_FOLDS = 8192
"""Characters whose folding is remembered."""

NO_LETTER = "\xff"
"""Stands for a letter no term has: the byte is in no UTF-8."""


def continues(char: str) -> bool:
    """Whether the character belongs to the letter in front of it."""
    if char < "\u0300":
        return False
    return (
        category(char)[0] == "M"
        or char in "\u200c\u200d"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\u1160" <= char <= "\u11ff"
        or "\ud7b0" <= char <= "\ud7fb"
    )


def _is_diacritic(char: str) -> bool:
    """A mark that can be left out: an accent, a point; not a vowel sign, nor what makes another consonant."""
    place = combining(char)
    return place == 1 or 10 <= place <= 36 or place >= 200


def is_word(char: str) -> bool:
    """Whether the character is part of a word."""
    return char.isalnum() or char == "_"


def settled(letter: str) -> str:
    """The letter without the marks at its end, among which another one may still be sorted."""
    letter = normalize("NFD", letter)
    end = len(letter)
    while end and combining(letter[end - 1]):
        end -= 1
    return letter[:end]


def narrow(text: str) -> str:
    """UTF-8's bytes as characters: few branches at every node, whatever the script."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("latin-1")


class Folding(dict[str, tuple[bool, str, bool]]):
    """For a character: whether it continues a letter, what it is compared as, whether it is part of a word."""

    __slots__ = ("_case", "_diacritics")

    def __init__(self, *, case: bool, diacritics: bool) -> None:
        super().__init__()
        self._case = case
        self._diacritics = diacritics

    def __missing__(self, char: str) -> tuple[bool, str, bool]:
        if len(self) >= _FOLDS:
            self.clear()
        known = self[char] = (continues(char), narrow(self.fold(char)), is_word(char))
        return known

    def fold(self, text: str) -> str:
        """What the text is compared as; letters can be folded one at a time."""
        if text.isascii():
            return text.lower() if self._case else text
        folded = self._without_diacritics(normalize("NFD", text))
        if self._case:
            folded = self._without_diacritics(normalize("NFD", folded.casefold()))
        return folded

    def _without_diacritics(self, text: str) -> str:
        return "".join(char for char in text if not _is_diacritic(char)) if self._diacritics else text
