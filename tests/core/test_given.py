"""What a caller may give as input (R11), and what is refused before any hook runs."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from interlock import Agent, Processor, UsageError
from interlock.core.given import given_messages
from interlock.core.messages import (
    Content,
    DataPart,
    FilePart,
    Message,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolInvocationPart,
)
from interlock.testing import ScriptedModel, text


def read(given: Any) -> list[Message]:
    """The messages, with ids new-1, new-2, ..."""
    ids = count(1)
    return given_messages(given, new_id=lambda: f"new-{next(ids)}")


def parts_of(given: Any) -> list[Any]:
    """The parts of the only message."""
    (message,) = read(given)
    return message.content.parts


# ------------------------------------------------------------------------------------------------------------- strings


def test_a_string_is_a_user_message() -> None:
    """R11: with an id and one text part."""
    assert read("hi") == [Message(id="new-1", role="user", content=Content(parts=[TextPart(text="hi")]))]


def test_strings_are_user_messages_in_order() -> None:
    """R11: a list of strings; tuples and other iterables too."""
    for given in (["a", "b"], ("a", "b"), iter(["a", "b"])):
        assert [(m.id, m.role, m.text) for m in read(given)] == [
            ("new-1", "user", "a"),
            ("new-2", "user", "b"),
        ]


# ------------------------------------------------------------------------------------------------------- role, content


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_role_and_content(role: str) -> None:
    """R11: role/content dicts with a string, alone or in a list."""
    for given in ({"role": role, "content": "hi"}, [{"role": role, "content": "hi"}]):
        (message,) = read(given)
        assert (message.role, message.text, message.id) == (role, "hi", "new-1")


def test_an_id_and_metadata_that_were_given_are_kept() -> None:
    """R11: an id is the caller's to choose."""
    (message,) = read({"id": "mine", "role": "user", "content": "hi", "metadata": {"a": 1}})
    assert message.id == "mine"
    assert message.content.metadata == {"a": 1}


@pytest.mark.parametrize(
    ("part", "made"),
    [
        ({"type": "text", "text": "hi"}, TextPart(text="hi")),
        (
            {"type": "text", "text": "hi", "providerOptions": {"p": {"a": 1}}},
            TextPart(text="hi", provider_metadata={"p": {"a": 1}}),
        ),
        ({"type": "reasoning", "text": "hm"}, ReasoningPart(text="hm")),
        (
            {"type": "file", "data": "QQ==", "mediaType": "application/pdf", "filename": "a.pdf"},
            FilePart(mime_type="application/pdf", data="QQ==", filename="a.pdf"),
        ),
        (
            {"type": "file", "data": b"A", "mediaType": "text/plain"},
            FilePart(mime_type="text/plain", data="QQ=="),
        ),
        (
            {"type": "file", "data": "QQ==", "mimeType": "text/csv"},
            FilePart(mime_type="text/csv", data="QQ=="),
        ),
        (
            {"type": "image", "image": "QQ==", "mediaType": "image/png"},
            FilePart(mime_type="image/png", data="QQ=="),
        ),
        (
            {"type": "image", "image": "https://x/a.png"},
            FilePart(mime_type="image/*", data="https://x/a.png"),
        ),
        (
            {"type": "tool-call", "toolCallId": "c", "toolName": "t", "input": {"a": 1}},
            ToolInvocationPart(tool_call_id="c", tool_name="t", args={"a": 1}),
        ),
        (
            {"type": "tool-call", "toolCallId": "c", "toolName": "t", "args": {"a": 1}},
            ToolInvocationPart(tool_call_id="c", tool_name="t", args={"a": 1}),
        ),
        ({"type": "data-x", "data": 1}, DataPart(type="data-x", data=1)),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_content_parts(part: dict[str, Any], made: Any) -> None:
    """R11: role/content dicts with parts."""
    assert parts_of({"role": "assistant", "content": [part]}) == [made]


@pytest.mark.parametrize(
    ("output", "state", "result", "error"),
    [
        ({"type": "text", "value": "warm"}, "result", "warm", None),
        ({"type": "json", "value": {"t": 1}}, "result", {"t": 1}, None),
        ({"type": "error-text", "value": "kaput"}, "output-error", None, "kaput"),
        ("plain", "result", "plain", None),
        (None, "result", None, None),
    ],
)
def test_tool_results_join_their_calls(output: Any, state: str, result: Any, error: str | None) -> None:
    """R11, R3.8: a tool message is no message of its own: its results are put where the calls are."""
    messages = read(
        [
            {"role": "user", "content": "how warm?"},
            {
                "role": "assistant",
                "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "t", "input": {}}],
            },
            {
                "role": "tool",
                "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "t", "output": output}],
            },
        ]
    )
    assert [m.role for m in messages] == ["user", "assistant"]
    (part,) = messages[1].content.parts
    assert isinstance(part, ToolInvocationPart)
    assert (part.state, part.result, part.error_text) == (state, result, error)


def test_a_result_joins_the_right_one_of_several_calls() -> None:
    """R11: by its id."""
    messages = read(
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "tool-call", "toolCallId": id, "toolName": "t", "input": {}} for id in ("a", "b")
                ],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": id,
                        "output": {"type": "text", "value": f"for {id}"},
                    }
                    for id in ("b", "a")
                ],
            },
        ]
    )
    assert [(p.tool_call_id, p.result) for p in messages[0].content.parts] == [("a", "for a"), ("b", "for b")]  # type: ignore[attr-defined]


# -------------------------------------------------------------------------------------------------------- stored and UI


def test_stored_rows_are_taken_as_they_are() -> None:
    """R11: stored-form messages keep id, time, thread and every part, unknown ones included."""
    row = {
        "id": "m1",
        "role": "assistant",
        "createdAt": "2026-01-02T03:04:05Z",
        "threadId": "t",
        "resourceId": "r",
        "content": {"format": 2, "parts": [{"type": "text", "text": "a"}, {"type": "hologram", "depth": 1}]},
    }
    (message,) = read([row])
    assert (message.id, message.thread_id, message.resource_id, message.text) == ("m1", "t", "r", "a")
    assert message.created_at is not None
    assert [part.type for part in message.content.parts] == ["text", "hologram"]


@pytest.mark.parametrize(
    ("part", "made"),
    [
        ({"type": "text", "text": "hi"}, TextPart(text="hi")),
        (
            {
                "type": "reasoning",
                "text": "hm",
                "state": "done",
                "providerMetadata": {"a": {"signature": "S"}},
            },
            ReasoningPart(text="hm", provider_metadata={"a": {"signature": "S"}}),
        ),
        (
            {
                "type": "tool-weather",
                "toolCallId": "c",
                "state": "output-available",
                "input": {"a": 1},
                "output": 20,
            },
            ToolInvocationPart(
                tool_call_id="c", tool_name="weather", args={"a": 1}, state="result", result=20
            ),
        ),
        (
            {
                "type": "dynamic-tool",
                "toolName": "w",
                "toolCallId": "c",
                "state": "input-available",
                "input": {},
            },
            ToolInvocationPart(tool_call_id="c", tool_name="w", args={}, state="call"),
        ),
        (
            {"type": "tool-w", "toolCallId": "c", "state": "input-streaming", "input": {}},
            ToolInvocationPart(tool_call_id="c", tool_name="w", args={}, state="partial-call"),
        ),
        (
            {"type": "tool-w", "toolCallId": "c", "state": "output-error", "input": {}, "errorText": "e"},
            ToolInvocationPart(
                tool_call_id="c", tool_name="w", args={}, state="output-error", error_text="e"
            ),
        ),
        (
            {
                "type": "tool-w",
                "toolCallId": "c",
                "state": "output-available",
                "input": {},
                "output": 1,
                "providerExecuted": True,
                "callProviderMetadata": {"g": {"x": 1}},
            },
            ToolInvocationPart(
                tool_call_id="c",
                tool_name="w",
                args={},
                state="result",
                result=1,
                provider_executed=True,
                provider_metadata={"g": {"x": 1}},
            ),
        ),
        (
            {
                "type": "file",
                "url": "data:image/png;base64,QQ==",
                "mediaType": "image/png",
                "filename": "a.png",
            },
            FilePart(mime_type="image/png", data="data:image/png;base64,QQ==", filename="a.png"),
        ),
        ({"type": "step-start"}, StepStartPart()),
        ({"type": "data-x", "data": {"a": 1}}, DataPart(type="data-x", data={"a": 1})),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_ui_parts(part: dict[str, Any], made: Any) -> None:
    """R11: UI-form messages as chat clients send them."""
    (message,) = read([{"id": "u1", "role": "assistant", "parts": [part]}])
    assert message.id == "u1"
    assert message.content.parts == [made]


def test_a_ui_source() -> None:
    """R11: a cited page keeps its address and title."""
    (part,) = parts_of(
        {"role": "assistant", "parts": [{"type": "source-url", "sourceId": "s", "url": "u", "title": "T"}]}
    )
    assert isinstance(part, SourcePart)
    assert {key: part.source[key] for key in ("sourceType", "id", "url", "title")} == {
        "sourceType": "url",
        "id": "s",
        "url": "u",
        "title": "T",
    }


def test_a_clients_ui_message_has_more_than_one_shape() -> None:
    """R11: metadata is kept; a message with both content and parts (older clients) is read by its parts."""
    (message,) = read(
        [
            {
                "id": "u",
                "role": "user",
                "content": "old",
                "metadata": {"a": 1},
                "parts": [{"type": "text", "text": "new"}],
            }
        ]
    )
    assert message.text == "new"
    assert message.content.metadata == {"a": 1}


def test_message_objects_are_taken_as_they_are() -> None:
    """R11: what another run's result has can be given again."""
    message = Message(id="m", role="user", content=Content(parts=[TextPart(text="hi")]))
    assert read(message) == read([message]) == [message]


def test_forms_may_be_mixed() -> None:
    """R11: each item of a list has a form of its own."""
    messages = read(
        [
            "one",
            {"role": "assistant", "content": "two"},
            {"role": "user", "parts": [{"type": "text", "text": "three"}]},
            {"role": "user", "content": {"format": 2, "parts": [{"type": "text", "text": "four"}]}},
        ]
    )
    assert [m.text for m in messages] == ["one", "two", "three", "four"]
    assert len({m.id for m in messages}) == 4


# ------------------------------------------------------------------------------------------------------------ refusals

REFUSED: list[tuple[str, Any, str]] = [
    ("empty string", "", "empty"),
    ("blank list", [], "empty"),
    ("empty string in a list", ["hi", ""], "empty"),
    ("empty content", {"role": "user", "content": ""}, "empty"),
    ("no parts", {"role": "user", "content": []}, "empty"),
    ("no ui parts", {"role": "user", "parts": []}, "empty"),
    ("nothing", None, "NoneType"),
    ("a number", 5, "int"),
    ("bytes", b"hi", "bytes"),
    ("a number in a list", ["hi", 5], "5|int"),
    ("a list in a list", [["hi"]], "list|message"),
    ("no role", {"content": "hi"}, "None|role"),
    ("unknown role", {"role": "narrator", "content": "hi"}, "narrator"),
    ("content is a number", {"role": "user", "content": 5}, "int"),
    ("no content", {"role": "user"}, "content"),
    ("unknown part", {"role": "user", "content": [{"type": "hologram"}]}, "hologram"),
    ("part without type", {"role": "user", "content": [{"text": "hi"}]}, "None|type"),
    ("part is a number", {"role": "user", "content": [5]}, "part"),
    ("text part without text", {"role": "user", "content": [{"type": "text"}]}, "text"),
    ("file without data", {"role": "user", "content": [{"type": "file", "mediaType": "a/b"}]}, "data"),
    ("file without a type", {"role": "user", "content": [{"type": "file", "data": "QQ=="}]}, "mediaType"),
    ("unknown ui part", {"role": "user", "parts": [{"type": "hologram"}]}, "hologram"),
    ("ui part is a string", {"role": "user", "parts": ["hi"]}, "part"),
    ("tool message of text", {"role": "tool", "content": "20"}, "tool"),
    (
        "result without a call",
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c9"}]},
        "c9",
    ),
    (
        "tool call without id",
        {"role": "assistant", "content": [{"type": "tool-call", "toolName": "t"}]},
        "toolCallId",
    ),
    ("unknown role in a row", {"role": "narrator", "content": {"format": 2, "parts": []}}, "narrator"),
    ("only empty text", {"role": "user", "content": [{"type": "text", "text": ""}]}, "empty"),
]


@pytest.mark.parametrize(("given", "told"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_cannot_be_sent_is_refused(given: Any, told: str) -> None:
    """R11: an empty string, an unknown role or part, or nothing to send is refused, saying what was given."""
    with pytest.raises(UsageError, match=f"(?i){told}"):
        read(given)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "given",
    ["", [], {"role": "narrator", "content": "hi"}, [{"role": "system", "content": "be kind"}]],
    ids=["empty", "no messages", "role", "only a system message"],
)
async def test_refused_before_any_hook_runs(given: Any) -> None:
    """R11: nothing to send at all is refused before any hook runs and before any model is called."""
    called: list[str] = []

    class Watch(Processor):
        id = "watch"

        def process_input(self, messages: Any, ctx: Any) -> None:
            called.append("process_input")

        def on_run_end(self, outcome: Any, ctx: Any) -> None:
            called.append("on_run_end")

    model = ScriptedModel([text("hi")])
    agent = Agent(id="a", model=model, input_processors=[Watch()])
    with pytest.raises(UsageError):
        await agent.generate(given)
    assert called == []
    assert model.calls == []


@pytest.mark.anyio
async def test_the_callers_own_messages_are_not_changed() -> None:
    """R6: what a run does to messages that were given as dicts or objects, the caller's own do not show."""

    class Redact(Processor):
        id = "redact"

        def process_input(self, messages: Any, ctx: Any) -> None:
            for message in messages:
                message.content.parts[0].text = "[GONE]"

    given = Message(id="m", role="user", content=Content(parts=[TextPart(text="secret")]))
    as_dict = {"role": "user", "content": [{"type": "text", "text": "secret"}]}
    model = ScriptedModel([text("ok")], repeat_last=True)
    agent = Agent(id="a", model=model, input_processors=[Redact()])
    await agent.generate([given, as_dict])
    assert "secret" not in model.calls[0].prompt_text
    assert given.text == "secret"
    assert as_dict == {"role": "user", "content": [{"type": "text", "text": "secret"}]}
    result = await agent.generate([given])
    assert result.all_messages[0].id == "m"


@pytest.mark.anyio
async def test_system_messages_among_the_input_go_to_the_prompt() -> None:
    """R3.1, R11: they are no messages of the list, and stand in front of the prompt."""
    model = ScriptedModel([text("ok")])
    result = await Agent(id="a", model=model).generate([{"role": "system", "content": "be kind"}, "hi"])
    assert [m.role for m in result.all_messages] == ["user", "assistant"]
    assert [m["role"] for m in model.calls[0].prompt] == ["system", "user"]
