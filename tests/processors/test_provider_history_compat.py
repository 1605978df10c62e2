"""ProviderHistoryCompat: a conversation that goes on with another provider."""

from __future__ import annotations

import re
from typing import Any

import pytest

from interlock import Agent, CachedResponse, InputProcessor, ModelError, UsageError
from interlock.chunks import ReasoningDelta, ReasoningEnd, ReasoningStart
from interlock.memory import InMemoryStore, Memory, Turn
from interlock.messages import Content, Message, ReasoningPart, TextPart, ToolInvocationPart
from interlock.processors import CompatRule, ProviderHistoryCompat
from interlock.testing import ScriptedModel, error, text

pytestmark = pytest.mark.anyio

SIGNED = {"anthropic": {"signature": "s1"}}


class Named(ScriptedModel):
    """A scripted model of some provider."""

    def __init__(self, provider: str, *calls: Any, model_id: str = "m") -> None:
        super().__init__(*(calls or ([text("ok")],)), model_id=model_id, repeat_last=True)
        self.provider = provider


def answer(*parts: Any, provider: str | None = None) -> Message:
    """A stored answer, stamped with its provider."""
    metadata = None if provider is None else {"provider": provider, "modelId": "m"}
    return Message(id="old", role="assistant", content=Content(parts=list(parts), metadata=metadata))


def thought(value: str = "hm", metadata: Any = None, redacted: str | None = None) -> ReasoningPart:
    """A thought."""
    return ReasoningPart(text=value, provider_metadata=metadata, redacted=redacted)


async def sent(
    model: Named, *history: Message, instructions: str | None = None, user: str = "and?"
) -> list[Any]:
    """The parts of the assistant's messages that the model gets, as ``kind text``; and nothing of it is stored."""
    store = InMemoryStore()
    question = Message(id="q", role="user", content=Content(parts=[TextPart(text="hi")]))
    await store.save_turn(Turn(thread_id="t", resource_id="r", messages=[question, *history]))
    before = repr([message.content for message in await store.messages("t", resource_id="r", last=None)])
    agent = Agent(
        id="a",
        model=model,
        memory=Memory(store),
        instructions=instructions,
        input_processors=[ProviderHistoryCompat()],
    )
    await agent.generate(user, memory={"thread": "t", "resource": "r"})
    after = await store.messages("t", resource_id="r", last=None)
    assert repr([message.content for message in after[: 1 + len(history)]]) == before
    parts: list[Any] = []
    for message in model.calls[0].request.prompt:
        if message.role == "assistant":
            parts += [getattr(part, "text", type(part).__name__) for part in message.content]
    return parts


@pytest.mark.parametrize(
    ("provider", "model_id", "kept"),
    [
        ("cerebras", "zai-glm", ["said"]),
        ("anthropic", "claude-sonnet", ["theirs", "said"]),
        ("openrouter", "anthropic/claude-sonnet", ["theirs", "said"]),
        ("bedrock", "anthropic.claude-v3", ["theirs", "said"]),
        ("openai", "gpt-5", ["theirs", "foreign", "bare", "said"]),
    ],
)
async def test_reasoning_that_a_provider_cannot_read(provider: str, model_id: str, kept: list[str]) -> None:
    """Cerebras takes none, Anthropic only its own; storage keeps all of it (R4.3)."""
    history = answer(
        thought("theirs", SIGNED),
        thought("foreign", {"openai": {"itemId": "rs_1"}}),
        thought("bare"),
        TextPart(text="said"),
    )
    assert await sent(Named(provider, model_id=model_id), history) == kept


async def test_a_signature_without_its_text_is_left_out() -> None:
    """The provider would find that they do not belong together; an encrypted thought has no text to lose."""
    encrypted = {"anthropic": {"redactedData": "e1"}}
    history = answer(thought("", SIGNED), thought("", encrypted, redacted="e1"), TextPart(text="said"))
    assert await sent(Named("anthropic"), history) == ["", "said"]


@pytest.mark.parametrize(
    ("stamp", "provider", "kept"),
    [
        ("kimi-for-coding", "anthropic", ["said"]),
        ("anthropic", "kimi-for-coding", ["said"]),
        ("anthropic.messages", "anthropic", ["signed", "said"]),
        ("kimi-for-coding", "kimi-for-coding", ["signed", "said"]),
        (None, "kimi-for-coding", ["signed", "said"]),
    ],
)
async def test_a_signature_of_another_provider_is_left_out(
    stamp: str | None, provider: str, kept: list[str]
) -> None:
    """The stamp of the answer tells who signed; unstamped history is left alone."""
    assert (
        await sent(Named(provider), answer(thought("signed", SIGNED), TextPart(text="said"), provider=stamp))
        == kept
    )


async def test_an_answer_of_nothing_but_that_is_left_out() -> None:
    """R3.8: no provider accepts an empty message."""
    model = Named("cerebras")
    assert await sent(model, answer(thought("hm"))) == []
    assert [message.role for message in model.calls[0].request.prompt] == ["user", "user"]


async def test_calls_that_another_provider_ran_itself() -> None:
    """The call and its result go together; one's own stays, and so does a call of nobody known."""

    def search(call_id: str, metadata: Any) -> ToolInvocationPart:
        return ToolInvocationPart(
            tool_call_id=call_id,
            tool_name="search",
            args={},
            state="result",
            result=1,
            provider_executed=True,
            provider_metadata=metadata,
        )

    history = answer(search("s1", SIGNED), search("s2", None), TextPart(text="said"))
    both = ["PromptToolCall", "PromptToolResult"]
    assert await sent(Named("openai"), history) == [*both, "said"]
    assert await sent(Named("anthropic"), history) == [*both, *both, "said"]


@pytest.mark.parametrize(("provider", "tag"), [("azure", "memory-context"), ("openai", "system-reminder")])
async def test_azure_gets_other_wrappers(provider: str, tag: str) -> None:
    """Its filter takes a system-reminder for an attack; in user texts and instructions, in this call only."""
    model = Named(provider)
    reminder = '<system-reminder kind="x">go on</system-reminder>'
    await sent(model, instructions=f"Be. {reminder}", user=reminder)
    renamed = reminder.replace("system-reminder", tag)
    prompt = model.calls[0].request.prompt
    assert prompt[0].content == f"Be. {renamed}"
    assert prompt[-1].text == renamed


async def test_answers_are_stamped() -> None:
    """Under the reference's keys; a stamp that is there stays, and a cached answer gets none."""
    agent = Agent(id="a", model=Named("kimi"), input_processors=[ProviderHistoryCompat()])
    result = await agent.generate("hi")
    assert result.messages[-1].content.metadata == {"provider": "kimi", "modelId": "m"}

    class Cache(InputProcessor):
        id = "cache"

        def process_llm_request(self, request: Any, ctx: Any) -> CachedResponse:
            return CachedResponse(
                [ReasoningStart(id="r"), ReasoningDelta("hm", id="r"), ReasoningEnd(id="r")]
            )

    result = await agent.generate("hi", input_processors=[Cache(), ProviderHistoryCompat()])
    assert result.messages[-1].content.metadata is None


REFUSED = error(400, "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")


async def test_a_refused_history_is_repaired_once() -> None:
    """R4.5: the ids are rewritten and the call made again; should it be refused still, the error surfaces."""
    call = ToolInvocationPart(tool_call_id="fc.1:2", tool_name="look", args={}, state="result", result=1)
    history = [
        Message(id="1", role="user", content=Content(parts=[TextPart(text="hi")])),
        Message(id="2", role="assistant", content=Content(parts=[call, TextPart(text="seen")])),
        Message(id="3", role="user", content=Content(parts=[TextPart(text="and?")])),
    ]
    both: Any = ProviderHistoryCompat()
    model = Named("anthropic", [REFUSED], [text("ok")])
    agent = Agent(id="a", model=model, input_processors=[both], error_processors=[both])
    assert (await agent.generate(history)).text == "ok"
    prompts: list[Any] = [call.request.prompt for call in model.calls]
    first, second = (prompt[1].content[0] for prompt in prompts)
    assert (first.tool_call_id, second.tool_call_id) == ("fc.1:2", "fc_1_2")
    assert prompts[1][2].content[0].tool_call_id == "fc_1_2"
    model = Named("anthropic", [REFUSED])
    agent = Agent(id="a", model=model, error_processors=[both])
    with pytest.raises(ModelError, match="pattern"):
        await agent.generate(history)
    assert len(model.calls) == 2


async def test_nothing_to_repair_is_no_retry() -> None:
    """A known refusal of a history in which the rule finds nothing wrong surfaces at once."""
    model = Named("anthropic", [REFUSED])
    with pytest.raises(ModelError, match="pattern"):
        await Agent(id="a", model=model, error_processors=[ProviderHistoryCompat()]).generate("hi")
    assert len(model.calls) == 1


async def test_rules_of_ones_own_come_after_the_built_in_ones() -> None:
    """They see the prompt as those left it, and may repair in their own way."""
    seen: list[Any] = []

    def shorten(prompt: Any, model: Any, messages: Any) -> Any:
        seen.append(
            (model.provider, [type(part).__name__ for part in prompt[1].content], messages.get.all.db())
        )
        return prompt[2:]

    def shout(messages: Any) -> bool:
        messages[-1].content.parts[-1].text = "AND?"
        return True

    rules = [
        CompatRule(name="shorten", apply_to_prompt=shorten),
        CompatRule(name="shout", error_patterns=(re.compile("louder"),), fix=shout),
    ]
    both: Any = ProviderHistoryCompat(additional_rules=rules)
    model = Named("cerebras", [error(400, "louder")], [text("ok")])
    agent = Agent(id="a", model=model, input_processors=[both], error_processors=[both])
    history = [
        {"role": "user", "content": "hi"},
        answer(thought("hm"), TextPart(text="said")),
        {"role": "user", "content": "and?"},
    ]
    assert (await agent.generate(history)).text == "ok"
    assert seen[0][:2] == ("cerebras", ["PromptText"])
    assert [call.prompt_text for call in model.calls] == ["and?", "AND?"]


@pytest.mark.parametrize(
    "rules",
    [
        "rule",
        ["rule"],
        [CompatRule(name="idle")],
        [CompatRule(name="blind", fix=lambda messages: True)],
    ],
)
def test_what_is_no_rule_is_refused(rules: Any) -> None:
    """At set-up, by name."""
    with pytest.raises(UsageError, match="ProviderHistoryCompat"):
        ProviderHistoryCompat(additional_rules=rules)
