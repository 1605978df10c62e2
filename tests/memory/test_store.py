"""The store's contract, as Memory and the processors use it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from interlock import Agent, StorageError, UsageError
from interlock.core.chunks import Usage
from interlock.core.messages import Content, Message, TextPart
from interlock.memory import ConversationStore, InMemoryStore, Memory, Store, Thread, Turn
from interlock.testing import ScriptedModel, text


class Minimal:
    """A store of a user: nothing but the two methods."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.asked: list[tuple[str, str | None, int | None]] = []

    async def messages(
        self, thread_id: str, *, resource_id: str | None, last: int | None = None
    ) -> list[Message]:
        self.asked.append((thread_id, resource_id, last))
        return []

    async def save_turn(self, turn: Turn) -> None:
        self.turns.append(turn)


def test_two_methods_make_a_store() -> None:
    """The contract is structural: no base class is needed."""
    assert isinstance(Minimal(), Store)
    assert not isinstance(object(), Store)


@pytest.mark.anyio
async def test_every_access_names_the_resource() -> None:
    """R6, R8: thread and resource of the call are what the store is asked for, and what the turn says."""
    store = Minimal()
    agent = Agent(id="a", model=ScriptedModel([text("ok")]), memory=Memory(store, last_messages=7))
    await agent.generate("hi", memory={"thread": "t", "resource": "r"})
    assert store.asked == [("t", "r", 7)]
    (turn,) = store.turns
    assert (turn.thread_id, turn.resource_id, turn.unfinished) == ("t", "r", False)
    assert [m.text for m in turn.messages] == ["hi", "ok"]
    assert all(m.thread_id == "t" and m.resource_id == "r" and m.created_at for m in turn.messages)


@pytest.mark.anyio
async def test_one_turn_one_transaction() -> None:
    """R8.1: the whole turn, several steps too, is one call of save_turn."""
    from interlock import tool
    from interlock.testing import tool_call

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    store = Minimal()
    model = ScriptedModel([text("a"), tool_call("look")], [text("b")])
    await Agent(id="a", model=model, tools=[look], memory=Memory(store)).generate(
        "hi", memory={"thread": "t"}
    )
    assert len(store.turns) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("problem", [RuntimeError("disk full"), StorageError("disk full")])
async def test_a_store_that_fails_is_a_storage_error(problem: Exception) -> None:
    """R8, R5.4: what the store raises surfaces as StorageError; the answer that was produced is on it."""

    class Broken(Minimal):
        async def save_turn(self, turn: Turn) -> None:
            raise problem

    agent = Agent(id="a", model=ScriptedModel([text("ok")]), memory=Memory(Broken()))
    with pytest.raises(StorageError, match="disk full") as caught:
        await agent.generate("hi", memory={"thread": "t"})
    assert caught.value.result is not None
    assert caught.value.result.text == "ok"


@pytest.mark.anyio
async def test_another_resources_thread_is_refused() -> None:
    """R6: a call that names another's thread fails before any model is called."""
    memory = Memory(InMemoryStore())
    model = ScriptedModel([text("ok")], repeat_last=True)
    agent = Agent(id="a", model=model, memory=memory)
    await agent.generate("hi", memory={"thread": "t", "resource": "r"})
    with pytest.raises(UsageError, match="another resource"):
        await agent.generate("hi", memory={"thread": "t", "resource": "other"})
    assert len(model.calls) == 1


def test_what_is_no_store_is_refused() -> None:
    """Mistakes are told at set-up."""
    with pytest.raises(UsageError, match="store"):
        Memory(object())  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------- what every whole store has to do


def said(id: str, text: str = "hi", role: Any = "user", at: datetime | None = None) -> Message:
    """A message."""
    return Message(id=id, role=role, content=Content(parts=[TextPart(text=text)]), created_at=at)


async def save(store: Store, *messages: Message, thread: str = "t", resource: str | None = "r") -> Turn:
    """Save a turn of these."""
    turn = Turn(thread_id=thread, resource_id=resource, messages=list(messages))
    await store.save_turn(turn)
    return turn


async def ids(store: Store, thread: str = "t", resource: str | None = "r", **options: Any) -> list[str]:
    """The ids of the messages stored there."""
    return [message.id for message in await store.messages(thread, resource_id=resource, **options)]


@pytest.mark.anyio
async def test_it_is_a_whole_store(store: ConversationStore) -> None:
    """The contract is a protocol that it meets."""
    assert isinstance(store, ConversationStore)


@pytest.mark.anyio
async def test_turns_stand_in_the_order_they_were_saved(store: ConversationStore) -> None:
    """R3.3: a writer whose clock is slow, or whose run began earlier, does not get between older turns."""
    now = datetime(2026, 1, 2, tzinfo=UTC)
    await save(store, said("a", at=now), said("b", at=now))
    late = await save(store, said("c", at=now - timedelta(hours=1)), said("d", at=now - timedelta(hours=2)))
    assert await ids(store) == ["a", "b", "c", "d"]
    stored = await store.messages("t", resource_id="r")
    times = [message.created_at for message in stored]
    assert times == sorted(set(times)), "strictly increasing"  # type: ignore[type-var]
    assert [m.created_at for m in late.messages] == times[2:], "the run's own messages have the stored times"
    assert {(m.thread_id, m.resource_id) for m in stored} == {("t", "r")}


@pytest.mark.anyio
async def test_a_message_saved_again_keeps_its_place(store: ConversationStore) -> None:
    """R8.1: a message that is there (the same id) is replaced; its place and time stay."""
    await save(store, said("a", "old"), said("b"))
    before = await store.messages("t", resource_id="r")
    await save(store, said("a", "new"), said("c"))
    after = await store.messages("t", resource_id="r")
    assert [(m.id, m.text) for m in after] == [("a", "new"), ("b", "hi"), ("c", "hi")]
    assert after[0].created_at == before[0].created_at


@pytest.mark.anyio
async def test_an_id_of_another_thread_is_refused(store: ConversationStore) -> None:
    """R8.1: nothing is taken from another thread, its owner's or another's; the turn is not saved in part."""
    await save(store, said("a"))
    for thread, resource in (("t2", "r"), ("t3", "other")):
        with pytest.raises(UsageError, match="'a'"):
            await save(store, said("x"), said("a", "stolen"), thread=thread, resource=resource)
        assert await ids(store, thread, resource) == []
    assert [m.text for m in await store.messages("t", resource_id="r")] == ["hi"]


@pytest.mark.anyio
async def test_the_last_messages(store: ConversationStore) -> None:
    """The newest so many, oldest first."""
    await save(store, *(said(str(n)) for n in range(5)))
    assert await ids(store, last=2) == ["3", "4"]
    assert await ids(store, last=0) == []
    assert await ids(store, last=9) == ["0", "1", "2", "3", "4"]


@pytest.mark.anyio
async def test_a_thread_begins_with_its_first_turn_or_by_hand(store: ConversationStore) -> None:
    """Threads are made when missing; one made by hand keeps its title, metadata and time."""
    at = datetime(2025, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    made = Thread(id="t", resource_id="r", title="Hello", metadata={"a": {"b": [1, None]}}, created_at=at)
    await store.create_thread(made)
    await save(store, said("a"))
    await save(store, said("b"), thread="t2")
    thread = await store.thread("t", resource_id="r")
    assert thread is not None
    assert (thread.title, thread.metadata, thread.created_at) == ("Hello", {"a": {"b": [1, None]}}, at)
    assert thread.updated_at is not None
    assert thread.updated_at > at
    other = await store.thread("t2", resource_id="r")
    assert other is not None
    assert (other.title, other.metadata, other.resource_id) == ("", {}, "r")
    assert await store.thread("t3", resource_id="r") is None
    with pytest.raises(UsageError, match="'t'"):
        await store.create_thread(made)


@pytest.mark.anyio
async def test_threads_are_listed_page_by_page(store: ConversationStore) -> None:
    """The last updated first; each resource its own."""
    for n in range(5):
        await store.create_thread(
            Thread(id=str(n), resource_id="r", updated_at=datetime(2026, 1, n + 1, tzinfo=UTC))
        )
    await save(store, said("x"), thread="other", resource="r2")
    await save(store, said("y"), thread="1")
    pages = [await store.threads(resource_id="r", page=page, per_page=2) for page in range(3)]
    assert [[t.id for t in page.threads] for page in pages] == [["1", "4"], ["3", "2"], ["0"]]
    assert [(page.total, page.has_more) for page in pages] == [(5, True), (5, True), (5, False)]


@pytest.mark.anyio
async def test_titles_and_metadata_change(store: ConversationStore) -> None:
    """A title is replaced; metadata is added to, and a key given as None goes."""
    await store.create_thread(Thread(id="t", resource_id="r", metadata={"a": 1, "b": 2}))
    await store.update_thread("t", resource_id="r", title="T")
    changed = await store.update_thread("t", resource_id="r", metadata={"b": None, "c": {"d": "é"}})
    assert (changed.title, changed.metadata) == ("T", {"a": 1, "c": {"d": "é"}})
    changed.metadata["x"] = 1
    again = await store.thread("t", resource_id="r")
    assert again is not None
    assert again.metadata == {"a": 1, "c": {"d": "é"}}
    with pytest.raises(UsageError, match="'t2'"):
        await store.update_thread("t2", resource_id="r", title="T")


@pytest.mark.anyio
async def test_a_deleted_thread_is_gone_whole(store: ConversationStore) -> None:
    """Messages and usage go with it, others' stay; its id and its messages' ids are free again."""
    turn = Turn(
        thread_id="t", resource_id="r", messages=[said("a")], run_id="run", usage=Usage(input_tokens=3)
    )
    await store.save_turn(turn)
    await save(store, said("b"), thread="t2")
    assert await store.delete_thread("t", resource_id="r")
    assert not await store.delete_thread("t", resource_id="r")
    assert await ids(store) == []
    assert await store.usage("t", resource_id="r") == []
    assert await ids(store, "t2") == ["b"]
    await save(store, said("a"), resource="r2")
    assert await ids(store, resource="r2") == ["a"]


@pytest.mark.anyio
async def test_messages_are_listed_page_by_page(store: ConversationStore) -> None:
    """Oldest first."""
    await save(store, *(said(str(n)) for n in range(5)))
    pages = [await store.message_page("t", resource_id="r", page=page, per_page=2) for page in range(3)]
    assert [[m.id for m in page.messages] for page in pages] == [["0", "1"], ["2", "3"], ["4"]]
    assert [(page.total, page.has_more) for page in pages] == [(5, True), (5, True), (5, False)]


@pytest.mark.anyio
async def test_messages_around_others(store: ConversationStore) -> None:
    """Each message once, thread by thread, oldest first; ids that are not there are passed over."""
    await save(store, *(said(f"a{n}") for n in range(6)))
    await save(store, *(said(f"b{n}") for n in range(3)), thread="t2")
    await save(store, said("c"), thread="t3", resource="r2")
    found = await store.messages_around(["a4", "b0", "a3", "c", "no"], resource_id="r", before=1, after=1)
    assert [m.id for m in found] == ["a2", "a3", "a4", "a5", "b0", "b1"]
    assert [m.id for m in await store.messages_around(["a0"], resource_id="r")] == ["a0"]
    assert await store.messages_around([], resource_id="r") == []


@pytest.mark.anyio
async def test_messages_are_deleted_by_id(store: ConversationStore) -> None:
    """Those of another resource, and those that are not there, are passed over."""
    await save(store, said("a"), said("b"), said("c"))
    await save(store, said("x"), thread="t2", resource="r2")
    assert await store.delete_messages(["a", "c", "x", "no"], resource_id="r") == 2
    assert await store.delete_messages([], resource_id="r") == 0
    assert await ids(store) == ["b"]
    assert await ids(store, "t2", "r2") == ["x"]


@pytest.mark.anyio
async def test_messages_are_found_by_text(store: ConversationStore) -> None:
    """The newest first, whatever the case, also beyond ASCII; signs of the query language mean themselves."""
    await save(store, said("a", 'Grünes 100% "quoted"'), said("b", "GRÜNES"), said("c", "text-type a_b"))
    await save(store, said("d", "grünes", at=datetime(2999, 1, 1, tzinfo=UTC)), thread="t2")
    await save(store, said("x", "grünes"), thread="t3", resource="r2")

    async def found(text: str, **options: Any) -> list[str]:
        return [m.id for m in await store.search_messages(text, resource_id="r", **options)]

    assert await found("grünes") == ["d", "b", "a"]
    assert await found("GRÜNES", thread_id="t") == ["b", "a"]
    assert await found("grünes", limit=1) == ["d"]
    assert await found("100%") == ["a"]
    assert await found('"QUOTED"') == ["a"]
    assert await found("a_b") == ["c"]
    assert await found("aXb") == []
    assert await found("parts") == [], "names of the stored form are no text"


@pytest.mark.anyio
async def test_working_memory_of_resources(store: ConversationStore) -> None:
    """One text a resource; None empties it."""
    assert await store.resource_memory("r") is None
    await store.set_resource_memory("r", "# é")
    await store.set_resource_memory("r", "# more")
    await store.set_resource_memory("r2", "other")
    assert await store.resource_memory("r") == "# more"
    await store.set_resource_memory("r", None)
    assert await store.resource_memory("r") is None
    assert await store.resource_memory("r2") == "other"


@pytest.mark.anyio
async def test_usage_is_kept_by_turn(store: ConversationStore) -> None:
    """What the model calls of a turn used is saved with it."""
    usages = [
        Usage(input_tokens=n, output_tokens=5, total_tokens=n + 5, reasoning_tokens=1, cached_input_tokens=2)
        for n in range(2)
    ]
    for n, usage in enumerate(usages):
        await store.save_turn(
            Turn(thread_id="t", resource_id="r", messages=[said(str(n))], run_id=f"run{n}", usage=usage)
        )
    spent = await store.usage("t", resource_id="r")
    assert [(turn.run_id, turn.usage) for turn in spent] == [("run0", usages[0]), ("run1", usages[1])]


@pytest.mark.anyio
@pytest.mark.parametrize(("owner", "other"), [("r", "r2"), ("r", None), (None, "r")])
async def test_one_resource_never_sees_anothers(
    store: ConversationStore, owner: str | None, other: str | None
) -> None:
    """R8: every way in is scoped; what names another's thread is refused, and the text does not say whose it is."""
    turn = Turn(thread_id="t", resource_id=owner, messages=[said("a", "secret")], run_id="run")
    await store.save_turn(turn)
    refused: list[Any] = [
        lambda: store.messages("t", resource_id=other),
        lambda: save(store, said("b"), resource=other),
        lambda: store.thread("t", resource_id=other),
        lambda: store.update_thread("t", resource_id=other, title="mine"),
        lambda: store.delete_thread("t", resource_id=other),
        lambda: store.message_page("t", resource_id=other),
        lambda: store.search_messages("secret", resource_id=other, thread_id="t"),
        lambda: store.usage("t", resource_id=other),
    ]
    for call in refused:
        with pytest.raises(UsageError, match="another resource") as caught:
            await call()
        assert owner is None or f"'{owner}'" not in str(caught.value)
    with pytest.raises(UsageError, match="'t'"):
        await store.create_thread(Thread(id="t", resource_id=other))
    assert await store.search_messages("secret", resource_id=other) == []
    assert await store.messages_around(["a"], resource_id=other, before=1) == []
    assert await store.delete_messages(["a"], resource_id=other) == 0
    assert (await store.threads(resource_id=other)).total == 0
    thread = await store.thread("t", resource_id=owner)
    assert thread is not None
    assert thread.title == ""
    assert await ids(store, "t", owner) == ["a"]


@pytest.mark.anyio
async def test_sixteen_writers_on_one_thread(store: ConversationStore) -> None:
    """R8.1: nothing is lost, nothing is there twice, and the messages of a turn stay together, in order."""
    at = datetime.now(UTC)

    async def write(writer: int) -> None:
        for n in range(10):
            await save(store, *(said(f"{writer}-{n}-{k}", at=at) for k in range(3)))

    async with asyncio.TaskGroup() as group:
        for writer in range(16):
            group.create_task(write(writer))
    stored = await ids(store)
    turns = [id.rpartition("-")[0] for id in stored[::3]]
    assert stored == [f"{turn}-{k}" for turn in turns for k in range(3)]
    assert sorted(turns) == sorted(f"{writer}-{n}" for writer in range(16) for n in range(10))
    for writer in range(16):
        own = [turn for turn in turns if turn.startswith(f"{writer}-")]
        assert own == [f"{writer}-{n}" for n in range(10)], "each writer's turns in the order they were made"


@pytest.mark.anyio
async def test_two_hundred_threads_at_once(store: ConversationStore) -> None:
    """R8.1: each has its own turns, whole."""

    async def talk(thread: str) -> None:
        for n in range(2):
            assert await ids(store, thread, last=20) == [
                f"{thread}-{m}-{k}" for m in range(n) for k in range(2)
            ]
            await save(store, *(said(f"{thread}-{n}-{k}") for k in range(2)), thread=thread)

    async with asyncio.TaskGroup() as group:
        for n in range(200):
            group.create_task(talk(f"t{n}"))
    assert (await store.threads(resource_id="r")).total == 200
