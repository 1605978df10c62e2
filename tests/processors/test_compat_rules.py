"""The built-in rules about providers' histories, one by one; as part of a run: test_provider_history_compat."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Message
from interlock.messages import Content, ReasoningPart, TextPart, ToolInvocationPart
from interlock.processors.compat_rules import COMPAT_RULES, CompatRule

RULES = {rule.name: rule for rule in COMPAT_RULES}
NAMES = [
    "strip-foreign-provider-executed-tools",
    "anthropic-tool-id-format",
    "cerebras-strip-reasoning-content",
    "anthropic-strip-empty-signed-reasoning-content",
    "anthropic-strip-foreign-reasoning-content",
    "anthropic-strip-foreign-signed-reasoning",
    "azure-system-reminder-transform",
    "openai-orphan-item-id",
]


def test_the_rules_are_the_references() -> None:
    """In its order, under its names; each changes prompts or repairs messages, and then knows the refusal."""
    assert list(RULES) == NAMES
    for rule in COMPAT_RULES:
        assert (rule.fix is None) != (rule.apply_to_prompt is None)
        assert bool(rule.error_patterns) == (rule.fix is not None)


def matches(name: str, text: str) -> bool:
    """Whether a rule knows an error by its text."""
    return any(pattern.search(text) for pattern in RULES[name].error_patterns)


@pytest.mark.parametrize(
    ("name", "text", "known"),
    [
        (NAMES[1], "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", True),
        (
            NAMES[1],
            "messages.2.content.0.tool_result.tool_use_id: String should match pattern '^[a-z]+$'",
            True,
        ),
        (NAMES[1], "tool_call_id 'a.b' is invalid", True),
        (NAMES[1], "max_tokens: field required", False),
        (
            NAMES[7],
            "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'.",
            True,
        ),
        (
            NAMES[7],
            "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
            False,
        ),
    ],
)
def test_refusals_are_known_by_their_words(name: str, text: str, known: bool) -> None:
    """What the providers say."""
    assert matches(name, text) is known


def assistant(*parts: Any) -> Message:
    """An answer."""
    return Message(id="m", role="assistant", content=Content(parts=list(parts)))


def call(call_id: str) -> ToolInvocationPart:
    """An answered call."""
    return ToolInvocationPart(tool_call_id=call_id, tool_name="look", state="result", result=1)


def ids(messages: list[Message]) -> list[str]:
    """The calls' ids, in order."""
    return [
        part.tool_call_id
        for m in messages
        for part in m.content.parts
        if isinstance(part, ToolInvocationPart)
    ]


def fix(rule: CompatRule, *messages: Message) -> bool:
    """Apply a repair."""
    assert rule.fix is not None
    return rule.fix(list(messages))


@given(st.lists(st.text(alphabet="ab.:_-", max_size=3), max_size=8))
def test_repaired_ids_are_plain_and_as_different_as_before(given_: list[str]) -> None:
    """Good ids stay; calls of one id keep one id, calls of different ids different ones (R3.8); once is enough."""
    message = assistant(*map(call, given_))
    good = [each for each in given_ if each and not set(each) & set(".:")]
    changed = fix(RULES[NAMES[1]], message)
    now = ids([message])
    assert changed == (len(good) < len(given_))
    assert all(each and set(each) <= set("abcl_-0123456789") for each in now)
    assert [(a == b) for a in now for b in now] == [(a == b) for a in given_ for b in given_]
    assert [new for old, new in zip(given_, now, strict=True) if old in good] == good
    assert not fix(RULES[NAMES[1]], message)


def item(text: str = "t", provider: str = "openai", **more: Any) -> TextPart:
    """Text that refers to a stored item."""
    return TextPart(text=text, provider_metadata={provider: {"itemId": "msg_1", **more}})


@pytest.mark.parametrize("provider", ["openai", "azure"])
def test_items_without_their_reasoning_are_sent_by_value(provider: str) -> None:
    """Only the reference goes; the rest of the metadata, and other providers' own, stays."""
    result = call("c1")
    result.provider_metadata = {provider: {"resultItemId": "fco_1"}}
    part = item(provider=provider, phase="final")
    part.provider_metadata = {**(part.provider_metadata or {}), "other": {"itemId": "x"}}
    assert fix(RULES[NAMES[7]], assistant(part, result, TextPart(text="plain")))
    assert part.provider_metadata == {provider: {"phase": "final"}, "other": {"itemId": "x"}}
    assert result.provider_metadata == {provider: {}}


@pytest.mark.parametrize(
    ("messages", "changed"),
    [
        ([assistant(ReasoningPart(text="hm"), item())], False),
        ([assistant(ReasoningPart(text="hm")), assistant(item())], False),
        ([assistant(ReasoningPart(text="hm"), TextPart(text="own")), assistant(item())], True),
        ([assistant(TextPart(text="plain"))], False),
        ([Message(id="u", role="user", content=Content(parts=[item()]))], False),
        ([], False),
    ],
)
def test_items_with_their_reasoning_stay(messages: list[Message], changed: bool) -> None:
    """The reasoning may stand in a row of its own just before."""
    assert fix(RULES[NAMES[7]], *messages) is changed
