"""A prompt is well formed whatever hooks and storage did (R3.8)."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from watched import THREAD, WatchedModel

from interlock import Agent, Message, Processor, StepChange, tool
from interlock.memory import InMemoryStore, Memory, Turn
from interlock.messages import Content, ReasoningPart, StepStartPart, TextPart, ToolInvocationPart
from interlock.prompt import Prompt, PromptMessage, PromptText, PromptToolCall, PromptToolResult
from interlock.testing import text, tool_call

IDS = st.sampled_from(["c1", "c2", "c3"])
PARTS = st.one_of(
    st.builds(TextPart, text=st.sampled_from(["hello", ""])),
    st.builds(ReasoningPart, text=st.just("hm")),
    st.builds(StepStartPart),
    st.builds(
        ToolInvocationPart,
        tool_call_id=IDS,
        tool_name=st.just("look"),
        args=st.just({}),
        state=st.sampled_from(["call", "partial-call", "result", "output-error"]),
        result=st.sampled_from([None, 7, "text"]),
        provider_executed=st.sampled_from([None, True]),
    ),
)
MESSAGES = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "assistant"]), st.lists(PARTS, max_size=4)), max_size=5
)
PROMPT_PARTS = st.one_of(
    st.builds(PromptText, text=st.sampled_from(["more", ""])),
    st.builds(PromptToolCall, tool_call_id=IDS, tool_name=st.just("look"), input=st.just({})),
    st.builds(
        PromptToolResult,
        tool_call_id=IDS,
        tool_name=st.just("look"),
        kind=st.just("json"),
        value=st.integers(0, 3),
    ),
)
PROMPT_MESSAGES = st.builds(
    PromptMessage,
    role=st.sampled_from(["user", "assistant", "tool"]),
    content=st.lists(PROMPT_PARTS, max_size=3).map(tuple),
).filter(
    lambda message: all(
        isinstance(part, PromptText)
        if message.role == "user"
        else message.role == "assistant" or isinstance(part, PromptToolResult)
        for part in message.content
    )
)


def made(messages: list[tuple[str, list[Any]]]) -> list[Message]:
    """Messages of these roles and parts."""
    return [
        Message(id=f"m{i}", role=role, content=Content(parts=[part.replace() for part in parts]))  # type: ignore[arg-type]
        for i, (role, parts) in enumerate(messages)
    ]


class Mangle(Processor):
    """Reorders, drops, doubles and adds, in the list and in the prompt."""

    id = "mangle"

    def __init__(self, data: st.DataObject, added: list[PromptMessage]) -> None:
        self.data = data
        self.added = added

    def process_input_step(self, step: Any, ctx: Any) -> Any:
        """Give some of the messages in any order, some parts gone."""
        if self.data.draw(st.booleans()):
            return None
        messages = self.data.draw(st.permutations(step.messages))
        kept = messages[: self.data.draw(st.integers(0, len(messages)))]
        for message in kept:
            if self.data.draw(st.booleans()):
                del message.content.parts[: self.data.draw(st.integers(0, 2))]
        return kept if self.data.draw(st.booleans()) else StepChange(messages=kept)

    def process_llm_request(self, request: Any, ctx: Any) -> Any:
        """Give a prompt with messages moved, dropped and added."""
        if self.data.draw(st.booleans()):
            return None
        system = [message for message in request.prompt if message.role == "system"]
        rest = [message for message in request.prompt if message.role != "system"]
        mixed = self.data.draw(st.permutations([*rest, *self.added]))
        return request.replace(prompt=(*system, *mixed[: self.data.draw(st.integers(0, len(mixed)))]))


def check_prompt(prompt: Prompt) -> None:
    """Each call has exactly one result right after its message, no result stands without its call, no empty
    message.
    """
    body = [message for message in prompt if message.role != "system"]
    assert not body or body[0].role != "assistant", f"R3.8: begins with an assistant message: {prompt}"
    expected: list[str] = []
    for message in body:
        assert message.content, f"an empty message: {prompt}"
        results = [part.tool_call_id for part in message.content if isinstance(part, PromptToolResult)]
        calls = [part.tool_call_id for part in message.content if isinstance(part, PromptToolCall)]
        if message.role == "tool":
            assert sorted(results) == sorted(expected), f"R3.8: {results} answers {expected}: {prompt}"
            assert len(results) == len(message.content)
            expected = []
            continue
        assert not expected, f"R3.8: calls without a result: {expected}: {prompt}"
        assert message.role == "assistant" or not (calls or results), prompt
        assert set(results) <= set(calls), f"R3.8: an orphaned result: {prompt}"
        assert len(set(calls)) == len(calls), f"R3.8: a call twice: {prompt}"
        assert len(set(results)) == len(results), f"R3.8: a result twice: {prompt}"
        expected = [call for call in calls if call not in results]
    assert not expected, f"R3.8: calls without a result: {expected}: {prompt}"


async def check(
    stored: list[Message], script: list[list[Any]], data: st.DataObject, added: list[PromptMessage]
) -> None:
    """One run with these: every prompt is well formed, history stays."""

    @tool
    async def look() -> int:
        """Look."""
        return 7

    store = InMemoryStore()
    if stored:
        await store.save_turn(Turn(thread_id="t", resource_id="r", messages=stored))
    before = repr(await store.messages("t", resource_id="r"))
    model = WatchedModel(script)
    mangle = Mangle(data, added)
    agent = Agent(
        id="mangled",
        model=model,
        tools=[look],
        instructions="be brief",
        memory=Memory(store, last_messages=None),
        input_processors=[mangle],
    )
    result = await agent.generate("hi", memory=THREAD, max_steps=3)
    assert result.tripwire is None
    for call in model.calls:
        check_prompt(call.request.prompt)
    now = await store.messages("t", resource_id="r")
    assert repr(now[: len(stored)]) == before, "R3.8, R3.5: stored history is not rewritten"


SCRIPT = st.lists(
    st.lists(
        st.one_of(
            st.builds(text, st.just("said ")),
            st.builds(lambda name, id: tool_call(name, {}, id=id), st.sampled_from(["look", "nosuch"]), IDS),
        ),
        max_size=3,
    ),
    min_size=1,
    max_size=3,
)


@given(stored=MESSAGES, script=SCRIPT, added=st.lists(PROMPT_MESSAGES, max_size=3), data=st.data())
@settings(max_examples=150)
def test_no_prompt_has_an_orphan(
    stored: list[tuple[str, list[Any]]],
    script: list[list[Any]],
    added: list[PromptMessage],
    data: st.DataObject,
) -> None:
    """Whatever is stored, whatever process_input_step and process_llm_request return: one result a call,
    none orphaned.

    R3.8.
    """
    asyncio.run(check(made(stored), script, data, added))
