"""Ids of tool calls, on their way to a provider that did not make them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from interlock.models.tool_ids import ANYWHERE, BY_PROVIDER, tool_id, tool_id_for

PATTERNS = st.sampled_from([ANYWHERE, *BY_PROVIDER.values()])


@given(st.text(min_size=1), PATTERNS)
def test_any_id_fits(given_id: str, accepted: re.Pattern[str]) -> None:
    """Any id becomes one that is taken, always the same; a good one stays."""
    made = tool_id(given_id, accepted)
    assert accepted.fullmatch(made)
    assert made == tool_id(given_id, accepted)
    assert tool_id(made, accepted) == made
    if accepted.fullmatch(given_id):
        assert made == given_id


@given(st.sets(st.text(min_size=1), max_size=20), PATTERNS)
def test_different_ids_stay_different(ids: set[str], accepted: re.Pattern[str]) -> None:
    """Two calls do not become one."""
    assert len({tool_id(each, accepted) for each in ids}) == len(ids)


def test_who_is_choosy() -> None:
    """OpenAI takes 40 characters, Mistral nine letters and digits; others get back what they sent."""
    long = "chatcmpl-tool-" + "0" * 32
    assert tool_id_for("vllm", long) == long
    assert len(tool_id_for("openai", long)) <= 40
    assert len(tool_id_for("mistral", "call_1")) == 9
    assert tool_id_for("openai", "functions.f:0") == "functions.f:0"
