"""KeywordFilter: word lists through the whole engine."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Agent, UsageError, guard_text
from interlock.processors.keyword_filter import KeywordFilter
from interlock.testing import ScriptedModel, check_guard, random_cuts, text

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("options", "given", "expected"),
    [
        ({}, "Acme, ACME and acmeism", "[KEYWORD], [KEYWORD] and acmeism"),
        ({"case_sensitive": True}, "Acme and acme", "Acme and [KEYWORD]"),
        ({"whole_words": False}, "acmeism", "[KEYWORD]ism"),
        ({"rule": "rival"}, "new york, new jersey", "[RIVAL], new jersey"),
        ({"strategy": "filter"}, "buy acme now", "buy  now"),
        ({"strategy": "warn"}, "buy acme now", "buy acme now"),
        ({"fold_diacritics": True}, "\u00e1cme", "[KEYWORD]"),
    ],
)
async def test_options(options: dict[str, Any], given: str, expected: str) -> None:
    """R0.2: case, accents, whole words, rule names and strategies do what they say."""
    assert (await guard_text(given, [KeywordFilter(["acme", "new york"], **options)])).text == expected


async def test_terms_may_have_rules_of_their_own() -> None:
    """A mapping names the rule of each term."""
    guard = KeywordFilter({"acme": "rival", "ada": "person"})
    assert (await guard_text("Ada at Acme", [guard])).text == "[PERSON] at [RIVAL]"


@pytest.mark.parametrize("terms", [[], "acme", [""], [1]])
def test_terms_that_make_no_list_are_refused(terms: Any) -> None:
    """R10: told at set-up, in words that help."""
    with pytest.raises(UsageError):
        KeywordFilter(terms)


def test_every_cut_gives_what_the_whole_text_gives() -> None:
    """R0.2: the joined text is the same for every way of cutting it."""
    guard = KeywordFilter(["acme", "new york", "new york city"], rule="rival")
    report = check_guard(guard, examples=["Acme of New York City, acmeism, new york"], cuts=300)
    assert report.ok, str(report)


async def test_in_an_agent_client_result_and_prompt_agree() -> None:
    """R0.1: what was streamed is what the result says, for any cut."""
    whole = "Ask Acme in New York today"
    for parts in random_cuts(whole, count=20, seed=3):
        guard = KeywordFilter(["acme", "new york"])
        agent = Agent(id="a", model=ScriptedModel([text(*parts)]), output_processors=[guard])
        async with agent.stream("hi") as stream:
            sent = "".join([piece async for piece in stream.text_stream])
            result = await stream.result()
        assert sent == result.text == "Ask [KEYWORD] in [KEYWORD] today"
