"""guard_sse: bytes of a chat completion's stream in, the same form out, nothing removed in any byte of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_events import (
    DONE,
    FRAME,
    ROLE,
    USAGE,
    arguments,
    call,
    choice,
    event,
    events,
    joined,
    stop,
    text,
)
from interlock import UsageError, guard_sse, guard_text
from interlock.processors import RegexFilter, SpanGuard, Unit, UnitGuard, Verdict

T = TypeVar("T")

PIN = RegexFilter({"pin": r"\d{4,6}"}, id="pin")
NAME = RegexFilter({"name": r"(?i)zo[eë]"}, id="name")


async def collect(pieces: Any, guards: Sequence[SpanGuard]) -> list[bytes]:
    return [piece async for piece in guard_sse(pieces, guards)]


def driven(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine that waits for nothing returns, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


def run(pieces: Iterable[bytes], *guards: SpanGuard) -> bytes:
    out = driven(collect(pieces, guards))
    assert all(out)
    return b"".join(out)


def guarded(whole: str, *guards: SpanGuard) -> str:
    return driven(guard_text(whole, guards)).text


def cut(body: bytes, places: Iterable[int]) -> list[bytes]:
    ends = [0, *sorted(place % (len(body) + 1) for place in places), len(body)]
    return [body[start:end] for start, end in pairwise(ends)]


# ------------------------------------------------------------------------------------------------------ what is joined

TEXTS = st.lists(st.text(st.sampled_from('12 aZzoOëE😀é.\n"'), max_size=5), max_size=12)
PLACES = st.lists(st.integers(0, 100_000), max_size=20)


@given(content=TEXTS, thought=TEXTS, refusal=TEXTS, places=PLACES, data=st.data())
def test_joined_is_the_guarded_whole(
    content: list[str], thought: list[str], refusal: list[str], places: list[int], data: st.DataObject
) -> None:
    """Whatever the cuts into events and reads, for fields and choices that interleave."""
    queues = {
        ("content", 0): list(content),
        ("reasoning_content", 0): list(thought),
        ("reasoning", 1): list(thought),
        ("refusal", 1): list(refusal),
        ("content", 1): list(reversed(content)),
    }
    wholes = {key: "".join(queue) for key, queue in queues.items()}
    body = [ROLE]
    while any(queues.values()):
        field, index = data.draw(st.sampled_from([key for key, queue in queues.items() if queue]))
        body.append(event(choice({field: queues[field, index].pop(0)}, index)))
    whole = b"".join([*body, stop(0), stop(1), USAGE, DONE])
    out = run(cut(whole, places), PIN, NAME)
    for (field, index), expected in wholes.items():
        assert joined(out, field, index) == guarded(expected, PIN, NAME)
    assert out.endswith(stop(1) + USAGE + DONE)


@given(content=TEXTS, sizes=st.lists(st.integers(1, 4), max_size=8))
def test_guards_in_a_row(content: list[str], sizes: list[int]) -> None:
    """A guard sees what the one before made of the text, also across events."""
    first = RegexFilter({"z": "z"}, id="first", replacement="12")
    second = RegexFilter({"n": r"\d{3,}"}, id="second", redaction="remove")
    third = RegexFilter({"a": r"a\s*1"}, id="third")
    out = run([text(each) for each in content] + [stop(), DONE], first, second, third)
    assert joined(out) == guarded("".join(content), first, second, third)


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=10),
    field=st.sampled_from(["content", "reasoning", "refusal", "arguments"]),
    places=PLACES,
    end=st.integers(0, 30),
    block=st.booleans(),
)
def test_no_byte_of_a_removed_span(
    sizes: list[int], field: str, places: list[int], end: int, block: bool
) -> None:
    """Also not in log probabilities, and not when the stream breaks off behind the span."""
    secret = "ÄÖÜß"
    guard = RegexFilter({"s": secret}, strategy="block" if block else "redact")
    rest, body = f'{{"a": "b {secret} c"}}', list[bytes]()
    while rest:
        sizes.append(sizes.pop(0))
        piece, rest = rest[: sizes[0]], rest[sizes[0] :]
        logs = {"content": [{"token": piece, "bytes": list(piece.encode())}]}
        item = {"index": 0, "function": {"arguments": piece}}
        delta = {"tool_calls": [item]} if field == "arguments" else {field: piece}
        body.append(event(choice(delta, logprobs=logs)))
    whole = b"".join(body[: max(end, next(n for n in range(len(body)) if secret in said(body[: n + 1])) + 1)])
    out = run(cut(whole, places), guard).decode()
    assert not set(secret) & set(out)
    assert not any(str(number) in out for number in secret.encode())
    assert ("tripwire" in out) is block


def said(body: list[bytes]) -> str:
    """Content, reasoning, refusal and arguments of events."""
    found = ""
    for data in events(b"".join(body)):
        delta = data["choices"][0]["delta"]
        found += "".join(value for value in delta.values() if isinstance(value, str))
        found += "".join(item["function"]["arguments"] for item in delta.get("tool_calls", []))
    return found


SMALL = (
    b"\xef\xbb\xbf: hi\r\n\r\n"
    + ROLE
    + text("é 12").replace(b"\n", b"\r\n")
    + text("34 Zo").replace(b"\n", b"\r")
    + text("ë😀 ", 0)
    + b": ping\n\n"
    + b"event: message\nid: 7\n"
    + text("ok")
    + stop()
    + USAGE
    + DONE
)


def test_every_byte_boundary() -> None:
    """Whatever bytes a read ends at, also inside a character (spec R0.1)."""
    expected = guarded("é 1234 Zoë😀 ok", PIN, NAME)
    bytewise = run((bytes([each]) for each in SMALL), PIN, NAME)
    assert joined(bytewise.removeprefix(b"\xef\xbb\xbf")) == expected
    for place in range(len(SMALL) + 1):
        out = run(cut(SMALL, [place]), PIN, NAME)
        assert out == bytewise
    for piece in (b"12", b"34", b"Zo", "ë".encode()):
        assert piece not in bytewise.replace(b'"id"', b"")
    assert b": ping\n\n" in bytewise
    assert b"event: message\nid: 7\ndata: " in bytewise


def test_truncated_anywhere() -> None:
    """Of what came until then all leaves, guarded; a torn event does not."""
    for end in range(len(SMALL)):
        out = run([SMALL[:end]], PIN, NAME)
        content = joined(out.removeprefix(b"\xef\xbb\xbf").split(b'data: {"error"')[0])
        whole = "é 1234 Zoë😀 ok"
        assert content in {guarded(whole[:size], PIN, NAME) for size in range(len(whole) + 1)}
        if SMALL[:end].endswith((b"]}", b"\n\n")):
            assert b'"error"' not in out


def test_truncated_in_the_middle_of_a_span() -> None:
    """A stream that breaks off in a span: what came of it is judged as the end of the text."""
    out = run([text("my pin: 12"), text("34")], PIN)
    assert joined(out) == "my pin: [PIN]"
    assert run([text("pin: 12")], PIN) == out_of("pin: ", "12")
    out = run([text("pin: 1"), call('{"a": "12345'), b"data: [DONE]\n"], PIN)
    assert arguments(out) == ['{"a": "[PIN]']
    assert out.endswith(b"\n\ndata: [DONE]\n")
    out = run([call('{"a": "12345"}').rstrip(b"\n")], PIN)
    assert arguments(out) == ['{"a":"[PIN]"}']
    # the last event without its empty line, and more to come behind it
    out = run([call('{"a": "12345"}') + text("x").rstrip(b"\n")], PIN)
    assert (joined(out), arguments(out)) == ("x", ['{"a":"[PIN]"}'])


def out_of(*parts: str) -> bytes:
    """Events as guard_sse writes them."""
    return b"".join(
        b"data: "
        + json.dumps(
            {**FRAME, "choices": [{"index": 0, "delta": {"content": part}, "finish_reason": None}]},
            separators=(",", ":"),
        ).encode()
        + b"\n\n"
        for part in parts
    )


# ---------------------------------------------------------------------------------------------------- what stays as is


def test_untouched_bytes() -> None:
    """Events with nothing to guard in them, comments and unknown fields pass byte for byte."""
    body = (
        b": OPENROUTER PROCESSING\n\n"
        + ROLE
        + text("all fine ")
        + b'data:  {"choices" : [ ], "x": 1.50, "big": 123456789012345678901234567890}\n\n'
        + b"retry: 10\n\n\n"
        + b'data: {"prompt_filter_results":\ndata: []}\n\n'
        + b"data:\n\n"
        + call("", id="call_1", type="function", name="look")
        + stop()
        + USAGE
        + DONE
    )
    assert run([body], PIN, NAME) == body
    assert run([body]) == body


def test_no_guards_no_change() -> None:
    """Without guards everything passes, log probabilities too."""
    body = text("1234") + call('{ "a":"1234" }') + stop() + DONE
    logged = event(choice({"content": "x"}, logprobs={"content": [{"token": "y"}]}))
    out = run([body + logged.replace(b'"index": 0', b'"index": 1')])
    assert joined(out) == "1234"
    assert logged.replace(b'"index": 0', b'"index": 1') in out


def test_channels() -> None:
    """A guard looks at its channels only; the others pass byte for byte."""
    only = RegexFilter({"pin": r"\d{4}"}, channels=["reasoning"])
    both = event(choice({"content": "1234", "reasoning": "1234"}))
    out = run([text("1234"), call('{"a": 12, "b": "1234"}'), both, stop(), DONE], only)
    assert out.startswith(text("1234") + call('{"a": 12, "b": "1234"}'))
    assert joined(out, "reasoning") == "[PIN]"
    assert joined(out) == "12341234"


def test_order_and_waiting() -> None:
    """What is decided leaves at once; what comes behind held text waits for it, byte for byte."""

    async def check() -> None:
        fed: list[bytes] = []

        async def source() -> AsyncIterator[bytes]:
            for each in (ROLE, text("ab 12"), b": ping\n\n", USAGE, text("3 c"), stop(), DONE):
                fed.append(each)
                yield each

        seen: list[tuple[int, bytes]] = []
        async for out in guard_sse(source(), [PIN]):
            seen.append((len(fed), out))
        assert seen[0] == (1, ROLE)
        assert seen[1] == (2, out_of("ab "))
        assert [count for count, _ in seen[2:]] == [5, 5, 5, 5, 5, 6, 7]
        assert [out for _, out in seen[2:]] == [
            out_of("12"),
            b": ping\n",
            b"\n",
            USAGE,
            text("3 c"),
            stop(),
            DONE,
        ]

    asyncio.run(check())


def test_held_text_leaves_before_the_finish_reason() -> None:
    """Of each choice, in an event of its own, before the event that ends it."""
    out = events(run([text("pin 1234"), text("56", 1), stop(), stop(1), DONE], PIN))
    sent = [
        (each["choices"][0]["delta"].get("content"), each["choices"][0]["finish_reason"]) for each in out[:-1]
    ]
    assert sent == [("pin ", None), ("[PIN]", None), ("56", None), (None, "stop"), (None, "stop")]
    together = event(choice({"content": "12345"}, finish="stop"))
    (only, _) = events(run([together, DONE], PIN))
    assert only["choices"][0]["delta"] == {"content": "[PIN]"}
    assert only["choices"][0]["finish_reason"] == "stop"


def test_parts_and_other_places_of_text() -> None:
    """Content in parts, reasoning details, a message that repeats it, log probabilities."""
    parts = [
        {"type": "text", "text": "12"},
        {"type": "thinking", "thinking": [{"type": "text", "text": "98"}]},
    ]
    rest = [
        {"type": "text", "text": "34"},
        {"type": "thinking", "thinking": [{"type": "text", "text": "76"}]},
    ]
    details = [{"type": "reasoning.text", "text": "55", "index": 0, "more": [1, None]}]
    logs = {"content": [{"token": "12", "logprob": -1, "bytes": [49, 50], "top_logprobs": []}]}
    out = run(
        [
            event(choice({"content": parts, "reasoning_details": details}, logprobs=logs)),
            event(choice({"content": rest, "reasoning_details": details}, message={"content": "1234"})),
            event(choice({"content": "5", "audio": {"transcript": "0000", "data": "MTIzNDU2"}})),
            stop(),
            event({"index": 3, "text": "1234", "finish_reason": "stop"}),
            DONE,
        ],
        PIN,
    )
    for removed in (b'"12', b'"34', b'"98', b'"76', b'"55', b'"5"', b"0000", b"49"):
        assert removed not in out
    assert out.count(b"[PIN]") == 5
    assert b"MTIzNDU2" in out


def test_copies_and_sources() -> None:
    """What LiteLLM repeats of the delta is guarded as the delta is, piece by piece; so is what an answer cites, in the
    delta and beside the choices. Only guards of that channel look at it. R0.3.
    """
    block = {"type": "thinking", "signature": "1234"}
    copies = [
        {"thinking_blocks": [{**block, "thinking": piece}], "citation": {"cited_text": "9876"}}
        for piece in ("12", "34")
    ]
    note = {"type": "url_citation", "url_citation": {"url": "https://a.test/1234", "title": "on 1234"}}
    body = [
        *(event(choice({"content": "a", "provider_specific_fields": each})) for each in copies),
        event(choice({"annotations": [note]}), citations=["https://b.test/5678"]),
        stop(),
        DONE,
    ]
    out = events(run(body, PIN))
    third = out[-3]
    deltas = [data["choices"][0]["delta"] for data in out[:-1]]
    kept = [delta["provider_specific_fields"] for delta in deltas if "provider_specific_fields" in delta]
    assert [each["thinking_blocks"][0] for each in kept] == [
        {**block, "thinking": "[PIN]"},
        {**block, "thinking": ""},
    ]
    assert [each["citation"]["cited_text"] for each in kept] == ["[PIN]", "[PIN]"]
    assert third["choices"][0]["delta"]["annotations"][0]["url_citation"] == {
        "url": "https://a.test/[PIN]",
        "title": "on [PIN]",
    }
    assert third["citations"] == ["https://b.test/[PIN]"]
    text_only = RegexFilter({"pin": r"\d{4,6}"}, channels=["text"])
    assert run(body, text_only) == b"".join(body)


def test_log_probabilities_of_text_that_passed_stay() -> None:
    """They are dropped only where their text was changed or held."""
    logs = {"content": [{"token": "a"}, {"token": "b"}], "refusal": None}
    kept = event(choice({"content": "ab"}, logprobs=logs)) + event(
        choice({"content": "c"}, logprobs={"content": []})
    )
    out = run([event(choice({"content": "ab"}, logprobs=logs)), stop()], PIN)
    assert out == event(choice({"content": "ab"}, logprobs=logs)) + stop()
    assert run([kept], PIN) == kept
    for wrong in ({"content": [{"token": "1"}]}, {"tokens": ["ab"]}, {"content": ["x"]}):
        (data,) = events(run([event(choice({"content": "ab"}, logprobs=wrong))], PIN))
        assert data["choices"][0]["logprobs"] is None


# ---------------------------------------------------------------------------------------------------------- tool calls


@given(
    values=st.lists(
        st.dictionaries(
            st.sampled_from(["a", "b", "1234", "Zoë 1234 12345", "😀"]),
            st.one_of(
                st.text(st.sampled_from('1a"\\😀Zoë'), max_size=9),
                st.integers(),
                st.lists(st.text("1", max_size=5)),
            ),
        ),
        min_size=1,
        max_size=3,
    ),
    ascii_only=st.booleans(),
    places=PLACES,
    data=st.data(),
)
def test_arguments(
    values: list[dict[str, Any]], ascii_only: bool, places: list[int], data: st.DataObject
) -> None:
    """One fragment each, the guarded value, keys too, before the finish reason; heads pass at once. R0.3."""
    body = [ROLE]
    left = {number: json.dumps(value, ensure_ascii=ascii_only) for number, value in enumerate(values)}
    body += [call("", number, id=f"call_{number}", type="function", name="look") for number in left]
    while left:
        number = data.draw(st.sampled_from(sorted(left)))
        size = data.draw(st.integers(1, 6))
        body.append(call(left[number][:size], number))
        left[number] = left[number][size:]
        if not left[number]:
            del left[number]
    whole = b"".join([*body, stop(reason="tool_calls"), USAGE, DONE])
    out = run(cut(whole, places), PIN, NAME)
    assert out.startswith(b"".join(body[: 1 + len(values)]))
    assert out.endswith(stop(reason="tool_calls") + USAGE + DONE)
    for number, value in enumerate(values):
        (fragment,) = arguments(out, number)
        assert json.loads(fragment) == {mapped(key): mapped(each) for key, each in value.items()}


def mapped(value: Any) -> Any:
    if isinstance(value, str):
        return guarded(value, PIN, NAME)
    return [mapped(each) for each in value] if isinstance(value, list) else value


def test_a_call_in_one_event() -> None:
    """A call that comes whole is guarded as one that comes in pieces (spec R0.3)."""
    item = {"index": 0, "id": "call_1", "function": {"name": "look", "arguments": '{"a": "1234"}'}}
    out = events(run([event(choice({"tool_calls": [item]}, finish="tool_calls")), DONE], PIN))
    (found,) = out[0]["choices"][0]["delta"]["tool_calls"]
    assert found == {"index": 0, "id": "call_1", "function": {"name": "look", "arguments": '{"a":"[PIN]"}'}}
    assert len(out) == 2


def test_calls_without_usable_indices_and_the_old_form() -> None:
    """Calls told apart by id, and the form before tool calls."""
    first = {"index": 0, "id": "a", "function": {"name": "look", "arguments": '{"q": "1234"}'}}
    second = {"index": 0, "id": "b", "function": {"name": "look", "arguments": {"q": "4321"}}}
    old = {"function_call": {"name": "look", "arguments": '{"q": "1111"}'}}
    out = events(
        run(
            [
                event(choice({"tool_calls": [first]})),
                event(choice({"tool_calls": [second]})),
                event(choice(old, 1)),
            ],
            PIN,
        )
    )
    sent = [each["choices"][0]["delta"] for each in out[3:]]
    assert [each["tool_calls"][0] for each in sent[:2]] == [
        {"index": 0, "id": "a", "function": {"arguments": '{"q":"[PIN]"}'}},
        {"index": 0, "id": "b", "function": {"arguments": '{"q":"[PIN]"}'}},
    ]
    assert sent[2] == {"function_call": {"arguments": '{"q":"[PIN]"}'}}


@given(pieces=st.lists(st.text("12 a\\", max_size=4), max_size=8), places=PLACES)
def test_the_input_of_a_custom_tool(pieces: list[str], places: list[int]) -> None:
    """A text, not JSON: guarded as a whole, told before the finish reason; its head passes at once. R0.2, R0.3."""
    head = {"index": 0, "id": "c", "type": "custom", "custom": {"name": "run", "input": ""}}
    deltas = [
        {"tool_calls": [head]},
        *({"tool_calls": [{"index": 0, "custom": {"input": each}}]} for each in pieces),
    ]
    end = stop(reason="tool_calls") + DONE
    out = run(cut(b"".join(event(choice(delta)) for delta in deltas) + end, places), PIN)
    assert out.startswith(event(choice(deltas[0])))
    assert out.endswith(end)
    told = [
        item["custom"]["input"]
        for data in events(out)[1:-2]
        for item in data["choices"][0]["delta"].get("tool_calls", [])
        if item["custom"]["input"]
    ]
    whole = guarded("".join(pieces), PIN)
    assert told == ([whole] if whole else [])


def test_arguments_that_are_not_json() -> None:
    """Cut off at the token limit, say: guarded as text, escapes or not."""
    assert arguments(run([call('{"a": "12345')], PIN)) == ['{"a": "[PIN]']
    assert arguments(run([call('{"a": "1\\u00323\\u0034 \\ud83d')], PIN)) == ['{"a": "[PIN] �']
    assert arguments(run([call('{"a": "\\u00e9')], PIN)) == ['{"a": "\\u00e9']
    assert arguments(run([call('{"a": "1234", "a": "x"}'), stop()], PIN)) == ['{"a":"x"}']


# --------------------------------------------------------------------------------------------------------------- ends


def test_block() -> None:
    """The stream ends with an error that says who blocked, and holds nothing of the span."""
    block = RegexFilter({"pin": r"\d{4}"}, id="no-pins", strategy="block")
    out = run([ROLE, text("my pin "), text("is 12"), text("34 and"), stop(), DONE], block)
    assert joined(out.split(b'data: {"error"')[0]) == "my pin is "
    *_, error, done = events(out)
    assert error == {"error": {"message": "pin found in text", "type": "tripwire", "code": "no-pins"}}
    assert done == "[DONE]"
    assert b"12" not in out
    out = run([text("ok"), call('{"a": "1234"}'), stop(), DONE], block)
    assert events(out)[-2]["error"]["message"] == "pin found in tool-arguments"
    assert b"1234" not in out


@pytest.mark.parametrize(
    "bad",
    [
        b'data: {"choices": [{"delta": {"content": "1234"\n\n',
        b"data: 1234\n\n",
        b'data: ["1234"]\n\n',
        b'data: {"choices": ["1234"]}\n\n',
        b'data: {"choices": {"a": "1234"}}\n\n',
        b'data: {"choices": [{"index": "1234"}]}\n\n',
        b'data: {"choices": [{"delta": "1234"}]}\n\n',
        b'data: {"choices": [{"delta": {"tool_calls": ["1234"]}}]}\n\n',
        b'data: {"choices": [{"delta": {"content": "\xff1234"}}]}\n\n',
        b'data: {"choices": [{"delta": {"content": "\\ud83d 1234"}}]}\n\n',
        b"data: " + b"[" * 100_000 + b"1234\n\n",
        b'{"error": "1234"}\n\n',
        b"<html>1234</html>\n",
        b'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "delta": "1234"}\n\n',
        b'data: {"type": "content_block_delta", "index": 0, "delta": {"text": "1234"}}\n\n',
        b'data: {"candidates": [{"content": {"parts": [{"text": "1234"}]}}]}\n\n',
        b'data: {"choices": [{"delta": {"provider_specific_fields": ["1234"]}}]}\n\n',
    ],
)
def test_what_cannot_be_read(bad: bytes) -> None:
    """An event that is no JSON ends the stream: it could hold anything (fail closed)."""
    strict = run([text("a "), bad, text("b"), stop(), DONE], PIN)
    assert b"1234" not in strict
    assert strict.startswith(text("a "))
    error = events(strict)[1]["error"]
    assert (error["type"], error["code"]) == ("tripwire", "pin")
    assert strict.endswith(DONE)
    lenient = RegexFilter({"pin": r"\d{4,6}"}, error_strategy="warn")
    assert run([text("a "), bad, text("b"), stop(), DONE], lenient).replace(b"\n\n\n", b"\n\n") == b"".join(
        [text("a "), text("b"), stop(), DONE]
    )


@pytest.mark.parametrize("depth", [10, 300, 450, 600, 900])
def test_deep_nesting(depth: int) -> None:
    """Guarded or unreadable, whichever; never passed on as it is."""
    nested = "[" * depth + '"1234"' + "]" * depth
    body = b'data: {"choices": [{"delta": {"content": ' + nested.encode() + b"}}]}\n\n"
    assert b"1234" not in run([body, call(nested), stop(), DONE], PIN)


def test_text_behind_the_finish_reason() -> None:
    """It cannot be judged together with what left: it does not pass."""
    for late in (text("34"), call('{"a": "34"}')):
        out = run([text("12"), stop(), late, DONE], PIN)
        assert "error" in events(out)[-2]
        assert b"34" not in out
    lenient = RegexFilter({"pin": r"\d{4}"}, error_strategy="warn")
    assert run([text("12"), stop(), text("34"), USAGE, DONE], lenient) == text("12") + stop() + USAGE + DONE


def test_a_check_that_fails() -> None:
    """Closed or open, as the guard says; visibly either way (spec R5.4)."""
    slow = RegexFilter({"slow": r"(a|aa)+$b"}, id="slow", timeout=1e-9)
    out = run([text("a" * 500), stop(), DONE], slow)
    assert events(out)[-2]["error"]["code"] == "slow"


def test_no_guard() -> None:
    """What is no guard is told at once."""
    with pytest.raises(UsageError, match="guard_sse"):
        run([DONE], "guard")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("given", [["data: [DONE]\n\n"], DONE, [None], [7]])
def test_no_bytes(given: Any) -> None:
    """A stream of text, or of nothing known, is told with what to give instead."""
    with pytest.raises(UsageError, match="aiter_bytes"):
        run(given, PIN)


def test_the_source_is_closed_and_its_errors_pass() -> None:
    """Whoever leaves closes the upstream; its failure is the caller's."""

    async def check() -> None:
        closed: list[bool] = []

        async def source() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield text("1234")
            finally:
                closed.append(True)

        block = RegexFilter({"pin": r"\d{4}"}, strategy="block")
        await collect(source(), [block])
        assert closed == [True]
        taken = guard_sse(source(), [NAME])
        await anext(taken)
        await taken.aclose()
        assert closed == [True, True]

        async def broken() -> AsyncIterator[bytes]:
            yield text("a")
            raise ConnectionError

        with pytest.raises(ConnectionError):
            await collect(broken(), [PIN])

    asyncio.run(check())


class Judge(UnitGuard):
    """A judge that has to wait; objects to sentences with a digit in them."""

    async def judge(self, unit: Unit, ctx: Any) -> Verdict:
        await asyncio.sleep(0)
        found = any(char.isdigit() for char in unit.text)
        return Verdict.replace(f"<{unit.channel} {len(unit.text)}>") if found else Verdict.allow()


async def all_of(pieces: Iterable[bytes], *guards: Any) -> list[bytes]:
    return [out async for out in guard_sse(pieces, guards)]


@given(content=st.lists(st.text("ab1. ", max_size=4), max_size=6), places=PLACES)
def test_judges_of_units(content: list[str], places: list[int]) -> None:
    """A UnitGuard whose judge waits, behind patterns: joined, what the two make of the whole text, however the bytes
    are cut. R0.2.
    """
    row = (RegexFilter({"a": "a+"}, id="a"), Judge(id="judge", strategy="redact"))
    body = b"".join([*map(text, content), stop(), DONE])

    async def check() -> None:
        out = b"".join(await all_of(cut(body, places), *row))
        assert joined(out) == (await guard_text("".join(content), row)).text
        assert out.endswith(stop() + DONE)

    asyncio.run(check())


def test_a_unit_of_reasoning_ends_where_text_follows() -> None:
    """The answer does not wait for the end of the step behind a thought without a full stop; arguments are judged too,
    with their channel. R4.6.
    """
    row = (Judge(id="judge", strategy="redact"),)
    thought = event(choice({"reasoning_content": "1 no"}))
    said = [thought, text("Yes. "), text("No. ")]
    out = asyncio.run(all_of([*said, call('{"q": "1"}', id="c", name="look")], *row))
    assert joined(b"".join(out), "reasoning_content") == "<reasoning 4>"
    first = next(number for number, piece in enumerate(out) if b"Yes" in piece)
    assert first < len(out) - 1
    assert [json.loads(each) for each in arguments(b"".join(out))] == [{"q": "<tool-arguments 1>"}]
