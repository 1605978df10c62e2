"""Nobody sees another's conversations, whatever way is tried; and time limits around runs (R8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from interlock import Agent, UsageError
from interlock.core.result import Turn
from interlock.memory import Memory
from interlock.testing import ScriptedModel, text, tool_call

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_no_public_way_leads_to_another_resource(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """R8: every public method of Memory and its threads, asked for another's thread: refused, or nothing is there; what
    the owner has is untouched. A run of another neither recalls it, nor is shown its working memory.
    """
    sqlite = f"sqlite:///{tmp_path / 'agent.db'}"
    url = (
        request.getfixturevalue("postgres_url")
        if kind == "postgres"
        else sqlite
        if kind == "sqlite"
        else None
    )
    options: Any = {"semantic_recall": {"top_k": 9}, "embedder": Same(), "working_memory": True}
    async with Memory(url, **options) as memory:
        learns = [tool_call("updateWorkingMemory", {"memory": "SECRET page"}), text("SECRET answer")]
        owner: Any = {"thread": "t", "resource": "owner"}
        await Agent(id="a", model=ScriptedModel(learns[:1], learns[1:]), memory=memory).generate(
            "SECRET question", memory=owner
        )
        exported = await memory.threads.export("t", resource="owner")
        ids = [message["id"] for message in exported["messages"]]
        for other in ("another", None):
            empty = [
                await memory.search("SECRET", resource=other),
                (await memory.threads.list(resource=other)).threads,
                await memory.delete_messages(ids, resource=other),
            ]
            assert not any(empty)
            refused: list[Callable[[], Awaitable[Any]]] = [
                lambda other=other: memory.messages("t", resource=other),
                lambda other=other: memory.message_page("t", resource=other),
                lambda other=other: memory.search("SECRET", resource=other, thread="t"),
                lambda other=other: memory.usage("t", resource=other),
                lambda other=other: memory.threads.get("t", resource=other),
                lambda other=other: memory.threads.create("t", resource=other),
                lambda other=other: memory.threads.update("t", resource=other, title="mine"),
                lambda other=other: memory.threads.delete("t", resource=other),
                lambda other=other: memory.threads.export("t", resource=other),
                lambda other=other: memory.threads.import_(exported, resource=other),
                lambda other=other: memory.save_turn(Turn(thread_id="t", resource_id=other, messages=[])),
            ]
            for call in refused:
                with pytest.raises(UsageError):
                    await call()
            model = ScriptedModel([text("ok")])
            mine: Any = {"thread": f"of {other}", "resource": other}
            options_of: Any = {"options": {"working_memory": other is not None}}
            await Agent(id="a", model=model, memory=memory).generate("question", memory=mine | options_of)
            assert "SECRET" not in model.calls[0].prompt_text
        assert await memory.threads.export("t", resource="owner") == exported
        again = ScriptedModel([text("ok")])
        await Agent(id="a", model=again, memory=memory).generate(
            "question", memory={"thread": "t2", "resource": "owner"}
        )
        for kept in ("SECRET page", "SECRET answer"):
            assert kept in again.calls[0].prompt_text, "its owner has it"


class Same:
    """An embedder to which all texts are alike."""

    model_id = "same"

    async def embed(self, texts: Sequence[str], *, kind: str) -> Any:
        return [[1.0, 0.0]] * len(texts)


async def test_an_empty_resource_is_refused() -> None:
    """R8: in storage an empty string stands for nobody; who gives one by mistake must not get nobody's threads."""
    memory = Memory()
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: memory.messages("t", resource=""),
        lambda: memory.threads.list(resource=""),
        lambda: Agent(id="a", model=ScriptedModel([text("ok")]), memory=memory).generate(
            "hi", memory={"thread": "t", "resource": ""}
        ),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="not empty"):
            await call()


@pytest.mark.parametrize("seconds", [0.0, 0.002, 0.01, 0.05])
async def test_a_time_limit_of_anyio_around_a_run(database_url: str, seconds: float) -> None:
    """R5.5, R8.2: anyio cancels again and again, as web frameworks do: what was begun to be saved is saved whole, and
    the memory goes on.
    """
    async with Memory(database_url) as memory:
        model = ScriptedModel([text("an", "swer")], repeat_last=True)
        agent = Agent(id="a", model=model, memory=memory)
        await agent.generate("first", memory={"thread": "t", "resource": "r"})
        with anyio.move_on_after(seconds):
            await agent.generate("second", memory={"thread": "t", "resource": "r"})
        await agent.generate("third", memory={"thread": "t", "resource": "r"})
        texts = [message.text for message in await memory.messages("t", resource="r")]
        assert texts[:2] == ["first", "answer"]
        assert texts[-2:] == ["third", "answer"] or "second" in texts[-3:]
        assert texts.count("third") == 1
        assert texts.count("second") <= 1
