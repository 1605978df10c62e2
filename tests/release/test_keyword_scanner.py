"""Keywords over a growing text: however it is cut, what one look at the whole text finds."""

from __future__ import annotations

import itertools
import random
import tracemalloc
import unicodedata
from typing import TypedDict, Unpack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.release.keyword_scanner import KeywordScanner
from interlock.release.keywords import KeywordIndex
from interlock.release.scanner import Span


class Options(TypedDict, total=False):
    case_sensitive: bool
    fold_diacritics: bool
    whole_words: bool


OPTIONS: list[Options] = [
    {"case_sensitive": case, "fold_diacritics": fold, "whole_words": whole}
    for case, fold, whole in itertools.product((False, True), repeat=3)
]
ACUTE, BELOW, UMLAUT = "\u0301", "\u0323", "\u0308"
DIACRITICS = (ACUTE, BELOW, UMLAUT, "\u0307", "\u0345")
ALPHABET = [
    *"aAbs S_-1",
    "é",
    "e",
    ACUTE,
    BELOW,
    UMLAUT,
    "ß",
    "İ",
    "i",
    "ᾳ",
    "中",
    "👩",
    "\u200d",
    "한",
    "하",
    "ᆫ",
    "が",
]


# ------------------------------------------------------------------------------------------------------- the oracle


def continues(char: str) -> bool:
    return unicodedata.category(char).startswith("M") or char == "\u200d" or "\u1160" <= char <= "\u11ff"


def letters(text: str) -> list[str]:
    found: list[str] = []
    for char in text:
        if found and continues(char):
            found[-1] += char
        else:
            found.append(char)
    return found


def compared(text: str, case_sensitive: bool, fold_diacritics: bool) -> str:
    def bare(text: str) -> str:
        text = unicodedata.normalize("NFD", text)
        return "".join(c for c in text if not fold_diacritics or c not in DIACRITICS)

    text = bare(text)
    return text if case_sensitive else bare(text.casefold())


def oracle(
    terms: list[str], text: str, *, case_sensitive: bool, fold_diacritics: bool, whole_words: bool
) -> list[Span]:
    wanted = {compared(term, case_sensitive, fold_diacritics) for term in terms}
    parts = letters(text)
    places = [0, *itertools.accumulate(len(part) for part in parts)]

    def word(number: int) -> bool:
        return 0 <= number < len(parts) and (parts[number][0].isalnum() or parts[number][0] == "_")

    spans: list[Span] = []
    start = 0
    while start < len(parts):
        for end in range(len(parts), start, -1):
            if continues(parts[start][0]) or (whole_words and (word(start - 1) or word(end))):
                continue
            if compared("".join(parts[start:end]), case_sensitive, fold_diacritics) in wanted:
                spans.append(Span(rule="keyword", start=places[start], end=places[end]))
                start = end - 1
                break
        start += 1
    return spans


def streamed(index: KeywordIndex, chunks: list[str], keep: int | None = None) -> list[Span]:
    scanner = KeywordScanner(index)
    text, gone, spans = "", 0, list[Span]()
    for number, chunk in enumerate(chunks):
        text += chunk
        before = scanner.safe
        scanner.scan(text, final=number == len(chunks) - 1)
        assert before <= scanner.safe <= len(text)
        assert all(before <= span.start and span.end <= scanner.safe for span in scanner.spans)
        spans += [span.replace(start=span.start + gone, end=span.end + gone) for span in scanner.spans]
        scanner.spans = []
        if keep is not None and scanner.safe > keep:
            count = scanner.safe - keep
            scanner.forget(count)
            text, gone = text[count:], gone + count
    assert scanner.safe == len(text)
    return spans


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    return [text[start:end] for start, end in itertools.pairwise(ends)] or [""]


TERMS = st.lists(
    st.text(st.sampled_from(ALPHABET), min_size=1, max_size=6).filter(lambda term: not continues(term[0])),
    min_size=1,
    max_size=8,
)
NARROW = st.lists(st.text("ab ", min_size=1, max_size=6), min_size=1, max_size=8)


@st.composite
def texts(draw: st.DrawFn, terms: list[str], alphabet: list[str]) -> str:
    pieces = st.one_of(st.sampled_from(terms), st.text(st.sampled_from(alphabet), max_size=3))
    return "".join(draw(st.lists(pieces, max_size=8)))


@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda each: "-".join(k for k, v in each.items() if v) or "none"
)
class TestCutting:
    @settings(max_examples=60, deadline=None)
    @given(data=st.data())
    def test_spans_are_the_oracle_s_however_the_text_is_cut(self, options: Options, data: st.DataObject):
        """The same spans as a plain search of the whole text, for any terms, options and cuts (spec R0.1)."""
        terms = data.draw(TERMS | NARROW)
        text = data.draw(texts(terms, ALPHABET))
        index = KeywordIndex(terms, **options)
        expected = oracle(terms, text, **options)
        assert streamed(index, [text]) == expected
        assert streamed(index, list(text) or [""], keep=0) == expected
        assert streamed(index, cut(text, data.draw(st.lists(st.integers(0, 60)))), keep=2) == expected

    @settings(max_examples=60, deadline=None)
    @given(data=st.data())
    def test_what_is_held_could_become_a_match(self, options: Options, data: st.DataObject):
        """Nothing waits that no future text could make a term of (spec R0.2)."""
        terms = data.draw(TERMS | NARROW)
        text = data.draw(texts(terms, ALPHABET))
        index = KeywordIndex(terms, **options)
        scanner = KeywordScanner(index)
        for end in range(1, len(text) + 1):
            scanner.scan(text[:end], final=False)
            if scanner.safe == end or index.stacked or "ᾳ" in text:
                continue
            futures = {text[:end]} | {
                text[:end] + more[k:] for more in spelled(terms) for k in range(len(more))
            }
            starts = {span.start for future in futures for span in oracle(terms, future, **options)}
            assert scanner.safe in starts, (terms, text[:end], scanner.safe)


def spelled(terms: list[str]) -> list[str]:
    """The terms in the spellings a text may have begun."""
    forms = [
        f(unicodedata.normalize(n, t))
        for t in terms
        for n in ("NFC", "NFD")
        for f in (str, str.casefold, bare)
    ]
    return [*terms, *forms]


def bare(text: str) -> str:
    return compared(text, False, True)


# --------------------------------------------------------------------------------------------------------- examples


def found(terms: list[str] | dict[str, str], text: str, **options: Unpack[Options]) -> list[str]:
    index = KeywordIndex(terms, **options)
    whole = streamed(index, [text])
    assert streamed(index, list(text)) == whole
    return [text[span.start : span.end] for span in whole]


@pytest.mark.parametrize(
    ("terms", "text", "options", "expected"),
    [
        (["foo"], "food Foo foo_ foo", {}, ["Foo", "foo"]),
        (["foo"], "food Foo", {"whole_words": False}, ["foo", "Foo"]),
        (["C++"], "C++, C++11", {}, ["C++"]),
        (["a", "ab", "abc", "abcd"], "abcx abcd", {"whole_words": False}, ["abc", "abcd"]),
        (["abcde", "bc", "cd"], "abcd!", {"whole_words": False}, ["bc"]),
        (["new york", "york city"], "new york city", {}, ["new york"]),
        (["cafe"], "café cafe" + ACUTE + " cafe", {}, ["cafe"]),
        (["cafe"], "café cafe" + ACUTE + "!", {"fold_diacritics": True}, ["café", "cafe" + ACUTE]),
        (["café"], "cafe" + ACUTE + " café", {}, ["cafe" + ACUTE, "café"]),
        (["strasse"], "Straße", {}, ["Straße"]),
        (["stras"], "straße", {"whole_words": False}, []),
        (["istanbul"], "İstanbul", {}, []),
        (["istanbul"], "İstanbul", {"fold_diacritics": True}, ["İstanbul"]),
        (["か"], "が", {"fold_diacritics": True, "whole_words": False}, []),
        (["ạ" + ACUTE], "a" + ACUTE + BELOW, {}, ["a" + ACUTE + BELOW]),
        (["foo"], "❤\ufe0ffoo", {}, ["foo"]),
        (["👩"], "👩🏽 👩", {}, ["👩"]),
        ([], "anything", {}, []),
    ],
)
def test_examples(terms: list[str], text: str, options: Options, expected: list[str]):
    """R0.2: what each option finds, in texts a person would write."""
    assert found(terms, text, **options) == expected


def test_each_term_may_have_its_rule_and_the_first_of_equals_counts():
    """A mapping names the rule of each term; of terms that fold to the same text the first counts."""
    index = KeywordIndex({"foo": "metal", "FOO": "other", "bar": "drinks"})
    assert [span.rule for span in streamed(index, ["foo bar"])] == ["metal", "drinks"]
    assert [span.rule for span in streamed(KeywordIndex(["foo"], rule="names"), ["foo"])] == ["names"]


def held(index: KeywordIndex, text: str) -> str:
    scanner = KeywordScanner(index)
    scanner.scan(text, final=False)
    return text[scanner.safe :]


def test_only_what_could_become_a_match_is_held():
    """R0: nothing is held but what could still become a match."""
    whole, within = KeywordIndex(["foo bar", "barrel"]), KeywordIndex(["foobar", "barrel"], whole_words=False)
    assert held(whole, "see fo") == "fo"
    assert held(whole, "see xfo") == ""
    assert held(whole, "foo bar") == "foo bar"
    assert held(whole, "foo bar ") == ""
    assert held(whole, "foo ba.") == ""
    assert held(whole, "foo foo") == "foo"
    assert held(within, "xfoobarre") == ""
    assert held(within, "xfoobar") == "foobar"
    assert held(within, "xfoba") == "ba"


# --------------------------------------------------------------------------------------------------------- adversaries


@pytest.mark.parametrize("options", OPTIONS)
def test_terms_within_terms(options: Options):
    """R0.2: terms that are prefixes of one another: the leftmost longest counts, for any cut."""
    terms = ["a" * n for n in range(1, 9)] + ["a a", "a" * 20 + "b"]
    for text in ("a" * 30, "a" * 19 + "b", "a " * 20, "a" * 20 + "b" + "a" * 9, "b" + "a" * 8 + "b"):
        expected = oracle(terms, text, **options)
        assert streamed(KeywordIndex(terms, **options), list(text), keep=0) == expected


def test_marks_without_end_are_not_held_unless_they_belong_to_a_match():
    """Combining marks without end are not held for nothing."""
    index = KeywordIndex(["foo"], whole_words=False)
    assert held(index, "x" + ACUTE * 5000) == ""
    assert held(index, "foo" + ACUTE * 5000) == ""
    assert held(index, "foo" + "\u200d" * 5000) == ""


def test_a_hundred_thousand_terms():
    """A list of 100,000 terms finds each of its terms, in one chunk and one character at a time."""
    dice, letters = random.Random(7), "abcdefghijklmnopqrstuvwxyzäöüé"
    terms = list({"".join(dice.choices(letters, k=dice.randint(4, 14))) for _ in range(101_000)})
    terms = terms[:100_000]
    index = KeywordIndex(terms)
    text = " ".join(dice.choices(terms, k=2000))
    assert len(streamed(index, [text])) == len(streamed(index, list(text), keep=64)) == 2000


def test_a_long_text_leaves_nothing_behind():
    """Memory stays bounded: what is decided is forgotten."""
    index = KeywordIndex(["foo", "bar"])
    scanner, window = KeywordScanner(index), ""
    tracemalloc.start()
    try:
        for _ in range(20_000):
            window += "foo or "
            scanner.scan(window, final=False)
            scanner.spans = []
            scanner.forget(scanner.safe)
            window = window[len(window) - (len(window) - scanner.safe) :] if scanner.safe else ""
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()
