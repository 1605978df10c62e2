"""The wire: the reference's JSON, key by key, and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Agent, Message, ModelError, StepRecord, UsageError
from interlock.chunks import (
    Abort,
    Chunk,
    DataChunk,
    ErrorChunk,
    File,
    Finish,
    OtherChunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    Source,
    Start,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolError,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
    TripWireChunk,
    TripWireInfo,
    Usage,
)
from interlock.messages import Content, TextPart, ToolInvocationPart
from interlock.testing import ScriptedModel, text, tool_call
from interlock.wire import from_wire, to_wire

# ------------------------------------------------------------------------------------------------------- exact shapes

META = {"openai": {"itemId": "msg_1"}}
CALL = {"toolCallId": "c1", "toolName": "weather"}
USAGE = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
TOKENS = Usage(input_tokens=10, output_tokens=5, total_tokens=15)

PAYLOADS: list[tuple[Chunk, str, Any]] = [
    (Start(message_id="m1"), "start", {"messageId": "m1"}),
    (Start(), "start", {}),
    (StepStart(), "step-start", {"request": {}, "warnings": []}),
    (
        StepStart(request={"a": 1}, warnings=["w"], message_id="m1"),
        "step-start",
        {"request": {"body": {"a": 1}}, "warnings": ["w"], "messageId": "m1"},
    ),
    (TextStart("t1", META), "text-start", {"id": "t1", "providerMetadata": META}),
    (TextStart("t1"), "text-start", {"id": "t1"}),
    (TextDelta("Hello", id="t1"), "text-delta", {"id": "t1", "text": "Hello"}),
    (TextEnd("t1"), "text-end", {"id": "t1"}),
    (ReasoningStart("r1"), "reasoning-start", {"id": "r1"}),
    (
        ReasoningDelta("", id="r1", provider_metadata=META),
        "reasoning-delta",
        {"id": "r1", "text": "", "providerMetadata": META},
    ),
    (ReasoningEnd("r1"), "reasoning-end", {"id": "r1"}),
    (
        ToolInputStart(tool_call_id="c1", tool_name="weather", provider_executed=True),
        "tool-call-input-streaming-start",
        {**CALL, "providerExecuted": True},
    ),
    (
        ToolInputDelta(tool_call_id="c1", args_text='{"ci', tool_name="weather"),
        "tool-call-delta",
        {"argsTextDelta": '{"ci', **CALL},
    ),
    (ToolInputEnd(tool_call_id="c1"), "tool-call-input-streaming-end", {"toolCallId": "c1"}),
    (
        ToolCall(tool_call_id="c1", tool_name="weather", args={"city": "X"}),
        "tool-call",
        {**CALL, "args": {"city": "X"}},
    ),
    (ToolCall(tool_call_id="c1", tool_name="weather", invalid="not JSON"), "tool-call", CALL),
    (
        ToolResult(tool_call_id="c1", tool_name="weather", args={"city": "X"}, result={"temp": 20}),
        "tool-result",
        {"args": {"city": "X"}, **CALL, "result": {"temp": 20}},
    ),
    (
        ToolResult(
            tool_call_id="c1", tool_name="weather", result="bad", is_error=True, provider_executed=True
        ),
        "tool-result",
        {**CALL, "result": "bad", "isError": True, "providerExecuted": True},
    ),
    (ToolResult(tool_call_id="c1", tool_name="weather"), "tool-result", {**CALL, "result": None}),
    (
        ToolError(tool_call_id="c1", tool_name="weather", args={}, error="kaput"),
        "tool-error",
        {"error": {"message": "kaput", "name": "Error"}, "args": {}, **CALL},
    ),
    (
        Source(id="s1", url="http://e.x/", title="E"),
        "source",
        {"id": "s1", "sourceType": "url", "title": "E", "url": "http://e.x/"},
    ),
    (
        Source(id="s2", source_type="document", title="D", media_type="application/pdf", filename="d.pdf"),
        "source",
        {
            "id": "s2",
            "sourceType": "document",
            "title": "D",
            "mimeType": "application/pdf",
            "filename": "d.pdf",
        },
    ),
    (
        File(mime_type="image/png", data="aGVsbG8="),
        "file",
        {"data": "aGVsbG8=", "base64": "aGVsbG8=", "mimeType": "image/png"},
    ),
    (
        File(mime_type="image/png", data="https://e.x/a.png"),
        "file",
        {"data": "https://e.x/a.png", "mimeType": "image/png"},
    ),
    (
        ResponseMetadata(id="resp-1", model_id="m", timestamp=datetime(2026, 1, 2, tzinfo=UTC), raw=object()),
        "response-metadata",
        {"id": "resp-1", "modelId": "m", "timestamp": "2026-01-02T00:00:00Z"},
    ),
    (OtherChunk(type="raw", payload={"chunk": 1}), "raw", {"chunk": 1}),
    (ErrorChunk(ValueError("mid")), "error", {"error": {"message": "mid", "name": "ValueError"}}),
    (
        ErrorChunk(ModelError("Bad key", status=401, code="auth", body="secret body")),
        "error",
        {
            "error": {
                "message": "Bad key",
                "name": "AI_APICallError",
                "statusCode": 401,
                "code": "auth",
                "isRetryable": False,
            }
        },
    ),
    (
        TripWireChunk(reason="blocked", processor_id="p", retry=True, metadata={"m": 1}),
        "tripwire",
        {"reason": "blocked", "retry": True, "metadata": {"m": 1}, "processorId": "p"},
    ),
    (
        TripWireChunk(reason="blocked", processor_id="p"),
        "tripwire",
        {"reason": "blocked", "processorId": "p"},
    ),
    (Abort(), "abort", {}),
    (
        Finish(finish_reason="stop", usage=TOKENS, provider_metadata={"p": {"k": 1}}),
        "finish",
        {
            "stepResult": {"reason": "stop"},
            "output": {"usage": USAGE},
            "metadata": {"providerMetadata": {"p": {"k": 1}}},
        },
    ),
    (
        Finish(finish_reason="stop"),
        "finish",
        {"stepResult": {"reason": "stop"}, "output": {}, "metadata": {}},
    ),
]


@pytest.mark.parametrize(
    ("chunk", "kind", "payload"), PAYLOADS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_payload(chunk: Chunk, kind: str, payload: Any) -> None:
    """Each chunk has the reference's payload, unset keys left out."""
    assert to_wire(chunk, run_id="r1") == {"type": kind, "runId": "r1", "from": "AGENT", "payload": payload}


def test_envelope_without_a_run() -> None:
    """Without a run there is no runId."""
    assert to_wire(Abort()) == {"type": "abort", "from": "AGENT", "payload": {}}


@pytest.mark.parametrize(
    ("chunk", "form"),
    [
        (DataChunk(type="data-progress", data={"pct": 50}), {"type": "data-progress", "data": {"pct": 50}}),
        (DataChunk(type="data-id", id="did", data=3), {"type": "data-id", "id": "did", "data": 3}),
        (DataChunk(type="data-t", transient=True), {"type": "data-t", "data": None, "transient": True}),
        (DataChunk(type="data-t", message_id="m1"), {"type": "data-t", "data": None}),
    ],
)
def test_custom_data_has_no_envelope(chunk: DataChunk, form: Any) -> None:
    """R9.1: a data chunk is ``{type, data}``; which message stores it is nobody's business."""
    assert to_wire(chunk, run_id="r1") == form


STEP = StepRecord(
    text="Let me",
    reasoning="hm",
    tool_calls=[ToolCall(tool_call_id="c1", tool_name="weather", args={"city": "X"})],
    tool_results=[
        ToolResult(tool_call_id="c1", tool_name="weather", args={"city": "X"}, result={"temp": 20})
    ],
    sources=[Source(id="s1", url="http://e.x/")],
    files=[File(mime_type="image/png", data="aGVsbG8=")],
    usage=TOKENS,
    finish_reason="tool-calls",
    request={"model": "m"},
    response={"id": "resp-1", "model_id": "m"},
    provider_metadata={"p": {"k": 1}},
)
STEP_FORM = {
    "content": [
        {"type": "reasoning", "text": "hm"},
        {"type": "text", "text": "Let me"},
        {"type": "source", "id": "s1", "sourceType": "url", "url": "http://e.x/"},
        {"type": "file", "file": {"base64Data": "aGVsbG8=", "mediaType": "image/png", "type": "file"}},
        {"type": "tool-call", **CALL, "input": {"city": "X"}},
        {
            "type": "tool-result",
            **CALL,
            "input": {"city": "X"},
            "output": {"type": "json", "value": {"temp": 20}},
        },
    ],
    "finishReason": "tool-calls",
    "usage": USAGE,
    "warnings": [],
    "request": {"body": {"model": "m"}},
    "response": {"id": "resp-1", "modelId": "m"},
    "providerMetadata": {"p": {"k": 1}},
}


def test_step_finish() -> None:
    """A step-finish has outcome, metadata and output of the step, and all steps so far."""
    chunk = StepFinish(
        finish_reason="tool-calls", usage=TOKENS, is_continued=True, text="Let me", steps=[STEP]
    )
    assert to_wire(chunk)["payload"] == {
        "stepResult": {"reason": "tool-calls", "warnings": [], "isContinued": True},
        "metadata": {
            "providerMetadata": {"p": {"k": 1}},
            "id": "resp-1",
            "modelId": "m",
            "request": {"body": {"model": "m"}},
        },
        "output": {
            "text": "Let me",
            "toolCalls": [{**CALL, "args": {"city": "X"}}],
            "usage": USAGE,
            "steps": [STEP_FORM],
        },
        "processorRetryCount": 0,
    }


def test_step_finish_of_a_withdrawn_attempt() -> None:
    """R7.3: reason ``retry``, empty text, and why."""
    trip = TripWireInfo(reason="more", processor_id="p", retry=True, metadata={"score": 0.2})
    chunk = StepFinish(
        finish_reason="retry",
        usage=TOKENS,
        is_continued=True,
        steps=[StepRecord(finish_reason="retry", usage=TOKENS, tripwire=trip)],
        processor_retry_count=1,
        processor_retry_feedback="Again: more",
        tripwire=trip,
    )
    payload = to_wire(chunk)["payload"]
    assert payload["stepResult"] == {
        "reason": "retry",
        "warnings": [],
        "isContinued": True,
        "retryReason": "more",
        "retryProcessorId": "p",
        "retryMetadata": {"score": 0.2},
    }
    trip_form = {"reason": "more", "retry": True, "metadata": {"score": 0.2}, "processorId": "p"}
    assert payload["tripwire"] == payload["output"]["steps"][0]["tripwire"] == trip_form
    assert (payload["processorRetryCount"], payload["processorRetryFeedback"]) == (1, "Again: more")
    assert (payload["output"]["text"], payload["output"]["toolCalls"]) == ("", [])


def test_step_finish_of_a_failed_call_shows_nothing_of_the_step_before() -> None:
    """R4.5: a failed call has no record; the last one in the list is the step before."""
    payload = to_wire(StepFinish(finish_reason="retry", usage=Usage(), is_continued=True, steps=[STEP]))[
        "payload"
    ]
    assert payload["output"]["toolCalls"] == []
    assert payload["metadata"] == {"request": {}}
    assert "tripwire" not in payload


def test_finish_of_a_run() -> None:
    """The run's finish has the sum of usage and the messages in both forms."""
    call = ToolInvocationPart(
        tool_call_id="c1", tool_name="weather", args={"city": "X"}, state="result", result="20"
    )
    message = Message(
        id="m1",
        role="assistant",
        content=Content(parts=[TextPart(text="Hi"), call], metadata={"a": 1}),
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
    )
    total = TOKENS + TOKENS
    payload = to_wire(Finish(finish_reason="stop", usage=total, steps=[STEP], messages=[message]))["payload"]
    assert payload["stepResult"] == {"reason": "stop", "warnings": [], "isContinued": False}
    assert payload["output"]["usage"] == {"inputTokens": 20, "outputTokens": 10, "totalTokens": 30}
    assert payload["output"]["text"] == "Let me"
    assert payload["processorRetryCount"] == 0
    assert payload["response"]["id"] == "resp-1"
    assert payload["response"]["messages"] == [
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Hi"},
                {"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": {"city": "X"}},
            ],
        },
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c1",
                    "toolName": "weather",
                    "output": {"type": "text", "value": "20"},
                }
            ],
        },
    ]
    assert payload["response"]["uiMessages"] == [
        {
            "id": "m1",
            "role": "assistant",
            "parts": [
                {"type": "text", "text": "Hi"},
                {
                    "type": "tool-weather",
                    "toolCallId": "c1",
                    "state": "output-available",
                    "input": {"city": "X"},
                    "output": "20",
                },
            ],
            "metadata": {"a": 1, "createdAt": "2026-01-02T00:00:00Z"},
        }
    ]


@pytest.mark.anyio
async def test_a_whole_run_is_json_and_comes_back() -> None:
    """Every chunk of a run is plain JSON on the wire, and the same on the wire after the way back."""
    model = ScriptedModel([text("Let me"), tool_call("add", {"a": 1, "b": 2})], [text("3")])

    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    async with Agent(id="a", model=model, tools=[add]).stream("1 + 2?") as stream:
        wires = [to_wire(chunk, run_id="r1") async for chunk in stream]
    assert wires[0] == {"type": "start", "runId": "r1", "from": "AGENT", "payload": {}}
    assert [wire["type"] for wire in wires][-2:] == ["step-finish", "finish"]
    for wire in wires:
        assert to_wire(from_wire(json.loads(json.dumps(wire))), run_id="r1") == wire


# -------------------------------------------------------------------------------------------------------- the way back


@pytest.mark.parametrize(
    ("form", "chunk"),
    [
        ({"type": "text-delta", "id": "t1", "text": "Hi"}, TextDelta("Hi", id="t1")),
        ({"type": "abort"}, Abort()),
        ({"type": "data-x", "data": 1, "runId": "r", "from": "AGENT"}, DataChunk(type="data-x", data=1)),
        (
            {"type": "finish", "finishReason": "length", "usage": USAGE},
            Finish(finish_reason="length", usage=TOKENS),
        ),
        (
            {
                "type": "finish",
                "payload": {"stepResult": {"reason": "stop"}, "output": {"usage": USAGE}, "metadata": {}},
            },
            Finish(finish_reason="stop", usage=TOKENS),
        ),
        ({"type": "finish", "payload": {}}, Finish()),
        (
            {
                "type": "step-finish",
                "payload": {
                    "finishReason": "stop",
                    "usage": USAGE,
                    "isContinued": True,
                    "steps": 2,
                    "text": "Hi",
                },
            },
            StepFinish(finish_reason="stop", usage=TOKENS, is_continued=True, text="Hi"),
        ),
        (
            {
                "type": "tool-error",
                "payload": {**CALL, "error": {"name": "Error", "cause": {"message": "kaput"}}},
            },
            ToolError(tool_call_id="c1", tool_name="weather", error="kaput"),
        ),
        (
            {"type": "tool-error", "payload": {**CALL, "error": "kaput"}},
            ToolError(tool_call_id="c1", tool_name="weather", error="kaput"),
        ),
        (
            {"type": "file", "payload": {"base64": "aGk=", "mediaType": "text/plain"}},
            File(mime_type="text/plain", data="aGk="),
        ),
        (
            {"type": "goal", "runId": "r", "from": "AGENT", "payload": [1]},
            OtherChunk(type="goal", payload=[1]),
        ),
        ({"type": "object", "object": {"a": 1}}, OtherChunk(type="object", payload={"object": {"a": 1}})),
        ({"type": "text-end", "payload": {"type": "text-end", "id": "t1"}}, TextEnd("t1")),
    ],
)
def test_other_forms_are_read(form: Any, chunk: Chunk) -> None:
    """Flat and reduced forms, other spellings of the reference, unknown types."""
    assert from_wire(form) == chunk


def test_a_call_without_arguments_is_an_unreadable_one() -> None:
    """The reference leaves ``args`` out when the model's JSON could not be parsed."""
    call = from_wire({"type": "tool-call", "payload": CALL})
    assert isinstance(call, ToolCall)
    assert call.invalid


@pytest.mark.parametrize(
    "form",
    [
        None,
        "text-delta",
        [],
        {},
        {"type": 5},
        {"type": ""},
        {"type": "text-delta", "payload": "Hi"},
        {"type": "text-delta", "payload": {"text": 5}},
        {"type": "tool-call", "payload": {}},
        {"type": "tripwire", "payload": {"reason": "r"}},
        {"type": "finish", "payload": {"stepResult": "stop"}},
        {"type": "finish", "payload": {"usage": 5}},
        {"type": "step-finish", "payload": {"usage": {"inputTokens": "many"}}},
        {"type": "step-finish", "payload": {"output": {"steps": ["one"]}}},
        {"type": "finish", "payload": {"response": {"uiMessages": ["Hi"]}}},
    ],
)
def test_what_is_no_chunk_is_refused(form: Any) -> None:
    """UsageError, whatever was given."""
    with pytest.raises(UsageError):
        from_wire(form)


# -------------------------------------------------------------------------------------------------------- round trips


def records(cls: Any, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Records with these fields."""
    return st.fixed_dictionaries(fields).map(lambda values: cls(**values))


TEXTS = st.text(max_size=20)
IDS = st.text(min_size=1, max_size=8)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
METADATA = st.none() | st.dictionaries(TEXTS, OBJECTS, max_size=2)
TRUE = st.sampled_from([None, True])
USAGES = records(
    Usage,
    input_tokens=st.integers(0, 9),
    output_tokens=st.integers(0, 9),
    total_tokens=st.integers(0, 18),
    reasoning_tokens=st.integers(0, 9),
    cached_input_tokens=st.integers(0, 9),
)
BLOCK_TYPES = (TextStart, TextEnd, ReasoningStart, ReasoningEnd)
DELTA_TYPES = (TextDelta, ReasoningDelta)
CALLS = records(
    ToolCall,
    tool_call_id=IDS,
    tool_name=IDS,
    args=OBJECTS,
    provider_executed=TRUE,
    provider_metadata=METADATA,
)
RESULTS = records(
    ToolResult,
    tool_call_id=IDS,
    tool_name=IDS,
    args=st.none() | OBJECTS,
    result=JSON,
    provider_executed=TRUE,
    provider_metadata=METADATA,
)
SOURCES = records(
    Source,
    id=TEXTS,
    source_type=st.sampled_from(["url", "document"]),
    url=st.none() | TEXTS,
    title=st.none() | TEXTS,
    media_type=st.none() | TEXTS,
    filename=st.none() | TEXTS,
    provider_metadata=METADATA,
)
FILES = records(File, mime_type=IDS, data=IDS, provider_metadata=METADATA)
TRIPWIRES = records(TripWireInfo, reason=TEXTS, processor_id=IDS, retry=st.booleans(), metadata=JSON)
STEPS = records(
    StepRecord,
    text=TEXTS,
    reasoning=TEXTS,
    tool_calls=st.lists(CALLS, max_size=2),
    tool_results=st.lists(RESULTS, max_size=2),
    sources=st.lists(SOURCES, max_size=1),
    files=st.lists(FILES, max_size=1),
    usage=USAGES,
    finish_reason=st.sampled_from(["stop", "length", "tool-calls"]),
    request=st.none() | OBJECTS,
    warnings=st.lists(JSON, max_size=1),
    provider_metadata=METADATA,
)


def numbered(steps: list[StepRecord]) -> list[StepRecord]:
    """The steps with the numbers they have in a run."""
    return [step.replace(step_number=number) for number, step in enumerate(steps)]


MESSAGES = st.builds(
    lambda message_id, texts, created: Message(
        id=message_id,
        role="assistant",
        content=Content(parts=[TextPart(text=each) for each in texts]),
        created_at=created,
    ),
    IDS,
    st.lists(IDS, min_size=1, max_size=2),
    st.none() | st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
)
STEP_FINISHES = records(
    StepFinish,
    finish_reason=st.sampled_from(["stop", "retry"]),
    usage=USAGES,
    is_continued=st.booleans(),
    text=TEXTS,
    steps=st.lists(STEPS, max_size=2).map(numbered),
    processor_retry_count=st.integers(0, 3),
    processor_retry_feedback=st.none() | TEXTS,
    tripwire=st.none() | TRIPWIRES,
    warnings=st.lists(JSON, max_size=2),
)
FINISHES = records(
    Finish,
    finish_reason=IDS,
    usage=st.none() | USAGES,
    provider_metadata=METADATA,
) | records(
    Finish,
    finish_reason=IDS,
    usage=USAGES,
    steps=st.lists(STEPS.map(lambda step: step.replace(provider_metadata=None)), max_size=2).map(numbered),
    messages=st.lists(MESSAGES, max_size=2),
    processor_retry_count=st.integers(0, 3),
)
CHUNKS: st.SearchStrategy[Chunk] = st.one_of(
    records(Start, message_id=st.none() | IDS),
    records(
        StepStart,
        request=st.none() | OBJECTS,
        warnings=st.lists(JSON, max_size=2),
        message_id=st.none() | IDS,
    ),
    records(ResponseMetadata, id=st.none() | IDS, model_id=st.none() | IDS, timestamp=st.none() | TEXTS),
    *(records(cls, id=TEXTS, provider_metadata=METADATA) for cls in BLOCK_TYPES),
    *(records(cls, text=TEXTS, id=TEXTS, provider_metadata=METADATA) for cls in DELTA_TYPES),
    records(ToolInputStart, tool_call_id=TEXTS, tool_name=TEXTS, provider_executed=TRUE),
    records(ToolInputDelta, tool_call_id=TEXTS, args_text=TEXTS, tool_name=st.none() | TEXTS),
    records(ToolInputEnd, tool_call_id=TEXTS),
    CALLS,
    RESULTS,
    records(
        ToolError,
        tool_call_id=IDS,
        tool_name=IDS,
        args=st.none() | OBJECTS,
        error=TEXTS,
        provider_executed=TRUE,
    ),
    SOURCES,
    FILES,
    records(TripWireChunk, reason=TEXTS, processor_id=IDS, retry=st.booleans(), metadata=JSON),
    st.just(Abort()),
    records(ErrorChunk, error=st.dictionaries(st.just("message"), TEXTS, min_size=1)),
    records(
        DataChunk, type=IDS.map("data-".__add__), data=JSON, transient=st.booleans(), id=st.none() | TEXTS
    ),
    records(OtherChunk, type=st.sampled_from(["raw", "goal"]), payload=JSON),
    STEP_FINISHES.filter(lambda chunk: chunk.provider_metadata is None),
    FINISHES,
)


@given(CHUNKS)
def test_there_and_back(chunk: Chunk) -> None:
    """A chunk survives the wire, JSON text included."""
    wire = to_wire(chunk, run_id="r1")
    back = from_wire(json.loads(json.dumps(wire)))
    assert to_wire(back, run_id="r1") == wire
    if not isinstance(chunk, StepFinish | Finish):
        assert back == chunk


@given(
    STEP_FINISHES.filter(lambda chunk: all(step.provider_metadata is None for step in chunk.steps)) | FINISHES
)
def test_the_ends_come_back_whole(chunk: StepFinish | Finish) -> None:
    """Steps, usage, tripwire and messages survive too."""
    assert from_wire(json.loads(json.dumps(to_wire(chunk)))) == chunk


@given(JSON)
def test_anything_is_a_chunk_or_refused(value: Any) -> None:
    """No other exception than UsageError leaves from_wire."""
    try:
        chunk = from_wire(value)
    except UsageError:
        return
    assert isinstance(chunk, Chunk)


KINDS = sorted({kind for _, kind, _ in PAYLOADS})


KEYS = [
    "id",
    "text",
    "args",
    "stepResult",
    "output",
    "usage",
    "response",
    "steps",
    "finishReason",
    "error",
    "toolCallId",
    "toolName",
    "metadata",
]


@given(st.sampled_from([*KINDS, "step-finish"]), st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4))
def test_any_payload_is_a_chunk_or_refused(kind: str, payload: Any) -> None:
    """Known types with odd payloads too."""
    try:
        chunk = from_wire({"type": kind, "payload": payload})
    except UsageError:
        return
    assert chunk.type == kind
    json.dumps(to_wire(chunk))
