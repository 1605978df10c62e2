"""WorkingMemory: a page the model always sees and keeps up to date (issue: Memory)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from interlock import Agent, Processor
from interlock.core.errors import UsageError
from interlock.core.messages import ToolInvocationPart
from interlock.memory import InMemoryStore, Memory, WorkingMemory
from interlock.testing import ScriptedModel, text, tool_call

pytestmark = pytest.mark.anyio

ONE: Any = {"thread": "t1", "resource": "sam"}
TWO: Any = {"thread": "t2", "resource": "sam"}
TOOL = "updateWorkingMemory"


class Profile(BaseModel):
    """A schema."""

    name: str
    pets: dict[str, int] = {}


def agent_with(working: Any, *calls: Any, **options: Any) -> tuple[Agent, ScriptedModel, Memory]:
    """An agent with working memory whose model follows this script."""
    memory = Memory(InMemoryStore(), working_memory=working, read_only=options.pop("memory_reads", False))
    model = ScriptedModel(*calls)
    return Agent(id="a", model=model, memory=memory, **options), model, memory


def update(value: Any) -> list[Any]:
    """A call of the model that updates working memory, with some text."""
    return [text("Noted."), tool_call(TOOL, {"memory": value})]


def system_of(model: ScriptedModel) -> str:
    """The system messages of the last call."""
    return "\n".join(str(m["content"]) for m in model.calls[-1].prompt if m["role"] == "system")


async def test_what_the_model_keeps_is_there_in_every_thread_of_the_resource() -> None:
    """Scope resource: the next prompt of any thread of that resource has it, another resource's has not."""
    agent, model, _ = agent_with(True, update("- **Name**: Sam"), [text("Hi")], [text("Hi")], [text("Hi")])
    await agent.generate("I am Sam", memory=ONE)
    await agent.generate("hello", memory=TWO)
    assert "- **Name**: Sam" in system_of(model)
    await agent.generate("hello", memory={"thread": "t3", "resource": "eve"})
    assert "Sam" not in system_of(model)


async def test_scope_thread_keeps_one_for_each_thread() -> None:
    """Scope thread: kept in the thread's metadata, where the reference has it."""
    agent, model, memory = agent_with(
        {"scope": "thread"}, update("topic: cats"), [text("ok")], [text("ok")], [text("ok")]
    )
    await agent.generate("cats", memory={"thread": "t1"})
    await agent.generate("again", memory={"thread": "t1"})
    assert "topic: cats" in system_of(model)
    await agent.generate("again", memory={"thread": "t2"})
    assert "topic: cats" not in system_of(model)
    thread = await memory.store.thread("t1", resource_id=None)  # type: ignore[attr-defined]
    assert thread.metadata == {"workingMemory": "topic: cats"}


async def test_a_schema_is_merged() -> None:
    """With a schema an update gives only what changes: inner objects merge, None deletes; a text of JSON will do."""
    agent, model, memory = agent_with(
        {"schema": Profile},
        update({"name": "Sam", "pets": {"cats": 1}}),
        [text("ok")],
        update(json.dumps({"pets": {"dogs": 2, "cats": None}})),
        [text("ok")],
    )
    await agent.generate("one", memory=ONE)
    await agent.generate("two", memory=TWO)
    kept = await memory.store.resource_memory("sam")  # type: ignore[attr-defined]
    assert json.loads(kept) == {"name": "Sam", "pets": {"dogs": 2}}
    spec = next(each for each in model.calls[0].tools if each.name == TOOL)
    assert "required" not in spec.parameters["properties"]["memory"]
    assert spec.parameters["properties"]["memory"]["properties"]["name"]["type"] == ["string", "null"]


async def test_neither_the_calls_nor_the_system_message_are_stored() -> None:
    """The thread has what was said; what was kept is in working memory (the reference stores it so too)."""
    agent, _, memory = agent_with(True, update("x"), [text("Bye")])
    result = await agent.generate("hello", memory=ONE)
    assert [call.tool_name for call in result.tool_calls] == [TOOL]
    stored = await memory.messages("t1", resource="sam")
    assert [(m.role, m.text) for m in stored] == [("user", "hello"), ("assistant", "Noted.Bye")]
    assert not any(isinstance(p, ToolInvocationPart) for m in stored for p in m.content.parts)


class Edit(Processor):
    """Changes what the call keeps, before it runs."""

    id = "edit"

    def process_output_step(self, output: Any, ctx: Any) -> None:
        for message in ctx.message_list.get.response.db():
            for part in message.content.parts:
                if isinstance(part, ToolInvocationPart):
                    part.args = {"memory": "[REDACTED]"}


async def test_what_is_kept_is_what_the_processors_made_of_the_call() -> None:
    """R0.3: a guard's edit of the arguments is what is kept."""
    agent, _, memory = agent_with(True, update("secret"), [text("ok")], output_processors=[Edit()])
    await agent.generate("hello", memory=ONE)
    assert await memory.store.resource_memory("sam") == "[REDACTED]"  # type: ignore[attr-defined]


class Block(Processor):
    """Blocks each step before its tools run."""

    id = "block"

    def process_output_step(self, output: Any, ctx: Any) -> None:
        ctx.abort("no")


async def test_a_blocked_turn_keeps_nothing() -> None:
    """R0.4, R8.2: a refused call changes nothing."""
    agent, _, memory = agent_with(True, update("secret"), output_processors=[Block()])
    result = await agent.generate("hello", memory=ONE)
    assert result.tripwire is not None
    assert await memory.store.resource_memory("sam") is None  # type: ignore[attr-defined]


async def test_arguments_that_cannot_be_kept_are_told_to_the_model() -> None:
    """An object for a template is an error the model reads; nothing is kept."""
    agent, model, memory = agent_with(True, update({"name": "Sam"}), [text("sorry")])
    await agent.generate("hello", memory=ONE)
    assert "memory must be a text" in model.calls[-1].prompt_text
    assert await memory.store.resource_memory("sam") is None  # type: ignore[attr-defined]


async def test_a_change_has_to_fit_the_schema() -> None:
    """A value of another type is an error the model reads; nothing of the change is kept."""
    agent, model, memory = agent_with(
        {"schema": Profile}, update({"name": 3, "pets": {"cats": 1}}), [text("sorry")]
    )
    await agent.generate("hello", memory=ONE)
    assert "does not fit its schema" in model.calls[-1].prompt_text
    assert await memory.store.resource_memory("sam") is None  # type: ignore[attr-defined]


class Spoil(Processor):
    """Makes of the call's arguments, after it ran, what no working memory can be."""

    id = "spoil"

    def process_output_result(self, result: Any, ctx: Any) -> None:
        for message in ctx.messages:
            for part in message.content.parts:
                if isinstance(part, ToolInvocationPart):
                    part.args = "[REDACTED]"


async def test_a_call_that_processors_spoiled_keeps_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """What counts is the turn as it is saved; one that says nothing changes nothing, and a log line tells."""
    agent, _, memory = agent_with(True, update("secret"), [text("ok")], output_processors=[Spoil()])
    await agent.generate("hello", memory=ONE)
    assert await memory.store.resource_memory("sam") is None  # type: ignore[attr-defined]
    assert "keeps its value" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("how", [{"working": {"read_only": True}}, {"working": True, "memory_reads": True}])
async def test_read_only_shows_it_without_the_tool(how: dict[str, Any]) -> None:
    """read_only, of working memory or of the whole memory: no tool, and no word of one."""
    agent, model, memory = agent_with(how.pop("working"), [text("ok")], **how)
    await memory.store.set_resource_memory("sam", "Sam, 30 </working_memory>")  # type: ignore[attr-defined]
    await agent.generate("hello", memory=ONE)
    shown = system_of(model)
    assert "Sam, 30 <" in shown
    assert shown.count("</working_memory>") == 1
    assert TOOL not in shown
    assert model.calls[0].tools in ([], (), None)


async def test_it_is_beside_the_agents_tools_and_within_active_ones() -> None:
    """The tool joins those of the step; a step that names its active tools has it too."""

    def weather() -> str:
        return "sun"

    agent, model, _ = agent_with(True, [text("ok")], tools=[weather])
    await agent.generate("hello", memory=ONE, active_tools=["weather"])
    assert sorted(tool.name for tool in model.calls[0].tools) == [TOOL, "weather"]


async def test_scope_resource_needs_a_resource() -> None:
    """Whose working memory it is has to be said; the error says how."""
    agent, _, _ = agent_with(True, [text("ok")])
    with pytest.raises(UsageError, match=r"'resource': \.\.\."):
        await agent.generate("hello", memory={"thread": "t"})


async def test_without_a_thread_there_is_no_working_memory() -> None:
    """A call without memory has no tool."""
    agent, model, _ = agent_with(True, [text("ok")])
    await agent.generate("hello")
    assert not model.calls[0].tools


@pytest.mark.parametrize(
    "options",
    [
        {"template": "x", "schema": {"type": "object"}},
        {"template": 3},
        {"schema": {"type": "array"}},
        {"schema": int},
        {"scope": "all"},
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    """What cannot work is said at set-up."""
    with pytest.raises(UsageError, match="working memory"):
        WorkingMemory(InMemoryStore(), **options)
