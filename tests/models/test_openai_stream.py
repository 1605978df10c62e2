"""The reader of streamed completions, without any I/O."""

from __future__ import annotations

import pytest
from completions import call, read
from fault_server import delta

from interlock.core.chunks import (
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    TextDelta,
    TextEnd,
    TextStart,
)


def test_blocks_follow_one_another() -> None:
    """Reasoning, text and again reasoning are blocks of their own, each closed before the next opens."""
    assert read(
        delta(reasoning_content="a", reasoning="a"),
        delta(reasoning="b"),
        delta(content="c"),
        delta(reasoning="d"),
        delta("stop"),
    )[:-1] == [
        ReasoningStart(id="reasoning-0"),
        ReasoningDelta(text="a", id="reasoning-0"),
        ReasoningDelta(text="b", id="reasoning-0"),
        ReasoningEnd(id="reasoning-0"),
        TextStart(id="text-1"),
        TextDelta(text="c", id="text-1"),
        TextEnd(id="text-1"),
        ReasoningStart(id="reasoning-2"),
        ReasoningDelta(text="d", id="reasoning-2"),
        ReasoningEnd(id="reasoning-2"),
    ]


def test_empty_deltas_produce_nothing() -> None:
    """Deltas without content, null or empty, open no block; other choices are not read."""
    other = {"choices": [{"index": 1, "delta": {"content": "other"}}]}
    empty = [delta(role="assistant", content=None), delta(content="", reasoning_content="", tool_calls=[])]
    assert [type(chunk) for chunk in read(*empty, delta(), other, {"choices": None}, {})] == [Finish]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool-calls"),
        ("content_filter", "content-filter"),
        ("brand_new", "other"),
    ],
)
def test_finish_reasons(given: str, reason: str) -> None:
    """The provider's finish reason is mapped to ours."""
    assert [c.finish_reason for c in read(delta(given)) if isinstance(c, Finish)] == [reason]


def test_calls_that_end_with_stop() -> None:
    """With calls the reason is tool-calls, even where the provider says stop; without any reason, unknown."""
    assert [c.finish_reason for c in read(call(0, "a", "f", ""), delta("stop")) if isinstance(c, Finish)] == [
        "tool-calls"
    ]
    assert [c.finish_reason for c in read(delta(content="a")) if isinstance(c, Finish)] == ["unknown"]


def test_refusals_end_as_filtered() -> None:
    """A refusal, which the provider ends with "stop", has finish reason content-filter and says so in metadata."""
    finish = read(delta(refusal="I cannot"), delta("stop"))[-1]
    assert isinstance(finish, Finish)
    assert finish.finish_reason == "content-filter"
    assert finish.provider_metadata == {"acme": {"refused": True}}


def test_citations() -> None:
    """URLs an answer cites are sources, each once."""
    cited = {"type": "url_citation", "url_citation": {"url": "https://x.test", "title": "X"}}
    chunks = read(delta(content="a", annotations=[cited]), delta(annotations=[cited, {"type": "other"}]))
    assert [c for c in chunks if isinstance(c, Source)] == [
        Source(id="source-1", url="https://x.test", title="X")
    ]


def test_log_probabilities() -> None:
    """Log-probabilities, where asked for, are the finish's provider metadata."""
    event = {
        "choices": [{"delta": {"content": "a"}, "logprobs": {"content": [{"token": "a", "logprob": -1}]}}]
    }
    finish = read(event)[-1]
    assert isinstance(finish, Finish)
    assert finish.provider_metadata == {"acme": {"logprobs": [{"token": "a", "logprob": -1}]}}
