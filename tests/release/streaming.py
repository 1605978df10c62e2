"""Patterns to draw, and what a redaction of the whole text looks like, written a second time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise

import regex
from hypothesis import strategies as st

from interlock.release.pattern import ExactPattern
from interlock.release.scanner import SHORT, Rule, Span, TextScanner

Marked = list[tuple[int, int, str]]

LITERALS = [
    "a",
    "b",
    "ab",
    "aab",
    "A",
    "1",
    " ",
    "-",
    r"\n",
    r"\.",
    "é",
    r"\x61",
    r"\u0062",
    "{[a]",
    "]",
    "ß",
    "ſ",  # noqa: RUF001
]
CLASSES = [
    "[ab]",
    "[^a]",
    r"\w",
    r"\W",
    r"\d",
    r"\s",
    r"\S",
    ".",
    "[a-b1]",
    r"[^\s\]]",
    r"\p{L}",
    r"[[:alpha:]]",
    "[]a]",
]
ASSERTIONS = [r"\b", r"\B", "^", "$", r"\A", r"\Z", r"\b", "$"]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "{,2}"]
SWITCHES = ["", "", "", "", "(?i)", "(?m)", "(?s)", "(?im)", "(?a)", "(?i)(?m)"]
OTHER = [
    r"\X",
    r"\R",
    r"(?:a(?R)?b)",
    r"(?:a(?1)?b)",
    r"(?:ab){e<=1}",
    r"\m",
    r"\K",
    r"\G",
    "(?(1)a|b)",
    r"\1",
    r"(?P=n)",
    r"(?#x)",
]
WHOLE_WORDS = ["(?x)", "(?e)", "(?f)(?i)", "(?V1)", "(?w)", "(?p)"]
ALPHABET = "aab1 \n-A.éß"


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, min_size=1, max_size=3)
    sequence = several.map("".join)
    either = st.lists(inner, min_size=2, max_size=3).map("|".join)
    return st.one_of(
        sequence,
        either.map(lambda each: f"(?:{each})"),
        st.builds(
            lambda opening, each, quantifier, manner: f"{opening}{each}){quantifier}{manner}",
            st.sampled_from(
                ["(", "(?:", "(?>", "(?P<n>", "(?|", "(?i:", "(?s:", "(?m:", "(?-i:", "(?=", "(?!"]
            ),
            st.one_of(inner, either),
            st.sampled_from(["", *QUANTIFIERS]),
            st.sampled_from(["", "", "?", "+"]),
        ),
        st.builds(
            lambda opening, each: f"{opening}{each})",
            st.sampled_from(["(?=", "(?!", "(?<=", "(?<!"]),
            st.one_of(inner, either),
        ),
        st.builds(lambda each, tail: f"{each}(?:{tail})?", inner, inner),
        st.builds(lambda each: f"({each})b?\\1", inner),
    )


_ATOMS = st.one_of(
    st.sampled_from(LITERALS),
    st.sampled_from(LITERALS),
    st.sampled_from(CLASSES),
    st.sampled_from(ASSERTIONS),
    st.builds(
        lambda atom, quantifier, manner: f"{atom}{quantifier}{manner}",
        st.sampled_from([each for each in LITERALS + CLASSES if each != "{[a]"]),
        st.sampled_from(QUANTIFIERS),
        st.sampled_from(["", "", "?", "+"]),
    ),
)
_BODIES = st.recursive(st.one_of(_ATOMS, _ATOMS, _ATOMS, st.sampled_from(OTHER)), _grown, max_leaves=5)


def compiles(source: str) -> bool:
    """Whether it is a pattern at all."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the second time `regex` would not warn
            regex.compile(source)
    except (regex.error, ValueError):
        return False
    return True


PATTERNS = st.builds(
    "".join,
    st.tuples(st.one_of(st.sampled_from(SWITCHES), st.sampled_from([*SWITCHES, *WHOLE_WORDS])), _BODIES),
)
"""Some of these do not compile. (To compile is no part of drawing one: `regex` rolls dice as it does.)"""
TEXTS = st.text(ALPHABET, max_size=16)


def redact(text: str, spans: Sequence[Span]) -> str:
    """The text with every span replaced by its rule's name."""
    edges = [
        (0, 0, ""),
        *((span.start, span.end, f"<{span.rule}>") for span in spans),
        (len(text), len(text), ""),
    ]
    return "".join(text[last[1] : here[0]] + here[2] for last, here in pairwise(edges))


def streamed(rules: Sequence[Rule], text: str, cuts: Sequence[int]) -> str:
    """What leaves, redacted, when the text comes in pieces."""
    scanner = TextScanner(rules)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    left = [redact(*scanner.feed(text[start:end])) for start, end in pairwise(edges)]
    return "".join([*left, redact(*scanner.feed("", final=True))])


def expected(rules: Sequence[tuple[str, str]], text: str, accept: Callable[[str], bool] | None = None) -> str:
    """What a plain loop over each whole pattern finds in the whole text, character by character."""
    found: Marked = []
    for name, source in rules:
        compiled, at = regex.compile(source), 0
        while at <= len(text) and (match := compiled.search(text, at, timeout=0.2)):
            start, end = max(match.start(), at), match.end()  # \K in a look-behind: it starts further back
            refused = end > start and accept is not None and not accept(match[0])
            if end > start and not refused:
                found.append((start, end, name))
            at = max(at, end) + (end <= start)  # \K in a look-ahead: it ends before it starts
            if refused and ExactPattern(name, source).width <= SHORT:
                at = start + 1
    covered = [False] * len(text)  # whether a place is in the same span as the one in front of it
    inside = [False] * len(text)
    for start, end, _ in found:
        inside[start:end] = [True] * (end - start)
        covered[start + 1 : end] = [True] * (end - start - 1)
    left: list[str] = []
    for at, char in enumerate(text):
        if not inside[at]:
            left.append(char)
        elif not covered[at]:
            end = next((each for each in range(at + 1, len(text)) if not covered[each]), len(text))
            most = max(e - s for s, e, _ in found if at <= s < end)
            names = sorted((s, n) for s, e, n in found if at <= s < end and e - s == most)
            order = [name for name, _ in rules]
            first = min(names, key=lambda each: (each[0], order.index(each[1])))
            left.append(f"<{first[1]}>")
    return "".join(left)
