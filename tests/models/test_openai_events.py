"""What differs from vendor to vendor in an event."""

from __future__ import annotations

from typing import Any

from completions import read
from fault_server import delta

from interlock.core.chunks import Finish, ReasoningDelta, ReasoningEnd, TextDelta


def test_content_as_parts_and_refusals() -> None:
    """Content in parts (Mistral) gives its text and its thinking; a refusal is text."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    chunks = read(
        delta(content=[thinking]), delta(content=[{"type": "text", "text": "a"}]), delta(refusal="no")
    )
    assert [c.text for c in chunks if isinstance(c, ReasoningDelta)] == ["hm"]
    assert [c.text for c in chunks if isinstance(c, TextDelta)] == ["a", "no"]


def test_reasoning_details() -> None:
    """OpenRouter's reasoning details are put together and kept with the block, to be sent back as they came."""

    def detail(index: int, kind: str = "reasoning.text", **fields: Any) -> dict[str, Any]:
        return {"type": kind, "index": index, **fields}

    chunks = read(
        delta(reasoning="Let ", reasoning_details=[detail(0, text="Let ", format="f-v1")]),
        delta(reasoning_details=[detail(0, text="me", signature=None)]),
        delta(reasoning_details=[detail(0, signature="sig")]),
        delta(reasoning_details=[detail(1, "reasoning.encrypted", data="xyz")]),
        delta(content="Hi"),
    )
    assert [c.text for c in chunks if isinstance(c, ReasoningDelta)] == ["Let ", "me"]
    end = next(c for c in chunks if isinstance(c, ReasoningEnd))
    assert end.provider_metadata == {
        "acme": {
            "reasoningDetails": [
                detail(0, text="Let me", format="f-v1", signature="sig"),
                detail(1, "reasoning.encrypted", data="xyz"),
            ]
        }
    }


def test_usage_in_other_places() -> None:
    """Moonshot has the usage in the choice, DeepSeek its own name for cached tokens."""
    choice = {
        "index": 0,
        "delta": {},
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 4, "completion_tokens": 1},
    }
    moonshot = read({"choices": [choice]})[-1]
    deepseek = read({"usage": {"prompt_tokens": 4, "prompt_cache_hit_tokens": 3}})[-1]
    assert isinstance(moonshot, Finish)
    assert isinstance(deepseek, Finish)
    assert moonshot.usage is not None
    assert deepseek.usage is not None
    assert moonshot.usage.total_tokens == 5
    assert deepseek.usage.cached_input_tokens == 3


def test_usage_of_each_event() -> None:
    """Of several usages the last counts, and missing numbers are 0."""
    events = [
        {"usage": {"prompt_tokens": 1}},
        {"usage": None},
        {"usage": {"prompt_tokens": 2, "completion_tokens": 3}},
    ]
    finish = read(*events)[-1]
    assert isinstance(finish, Finish)
    assert finish.usage is not None
    assert (finish.usage.input_tokens, finish.usage.output_tokens, finish.usage.total_tokens) == (2, 3, 5)
