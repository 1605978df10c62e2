"""What has another shape than it should is told without being shown."""

from __future__ import annotations

import pytest

from interlock.sse.shapes import Unreadable, list_of, object_of, of_chat


def test_shapes() -> None:
    """Objects and arrays are given back as they are; null is an empty array."""
    value = {"a": 1}
    assert object_of(value, "an event") is value
    assert list_of([value], "choices") == [value]
    assert list_of(None, "choices") == []


@pytest.mark.parametrize("shape", [object_of, list_of])
@pytest.mark.parametrize("value", ["secret", 7])
def test_another_shape(shape: type, value: object) -> None:
    """The error names the place, not what stands there (R0.3)."""
    with pytest.raises(Unreadable) as caught:
        shape(value, "a choice")
    assert str(caught.value) == "a choice is not of the form it should be"


@pytest.mark.parametrize(
    ("event", "known"),
    [
        ({"choices": [], "type": "response.created"}, True),
        ({"error": {}, "type": "error"}, True),
        ({"prompt_filter_results": []}, True),
        ({"type": 7}, True),
        ({"type": "response.output_text.delta", "delta": "x"}, False),
        ({"type": "content_block_delta", "delta": {"text": "x"}}, False),
        ({"type": "message_delta"}, False),
        ({"candidates": []}, False),
    ],
)
def test_events_of_other_apis(event: dict[str, object], known: bool) -> None:
    """OpenAI's Responses, Anthropic's Messages and Gemini have their texts where nobody looks."""
    assert of_chat(event) is known
