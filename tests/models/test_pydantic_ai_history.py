"""Our prompt as pydantic-ai's history."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from fault_server import FaultServer, whole
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    CachePoint,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    VideoUrl,
)
from wired import TURN, WIRES, collect, each_wire, model_at
from wires import Called, Said, Thought, Turn, chat

from interlock import Agent, Message, RunResult
from interlock.core.errors import UsageError
from interlock.core.messages import Content, ToolInvocationPart
from interlock.core.model import (
    ModelRequest as OurRequest,
)
from interlock.core.model import (
    PromptFile,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptText,
    PromptToolCall,
    PromptToolResult,
)
from interlock.core.prompt import well_formed
from interlock.core.result import Turn as SavedTurn
from interlock.memory import InMemoryStore, Memory
from interlock.models.pydantic_ai_history import build_history
from interlock.models.tool_ids import ANYWHERE
from interlock.processors import RegexFilter


def history(*messages: PromptMessage, provider: str = "anthropic") -> list[Any]:
    """The history, which must hold everything."""
    warnings: list[dict[str, Any]] = []
    built = build_history(messages, provider, warnings)
    assert warnings == []
    return built


def user(*parts: PromptPart) -> PromptMessage:
    """A user message."""
    return PromptMessage(role="user", content=parts)


def assistant(*parts: PromptPart) -> PromptMessage:
    """An answer."""
    return PromptMessage(role="assistant", content=parts)


def results(*parts: PromptPart) -> PromptMessage:
    """Results of tools."""
    return PromptMessage(role="tool", content=parts)


def test_a_conversation_with_a_tool() -> None:
    """What goes to the model between two answers is one request, in order."""
    built = history(
        PromptMessage(role="system", content="Be kind."),
        user(PromptText(text="Weather?")),
        assistant(
            PromptText(text="Let me see."), PromptToolCall(tool_call_id="c1", tool_name="w", input={"a": 1})
        ),
        results(PromptToolResult(tool_call_id="c1", tool_name="w", kind="json", value={"b": 2})),
        user(PromptText(text="And?")),
    )
    first, answer, second = built
    assert isinstance(first, ModelRequest)
    assert [type(part) for part in first.parts] == [SystemPromptPart, UserPromptPart]
    assert isinstance(answer, ModelResponse)
    assert [type(part) for part in answer.parts] == [TextPart, ToolCallPart]
    assert answer.parts[1].args == {"a": 1}  # type: ignore[union-attr]
    result, question = second.parts
    assert isinstance(result, ToolReturnPart)
    assert (result.content, result.tool_call_id, result.outcome) == ({"b": 2}, "c1", "success")
    assert question.content == "And?"


def test_a_failed_tool_is_marked() -> None:
    """Providers have a place for errors of tools."""
    (request,) = history(
        results(PromptToolResult(tool_call_id="c", tool_name="t", kind="error-text", value="no"))
    )
    assert (request.parts[0].outcome, request.parts[0].content) == ("failed", "no")


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("image/png", ImageUrl),
        ("audio/mpeg", AudioUrl),
        ("video/mp4", VideoUrl),
        ("application/pdf", DocumentUrl),
    ],
)
def test_files_by_address(media_type: str, kind: type[Any]) -> None:
    """An http(s) URL stays one, with the media type we were told."""
    (request,) = history(user(PromptFile(media_type=media_type, data="https://h/x")))
    (file,) = request.parts[0].content
    assert isinstance(file, kind)
    assert (file.url, file.media_type) == ("https://h/x", media_type)


@pytest.mark.parametrize("head", ["", "data:image/png;base64,"])
def test_files_by_content(head: str) -> None:
    """Base64, bare or in a data URL, becomes bytes."""
    data = base64.b64encode(b"abc").decode()
    (request,) = history(user(PromptText(text="see"), PromptFile(media_type="image/png", data=head + data)))
    text, file = request.parts[0].content
    assert text == "see"
    assert isinstance(file, BinaryContent)
    assert (file.data, file.media_type) == (b"abc", "image/png")
    (answer,) = history(assistant(PromptFile(media_type="image/png", data=head + data)))
    assert isinstance(answer.parts[0], FilePart)


def test_a_file_that_is_neither() -> None:
    """The error does not repeat the data."""
    with pytest.raises(UsageError, match="image/png") as caught:
        history(user(PromptFile(media_type="image/png", data="not base64!")))
    assert "not base64!" not in str(caught.value)


def test_cache_points() -> None:
    """``cacheControl`` on a part: what stands before may be cached."""
    marked = PromptText(text="long", provider_options={"anthropic": {"cacheControl": {"type": "ephemeral"}}})
    (request,) = history(user(marked, PromptText(text="short")))
    long, point, short = request.parts[0].content
    assert (long, short) == ("long", "short")
    assert isinstance(point, CachePoint)


def test_what_came_from_a_provider_keeps_its_name() -> None:
    """Thinking with its signature, and a call the provider ran with its result, in one response."""
    thought = PromptReasoning(text="hm", provider_options={"anthropic": {"signature": "s"}})
    options = {"anthropic": {"resultDetails": {"k": 1}}}
    call = PromptToolCall(
        tool_call_id="srv_1", tool_name="web_search", provider_executed=True, provider_options=options
    )
    result = PromptToolResult(tool_call_id="srv_1", tool_name="web_search", kind="json", value=[1])
    (answer,) = history(assistant(thought, call, result, PromptText(text="done")))
    assert answer.provider_name == "anthropic"
    thinking, native, returned, text = answer.parts
    assert isinstance(thinking, ThinkingPart)
    assert (thinking.signature, thinking.provider_name) == ("s", "anthropic")
    assert isinstance(native, NativeToolCallPart)
    assert isinstance(returned, NativeToolReturnPart)
    assert (returned.content, returned.provider_name, returned.provider_details) == (
        [1],
        "anthropic",
        {"k": 1},
    )
    assert (text.content, text.id) == ("done", None)


def test_what_cannot_be_said_is_warned_of() -> None:
    """A file of the model's that is an address, reasoning in a user's message: left out, once each."""
    warnings: list[dict[str, Any]] = []
    file = PromptFile(media_type="image/png", data="https://h/x")
    asked = user(PromptReasoning(text="?"), PromptText(text="Hi"))
    build_history((asked, assistant(file, file, PromptText(text="x"))), "openai", warnings)
    assert [(warning["part"], warning["role"]) for warning in warnings] == [
        ("PromptReasoning", "user"),
        ("PromptFile", "assistant"),
    ]


def test_messages_of_nothing_are_not_sent() -> None:
    """An answer that only held what is left out is no message."""
    assert history(assistant(PromptReasoning(text=""))) == []


# ----------------------------------------------------------------------------- from one provider to another


def weather(city: str) -> dict[str, Any]:
    """The weather of a city."""
    return {"city": city, "celsius": 21}


def clock() -> str:
    """The time."""
    return "noon"


ANSWER = Turn(
    (
        Thought(("So it ", "is.")),
        Said(("It is 21 degrees ", "at noon.")),
    )
)
NEXT = Turn((Said(("You asked ", "about Zürich.")),))
SIGNATURE = "c2lnbmVk"
HAS_SIGNATURES = ("anthropic", "gemini", "responses")


def name_of(wire: Any) -> str:
    """The wire's name."""
    return wire.__name__.rpartition(".")[2]


def kinds_of(message: Message) -> list[str]:
    """What a stored message is made of."""
    return [part.type for part in message.content.parts]


async def told(server: FaultServer, wire: Any, own: bool, memory: Memory, text: str) -> RunResult:
    """What an agent with that model makes of the text, in the one thread there is."""
    async with model_at(server, wire, own=own) as model:
        agent = Agent(id="a", model=model, tools=[weather, clock], memory=memory, instructions="Be kind.")
        return await agent.generate(text, memory={"thread": "t", "resource": "r"})


ENDS = [pytest.param(wire, False, id=name_of(wire)) for wire in WIRES] + [pytest.param(chat, True, id="own")]


@pytest.mark.anyio
@pytest.mark.parametrize(("after", "own_after"), ENDS)
@pytest.mark.parametrize(("before", "own_before"), ENDS)
async def test_a_conversation_moves_to_another_provider(
    before: Any, own_before: bool, after: Any, own_after: bool
) -> None:
    """A thread with thinking and tools goes on elsewhere: every call has its result, no signature strays."""
    memory = Memory()
    first = [[whole(before.body(TURN))], [whole(before.body(ANSWER))]]
    async with FaultServer(*first) as server:
        result = await told(server, before, own_before, memory, "Weather in Zürich?")
    # what is stored is the same, whoever answered
    assert [kinds_of(message) for message in result.messages] == [
        ["reasoning", "text", "tool-invocation", "tool-invocation", "step-start", "reasoning", "text"]
    ]
    assert result.text == "Héllo 🌍 wörldIt is 21 degrees at noon."
    async with FaultServer([whole(after.body(NEXT))]) as server:
        moved = await told(server, after, own_after, memory, "What did I ask?")
        body = json.dumps(server.requests[0].body, ensure_ascii=False)
    assert moved.text == "You asked about Zürich."
    for said in ("Be kind.", "Weather in Zürich?", "Héllo 🌍 wörld", "celsius", "noon", "What did I ask?"):
        assert said in body
    assert body.count("call_1") in (0, 2)  # once in the call, once in its result; Gemini need not have ids
    assert body.count("call_1") == body.count("call_2")
    returns = before is after and not own_after and name_of(before) in HAS_SIGNATURES
    assert (SIGNATURE in body) is returns


ODD = "functions.weather:0|" + "x" * 40
"""An id as some providers make them and others refuse."""
RESULT_ID = re.compile(r'"(?:tool_call_id|tool_use_id|call_id)": ?"([^"]*)"')


@pytest.mark.anyio
@pytest.mark.parametrize(("after", "own_after"), ENDS)
@pytest.mark.parametrize(("before", "own_before"), ENDS)
async def test_what_one_provider_left_and_another_refuses(
    before: Any, own_before: bool, after: Any, own_after: bool
) -> None:
    """A thread with odd ids, and with a call whose result a crash has lost, goes on elsewhere: ids become such as are
    taken, the same in call and result, and the orphan gets an answer of its own or is gone (spec R3.8).
    """
    store = InMemoryStore()
    memory = Memory(store=store)
    odd = Turn((Called(ODD, "weather", ('{"city":"Zürich"}',)),), "tool-calls")
    first = [[whole(before.body(odd))], [whole(before.body(ANSWER))]]
    async with FaultServer(*first) as server:
        result = await told(server, before, own_before, memory, "Weather in Zürich?")
    assert [call.tool_call_id for call in result.tool_calls] == [ODD]
    lost = ToolInvocationPart(state="call", tool_call_id="lost:1", tool_name="clock", args={})
    died = Message(id="died", role="assistant", content=Content(parts=[lost]))
    await store.save_turn(SavedTurn(thread_id="t", resource_id="r", messages=[died]))
    async with FaultServer([whole(after.body(NEXT))]) as server:
        moved = await told(server, after, own_after, memory, "What did I ask?")
        body = json.dumps(server.requests[0].body, ensure_ascii=False)
    assert moved.text == "You asked about Zürich."
    assert "celsius" in body
    assert ODD not in body
    assert "lost:1" not in body
    ids = set(RESULT_ID.findall(body))
    assert bool(ids) or name_of(after) == "gemini"  # which need not have ids
    for each in ids:
        assert ANYWHERE.fullmatch(each)
        assert body.count(f'"{each}"') == 2


@pytest.mark.anyio
@each_wire()
async def test_a_call_without_its_result_is_no_part_of_the_history(wire: Any) -> None:
    """An orphan left by a crash is not sent: each provider refuses it (spec R3.8)."""
    prompt = well_formed(
        [
            user(PromptText(text="Go")),
            assistant(
                PromptText(text="Going"), PromptToolCall(tool_call_id="orphan", tool_name="f", input={})
            ),
            results(PromptToolResult(tool_call_id="nobody", tool_name="f", kind="text", value="lost")),
            user(PromptText(text="Well?")),
        ]
    )
    async with FaultServer([whole(wire.body(NEXT))]) as server, model_at(server, wire) as model:
        await collect(model, OurRequest(prompt=prompt))
        body = str(server.requests[0].body)
    assert "Going" in body
    assert not any(gone in body for gone in ("orphan", "nobody", "lost"))


@pytest.mark.anyio
@each_wire()
async def test_what_a_guard_changed_is_not_signed_for(wire: Any) -> None:
    """Thinking a processor edited goes back without the signature over what it was."""
    memory = Memory()
    guard = RegexFilter({"think": "think…"}, replacement="guess")
    said = wire.body(Turn(TURN.blocks[:2]))
    async with FaultServer([whole(said)]) as server, model_at(server, wire) as model:
        agent = Agent(id="a", model=model, memory=memory, output_processors=[guard])
        result = await agent.generate("Hi", memory={"thread": "t", "resource": "r"})
    assert "guess" in result.reasoning
    async with FaultServer([whole(wire.body(NEXT))]) as server:
        await told(server, wire, False, memory, "And?")
        body = str(server.requests[0].body)
    assert "think…" not in body
    if name_of(wire) != "gemini":  # whose signature is over the text that follows, which nobody changed
        assert SIGNATURE not in body
