"""The cases about splitting, redaction, channels, holding back, order and latency, as an OpenAI chat completion's bytes
through ``guard_sse``: what a proxy in front of an existing application has to get right.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

from completion_events import (
    DONE,
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
from interlock import guard_sse, guard_stream, guard_text
from interlock.processors import KeywordFilter, RegexFilter, Unit, UnitGuard, Verdict
from interlock.testing import all_cuts, random_cuts

pytestmark = pytest.mark.anyio
END = [stop(), USAGE, DONE]


async def sent(pieces: Iterable[bytes], guards: Sequence[Any]) -> list[bytes]:
    """What leaves, piece by piece."""
    return [out async for out in guard_sse(pieces, guards)]


def cut_bytes(body: bytes, *, seed: int = 0) -> Iterator[list[bytes]]:
    """The bytes whole, one by one, and cut at random, also within a character."""
    yield [body]
    yield [bytes([each]) for each in body]
    for pieces in random_cuts(body.decode("latin-1"), count=2, seed=seed):
        yield [piece.encode("latin-1") for piece in pieces]


def cut_texts(whole: str, *, max_cuts: int = 1, count: int = 20) -> Iterator[list[str]]:
    """A text cut at every place alone, at random, and into its characters."""
    yield from all_cuts(whole, max_cuts=max_cuts)
    yield from random_cuts(whole, count=count)
    yield list(whole)


async def check(
    ways: Iterable[list[str]],
    guards: Sequence[Any],
    expected: str,
    never: Sequence[str],
    field: str = "content",
) -> None:
    """One text in events, for each way to cut it and each way to cut their bytes: joined it is what is expected, which
    is what the guards make of the whole; nothing of what was removed is in any piece that leaves; the rest of the
    stream is the same to the byte.
    """
    for number, pieces in enumerate(ways):
        if number == 0:
            assert (await guard_text("".join(pieces), guards)).text == expected
        body = b"".join([ROLE, *(event(choice({field: piece})) for piece in pieces), *END])
        for reads in cut_bytes(body, seed=number):
            out = await sent(reads, guards)
            whole = b"".join(out)
            assert joined(whole, field) == expected, (pieces, reads)
            assert whole.startswith(ROLE)
            assert whole.endswith(b"".join(END))
            for piece, removed in itertools.product(out, never):
                assert removed.encode() not in piece, (pieces, reads)
            assert not any(removed in joined(whole, field) for removed in never)


# --------------------------------------------------------------------------------------------------- 01: split matches

CONTACT = "Contact desk@acme.test now, code 900-12-3456 ok"
CONTACT_CLEAN = "Contact [EMAIL] now, code [CODE] ok"
CONTACT_RULES = {"email": r"[\w.]+@[\w.]+\w", "code": r"\b\d{3}-\d{2}-\d{4}\b"}


@pytest.mark.parametrize("field", ["content", "reasoning_content", "refusal"])
async def test_case01_no_fragment_of_a_match_leaves(field: str) -> None:
    """An address and a number cut anywhere, in text, reasoning and refusals. R0.2, R0.3, case 01."""
    never = ["desk", "desk@", "acme", "900", "12-", "3456"]
    ways = [["Contact desk@", "acme.test now, code 900-12-", "3456 ok"], *cut_texts(CONTACT)]
    await check(ways, [RegexFilter(CONTACT_RULES)], CONTACT_CLEAN, never, field)


@pytest.mark.parametrize("replacement", ["", "x", "a much longer text than what stood there"])
async def test_case01_no_character_behind_a_match_is_lost(replacement: str) -> None:
    """Whatever the length of what stands for it. R0.2, case 01."""
    guards = [RegexFilter(CONTACT_RULES, replacement=replacement)]
    expected = f"Contact {replacement} now, code {replacement} ok"
    await check(cut_texts(CONTACT, count=5), guards, expected, ["desk@", "acme", "900-"])


# --------------------------------------------------------------------------------------- 02: a key, then a tool call

KEY = RegexFilter({"key": r"tok-live-[A-Z0-9]{8,}"}, id="keys")
SHOWN = "Here: tok-live-A1B2C3D4E5F6 done."


@pytest.mark.parametrize(
    "pieces",
    [
        ["Here: tok-live-", "A1B2C3D4E5F6 done."],
        ["Here: tok-live-A1B2C3D4E5F6", " done."],
        ["Here: ", "tok-live-A1B2C3D4E5F6"],
        list(SHOWN),
    ],
    ids=["inside", "at a piece's end", "at the text's end", "one by one"],
)
async def test_case02_the_held_tail_leaves_before_the_call(pieces: list[str]) -> None:
    """Text, then the call's head as it came, its arguments, the finish reason; each once. R0.1, R4.6, case 02."""
    head = call("", id="c1", type="function", name="look")
    body = [
        ROLE,
        *map(text, pieces),
        head,
        call('{"v"'),
        call(": 7}"),
        stop(reason="tool_calls"),
        USAGE,
        DONE,
    ]
    for reads in cut_bytes(b"".join(body)):
        out = b"".join(await sent(reads, [KEY]))
        before, found, behind = out.partition(head)
        assert found
        assert joined(before) == "".join(pieces).replace("tok-live-A1B2C3D4E5F6", "[KEY]")
        assert joined(behind) == ""
        assert b"tok-" not in out
        told, last = behind[: -len(b"".join(body[-3:]))], behind[-len(b"".join(body[-3:])) :]
        assert arguments(told) == ['{"v":7}']
        assert last == b"".join(body[-3:])


async def test_case02_a_key_across_two_stretches_of_text() -> None:
    """Reasoning between them changes nothing: a choice's content is one text. R0.2, case 02."""
    body = [text("Here: tok-live-A1"), event(choice({"reasoning": "hm"})), text("B2C3D4E5F6 done."), *END]
    for reads in cut_bytes(b"".join(body)):
        out = await sent(reads, [KEY])
        whole = b"".join(out)
        assert (joined(whole), joined(whole, "reasoning")) == ("Here: [KEY] done.", "hm")
        assert b"tok-live-" not in whole
        assert b"B2C3" not in whole


# -------------------------------------------------------------------------------------------------------- 05: overlaps


@pytest.mark.parametrize("names", list(itertools.permutations(["card", "url", "email"])))
async def test_case05_overlaps_are_replaced_once(names: tuple[str, ...]) -> None:
    """Under the name of the longest find, in any order of the rules; neighbours all. R0.2, case 05."""
    rules = {"card": r"\b\d{4}(?: \d{4}){3}\b", "url": r"\b\w+\.test\b(?!\w)", "email": r"\b\w@x\.test\b"}
    whole = "Card 4000 1111 2222 3333.test and a@x.test b@x.test c@x.test, thanks."
    guards = [RegexFilter({name: rules[name] for name in names})]
    expected = "Card [CARD] and [EMAIL] [EMAIL] [EMAIL], thanks."
    await check(cut_texts(whole, count=4), guards, expected, ["4000", "1111", "2222", "3333", "@x", ".test"])


# ------------------------------------------------------------------------------------------ 07: two filters in a row


class Polite(UnitGuard):
    """Judges whole sentences; fool becomes friend. A judge that has to wait."""

    async def judge(self, unit: Unit, ctx: Any) -> Verdict:
        await asyncio.sleep(0)
        if "fool" not in unit.text:
            return Verdict.allow()
        return Verdict.replace(unit.text.replace("fool", "friend"), reason="rude")


@pytest.mark.parametrize("swapped", [False, True])
async def test_case07_the_second_filter_gets_what_the_first_lets_out(swapped: bool) -> None:
    """A pattern that holds words and a judge of sentences: nothing twice, nothing lost, in either order.

    R0.2, R4.6, case 07.
    """
    guards = [
        RegexFilter({"email": r"\w+@[\w.]*\w"}),
        Polite(id="polite", unit="sentence", strategy="redact"),
    ]
    ways = [
        ["Call ann@x.te", "st. You fo", "ol! Bye."],
        *cut_texts("Call ann@x.test. You fool! Bye.", count=8),
    ]
    if swapped:
        guards.reverse()
    await check(ways, guards, "Call [EMAIL]. You friend! Bye.", ["ann", "x.te", "fool"])


# --------------------------------------------------------------------------------- 08, 11, 13: the same in every place

PIN = RegexFilter({"pin": r"\d{4}"}, replacement="****", id="pin")


@pytest.mark.parametrize("pieces", [["the pin is 12", "34"], ["the pin is 1234"], list("the pin is 1234")])
async def test_case08_one_outcome_for_every_way(pieces: list[str]) -> None:
    """As one text, as a stream of texts, as an event stream: text, reasoning, arguments. R0.2, R10.4, case 08."""
    expected = "the pin is ****"
    assert (await guard_text("".join(pieces), [PIN])).text == expected
    assert "".join([piece async for piece in guard_stream(pieces, [PIN])]) == expected
    args = json.dumps({"note": "".join(pieces)})
    for field in ("content", "reasoning", "reasoning_content", "refusal"):
        body = [event(choice({field: piece})) for piece in pieces]
        assert joined(b"".join(await sent([*body, *END], [PIN])), field) == expected
    for size in (1, 5, len(args)):
        body = [call(args[at : at + size]) for at in range(0, len(args), size)]
        (told,) = arguments(b"".join(await sent([*body, *END], [PIN])))
        assert json.loads(told) == {"note": expected}


async def test_case11_arguments_and_parts() -> None:
    """An answer with calls and no text is not skipped; each call's arguments are whole, guarded and in front of the
    finish reason; content in parts stays a list of parts, what is no text in it as it was. R0.3, R4.6, case 11.
    """
    notes = {"c1": {"note": "pin 1234", "n": 7}, "c2": {"list": ["4321", {"1111": None}]}}
    heads = [call("", number, id=id, type="function", name="save") for number, id in enumerate(notes)]
    pieces = [
        [
            call(piece, number)
            for piece in next(random_cuts(json.dumps(args), seed=number, empty_chunks=False))
        ]
        for number, args in enumerate(notes.values())
    ]
    mixed = [piece for pair in itertools.zip_longest(*pieces) for piece in pair if piece is not None]
    end = [stop(reason="tool_calls"), USAGE, DONE]
    for reads in cut_bytes(b"".join([ROLE, *heads, *mixed, *end])):
        out = b"".join(await sent(reads, [PIN]))
        assert out.startswith(b"".join([ROLE, *heads]))
        assert out.endswith(b"".join(end))
        told = [arguments(out.removesuffix(b"".join(end)), number) for number in range(2)]
        assert [[json.loads(each) for each in pieces] for pieces in told] == [
            [{"note": "pin ****", "n": 7}],
            [{"list": ["****", {"****": None}]}],
        ]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,1234"}}
    parts = [{"type": "text", "text": "see "}, image, {"type": "text", "text": "pin 1234"}]
    (data, *_) = events(b"".join(await sent([event(choice({"content": parts})), *END], [PIN])))
    assert data["choices"][0]["delta"]["content"] == [*parts[:2], {"type": "text", "text": "pin ****"}]


async def test_case13_no_second_copy_of_the_raw_text() -> None:
    """What a client keeps of the stream is the redacted text, in whatever field: log probabilities and the message some
    providers send along do not hold the rest. R0.1, R0.3, case 13.
    """
    logs = [
        {"token": each, "logprob": -0.1, "bytes": list(each.encode()), "top_logprobs": []}
        for each in ("my pin ", "1234 ok")
    ]
    body = [
        event(
            choice(
                {"content": log["token"]}, logprobs={"content": [log]}, message={"content": "my pin 1234 ok"}
            )
        )
        for log in logs
    ]
    for reads in cut_bytes(b"".join([*body, *END])):
        out = b"".join(await sent(reads, [PIN]))
        assert joined(out) == "my pin **** ok"
        assert b"1234" not in out
        assert b"49" not in out  # the bytes of its first digit
    (kept, *_) = events(b"".join(await sent([*body, *END], [PIN])))
    assert kept["choices"][0]["logprobs"] == {"content": logs[:1]}


# ---------------------------------------------------------------------------------------- 15, 39: ids and other fields

MARKS = {
    "id": "chatcmpl-9",
    "object": "chat.completion.chunk",
    "created": 1_700_000_000,
    "model": "m-1",
    "system_fingerprint": "fp_1",
    "service_tier": "default",
    "provider": "acme",
}


@pytest.mark.parametrize("guard", [PIN, RegexFilter({"all": r"[\w ]+$"}, replacement="x", id="all")])
async def test_case15_whatever_leaves_has_the_marks_of_the_answer(guard: RegexFilter) -> None:
    """Events that were changed, cut in parts or added: each has the ids of those that came. R4.6, case 15."""
    args = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"a": "1234"}'}}
    deltas = [{"role": "assistant", "content": "one 12"}, {"content": "34 two 56"}, {"tool_calls": [args]}]
    body = [event(choice(delta), **MARKS) for delta in deltas]
    body += [event(choice({}, finish="stop"), **MARKS), event(**MARKS, usage={"total_tokens": 3}), DONE]
    *out, done = events(b"".join(await sent(body, [guard])))
    assert done == "[DONE]"
    for data in out:
        assert {name: data[name] for name in MARKS} == MARKS
        assert [each["index"] for each in data["choices"]] in ([0], [])
    assert out[0]["choices"][0]["delta"]["role"] == "assistant"
    assert out[-1]["usage"] == {"total_tokens": 3}


@pytest.mark.parametrize(
    ("guard", "first", "second"),
    [
        (RegexFilter({"end": r"q$"}), "abc", "z"),
        (RegexFilter({"b": "b"}), "a[B]c", "z"),
        (KeywordFilter(["abc"], strategy="filter"), "", "z"),
        (KeywordFilter(["abcz"], strategy="filter"), "abc", "z"),
    ],
    ids=["held to the end", "inside", "all of one", "across the choices"],
)
async def test_case39_choices_and_signatures_stay_apart(guard: Any, first: str, second: str) -> None:
    """Pieces of two choices are never one text; a signature arrives, whatever is left of the text beside it.

    R0.2, R4.6, case 39.
    """
    signed = {"content": "", "provider_specific": {"sig": "s1"}}
    detail = [{"type": "reasoning.text", "text": "abc", "signature": "s2", "index": 0}]
    body = [
        text("a"),
        text("z", 1),
        text("b"),
        text("c"),
        event(choice(signed)),
        event(choice({"reasoning_details": detail})),
    ]
    for reads in cut_bytes(b"".join([*body, stop(), stop(1), USAGE, DONE])):
        out = b"".join(await sent(reads, [guard]))
        assert (joined(out), joined(out, index=1)) == (first, second)
        deltas = [each["delta"] for data in events(out)[:-1] for each in data["choices"]]
        assert [delta["provider_specific"] for delta in deltas if "provider_specific" in delta] == [
            {"sig": "s1"}
        ]
        (kept,) = [delta["reasoning_details"][0] for delta in deltas if "reasoning_details" in delta]
        assert kept == {**detail[0], "text": first}


# ---------------------------------------------------------------------------------- 18, 20, 49: blocks, failed checks


@pytest.mark.parametrize("place", ["content", "reasoning", "refusal", "arguments", "a later choice"])
async def test_case20_a_block_reaches_the_client_once(place: str) -> None:
    """One error event that names guard and reason, then the end; nothing of the span, in any place; another answer
    through the same guard is answered normally. R5.1, R5.2, cases 18 and 20.
    """
    guard = RegexFilter({"pin": r"\d{4}"}, id="guard", strategy="block")
    index = 3 if place == "a later choice" else 0
    field = "content" if place == "a later choice" else place
    pieces = ["ok 12", "34 no"]
    if place == "arguments":
        bad = [call('{"a": "12', id="c", name="look"), call('34"}')]
    else:
        bad = [event(choice({field: piece}, index)) for piece in pieces]
    for reads in cut_bytes(b"".join([text("Deli"), *bad, stop(index), DONE])):
        out = await sent(reads, [guard])
        whole = b"".join(out)
        *before, error, done = events(whole)
        assert (error["error"]["type"], error["error"]["code"], done) == ("tripwire", "guard", "[DONE]")
        assert whole.count(b'"error"') == 1
        assert before
        assert b"12" not in whole.split(b'data: {"error"')[0].replace(b'"created": 1, ', b"")
        assert b"34" not in whole
    assert joined(b"".join(await sent([text("Delivery Friday"), *END], [guard]))) == "Delivery Friday"


class Away(UnitGuard):
    """A judge whose model is away."""

    async def judge(self, unit: Unit, ctx: Any) -> Verdict:
        raise ConnectionError


@pytest.mark.parametrize("error_strategy", ["strict", "warn"])
async def test_case49_a_check_that_cannot_be_made(error_strategy: Any) -> None:
    """Strict ends the stream and says that the check failed, not what was found; warn lets it go. R5.4, case 49."""
    guard = Away(id="judge", error_strategy=error_strategy)
    out = b"".join(await sent([ROLE, text("ok"), *END], [guard]))
    if error_strategy == "warn":
        assert out == b"".join([ROLE, text("ok"), *END])
        return
    error, done = events(out)[-2:]
    assert (error["error"]["code"], done) == ("judge", "[DONE]")
    assert "a check could not be made" in error["error"]["message"]
    assert joined(out.split(b'data: {"error"')[0]) == ""


# ------------------------------------------------------------------------------------------------- 22: whoever leaves


async def test_case22_leaving_is_no_tripwire() -> None:
    """The upstream is closed at once, nothing further is pulled, held text is not sent. R5.5, case 22."""
    pulled: list[bytes] = []
    closed: list[bool] = []

    async def upstream() -> AsyncIterator[bytes]:
        try:
            for piece in (text("part one 12"), text("34 "), text("part two")):
                pulled.append(piece)
                yield piece
        finally:
            closed.append(True)

    stream = guard_sse(upstream(), [PIN])
    first = await anext(stream)
    await stream.aclose()
    assert joined(first) == "part one "
    assert closed == [True]
    assert len(pulled) == 1


# ----------------------------------------------------------------------------- 38, 40, 42: order, the end, nothing left


class Fine(UnitGuard):
    """Has nothing to object to."""

    def judge(self, unit: Unit, ctx: Any) -> Verdict:
        return Verdict.allow()


HOLDING: dict[str, Callable[[], Any]] = {
    "pattern to the end": lambda: RegexFilter({"end": r"zz$"}),
    "patterns": lambda: RegexFilter({"spaced": r"(?:\w )+!|last \w+!"}),
    "words": lambda: KeywordFilter(["a b c d", "last word of all"]),
    "sentences": lambda: Fine(id="fine"),
    "answer": lambda: Fine(id="fine", unit="answer"),
}
"""Guards that hold these texts to their end, and find nothing."""


@pytest.mark.parametrize("holding", HOLDING)
async def test_case38_text_that_announces_a_call_is_in_front_of_it(holding: str) -> None:
    """What waits for a guard is behind nothing that came after it: text, the call, the finish reason.

    R0.2, R4.6, case 38.
    """
    head = call("", id="c1", type="function", name="look")
    body = [ROLE, *map(text, ["a ", "b ", "c "]), head, call("{}"), stop(reason="tool_calls"), USAGE, DONE]
    for reads in cut_bytes(b"".join(body)):
        out = b"".join(await sent(reads, [HOLDING[holding]()]))
        before, behind = out.split(head)
        assert joined(before) == "a b c "
        assert arguments(behind) == ["{}"]
        assert behind.endswith(stop(reason="tool_calls") + USAGE + DONE)
    answer = [ROLE, text("d "), text("e"), *END]
    assert joined(b"".join(await sent(answer, [HOLDING[holding]()]))) == "d e"


FAULT = event(error={"message": "broke", "code": 500})
ENDINGS: dict[str, list[bytes]] = {
    "finish": [stop(), DONE],
    "no finish": [DONE],
    "nothing": [],
    "token limit": [stop(reason="length"), USAGE, DONE],
    "in the same event": [event(choice({"content": ""}, finish="stop")), DONE],
    "another choice": [stop(1), stop(), DONE],
    "the provider's error": [FAULT, DONE],
}


@pytest.mark.parametrize("holding", HOLDING)
@pytest.mark.parametrize("ending", ENDINGS)
async def test_case40_held_text_leaves_at_the_end(holding: str, ending: str) -> None:
    """Whatever ends the stream, what is held leaves through the rest of the guards, in front of it. R4.6, case 40."""
    up = RegexFilter({"last": "last", "word": "word"}, id="up", replacement=lambda _, found: found.upper())
    last = b"".join(ENDINGS[ending])
    for reads in cut_bytes(b"".join([text("last wor"), text("d"), *ENDINGS[ending]])):
        out = b"".join(await sent(reads, [HOLDING[holding](), up]))
        assert out.endswith(last)
        assert joined(out.removesuffix(last)) == "LAST WORD"


@pytest.mark.parametrize("guard", ["patterns", "words", "sentences"])
async def test_case40_held_text_is_dropped_where_the_connection_breaks_and_on_a_block(guard: str) -> None:
    """It is not sent: of the connection's error nobody knows what was to follow. R5.2, R5.4, case 40."""

    async def broken() -> AsyncIterator[bytes]:
        yield text("Sent. ")
        yield text("last wor")
        raise ConnectionError("reset")

    out: list[bytes] = []

    async def read() -> None:
        async for piece in guard_sse(broken(), [HOLDING[guard]()]):
            out.append(piece)

    with pytest.raises(ConnectionError, match="reset"):
        await read()
    assert joined(b"".join(out)) == "Sent. "

    block = RegexFilter({"pin": r"\d{4}"}, strategy="block", channels=["reasoning"])
    body = [text("Sent. "), text("last wor"), event(choice({"reasoning": "1234"})), *END]
    whole = b"".join(await sent(body, [HOLDING[guard](), block]))
    assert joined(whole.split(b'data: {"error"')[0]) == "Sent. "
    assert b"wor" not in whole


async def test_case42_a_text_of_which_nothing_is_left() -> None:
    """No event says nothing in its place, and the stream goes on; what else was in its event stays. R4.6, case 42."""
    guard = RegexFilter({"b": "b"}, strategy="filter")
    body = [text("a"), text("b"), text("c")]
    assert b"".join(await sent([*body, *END], [guard])) == b"".join([body[0], body[2], *END])
    kept = event(choice({"content": "b", "other": 1}))
    (_, data, *_) = events(b"".join(await sent([body[0], kept, *END], [guard])))
    assert data["choices"][0]["delta"] == {"content": "", "other": 1}


# ---------------------------------------------------------------------------------------- 43: several streams at once


async def test_case43_streams_at_the_same_time_do_not_mix() -> None:
    """One set of guards, three answers piece by piece in turns, one of them blocked, one left: each client has its own
    letters only, and a fourth finds nothing of them. R6, case 43.
    """
    guards = [
        RegexFilter({"pair": "BB"}, id="b", strategy="block"),
        RegexFilter({"run": r"(?:\w ){3}!"}, id="hold"),
        Polite(id="polite", strategy="redact"),
    ]

    async def upstream(letter: str) -> AsyncIterator[bytes]:
        for number in range(50):
            await asyncio.sleep(0)
            yield text(f"{letter}{'B' if (letter, number) == ('B', 20) else ''} .\n")
        for last in END:
            yield last

    async def client(letter: str) -> bytes:
        out = b""
        stream = guard_sse(upstream(letter), guards)
        async for piece in stream:
            out += piece
            if letter == "C" and out.count(b"C") >= 30:
                break
        await stream.aclose()
        return out

    for a, b, c in [await asyncio.gather(*map(client, "ABC")) for _ in range(2)]:
        assert joined(a) == "A .\n" * 50
        assert joined(b.split(b'data: {"error"')[0]) == "B .\n" * 19  # the last one waited for what follows
        assert set(joined(c)) == set("C .\n")
    assert set(joined(await client("D"))) == set("D .\n")


# --------------------------------------------------------------------------------------------- 53: cost and latency

SPOKEN = " ".join(f"{'word ' * 119}end{number}." for number in range(10))
"""Ten sentences of 600 characters."""


class Counting(UnitGuard):
    """Notes what it is asked."""

    def __init__(self, unit: Any) -> None:
        super().__init__(id="judge", unit=unit)
        self.judged: list[str] = []

    async def judge(self, unit: Unit, ctx: Any) -> Verdict:
        self.judged.append(unit.text)
        return Verdict.allow()


@pytest.mark.parametrize("deltas", [2_000, 20])
@pytest.mark.parametrize(("unit", "calls"), [("sentence", 10), (600, 11), ("answer", 1)])
async def test_case53_a_judge_is_asked_once_a_unit(deltas: int, unit: Any, calls: int) -> None:
    """As often for 2,000 deltas as for 20, each text once; and what is judged leaves before the next is there.

    R0.2, R4.6, case 53.
    """
    judge = Counting(unit)
    size = len(SPOKEN) // deltas
    body = [text(SPOKEN[at : at + size]) for at in range(0, len(SPOKEN), size)]
    fed = 0

    async def upstream() -> AsyncIterator[bytes]:
        nonlocal fed
        for piece in [*body, *END]:
            fed += 1
            yield piece

    first, out = 0, b""
    async for piece in guard_sse(upstream(), [judge]):
        first = first or fed
        out += piece
    assert joined(out) == SPOKEN
    assert "".join(judge.judged) == SPOKEN
    assert len(judge.judged) == calls
    assert unit == "answer" or first <= len(body) // 10 + 2


def calls_of(deltas: int, guards: Sequence[Any], *, byte_by_byte: bool = False) -> int:
    """How many Python functions a stream of so many deltas calls."""
    body = b"".join([*(text("abc") for _ in range(deltas)), *END])
    reads = [bytes([each]) for each in body] if byte_by_byte else [body]
    count = 0

    def profile(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        asyncio.run(sent(reads, guards))
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("byte_by_byte", [False, True])
@pytest.mark.parametrize("holding", ["pattern to the end", "sentences", "patterns"])
def test_case53_the_work_is_linear(holding: str, byte_by_byte: bool) -> None:
    """Ten times the deltas are at most about ten times the calls, however they are read, also where all of the text is
    held. R2.2, case 53.
    """
    small, large = (20, 200) if byte_by_byte else (200, 2_000)
    calls_of(10, [HOLDING[holding]()])  # caches fill
    few, many = (
        calls_of(deltas, [HOLDING[holding]()], byte_by_byte=byte_by_byte) for deltas in (small, large)
    )
    assert many < 11 * few
