"""The reader of streamed completions, without any I/O."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fault_server import delta

from interlock.core.chunks import (
    Chunk,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    Source,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
)
from interlock.core.errors import ModelError
from interlock.models.openai_stream import AnswerReader


def read(*events: Any) -> list[Chunk]:
    """The chunks of these events, without the opening ones."""
    reader = AnswerReader(provider="acme")
    chunks = [chunk for event in events for chunk in reader.read(json.dumps(event))]
    reader.done = True
    chunks += reader.end()
    return [chunk for chunk in chunks if not isinstance(chunk, StepStart | ResponseMetadata)]


def call(index: int | None, call_id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    """An event with a piece of a tool call."""
    piece = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return delta(tool_calls=[piece])


def calls_of(*events: Any) -> list[tuple[str, Any]]:
    """Names and arguments of the calls in these events."""
    return [(chunk.tool_name, chunk.args) for chunk in read(*events) if isinstance(chunk, ToolCall)]


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


def test_a_call_in_pieces() -> None:
    """A call opens with its name, gives its arguments in pieces and ends with the call itself."""
    assert read(call(0, "a", "f", ""), call(0, None, None, '{"x"'), call(0, None, None, ": 1}"))[:-1] == [
        ToolInputStart(tool_call_id="a", tool_name="f"),
        ToolInputDelta(tool_call_id="a", args_text='{"x"', tool_name="f"),
        ToolInputDelta(tool_call_id="a", args_text=": 1}", tool_name="f"),
        ToolInputEnd(tool_call_id="a"),
        ToolCall(tool_call_id="a", tool_name="f", args={"x": 1}),
    ]


@pytest.mark.parametrize(
    "events",
    [
        [call(0, "a", "f", '{"x": 1}'), call(0, "b", "g", '{"y"'), call(0, None, None, ": 2}")],
        [call(None, "a", "f", '{"x": 1}'), call(None, "b", "g", '{"y"'), call(None, None, None, ": 2}")],
        [call(0, "a", "f", '{"x"'), call(1, "b", "g", {"y": 2}), call(0, "a", "f", ": 1}")],
        [call(0, "a", None, '{"x"'), call(0, None, "f", ": 1}"), call(1, "b", "g", '{"y": 2}')],
    ],
    ids=["every index 0", "no index", "object, repeated id", "name comes late"],
)
def test_irregular_calls(events: list[Any]) -> None:
    """Calls are told apart as providers number them, well or badly."""
    assert calls_of(*events) == [("f", {"x": 1}), ("g", {"y": 2})]


@pytest.mark.parametrize("arguments", ["", " ", None])
def test_no_arguments(arguments: str | None) -> None:
    """A call without arguments has an empty object of them."""
    assert calls_of(call(0, "a", "f", arguments)) == [("f", {})]


@pytest.mark.parametrize(
    ("reason", "why"), [("tool_calls", "not valid JSON"), ("length", "cut off at the token")]
)
def test_malformed_arguments(reason: str, why: str) -> None:
    """Arguments that are no JSON make a call without any, which says why and quotes them."""
    made = next(c for c in read(call(0, "a", "f", '{"x": '), delta(reason)) if isinstance(c, ToolCall))
    assert made.args is None
    assert made.invalid is not None
    assert why in made.invalid
    assert '{"x":' in made.invalid


def test_missing_id_is_made_up() -> None:
    """A call without an id gets one that no other call has."""
    ids = [
        c.tool_call_id for _ in range(2) for c in read(call(0, None, "f", "{}")) if isinstance(c, ToolCall)
    ]
    assert len(set(ids)) == 2
    assert all(ids)


def test_nameless_call() -> None:
    """A call that never got a name is an error."""
    with pytest.raises(ModelError, match="without naming it"):
        read(call(0, "a", None, "{}"))


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


def test_content_as_parts_and_refusals() -> None:
    """Content in parts (Mistral) gives its text and its thinking; a refusal is text."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    chunks = read(
        delta(content=[thinking]), delta(content=[{"type": "text", "text": "a"}]), delta(refusal="no")
    )
    assert [c.text for c in chunks if isinstance(c, ReasoningDelta)] == ["hm"]
    assert [c.text for c in chunks if isinstance(c, TextDelta)] == ["a", "no"]


def test_refusals_end_as_filtered() -> None:
    """A refusal, which the provider ends with "stop", has finish reason content-filter and says so in metadata."""
    finish = read(delta(refusal="I cannot"), delta("stop"))[-1]
    assert isinstance(finish, Finish)
    assert finish.finish_reason == "content-filter"
    assert finish.provider_metadata == {"acme": {"refused": True}}


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


def test_signatures_of_calls() -> None:
    """What a provider attaches to a call (Google's thought signatures) is the call's provider metadata."""
    extra = {"google": {"thought_signature": "abc"}}
    piece = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}
    made = next(c for c in read(delta(tool_calls=[piece])) if isinstance(c, ToolCall))
    assert made.provider_metadata == {"acme": {"extraContent": extra}}


def test_citations() -> None:
    """URLs an answer cites are sources, each once."""
    cited = {"type": "url_citation", "url_citation": {"url": "https://x.test", "title": "X"}}
    chunks = read(delta(content="a", annotations=[cited]), delta(annotations=[cited, {"type": "other"}]))
    assert [c for c in chunks if isinstance(c, Source)] == [
        Source(id="source-1", url="https://x.test", title="X")
    ]


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


def test_log_probabilities() -> None:
    """Log-probabilities, where asked for, are the finish's provider metadata."""
    event = {
        "choices": [{"delta": {"content": "a"}, "logprobs": {"content": [{"token": "a", "logprob": -1}]}}]
    }
    finish = read(event)[-1]
    assert isinstance(finish, Finish)
    assert finish.provider_metadata == {"acme": {"logprobs": [{"token": "a", "logprob": -1}]}}
