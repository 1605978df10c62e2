"""A great many fixed terms to look for: an Aho-Corasick automaton (``pyahocorasick``), built once.

The automaton reads every character once and says where terms end; it is a trie too, and can be asked whether a text is
the beginning of some term. Terms are in it as ``letters`` folds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from typing import Any, Protocol, cast
from unicodedata import combining

from interlock.core.errors import UsageError
from interlock.release.letters import Folding, continues, narrow

LONGEST = 1000
"""Characters a term may have: the work for a character of text is bounded by it."""


class Matches(Protocol):
    """What the automaton's iterator does."""

    def set(self, text: str, reset: bool, /) -> None:
        """Go on with this text; ``reset``: from the automaton's start."""
        ...

    def __iter__(self) -> Iterator[tuple[int, tuple[int, str]]]: ...


class _Automaton(Protocol):
    """What is used of ``ahocorasick.Automaton``."""

    def add_word(self, key: str, value: tuple[int, str], /) -> bool: ...

    def exists(self, key: str, /) -> bool: ...

    def match(self, prefix: str, /) -> bool: ...

    def iter(self, text: str, /) -> Matches: ...

    def make_automaton(self) -> None: ...


class KeywordIndex:
    """Terms to look for, built once and shared by every scanner.

    Of terms that are the same when folded the first one counts.

    Args:
        terms: the terms, or a mapping of terms to the names of their rules.
        rule: the name of the rule for terms without one.
        case_sensitive: "Foo" is not "foo".
        fold_diacritics: "cafe" is "café" too, in the terms as in the text.
        whole_words: not within a word: neither the character in front nor the one after is a letter, a digit or "_".

    Raises:
        UsageError: a term is empty, too long, or begins with a combining mark.
    """

    __slots__ = (
        "_automaton",
        "case_sensitive",
        "fold_diacritics",
        "folding",
        "longest",
        "stacked",
        "whole_words",
    )

    def __init__(
        self,
        terms: Iterable[str] | Mapping[str, str],
        *,
        rule: str = "keyword",
        case_sensitive: bool = False,
        fold_diacritics: bool = False,
        whole_words: bool = True,
    ) -> None:
        if isinstance(terms, str):
            raise UsageError(f"KeywordIndex needs a list of terms, not one string: write [{terms!r}]")
        self.case_sensitive = case_sensitive
        self.fold_diacritics = fold_diacritics
        self.whole_words = whole_words
        self.folding = Folding(case=not case_sensitive, diacritics=fold_diacritics)
        self.longest = 0
        self.stacked = False
        automaton = cast(_Automaton, cast(Any, import_module("ahocorasick")).Automaton())
        values: dict[tuple[int, str], tuple[int, str]] = {}
        if isinstance(terms, Mapping):
            named: Iterable[tuple[str, str]] = cast(Mapping[str, str], terms).items()
        else:
            named = ((term, rule) for term in terms)
        for term, name in named:
            key = self._key(term)
            if not automaton.exists(key):
                value = (len(key), name)
                automaton.add_word(key, values.setdefault(value, value))
                self.longest = max(self.longest, len(key))
        if self.longest:
            automaton.make_automaton()
        self._automaton = automaton

    def _key(self, term: str) -> str:
        if not isinstance(term, str):
            raise UsageError(f"A keyword is a string, not {type(term).__name__}: {term!r}")
        if not term:
            raise UsageError("A keyword is empty; it would be everywhere")
        if len(term) > LONGEST:
            raise UsageError(
                f"A keyword has {len(term)} characters, at most {LONGEST} work: {term[:40]!r}..."
            )
        if continues(term[0]):
            raise UsageError(
                f"The keyword {term!r} begins with a mark that belongs to the letter in front of it"
            )
        folded = self.folding.fold(term)
        if folded.isascii():
            return folded
        places = [combining(char) for char in folded]
        self.stacked = self.stacked or any(one and other for one, other in pairwise(places))
        return narrow(folded)

    def begins(self, folded: str) -> bool:
        """Whether some term begins with this text (or is it)."""
        return self._automaton.match(folded)

    def matches(self) -> Matches:
        """The automaton at its start, to be fed."""
        return self._automaton.iter("")
