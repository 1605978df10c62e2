"""Growing text: nothing waits longer than it must, nothing costs more than it should (spec R0.2, R4.6)."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from streaming import PATTERNS, TEXTS, compiles, expected, redact, streamed

from interlock.release.pattern import ExactPattern, Found
from interlock.release.scanner import (
    EAGER,
    FURTHEST,
    SLICE,
    HeldTooLong,
    Rule,
    RuleScanner,
    Span,
    TextScanner,
    merged,
)

EMAIL = r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"
PEM = r"(?s)-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----"
ENGLISH = "Please write to anna.long@example.org about the secret of 4111 1111 1111 1111, said the fox. "


class CountingPattern(ExactPattern):
    """Counts the characters it was asked to look at."""

    looked_at = 0

    def __init__(self, name: str, source: str) -> None:
        super().__init__(name, source)
        look = self.look
        assert look is not None

        def counted(text: str, start: int) -> Any:
            self.looked_at += len(text) - start
            return look(text, start)

        self.look = counted

    def search(self, text: str, start: int) -> Found | None:
        self.looked_at += len(text) - start
        return super().search(text, start)

    def first_undecided(self, text: str, start: int) -> int:
        self.looked_at += len(text) - start
        return super().first_undecided(text, start)


def scanner_of(*sources: str, cap: int = FURTHEST) -> TextScanner:
    return TextScanner(
        [Rule(pattern=ExactPattern(f"r{i}", source)) for i, source in enumerate(sources)], cap=cap
    )


def held_after_each(scanner: TextScanner, text: str) -> list[int]:
    held: list[int] = []
    for char in text:
        scanner.feed(char)
        held.append(scanner.held)
    return held


# --------------------------------------------------------------------------------------------------- what is held


def test_a_list_of_words_holds_less_than_a_word() -> None:
    """Of a plain word at most all but one character waits, and only while it may be that word (spec R0.2)."""
    words = ["secret", "password", "pass"]
    text = "A secre, a passwor, pass. Nothing else in particular passes"
    held = held_after_each(scanner_of("secret|password"), text)
    for at, count in enumerate(held):
        end = text[: at + 1]
        assert count == max(
            (size for word in words[:2] for size in range(1, len(word)) if end.endswith(word[:size])),
            default=0,
        )


def test_a_mail_address_holds_the_current_word() -> None:
    """On English text no more waits than the word that is being written (spec R0.2)."""
    text = "The quick brown fox, who jumps over the lazy dog (as ever), is tired. Isn't it so?"
    for at, count in enumerate(held_after_each(scanner_of(EMAIL), text)):
        word = text[: at + 1].replace("'", " ").split(" ")[-1].lstrip("(")
        assert count <= len(word)


@pytest.mark.parametrize(
    ("source", "text", "held"),
    [
        ("ab|abcd", "ab", 0),  # the first alternative wins, whatever follows
        ("abcd|ab", "ab", 2),
        ("abcd|ab", "abx", 0),
        (r"a.*?b", "xaxxb", 0),
        (r"a.*b", "xaxxb", 4),
        (r"a.*b", "xaxxb\n", 0),
        (r"(?s)<k>.*?</k>", "<k>abc</k>", 0),
        (r"foo(?!bar)", "foo", 3),
        (r"foo(?!bar)", "foob", 4),
        (r"foo(?!bar)", "foox", 0),
        (r"\b\d{4}\b", "1234", 4),
        (r"\b\d{4}\b", "12345", 0),
        (r"(?<=x)foo", "fo", 0),
        (r"(?<=x)foo", "xfo", 2),
        (r"(?=a.*?b)a", "axxb", 0),
        (r"(?>a+)b", "caaa", 3),
        ("secret$", "secret", 6),
        ("secret$", "secret ", 0),
    ],
)
def test_nothing_is_held_that_is_decided(source: str, text: str, held: int) -> None:
    """What waits is what a search would have to read on for (spec R0.2, R4.6)."""
    scanner = scanner_of(source)
    scanner.feed(text)
    assert scanner.held == held


def test_no_rules_hold_nothing() -> None:
    """Without a rule text goes straight through (spec R0.2)."""
    scanner = scanner_of()
    assert scanner.feed("anything") == ("anything", ())
    assert scanner.feed("", final=True) == ("", [])


# ------------------------------------------------------------------------------------------------ what it costs


@pytest.mark.parametrize("source", [EMAIL, PEM, r"\bsecret\b", "(?<!a{10})foo", r"\b(?:\d[ -]?){13,19}\b"])
def test_work_is_linear_in_the_text(source: str) -> None:
    """Twice the text, character by character, is twice the work (spec R4.6)."""
    work: list[int] = []
    for times in (100, 200):
        pattern = CountingPattern("r", source)
        scanner = TextScanner([Rule(pattern=pattern)])
        for char in ENGLISH * times:
            scanner.feed(char)
        work.append(pattern.looked_at)
    assert work[1] <= 2.1 * work[0]
    assert work[1] < 30 * 200 * len(ENGLISH)


def test_a_long_match_costs_linear_work() -> None:
    """A key of 20 kB, a character at a time: what is looked at again is a constant times what came (spec R4.6)."""
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEabcd/+\n" * 1_900 + "-----END PRIVATE KEY-----"
    pattern = CountingPattern("key", PEM)
    scanner = TextScanner([Rule(pattern=pattern)])
    text = f"Here: {key} bye"
    left = "".join(redact(*scanner.feed(char)) for char in text) + redact(*scanner.feed("", final=True))
    assert left == "Here: <key> bye"
    assert pattern.looked_at < 10 * len(text) + EAGER * EAGER


def test_memory_does_not_grow_with_the_text() -> None:
    """Of what is released only the context stays, however much text comes (spec R4.6)."""
    scanner = scanner_of(EMAIL, r"\bsecret\b")
    for _ in range(100):  # until the context is full
        scanner.feed(ENGLISH)
    pieces = list(ENGLISH)
    peaks: list[int] = []
    tracemalloc.start()
    try:
        for times in (40, 80):
            tracemalloc.reset_peak()
            for _ in range(times):
                for char in pieces:
                    scanner.feed(char)
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 25_000
    assert peaks[1] < 200_000


def test_a_book_in_one_chunk() -> None:
    """One chunk of a megabyte is looked at in pieces and leaves whole (spec R4.6)."""
    rules = [Rule(pattern=ExactPattern("mail", EMAIL)), Rule(pattern=ExactPattern("word", "secret"))]
    text = ENGLISH * (1_000_000 // len(ENGLISH))
    decided, spans = TextScanner(rules).feed(text)
    assert decided == text
    assert len(spans) == 2 * (len(text) // len(ENGLISH))
    assert {text[span.start : span.end] for span in spans} == {"anna.long@example.org", "secret"}


@pytest.mark.parametrize("around", [-1, 0, 1, 5])
def test_a_match_over_the_edge_of_a_piece(around: int) -> None:
    """Where a long chunk is divided makes no difference (spec R0.1)."""
    text = "x" * (SLICE - around) + "secret" + "y" * SLICE
    wanted = expected([("r0", "secret"), ("r1", r"y\Z")], text)
    scanner = scanner_of("secret", r"y\Z")
    assert redact(*scanner.feed(text)) + redact(*scanner.feed("", final=True)) == wanted
    assert redact(*scanner_of("secret", r"y\Z").feed(text, final=True)) == wanted


# --------------------------------------------------------------------------------------------- what it looks back at


@pytest.mark.parametrize(
    "source", [r"(?<!#.{6000})foo", r"(?<=#.{5999}x)foo", r"(?<!#x*)foo", r"\bfoo", "^foo", r"\Afoo"]
)
def test_what_a_look_behind_needs_is_kept(source: str) -> None:
    """Released text is kept as far back as a rule looks; without a limit, for 64 KiB (spec R0.1, R4.6)."""
    rules = [Rule(pattern=ExactPattern("r", source))]
    for text in (f"#{'x' * 6000}foo", f"#{'x' * 30_000}foo foo", f"{'y' * 30_000}foo", f"{'y ' * 30_000}foo"):
        assert streamed(rules, text, range(0, len(text), 1_000)) == expected([("r", source)], text)


def test_further_back_than_is_kept() -> None:
    """The documented limit: a look-behind without a limit does not see what is more than 64 KiB back (spec R0)."""
    rules = [Rule(pattern=ExactPattern("r", "(?<=#x*)foo"))]
    assert rules[0].pattern.looks_back is None
    text = f"#{'x' * 4 * FURTHEST}foo"
    assert streamed(rules, text, range(0, len(text), 1_000)) == text


def test_a_long_match_after_a_long_text() -> None:
    """What waits is found when the text in front of it was let go long ago (spec R0.1)."""
    key = f"-----BEGIN KEY-----{'k' * 9_000}-----END KEY-----"
    text = "x" * 20_000 + key + "y" * 20_000
    rules = [Rule(pattern=ExactPattern("key", PEM))]
    assert streamed(rules, text, range(len(text))) == "x" * 20_000 + "<key>" + "y" * 20_000


# ------------------------------------------------------------------------------------------------------- the cap


def test_more_than_may_wait() -> None:
    """A rule that cannot make up its mind is an error that names it, not memory that fills up (spec R4.6)."""
    scanner = scanner_of("secret", "(?s)<k>.*?</k>", r"\X", cap=100)
    scanner.feed("<k>" + "a" * 97)
    with pytest.raises(HeldTooLong, match="101 characters wait for 'r1', 'r2'; at most 100 may") as caught:
        scanner.feed("a")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.rules, copy.held, copy.cap) == (["r1", "r2"], 101, 100)


def test_what_is_decided_is_not_held() -> None:
    """The cap is for what waits, not for what comes; and at the end nothing waits (spec R4.6)."""
    assert scanner_of("secret", cap=10).feed("a" * 50_000)[0] == "a" * 50_000
    assert scanner_of(r"\X+", cap=10).feed("a" * 50, final=True)[1] == [Span(rule="r0", start=0, end=50)]


def test_a_span_that_another_rule_keeps_open() -> None:
    """The rule that holds is named, not the one whose match waits for it (spec R4.6)."""
    scanner = scanner_of("a{60}", "a{59}b.*c", cap=50)
    with pytest.raises(HeldTooLong) as caught:
        scanner.feed("a" * 60 + "b")
    assert caught.value.rules == ["r1"]


# ----------------------------------------------------------------------------------------------------- scanners


class Shouting:
    """A scanner of another kind: objects to every capital."""

    name = "capitals"

    def __init__(self) -> None:
        self.safe = 0
        self.spans: list[Span] = []

    def scan(self, text: str, *, final: bool) -> None:
        self.spans += [
            Span(rule=self.name, start=at, end=at + 1)
            for at in range(self.safe, len(text))
            if text[at].isupper()
        ]
        self.safe = len(text)

    def forget(self, count: int) -> None:
        self.safe -= count


def test_scanners_of_any_kind() -> None:
    """Rules and other scanners work on the same text (spec R4.6)."""
    scanner = TextScanner.of(
        [Shouting(), RuleScanner(Rule(pattern=ExactPattern("word", "secret")))], context=10
    )
    text = "A secret, Sesecret." * 50
    left = "".join(redact(*scanner.feed(char)) for char in text) + redact(*scanner.feed("", final=True))
    assert left == "<capitals> <word>, <capitals>e<word>." * 50


def test_what_a_check_does_not_accept() -> None:
    """A candidate that fails its check is text like any other (spec R4.6)."""
    rules = [Rule(pattern=ExactPattern("even", r"\d{2}"), accept=lambda found: int(found) % 2 == 0)]
    assert streamed(rules, "12 13 14", range(8)) == "<even> 13 <even>"


def test_a_match_inside_a_candidate_that_is_refused() -> None:
    """A number in front of a card number does not hide it (spec R0.2)."""
    rules = [
        Rule(pattern=ExactPattern("even", r"\b\d(?: ?\d){2,5}\b"), accept=lambda found: found.startswith("4"))
    ]
    assert streamed(rules, "12 444 1", range(8)) == "12 <even>"


@given(source=PATTERNS, text=TEXTS, cuts=st.lists(st.integers(0, 16), max_size=6), odd=st.booleans())
@settings(
    max_examples=600, suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much), deadline=None
)
def test_checked_candidates_are_the_same_wherever_the_text_is_cut(
    source: str, text: str, cuts: list[int], odd: bool
) -> None:
    """A check that refuses some candidates changes nothing of the law (spec R0.1)."""
    assume(compiles(source))

    def accept(found: str) -> bool:
        return len(found) % 2 == odd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = expected([("r", source)], text, accept)
        except TimeoutError:
            assume(False)
        assert streamed([Rule(pattern=ExactPattern("r", source), accept=accept)], text, cuts) == wanted


def test_overlapping_spans() -> None:
    """They are one; the longest gives the name, the first rule among equals (spec R4.6)."""
    spans = [
        Span(rule=rule, start=start, end=end) for rule, start, end in (("a", 0, 3), ("b", 2, 6), ("c", 6, 7))
    ]
    assert merged(spans) == [Span(rule="b", start=0, end=6), Span(rule="c", start=6, end=7)]
    assert merged([Span(rule="a", start=0, end=2), Span(rule="b", start=0, end=2)])[0].rule == "a"
