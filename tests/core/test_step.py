"""What hooks are given and may give back: ``map_text``, and which fields the subjects have (R4, R10.6)."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import (
    CachedResponse,
    LLMRequest,
    LLMResponse,
    OutputResult,
    OutputStep,
    StepChange,
    StepInput,
    StepRecord,
)
from interlock.core.frozen import frozen_prompt
from interlock.core.model import (
    PromptFile,
    PromptMessage,
    PromptReasoning,
    PromptText,
    PromptToolCall,
    PromptToolResult,
)
from interlock.core.step import map_strings
from interlock.testing import ScriptedModel

MODEL = ScriptedModel([])


@pytest.mark.parametrize(
    ("subject", "fields"),
    [
        (
            StepInput,
            "model tools tool_choice active_tools provider_options model_settings structured_output messages "
            "system_messages",
        ),
        (LLMRequest, "prompt model"),
        (LLMResponse, "chunks raw_chunks model from_cache warnings request raw_response"),
        (OutputStep, "text tool_calls finish_reason usage provider_metadata"),
        (OutputResult, "text usage finish_reason steps"),
        (
            StepRecord,
            "text reasoning tool_calls tool_results sources files usage finish_reason request response warnings "
            "provider_metadata tripwire",
        ),
        (
            StepChange,
            "model tools tool_choice active_tools provider_options model_settings structured_output messages "
            "message_list system_messages",
        ),
        (CachedResponse, "chunks"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_the_subjects_have_what_the_contract_says(subject: Any, fields: str) -> None:
    """R4: each subject has the fields the contract lists for its hook."""
    assert set(fields.split()) <= set(subject.__struct_fields__)


def prompt_of_everything() -> tuple[PromptMessage, ...]:
    """A prompt with Ada in every place text can be."""
    return frozen_prompt(
        (
            PromptMessage(role="system", content="Ada"),
            PromptMessage(role="user", content=(PromptText(text="Ada"), PromptFile(media_type="a/Ada", data="Ada"))),
            PromptMessage(
                role="assistant",
                content=(
                    PromptReasoning(text="Ada", provider_options={"p": {"signature": "Ada"}}),
                    PromptText(text="Ada"),
                    PromptToolCall(tool_call_id="Ada", tool_name="Ada", input={"Ada": ["Ada", {"x": "Ada"}, 1, None]}),
                ),
            ),
            PromptMessage(
                role="tool",
                content=(
                    PromptToolResult(tool_call_id="Ada", tool_name="Ada", kind="json", value={"Ada": ["Ada", True]}),
                ),
            ),
        )
    )  # fmt: skip


def test_map_text_reaches_every_text_the_model_would_read() -> None:
    """R10.6: system texts, text, reasoning, and strings inside tool arguments and results; names, ids, keys stay."""
    request = LLMRequest(prompt=prompt_of_everything(), model=MODEL)
    system, user, answer, results = request.map_text(lambda part: part.replace("Ada", "X")).prompt
    assert system.content == "X"
    assert user.content == (PromptText(text="X"), PromptFile(media_type="a/Ada", data="Ada"))
    reasoning, said, call = answer.content
    assert isinstance(reasoning, PromptReasoning)
    assert isinstance(call, PromptToolCall)
    assert (reasoning.text, said.text) == ("X", "X")  # type: ignore[union-attr]
    assert reasoning.provider_options == {"p": {"signature": "Ada"}}
    assert (call.tool_call_id, call.tool_name) == ("Ada", "Ada")
    assert call.input == {"Ada": ["X", {"x": "X"}, 1, None]}
    (result,) = results.content
    assert isinstance(result, PromptToolResult)
    assert result.value == {"Ada": ["X", True]}
    assert (result.tool_call_id, result.tool_name) == ("Ada", "Ada")


def test_map_text_leaves_the_request_alone() -> None:
    """R4.3: it gives a new request; the one it was called on is frozen and stays, model and shape included."""
    request = LLMRequest(prompt=prompt_of_everything(), model=MODEL)
    mapped = request.map_text(str.upper)
    assert request.prompt == prompt_of_everything()
    assert mapped.model is MODEL
    assert [m.role for m in mapped.prompt] == [m.role for m in request.prompt]
    assert request.map_text(lambda part: part).prompt == request.prompt


def test_map_text_keeps_the_text_of_an_empty_prompt() -> None:
    """R10.6: nothing to map is fine, and the function is not called for what is no text."""
    called: list[str] = []

    def note(part: str) -> str:
        called.append(part)
        return part

    LLMRequest(prompt=(), model=MODEL).map_text(note)
    assert called == []


@pytest.mark.parametrize(
    ("value", "mapped"),
    [
        ("a", "A"),
        (["a", ("b", 1)], ["A", ["B", 1]]),
        ({"k": {"k": "v"}}, {"k": {"k": "V"}}),
        (None, None),
        (1.5, 1.5),
        (True, True),
    ],
)
def test_map_strings(value: Any, mapped: Any) -> None:
    """R10.6: every string inside a JSON value, keys aside."""
    assert map_strings(value, str.upper) == mapped


def test_a_step_change_says_nothing_unless_told() -> None:
    """R4.2: what is not given is not changed; None is a value."""
    import msgspec

    change = StepChange(active_tools=None)
    assert change.active_tools is None
    assert change.model is msgspec.UNSET
    assert change.tools is msgspec.UNSET
