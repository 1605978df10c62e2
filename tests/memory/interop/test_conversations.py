"""One conversation, two programs: the reference and interlock take turns in a thread on the same database."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock import Agent, tool
from interlock.chunks import File, Source
from interlock.core.stored import message_to_row
from interlock.core.tool import ToolContext
from interlock.memory import Memory
from interlock.messages import Message
from interlock.testing import ScriptedModel, reasoning, text, tool_call
from memory.interop.ours import remembering
from memory.interop.reference import Shared

pytestmark = pytest.mark.anyio

THREAD, RESOURCE = "thread-1", "user-1"
WHERE = {"thread": THREAD, "resource": RESOURCE}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NOTE = "data:text/plain;base64,aGVsbG8="


# ------------------------------------------------------------------------------------------------------- their turns


def _spoken(said: str, kind: str = "text") -> list[dict[str, Any]]:
    return [
        {"type": f"{kind}-start", "id": said},
        {"type": f"{kind}-delta", "id": said, "delta": said},
        {"type": f"{kind}-end", "id": said},
    ]


def _called(call_id: str, name: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool-call", "toolCallId": call_id, "toolName": name, "input": json.dumps(args)}


def _their_rich_turn(shared: Shared) -> list[Any]:
    """A question with a file; an answer in two steps with everything in it. The prompts they sent."""
    asked = [
        {"type": "text", "text": "What is the weather like? See the note."},
        {"type": "file", "data": NOTE, "mediaType": "text/plain", "filename": "note.txt"},
    ]
    calls = [
        [
            *_spoken("They want Rome.", "reasoning"),
            *_spoken("Let me look."),
            _called("call-m1", "weather", {"city": "Rome"}),
        ],
        [
            *_spoken("It is 21 degrees in Rome."),
            {"type": "file", "mediaType": "image/png", "data": PIXEL},
            {
                "type": "source",
                "sourceType": "url",
                "id": "s1",
                "url": "https://example.org/rome",
                "title": "Rome",
            },
        ],
    ]
    progress = {"type": "data-progress", "data": {"percent": 50}}
    tools = {"weather": {"result": {"celsius": 21}, "data": [progress]}}
    answer = shared.mastra(
        "turn",
        thread=THREAD,
        resource=RESOURCE,
        input=[{"role": "user", "content": asked}],
        calls=calls,
        tools=tools,
    )
    return answer["prompts"]


def _their_turn(shared: Shared, said: str, answered: str) -> list[Any]:
    """A plain turn of theirs; the messages of the prompt they made of the thread."""
    answer = shared.mastra("turn", thread=THREAD, resource=RESOURCE, input=said, calls=[_spoken(answered)])
    return answer["prompts"][0]


# --------------------------------------------------------------------------------------------------------- our turns


@tool
async def tides(harbour: str, context: ToolContext) -> dict[str, Any]:
    """When the tide is high."""
    await context.writer.custom({"type": "data-gauge", "data": {"harbour": harbour}})
    await context.writer.custom({"type": "data-tick", "data": 1, "transient": True})
    return {"high": "06:12", "note": None}


async def _our_rich_turn(memory: Memory) -> ScriptedModel:
    model = ScriptedModel(
        [
            reasoning("A harbour,", " then."),
            text("One moment."),
            tool_call("tides", {"harbour": "Ostia"}, id="call-i1"),
        ],
        [
            text("High tide is at ", "06:12."),
            File(mime_type="image/png", data=PIXEL),
            Source(id="s2", url="https://example.org/tides", title="Tides"),
        ],
    )
    agent = Agent(id="ours", model=model, memory=memory, tools=[tides])
    asked = [
        {"type": "text", "text": "And the tide at Ostia?"},
        {"type": "file", "data": NOTE, "mediaType": "text/plain", "filename": "ours.txt"},
    ]
    result = await agent.generate([{"role": "user", "content": asked}], memory=WHERE)
    assert result.finish_reason == "stop"
    return model


async def _our_turn(memory: Memory, said: str, answered: str) -> str:
    """A plain turn of ours; the prompt we made of the thread."""
    model = ScriptedModel([text(answered)])
    await Agent(id="ours", model=model, memory=memory).generate(said, memory=WHERE)
    return model.calls[0].prompt_text


# ------------------------------------------------------------------------------------------------------ what both see


def _rows(messages: list[Message]) -> list[dict[str, Any]]:
    rows = [message_to_row(message) for message in messages]
    return [{**row, "createdAt": _milliseconds(row["createdAt"])} for row in rows]


def _milliseconds(moment: Any) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def _kinds(row: dict[str, Any]) -> list[str]:
    return [part["type"] for part in row["content"]["parts"]]


def _in_order(text: str, *pieces: str) -> bool:
    places = [text.find(piece) for piece in pieces]
    return -1 not in places and places == sorted(places)


async def test_what_they_wrote_we_read_to_the_letter(shared: Shared) -> None:
    """Messages of theirs, read through Memory and put back in their form, are what their own storage returns."""
    _their_rich_turn(shared)
    async with remembering(shared.url) as memory:
        ours = _rows(await memory.messages(THREAD, resource=RESOURCE))
    theirs = shared.mastra("messages", thread=THREAD, resource=RESOURCE)
    assert [row["role"] for row in theirs] == ["user", "assistant"]
    assert set(_kinds(theirs[1])) >= {
        "reasoning",
        "text",
        "tool-invocation",
        "data-progress",
        "file",
        "source",
    }
    for our, their in zip(ours, theirs, strict=True):
        flattened = their["content"].pop(
            "content", None
        )  # a copy of what the parts say, which we do not keep
        our["content"].pop("content", None)
        assert our == their, flattened


async def test_we_continue_their_thread_and_they_continue_ours(shared: Shared) -> None:
    """Turns alternate: every prompt, on either side, holds all that was said before, with calls and results."""
    _their_rich_turn(shared)
    before = shared.mastra("messages", thread=THREAD, resource=RESOURCE)
    async with remembering(shared.url, last_messages=40) as memory:
        model = await _our_rich_turn(memory)
        prompt = model.calls[0].prompt
        assert _in_order(
            model.calls[0].prompt_text,
            "What is the weather like?", "Let me look.", "weather(", "21", "It is 21 degrees", "And the tide",
        )  # fmt: skip
        (answer,) = [part for m in prompt if m["role"] == "tool" for part in m["content"]]
        assert (answer["toolCallId"], answer["output"]) == (
            "call-m1",
            {"type": "json", "value": {"celsius": 21}},
        )

        told = json.dumps(_their_turn(shared, "Thanks. Both again?", "21 degrees; 06:12."))
        assert _in_order(
            told,
            "What is the weather like?", '"call-m1"', '{"celsius": 21}', "It is 21 degrees in Rome.",
            "And the tide at Ostia?", "A harbour, then.", "One moment.",
            '"call-i1"', '"06:12"', "High tide is at 06:12.",
            "Thanks. Both again?",
        )  # fmt: skip
        told = await _our_turn(memory, "Bye.", "Bye, then.")
        assert _in_order(told, "It is 21 degrees", "High tide is at 06:12.", "21 degrees; 06:12.", "Bye.")

    after = shared.mastra("messages", thread=THREAD, resource=RESOURCE)
    assert after[: len(before)] == before, "what they wrote stays as they wrote it"
    assert [row["role"] for row in after] == ["user", "assistant"] * 4
    moments = [row["createdAt"] for row in after]
    assert moments == sorted(set(moments)), "the order of a thread is that of its turns, on both sides"
    newest = shared.mastra("messages", thread=THREAD, resource=RESOURCE, last=3)
    assert [row["id"] for row in newest] == [row["id"] for row in after[:-4:-1]]


async def test_what_we_wrote_they_read_part_by_part(shared: Shared) -> None:
    """Our answer as their storage returns it: their parts, in the order the client saw them begin."""
    async with remembering(shared.url) as memory:
        await _our_rich_turn(memory)
        ours = _rows(await memory.messages(THREAD, resource=RESOURCE))
    theirs = shared.mastra("messages", thread=THREAD, resource=RESOURCE)
    assert ours == theirs
    user, assistant = theirs
    assert user["content"]["parts"][1] == {
        "type": "file", "mimeType": "text/plain", "data": NOTE, "filename": "ours.txt",
    }  # fmt: skip
    assert [kind for kind in _kinds(assistant) if kind != "data-gauge"] == [
        "reasoning", "text", "tool-invocation", "step-start", "text", "file", "source",
    ]  # fmt: skip
    assert "data-gauge" in _kinds(assistant)
    assert "data-tick" not in _kinds(assistant), "a transient chunk is not stored (R8.4)"
    (call,) = [part["toolInvocation"] for part in assistant["content"]["parts"] if "toolInvocation" in part]
    assert call == {
        "state": "result", "toolCallId": "call-i1", "toolName": "tides", "args": {"harbour": "Ostia"},
        "result": {"high": "06:12", "note": None},
    }  # fmt: skip


async def test_a_thread_of_ours_is_among_their_threads(shared: Shared) -> None:
    """A thread that interlock began: found and listed by the reference, for its own resource only."""
    async with remembering(shared.url) as memory:
        await _our_turn(memory, "Hello.", "Hello!")
    found = shared.mastra("thread", thread=THREAD, resource=RESOURCE)
    assert (found["id"], found["resourceId"]) == (THREAD, RESOURCE)
    assert isinstance(found["title"], str)
    assert shared.mastra("thread", thread=THREAD, resource="somebody") is None
    assert [t["id"] for t in shared.mastra("threads", resource=RESOURCE)["threads"]] == [THREAD]
    told = json.dumps(_their_turn(shared, "Who is there?", "Me."))
    assert _in_order(told, "Hello.", "Hello!", "Who is there?")


async def test_old_rows_and_parts_from_newer_versions_are_read_and_kept(shared: Shared) -> None:
    """R3.6: `content.content` without parts is the text; a part nobody knows is kept as it is, on both sides."""
    shared.mastra("create", thread=THREAD, resource=RESOURCE)
    strange = {"type": "hologram", "payload": {"depth": 3}, "providerMetadata": {"x": {"y": [1, None]}}}
    contents: list[dict[str, Any]] = [
        {"format": 2, "parts": [], "content": "said long ago"},
        {
            "format": 2,
            "parts": [{"type": "text", "text": "seen"}, strange],
            "metadata": {"own": {"k": 1}},
            "later": 7,
        },
    ]
    rows = [
        {"id": f"old-{n}", "threadId": THREAD, "resourceId": RESOURCE, "role": role, "content": content,
         "createdAt": f"2026-01-01T00:00:0{n}.000Z"}
        for n, (role, content) in enumerate(zip(("user", "assistant"), contents, strict=True))
    ]  # fmt: skip
    shared.mastra("save", messages=rows)
    before = shared.mastra("messages", thread=THREAD, resource=RESOURCE)
    async with remembering(shared.url) as memory:
        assert [m.text for m in await memory.messages(THREAD, resource=RESOURCE)] == ["said long ago", "seen"]
        told = await _our_turn(memory, "And now?", "Now this.")
        assert _in_order(told, "said long ago", "seen", "And now?")
        ours = _rows(await memory.messages(THREAD, resource=RESOURCE))
    assert ours[1]["content"] == contents[1]
    assert shared.mastra("messages", thread=THREAD, resource=RESOURCE)[:2] == before
