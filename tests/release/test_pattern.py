"""The engine for exact patterns: however a text is cut, it is redacted as if it had come whole (spec R0, R4.6)."""

from __future__ import annotations

import pickle
import warnings

import pytest
import regex
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from streaming import PATTERNS, TEXTS, compiles, expected, redact, streamed

from interlock.core.errors import InterlockError, UsageError
from interlock.release.pattern import ExactPattern, SearchTimeout, read_pattern
from interlock.release.scanner import Rule, TextScanner

QUIET = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)


def rules_of(*sources: str) -> list[Rule]:
    return [Rule(pattern=ExactPattern(f"r{i}", source)) for i, source in enumerate(sources)]


def check_same(sources: list[str], text: str, cuts: list[int]) -> None:
    """Streamed, whole, and by a plain loop: the same redaction (spec R0.1, R4.6)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # [[:alpha:]] and the like: `regex` warns of what `re` would warn of
        rules = rules_of(*sources)
        try:
            wanted = expected([(f"r{i}", source) for i, source in enumerate(sources)], text)
        except (MemoryError, TimeoutError):  # a pattern that `regex` itself cannot cope with
            return
    assert redact(*TextScanner(rules).feed(text, final=True)) == wanted
    assert streamed(rules, text, cuts) == wanted


@given(
    sources=st.lists(PATTERNS, min_size=1, max_size=3),
    text=TEXTS,
    cuts=st.lists(st.integers(0, 16), max_size=12),
)
@settings(max_examples=2_000, suppress_health_check=QUIET)
@example(sources=["(é){0,3}"], text="éé-", cuts=[1, 2])
@example(sources=["(?:ab)*"], text="abab", cuts=[2])
@example(sources=[r"(?a)(?:\W|-)\B"], text="éb", cuts=[1])
@example(sources=["(?=a*?b)(?:a|(?!ab$)b)+"], text="aab\n", cuts=[1, 2, 3])
def test_any_pattern_any_cut(sources: list[str], text: str, cuts: list[int]) -> None:
    """Any pattern on any text, cut anywhere, is redacted as in the whole text (spec R0.1, R4.6)."""
    compiling = [source for source in sources if compiles(source)]
    assume(compiling)
    check_same(compiling, text, cuts)


@given(sources=st.lists(PATTERNS, min_size=1, max_size=2), text=TEXTS)
@settings(max_examples=300, suppress_health_check=QUIET)
def test_any_pattern_character_by_character(sources: list[str], text: str) -> None:
    """The worst cut there is (spec R0.1, R4.6)."""
    compiling = [source for source in sources if compiles(source)]
    assume(compiling)
    check_same(compiling, text, list(range(len(text))))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"foo(?!bar)", "foo foobar fooba"),
        (r"ab|abcd", "abcd"),
        (r"abcd|ab", "abcabcd"),
        (r"(?|(?P<n>a)x|(?P<n>b)y)(?P=n)", "axa byb aya"),
        (r"(?i:sec)ret", "SECret secRET"),
        (r"\p{Lu}\p{Ll}+", "Ünal Öz"),
        (r"\N{LATIN SMALL LETTER A}+b", "aab"),
        (r"(?i)stra\u017f\u017fe", "STRASSE stra\u017f\u017fe"),
        (r"a(?#why)*b", "aaab"),
        (r"(a)?(?(1)b|c)", "abc"),
        (r"(?:(?=a(?=b|$))a)+b?", "aab a"),
        (r"(?:a(?!b\b))+", "aab aabb"),
        (r"(a*)b\1c", "aabaac"),
        (r"(?P<n>a)(?P=n)", "aaa"),
        (r"(?:(?:ab){2}c?)++", "ababcabab"),
        (r"(?m)^a$\n?", "a\na\nba\n"),
        (r"(?s)<k>.*?</k>", "<k>a</k> <k>"),
        ("\u05d0\u05d1+", "x\u05d0\u05d1\u05d1 y"),
        ("e\u0301", "e\u0301e e\u0301"),
        ("\ud800+", "a\ud800\ud800b\udfff"),
        (r"\b", "a b"),
        (r"(?=a)|b", "ab"),
        (r"a*?", "aa"),
    ],
)
def test_constructs_it_follows(source: str, text: str) -> None:
    """What is followed while the text streams; combining, right-to-left and lone surrogates too (spec R4.6)."""
    assert "(?(1" in source or not ExactPattern("r", source).needs_whole_text
    check_same([source], text, list(range(len(text))))


@pytest.mark.parametrize(
    "source",
    [
        "(?x)a b", r"(?V1)[[a-z]--[b]]c", "(?f)(?i)ss", r"(?w)a\b", "(?p)a|ab", "(?:ab){e<=1}",
        "(?e)(?:ab){i}",
        "a(?R)?b", "(a)(?1)?", "(?P<n>a)(?&n)", "(?P<n>a)(?P>n)", "(a)?(?(1)b|c)", "(?(DEFINE)(?P<n>a))b",
        r"\X", r"\R", r"a\Kb", r"\Ga", r"\ma", r"a\M", "a(*SKIP)b", "a(*PRUNE)b",
        r"(?<=a\b)b", "(?<=a(?=b))b", "(?<!a$)b",
        "a(?i)b", "(?:(?a)é)", "[a[b]", "a{,}",
    ],
)  # fmt: skip
def test_constructs_that_wait_for_the_whole_text(source: str) -> None:
    """What is not followed is told at set-up, held to the end, and found there (spec R0.1, R4.6)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pattern = ExactPattern("r", source)
    assert pattern.needs_whole_text
    scanner = TextScanner([Rule(pattern=pattern)])
    assert [scanner.feed(char) for char in "ab c"] == [("", [])] * 4
    assert scanner.held == 4
    for text in ("abab a b ssé", "aabb\n", "abcab"):
        check_same([source], text, list(range(len(text))))


@pytest.mark.parametrize(
    ("source", "back"),
    [
        ("abc", 1), (r"\bx", 1), ("(?<=ab)c", 3), ("(?<!a{2,5}b|c)d", 7), ("(?<=(?:ab?){3}|x)y", 7),
        ("(?<=a(?<=bb))c", 4),
        ("(?<=a+)b", None), ("(?<=a{3,})b", None), (r"(a)(?<=\1)b", None), ("(?<!^.*)b", None), ("(?=x(?<!ab))x", 3),
        (r"(?<=\u0041[^]]\p{L}\n)b", 5), ("(?<=[[:alpha:]])b", 2), ("(?<=a(?#x)*)b", None), (r"(?<=\A|^)b", 1),
    ],
)  # fmt: skip
def test_how_far_it_looks_back(source: str, back: int | None) -> None:
    """How far a look-behind reads is known at set-up (spec R4.6)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ExactPattern("r", source).looks_back == back


def test_a_pattern_that_does_not_compile() -> None:
    """It is told by name (spec R0)."""
    with pytest.raises(UsageError, match="rule 'keys': the pattern does not compile"):
        ExactPattern("keys", "(a")


@pytest.mark.parametrize("source", ["(?r)ab", "(?ri)a"])
def test_a_pattern_that_searches_backwards(source: str) -> None:
    """It finds its last match first, behind which nothing would be looked for: refused at set-up (spec R0)."""
    with pytest.raises(UsageError, match=r"rule 'keys': .* leave out \(\?r\)"):
        ExactPattern("keys", source)


@pytest.mark.parametrize(
    "source", [r"(?<=\K(?:A)?)", r"(?<=\KA)", r"(?<=\KA*)b?", r"(?=A\K)", r"(?=\KA)", r"(?<=(?=A\K))"]
)
@pytest.mark.parametrize("text", ["A", "AA", "bAAb"])
def test_a_match_moved_by_an_assertion_is_no_endless_loop(source: str, text: str) -> None:
    r"""With \K in a look-around a match begins in front of where it was searched for, or behind its end; the search
    goes on all the same (spec R4.6).
    """
    check_same([source], text, list(range(len(text))))


@pytest.mark.parametrize("final", [False, True])
def test_catastrophic_patterns_give_up(final: bool) -> None:
    """A search that takes too long is a typed error that names the rule, never a verdict (spec R4.6)."""
    scanner = TextScanner([Rule(pattern=ExactPattern("slow", "(a|aa)+$", timeout=0.05))])
    with pytest.raises(SearchTimeout, match=r"rule 'slow': the search was not done after 0\.05 s") as caught:
        scanner.feed("a" * 100 + "!", final=final)
    assert isinstance(caught.value, InterlockError)
    assert pickle.loads(pickle.dumps(caught.value)).seconds == 0.05


def test_running_out_of_memory_is_giving_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As little is known when memory runs out (spec R4.6)."""

    class Greedy:
        def search(self, *_: object, **__: object) -> None:
            raise MemoryError

    pattern = ExactPattern("big", "a")
    monkeypatch.setattr(pattern, "_pattern", Greedy())
    monkeypatch.setattr(pattern, "_twin", Greedy())
    with pytest.raises(SearchTimeout, match="'big'"):
        pattern.search("a", 0)
    with pytest.raises(SearchTimeout, match="'big'"):
        pattern.first_undecided("a", 0)


def test_flags_given_beside_the_pattern() -> None:
    """They count as if written in it (spec R4.6)."""
    rules = [Rule(pattern=ExactPattern("r", "^ab$", regex.IGNORECASE | regex.MULTILINE))]
    assert streamed(rules, "AB\nxab\nab", [1, 2, 3, 5, 8]) == "<r>\nxab\n<r>"
    assert ExactPattern("r", "a b", regex.VERBOSE).needs_whole_text


def test_too_deep_to_read() -> None:
    """A pattern nested too deeply for this reader waits for the whole text (spec R0)."""
    assert read_pattern("(" * 5_000 + "a" + ")" * 5_000) is None
