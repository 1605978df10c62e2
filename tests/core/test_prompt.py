"""The prompt is always well formed, whatever processors or storage did to the messages (R3.8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.core.messages import (
    Content,
    DataPart,
    FilePart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    SourcePart,
    StepStartPart,
    SystemMessage,
    TextPart,
    ToolInvocationPart,
)
from interlock.core.model import (
    Prompt,
    PromptFile,
    PromptMessage,
    PromptReasoning,
    PromptText,
    PromptToolCall,
    PromptToolResult,
)
from interlock.core.prompt import build_messages, build_prompt, prompt_text, well_formed
from interlock.core.stored import message_to_row

# ------------------------------------------------------------------------------------------------------------ helpers


def message(role: Any, *parts: Part, content: str | None = None) -> Message:
    """A message of these parts."""
    return Message(id="m", role=role, content=Content(parts=list(parts), content=content))


def call(id: str = "c", state: Any = "result", **fields: Any) -> ToolInvocationPart:
    """A tool invocation."""
    return ToolInvocationPart(tool_call_id=id, tool_name="look", state=state, **fields)


def said(role: Any, *parts: Any) -> PromptMessage:
    """A prompt message; strings are text parts."""
    return PromptMessage(
        role=role, content=tuple(PromptText(text=p) if isinstance(p, str) else p for p in parts)
    )


def asked(id: str = "c", **fields: Any) -> PromptToolCall:
    """A call in a prompt."""
    return PromptToolCall(tool_call_id=id, tool_name="look", input=fields.pop("input", {}), **fields)


def answered(id: str = "c", value: Any = "r") -> PromptToolResult:
    """A result in a prompt."""
    return PromptToolResult(tool_call_id=id, tool_name="look", kind="text", value=value)


OPENING = said("user", ".")
USER = said("user", "hi")


def problems(prompt: Sequence[PromptMessage]) -> list[str]:
    """What a provider would refuse about a prompt."""
    found: list[str] = []
    first = next((m for m in prompt if m.role != "system"), None)
    if first is not None and first.role != "user":
        found.append(f"begins with {first.role}")
    for index, each in enumerate(prompt):
        if not each.content:
            found.append(f"message {index} is empty")
        if isinstance(each.content, str):
            if each.role == "tool":
                found.append(f"message {index} is a tool message of text")
            continue
        calls = [p.tool_call_id for p in each.content if isinstance(p, PromptToolCall)]
        inside = [p.tool_call_id for p in each.content if isinstance(p, PromptToolResult)]
        if each.role == "tool":
            before = prompt[index - 1] if index else None
            asked_before = (
                [p.tool_call_id for p in before.content if isinstance(p, PromptToolCall)]
                if before is not None and before.role == "assistant" and not isinstance(before.content, str)
                else []
            )
            found += [f"result of {id} in {index} is orphaned" for id in inside if id not in asked_before]
            found += [f"message {index} holds more than results"] * (len(inside) != len(each.content))
            continue
        if each.role != "assistant":
            found += [f"message {index} ({each.role}) holds a call or a result"] * bool(calls or inside)
            continue
        after = prompt[index + 1] if index + 1 < len(prompt) else None
        following = (
            [p.tool_call_id for p in after.content if isinstance(p, PromptToolResult)]
            if after is not None and after.role == "tool" and not isinstance(after.content, str)
            else []
        )
        for id, times in Counter(calls).items():
            results = inside.count(id) + following.count(id)
            if times != 1 or results != 1:
                found.append(f"call {id} in {index}: made {times} times, {results} results")
        seen: set[str] = set()
        for part in each.content:
            if isinstance(part, PromptToolCall):
                seen.add(part.tool_call_id)
            elif isinstance(part, PromptToolResult) and part.tool_call_id not in seen:
                found.append(f"result of {part.tool_call_id} in {index} stands before its call")
    return found


# --------------------------------------------------------------------------------------------------------- by example


def test_a_conversation_becomes_a_prompt() -> None:
    """R3.8, R1.2b: text, reasoning, files and calls go to the model; each step's results stand right behind it."""
    prompt = build_prompt(
        [SystemMessage(content="be kind"), SystemMessage(content="tagged", tag="t")],
        [
            message(
                "user", TextPart(text="hi"), FilePart(mime_type="image/png", data="QQ==", filename="a.png")
            ),
            message(
                "assistant",
                ReasoningPart(text="hm", provider_metadata={"a": {"signature": "S"}}),
                TextPart(text="let me see"),
                call("c1", args={"q": 1}, result={"n": 2}),
                call("c2", "output-error", args={}, error_text="kaput"),
                StepStartPart(),
                TextPart(text="done"),
            ),
        ],
    )
    assert prompt == (
        PromptMessage(role="system", content="be kind"),
        PromptMessage(role="system", content="tagged"),
        said("user", "hi", PromptFile(media_type="image/png", data="QQ==", filename="a.png")),
        said(
            "assistant",
            PromptReasoning(text="hm", provider_options={"a": {"signature": "S"}}),
            "let me see",
            asked("c1", input={"q": 1}),
            asked("c2"),
        ),
        said(
            "tool",
            PromptToolResult(tool_call_id="c1", tool_name="look", kind="json", value={"n": 2}),
            PromptToolResult(tool_call_id="c2", tool_name="look", kind="error-text", value="kaput"),
        ),
        said("assistant", "done"),
    )
    assert problems(prompt) == []


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("text", "text"),
        ("", "text"),
        ({"a": 1}, "json"),
        ([1], "json"),
        (3, "json"),
        (None, "json"),
        (False, "json"),
    ],
)
def test_a_result_keeps_its_value(value: Any, kind: str) -> None:
    """R4.8: text is text, anything else JSON; None is a result."""
    (_, _, results) = build_prompt(
        [], [message("user", TextPart(text="hi")), message("assistant", call(result=value))]
    )
    assert results.content == (
        PromptToolResult(tool_call_id="c", tool_name="look", kind=kind, value=value),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("state", ["call", "partial-call"])
def test_an_open_call_is_answered_or_left_out(state: str) -> None:
    """R3.8: a call without a result, as a crash leaves it in storage, never reaches a provider unanswered."""
    prompt = build_prompt(
        [],
        [
            message("user", TextPart(text="hi")),
            message("assistant", call(state=state)),
            message("user", TextPart(text="?")),
        ],
    )
    assert problems(prompt) == []
    assert [m.text for m in prompt if m.role == "user"] == ["hi", "?"]


def test_a_provider_executed_call_has_its_result_beside_it() -> None:
    """R3.8: what the provider ran itself stays in the assistant's message, with exactly one result after it."""
    prompt = build_prompt(
        [],
        [
            message("user", TextPart(text="hi")),
            message("assistant", call(provider_executed=True, result="r", args={}), TextPart(text="so")),
        ],
    )
    assert prompt == (USER, said("assistant", asked(provider_executed=True), answered(), "so"))


@pytest.mark.parametrize(
    "part",
    [
        DataPart(type="data-x", data="secret"),
        SourcePart(source={"title": "secret"}),
        OtherPart(type="unknown", fields={"text": "secret"}),
        TextPart(type="data-hidden", text="secret"),
        ReasoningPart(type="hidden", text="secret"),
        FilePart(type="hidden", mime_type="text/plain", data="secret"),
    ],
    ids=lambda part: f"{type(part).__name__} {part.type}",
)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_what_is_not_for_the_model_stays_out(role: str, part: Part) -> None:
    """R3.6, R3.8: citations, custom data, unknown parts and parts given another type are not sent to the model."""
    prompt = build_prompt([], [message("user", TextPart(text="hi")), message(role, TextPart(text="a"), part)])
    assert "secret" not in prompt_text(prompt)
    assert [m.text for m in prompt] == ["hi", "a"]


def test_a_message_without_anything_for_the_model_is_left_out() -> None:
    """R3.8: no empty message is sent."""
    prompt = build_prompt(
        [],
        [
            message("user", TextPart(text="hi")),
            message("assistant", DataPart(type="data-x", data=1)),
            message("user", TextPart(text="")),
            message("user"),
        ],
    )
    assert prompt == (USER,)


def test_the_fallback_of_old_rows_is_read() -> None:
    """R3.6, R3.7: a row with no parts has its text in the flattened fallback."""
    old = [message("user", content="hi"), message("assistant", content="hello")]
    assert build_prompt([], old) == (USER, said("assistant", "hello"))


def test_a_prompt_never_begins_with_the_assistant() -> None:
    """R3.8: a user message ``.`` goes in front, behind the system messages."""
    prompt = build_prompt([SystemMessage(content="s")], [message("assistant", TextPart(text="a"))])
    assert prompt == (PromptMessage(role="system", content="s"), OPENING, said("assistant", "a"))


def test_a_prompt_that_begins_with_a_user_gets_no_opening() -> None:
    """R3.8: nothing is put in front of a prompt that is fine."""
    assert build_prompt([], [message("user", TextPart(text="hi"))]) == (USER,)


def test_history_is_not_rewritten() -> None:
    """R3.8: the repair happens to the prompt; the messages keep their open calls and empty parts."""
    messages = [message("assistant", TextPart(text=""), call(state="call"), TextPart(text="b"))]
    before = [message_to_row(each) for each in messages]
    build_prompt([], messages)
    assert [message_to_row(each) for each in messages] == before


# ------------------------------------------------------------------------------------------------ broken by a processor


@pytest.mark.parametrize(
    ("broken", "repaired"),
    [
        pytest.param([USER, said("tool", answered())], [USER], id="an orphaned result goes"),
        pytest.param(
            [USER, said("assistant", "a", asked()), said("tool", answered(), answered("x"))],
            [USER, said("assistant", "a", asked()), said("tool", answered())],
            id="one orphan among results goes",
        ),
        pytest.param(
            [
                USER,
                said("assistant", asked()),
                said("tool", answered()),
                said("tool", answered(value="again")),
            ],
            [USER, said("assistant", asked()), said("tool", answered())],
            id="a second result goes",
        ),
        pytest.param(
            [USER, said("assistant", asked()), USER, said("tool", answered())],
            [USER, said("assistant", asked()), said("tool", answered()), USER],
            id="a late result moves to its call",
        ),
        pytest.param(
            [said("tool", answered()), USER, said("assistant", "a")],
            [USER, said("assistant", "a")],
            id="a result before its call goes",
        ),
        pytest.param(
            [said("assistant", "a"), USER], [OPENING, said("assistant", "a"), USER], id="assistant first"
        ),
        pytest.param([USER, said("assistant"), said("user")], [USER], id="empty messages go"),
        pytest.param(
            [
                USER,
                said("assistant", asked()),
                said("tool", answered(value="1")),
                said("assistant", asked()),
                said("tool", answered(value="2")),
            ],
            [
                USER,
                said("assistant", asked()),
                said("tool", answered(value="1")),
                said("assistant", asked()),
                said("tool", answered(value="2")),
            ],
            id="the same id in two steps is two calls",
        ),
    ],
)
def test_what_process_llm_request_breaks_is_repaired(broken: list[Any], repaired: list[Any]) -> None:
    """R3.8: what process_llm_request breaks is repaired too, and nothing else is touched."""
    assert well_formed(broken) == tuple(repaired)
    assert problems(repaired) == []


def test_a_call_without_a_result_is_answered_or_left_out() -> None:
    """R3.8: a call whose result a processor took away does not stand alone; the text beside it stays."""
    prompt = well_formed([USER, said("assistant", "a", asked()), said("user", "next")])
    assert problems(prompt) == []
    assert [m.text for m in prompt if m.role != "tool"] == ["hi", "a", "next"]


def test_calls_and_results_in_a_user_message_are_no_calls() -> None:
    """R3.8: a result that a processor put into a user message is orphaned there; no provider takes it."""
    prompt = well_formed([said("user", "hi", answered()), said("assistant", "a")])
    assert problems(prompt) == []
    assert [m.text for m in prompt] == ["hi", "a"]


# ------------------------------------------------------------------------------------------------------- as a property

_ids = st.sampled_from(["a", "b", "c"])
_metadata = st.none() | st.just({"p": {"k": "v"}})
_json = (
    st.none()
    | st.booleans()
    | st.integers(0, 9)
    | st.text(max_size=3)
    | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2)
)
_texts = st.text(alphabet="xy ", max_size=3)
_parts = st.one_of(
    st.builds(TextPart, text=_texts, provider_metadata=_metadata),
    st.builds(TextPart, text=_texts, type=st.sampled_from(["data-moved", "other"])),
    st.builds(ReasoningPart, text=_texts, redacted=st.none() | st.just("R"), provider_metadata=_metadata),
    st.builds(
        ToolInvocationPart,
        tool_call_id=_ids,
        tool_name=st.just("look"),
        args=_json,
        state=st.sampled_from(["partial-call", "call", "result", "output-error"]),
        result=_json,
        error_text=st.none() | _texts,
        provider_executed=st.sampled_from([None, False, True]),
    ),
    st.builds(
        ToolInvocationPart,
        tool_call_id=_ids,
        tool_name=st.just("look"),
        type=st.just("hidden"),
        state=st.just("result"),
    ),
    st.builds(FilePart, mime_type=st.just("text/plain"), data=st.just("QQ==")),
    st.builds(SourcePart, source=st.just({"id": "s"})),
    st.builds(StepStartPart),
    st.builds(DataPart, type=st.just("data-x"), data=_json),
    st.builds(OtherPart, type=st.just("unknown"), fields=st.just({"a": 1})),
)
_messages = st.lists(
    st.builds(
        Message,
        id=st.just("m"),
        role=st.sampled_from(["user", "assistant", "system"]),
        content=st.builds(Content, parts=st.lists(_parts, max_size=5), content=st.none() | _texts),
    ),
    max_size=6,
)
_prompt_parts = st.one_of(
    st.builds(PromptText, text=st.sampled_from(["x", "y"])),
    st.builds(PromptReasoning, text=st.just("r")),
    st.builds(
        PromptToolCall,
        tool_call_id=_ids,
        tool_name=st.just("look"),
        input=_json,
        provider_executed=st.none() | st.booleans(),
    ),
    st.builds(
        PromptToolResult, tool_call_id=_ids, tool_name=st.just("look"), kind=st.just("json"), value=_json
    ),
    st.builds(PromptFile, media_type=st.just("text/plain"), data=st.just("QQ==")),
)
_prompts = st.lists(
    st.one_of(
        st.builds(
            PromptMessage,
            role=st.sampled_from(["user", "assistant", "tool"]),
            content=st.lists(_prompt_parts, max_size=5).map(tuple) | st.just(()),
        ),
        st.builds(
            PromptMessage,
            role=st.sampled_from(["system", "user", "assistant"]),
            content=st.sampled_from(["s", ""]),
        ),
    ),
    max_size=7,
)
_systems = st.lists(st.builds(SystemMessage, content=st.just("system")), max_size=2)


def calls_with_results(prompt: Prompt) -> list[str]:
    """The ids of the calls, in order."""
    return [
        p.tool_call_id
        for m in prompt
        if not isinstance(m.content, str)
        for p in m.content
        if isinstance(p, PromptToolCall)
    ]


@given(_systems, _messages)
@settings(max_examples=150)
def test_any_conversation_gives_a_well_formed_prompt(
    system: list[SystemMessage], messages: list[Message]
) -> None:
    """R3.8: each call has exactly one result after it, none is orphaned, the assistant never begins."""
    assert problems(build_prompt(system, messages)) == []


@given(_messages)
def test_the_views_of_a_conversation_lose_no_text(messages: list[Message]) -> None:
    """R3.8: the repair drops no text: all of it is in the prompt, in order."""
    expected = [
        part.text
        for each in messages
        for part in (each.content.parts or [TextPart(text=each.content.content or "")])
        if isinstance(part, TextPart) and part.type == "text" and part.text
        if each.role != "system"
    ]
    prompt = build_prompt([], messages)
    got = [
        p.text
        for m in prompt
        if not isinstance(m.content, str)
        for p in m.content
        if isinstance(p, PromptText)
    ]
    assert got in (expected, [".", *expected])


@given(_prompts)
@settings(max_examples=150)
def test_any_broken_prompt_is_repaired(prompt: list[PromptMessage]) -> None:
    """R3.8: whatever process_llm_request makes of the prompt, what goes to the provider is well formed."""
    assert problems(well_formed(prompt)) == []


@given(_prompts)
def test_the_repair_is_idempotent(prompt: list[PromptMessage]) -> None:
    """R3.8: a repaired prompt needs no repair."""
    once = well_formed(prompt)
    assert well_formed(once) == once


@given(_prompts)
@settings(max_examples=150)
def test_a_well_formed_prompt_is_left_alone(prompt: list[PromptMessage]) -> None:
    """R3.8: what needs no repair is not changed."""
    if not problems(prompt):
        assert well_formed(prompt) == tuple(prompt)


@given(_prompts)
def test_an_answered_call_survives_the_repair(prompt: list[PromptMessage]) -> None:
    """R3.8: the repair drops no call of an assistant message whose result stands right behind it."""
    repaired = Counter(calls_with_results(well_formed(prompt)))
    sure: Counter[str] = Counter()
    for before, after in pairwise(prompt):
        if before.role != "assistant" or after.role != "tool" or isinstance(before.content, str):
            continue
        results = {p.tool_call_id for p in after.content if isinstance(p, PromptToolResult)}
        sure.update({p.tool_call_id for p in before.content if isinstance(p, PromptToolCall)} & results)
    assert all(repaired[id] >= times for id, times in sure.items())


def test_build_messages_takes_the_steps_of_old_rows_apart() -> None:
    """R3.8: rows of the reference may lack a border before the text that follows an own tool's result."""
    built = build_messages(
        [message("assistant", TextPart(text="a"), call(args={}, result="r"), TextPart(text="b"))]
    )
    assert built == [said("assistant", "a", asked()), said("tool", answered()), said("assistant", "b")]
