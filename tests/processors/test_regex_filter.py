"""RegexFilter: from patterns to a guard."""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from interlock import Agent, Chain, UsageError, When, guard_stream, guard_text
from interlock.processors import KeywordFilter, RegexFilter, SpanGuard
from interlock.release.guard import GuardOptions
from interlock.release.pattern import ExactPattern
from interlock.release.scanner import Rule
from interlock.testing import ScriptedModel, text


async def made_of(said: str, guard: RegexFilter) -> str:
    return (await guard_text(said, [guard])).text


@pytest.mark.anyio
async def test_rules_are_named_patterns() -> None:
    """The name, in capitals, stands for what was found; all rules look at the same text. R0.2."""
    guard = RegexFilter({"mail": r"[\w.]+@[\w.]+\w", "pin": r"\b\d{4}\b"})
    assert guard.id == "regex-filter"
    assert await made_of("bob@x.org has 1234, not 12345.", guard) == "[MAIL] has [PIN], not 12345."


@pytest.mark.anyio
async def test_overlapping_finds_are_one_and_the_longest_gives_the_name() -> None:
    """Where rules overlap, all of it goes, whatever the order of the rules. R0.3."""
    rules = {"short": r"cd", "long": r"bcde", "next": r"ef+"}
    for names in (list(rules), list(reversed(rules))):
        guard = RegexFilter({name: rules[name] for name in names})
        assert await made_of("abcdefffg", guard) == "a[LONG]g"


@pytest.mark.anyio
async def test_rule_objects_can_check_a_candidate() -> None:
    """A rule's ``accept`` decides on what its pattern found; what it refuses stays. R0.2."""
    even = Rule(pattern=ExactPattern("even", r"\d+"), accept=lambda found: int(found) % 2 == 0)
    guard = RegexFilter([even])
    assert await made_of("1 2 13 14", guard) == "1 [EVEN] 13 [EVEN]"
    assert guard.rules == (even,)


@pytest.mark.anyio
async def test_flags_are_for_patterns_given_as_text() -> None:
    """Flags of the ``regex`` package apply to every pattern of the mapping. R0.2."""
    guard = RegexFilter({"word": r"secret.x"}, flags=regex.IGNORECASE | regex.DOTALL)
    assert await made_of("a SECRET\nX b", guard) == "a [WORD] b"


@pytest.mark.anyio
async def test_the_regex_packages_own_syntax() -> None:
    """What only the ``regex`` package can read works too, also where its verdict has to wait for the end. R0.2."""
    guard = RegexFilter({"name": r"\p{Lu}\p{Ll}++", "nested": r"\((?:[^()]|(?R))*\)"})
    said = "x (a (b) c) Émile y"
    assert await made_of(said, guard) == "x [NESTED] [NAME] y"
    assert "".join([piece async for piece in guard_stream(said, [guard])]) == "x [NESTED] [NAME] y"


@given(
    said=st.text("ab1 -\n", max_size=14),
    places=st.lists(st.integers(0, 14), max_size=5),
    rules=st.lists(
        st.sampled_from([r"\ba", r"a+(?=1)", r"(?<!a)b", r"1$", r"a|ab|abb", r"b.*", r"(?s)1.*?b", r"^-"]),
        min_size=1,
        max_size=3,
        unique=True,
    ),
)
def test_a_filter_of_many_rules_gives_the_same_for_every_cut(
    said: str, places: list[int], rules: list[str]
) -> None:
    """Rules side by side in one filter: the stream's text is that of the whole, for every cut. R0.2."""

    async def check() -> None:
        guard = RegexFilter({f"r{number}": source for number, source in enumerate(rules)})
        ends = [0, *sorted(min(place, len(said)) for place in places), len(said)]
        pieces = [said[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]  # noqa: RUF007
        expected = await made_of(said, guard)
        assert "".join([piece async for piece in guard_stream(pieces, [guard])]) == expected
        agent = Agent(id="a", model=ScriptedModel([text(*pieces)]), output_processors=[guard])
        assert (await agent.generate("hi")).text == expected

    asyncio.run(check())


@pytest.mark.anyio
async def test_an_empty_match_removes_nothing() -> None:
    """A pattern that matches nothing at all where it can finds only what has text. R0.2."""
    assert await made_of("a11b", RegexFilter({"n": r"\d*"})) == "a[N]b"


@pytest.mark.anyio
async def test_a_filter_in_compositions() -> None:
    """In a Chain, or under a condition, it is the same guard. R10.3."""
    pin, name = RegexFilter({"pin": r"\d{4}"}, id="a"), RegexFilter({"name": r"Bob\w*"}, id="b")
    for allowed, expected in ((True, "[NAME] has [PIN]"), (False, "Bobby has [PIN]")):
        row = [Chain(pin, When(lambda ctx, allowed=allowed: allowed, name), id="both")]
        agent = Agent(id="a", model=ScriptedModel([text("Bo", "bby has 12", "34")]), output_processors=row)
        assert (await agent.generate("hi")).text == expected


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({}, "needs at least one rule"),
        ([], "needs at least one rule"),
        ({"open": "("}, "rule 'open': the pattern does not compile"),
        ({"bytes": b"x"}, "rule 'bytes': a pattern is a text, not bytes"),
        ({"ready": regex.compile("x")}, "rule 'ready': a pattern is a text, not Pattern"),
        ("abc", "rules are a mapping"),
        (["a+"], "rules are a mapping"),
        (None, "rules are a mapping"),
        (5, "rules are a mapping"),
    ],
)
def test_rules_that_mean_nothing_are_refused(rules: Any, says: str) -> None:
    """The error says what was wrong and what to write. R2.4."""
    with pytest.raises(UsageError, match=regex.escape(says) if "(" in says else says):
        RegexFilter(rules)


@pytest.mark.parametrize("phases", ["input", "output", "all"])
def test_phases_are_short_for_channels(phases: Any) -> None:
    """``input`` is the channel of that name, ``output`` all others, ``all`` (the default) both."""
    channels = RegexFilter({"a": "a"}, phases=phases).channels
    assert ("input" in channels) == (phases != "output")
    assert ("text" in channels) == ("data" in channels) == (phases != "input")
    assert RegexFilter({"a": "a"}).channels == RegexFilter({"a": "a"}, phases="all").channels


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"phases": "inputs"}, "phases is one of 'all', 'input', 'output', not 'inputs'"),
        ({"phases": "input", "channels": ["text"]}, "give one of them"),
    ],
)
def test_phases_that_mean_nothing_are_refused(options: Any, says: str) -> None:
    """An unknown phase, and phases beside channels, are told at set-up."""
    with pytest.raises(UsageError, match=says):
        RegexFilter({"a": "a"}, **options)


@pytest.mark.anyio
async def test_a_phase_left_out_is_not_guarded() -> None:
    """A filter of one phase leaves the other as it is, in an agent that has it in both lists. R0.2."""
    for phases, told, said in (("input", "[PIN]", "1234"), ("output", "1234", "[PIN]")):
        guard = RegexFilter({"pin": r"\d{4}"}, phases=phases)  # type: ignore[arg-type]
        model = ScriptedModel([text("1234")])
        agent = Agent(id="a", model=model, input_processors=[guard], output_processors=[guard])
        assert (await agent.generate("1234")).text == said
        assert told in model.calls[0].prompt_text


def test_what_rules_cost_is_told_at_set_up(caplog: pytest.LogCaptureFixture) -> None:
    """Rules that wait for the whole text, look back without a limit or need a clock are named, the others not.

    Spec R4.6 (what is held is said).
    """
    rules = {
        "plain": r"\b\d{4}\b",
        "nested": r"\((?:[^()]|(?R))*\)",
        "behind": r"(?<=a.*)b",
        "slow": r"(?:a|aa)+$",
        "ahead": r"a(?!.*b)",
        "near": r"a(?=[bc]{2})",
    }
    with caplog.at_level(logging.INFO, logger="interlock"):
        guard = RegexFilter(rules, id="costly")
    assert guard.costs["nested"] == ("whole text",)
    assert "look-behind" in guard.costs["behind"]
    assert guard.costs["slow"] == ("timed",)
    assert "look-ahead" in guard.costs["ahead"]
    assert not {"plain", "near"} & set(guard.costs)
    (line,) = [record.getMessage() for record in caplog.records if "cost more" in record.getMessage()]
    assert "'costly'" in line
    assert "nested (whole text)" in line
    caplog.clear()
    assert RegexFilter({"plain": rules["plain"]}).costs == {}
    assert not caplog.records


def test_every_option_of_a_guard_is_in_the_one_list() -> None:
    """GuardOptions has what SpanGuard takes beside its id; filters pass it on, and an unknown one is refused."""
    taken = set(inspect.signature(SpanGuard.__init__).parameters) - {"self", "id"}
    assert taken == set(GuardOptions.__annotations__)
    wrong: Any = {"strategie": "block"}
    for made in (lambda: RegexFilter({"a": "a"}, **wrong), lambda: KeywordFilter(["a"], **wrong)):
        with pytest.raises(TypeError, match="strategie"):
            made()
