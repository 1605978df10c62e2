"""Part metadata: what goes back to its provider, and that no text hides in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    ModelResponsePart,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

from interlock.models.pydantic_ai_metadata import (
    QUOTES,
    Origin,
    native_call_metadata,
    origin_of,
    part_metadata,
    plain,
)


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (ThinkingPart("t", signature="s", provider_name="anthropic"), "signature"),
        (
            ThinkingPart("", id="redacted_thinking", signature="s", provider_name="anthropic"),
            "redactedData",
        ),
        (ThinkingPart("t", id="rs_1", signature="s", provider_name="openai"), "reasoningEncryptedContent"),
        (
            ToolCallPart("f", provider_name="google", provider_details={"thought_signature": "s"}),
            "thoughtSignature",
        ),
        (
            TextPart("t", provider_name="google", provider_details={"thought_signature": "s"}),
            "thoughtSignature",
        ),
    ],
)
def test_signatures_have_the_names_stored_threads_have(part: ModelResponsePart, name: str) -> None:
    """A thread of the reference's has the same names, so its signatures are found as well."""
    metadata = part_metadata(part, None, None)
    assert metadata is not None
    (kept,) = metadata.values()
    assert kept[name] == "s"


@given(
    st.text(),
    st.none() | st.text(min_size=1),
    st.none() | st.text(min_size=1),
    st.none()
    | st.dictionaries(st.sampled_from(["phase", "x", "thought_signature"]), st.text(min_size=1), min_size=1),
    st.sampled_from(["anthropic", "openai", "google", "bedrock", "somebody"]),
)
def test_thinking_comes_back_as_it_was(
    text: str, part_id: str | None, signature: str | None, details: dict[str, str] | None, provider: str
) -> None:
    """Id, signature and details of a thought survive the way through our messages."""
    part = ThinkingPart(
        text, id=part_id, signature=signature, provider_name=provider, provider_details=details
    )
    origin = origin_of(part_metadata(part, None, None), text=text)
    assert origin == (
        Origin(provider, part_id, signature, details) if part_id or signature or details else None
    )


@given(st.text(min_size=1), st.text())
def test_a_signature_does_not_outlive_its_text(text: str, edited: str) -> None:
    """After a processor changed the text, neither signature nor id goes back: providers refuse the pair."""
    part = ThinkingPart(text, id="rs_1", signature="s", provider_name="openai")
    origin = origin_of(part_metadata(part, None, None), text=edited)
    assert origin is not None
    assert (origin.signature, origin.id) == (("s", "rs_1") if edited == text else (None, None))


def test_ids_of_text_and_calls_are_not_kept() -> None:
    """OpenAI takes its own copy of an item that is sent by id, and a guard may have changed ours (spec R0.1)."""
    assert part_metadata(TextPart("t", id="msg_1", provider_name="openai"), None, None) is None
    assert part_metadata(ToolCallPart("f", id="fc_1", provider_name="openai"), None, None) is None


def test_details_that_quote_the_answer_are_left_out() -> None:
    """Text that hides in metadata would pass every guard (spec R0.3)."""
    details: dict[str, Any] = dict.fromkeys(QUOTES, "secret")
    part = TextPart("t", provider_name="openai", provider_details={**details, "phase": "final_answer"})
    assert part_metadata(part, None, None) == {"openai": {"details": {"phase": "final_answer"}}}


def test_of_several_providers_the_one_asked_counts() -> None:
    """Metadata of two providers on one part: the asked one's, else the first."""
    both = {"openai": {"itemId": "rs_1"}, "anthropic": {"signature": "s"}}
    assert origin_of(both, prefer="anthropic") == Origin("anthropic", signature="s")
    assert origin_of(both, prefer="google") == Origin("openai", id="rs_1")
    assert origin_of({"x": "no mapping"}) is None
    assert origin_of(None) is None


def test_a_call_the_provider_ran_keeps_what_its_result_needs() -> None:
    """The result's details travel with the call: only the call's part has metadata in our messages."""
    call = NativeToolCallPart("web_search", {}, "c1", provider_name="anthropic")
    result = NativeToolReturnPart("web_search", [], "c1", provider_details={"caller": "direct"})
    metadata = native_call_metadata(call, result, None, None)
    origin = origin_of(metadata)
    assert origin is not None
    assert origin.result_details == {"caller": "direct"}


def test_whose_keys_verify_it_is_kept_where_the_name_does_not_tell() -> None:
    """Gemini's two services reject each other's signatures under one name."""
    part = ThinkingPart("t", signature="s", provider_name="google")
    origin = origin_of(part_metadata(part, None, "google-cloud"))
    assert origin is not None
    assert origin.system == "google-cloud"


def test_metadata_is_plain_json() -> None:
    """Whatever an SDK hands out, it can be stored."""
    assert plain({1: (1, 2), "b": b"x", "o": ValueError("e"), "n": None}) == {
        "1": [1, 2],
        "o": "e",
        "n": None,
    }
