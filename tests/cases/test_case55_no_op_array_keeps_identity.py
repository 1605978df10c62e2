"""Case 55: a hook returns the array it was given."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from notation import Bench, both_modes, conversation, counted, lines

from interlock import Processor
from interlock.testing import text, tool_call

pytestmark = pytest.mark.anyio
HOOKS = ["process_input", "process_input_step", "process_output_step", "process_output_result"]


def same(messages: list[Any], ctx: Any) -> Any:
    """The array itself."""
    return messages


def copies(messages: list[Any], ctx: Any) -> Any:
    """An array of copies."""
    return [msgspec.structs.replace(message, content=message.content.replace()) for message in messages]


def back_and_forth(messages: list[Any], ctx: Any) -> Any:
    """Reversed and reversed again."""
    return list(reversed(list(reversed(messages))))


def the_list(messages: list[Any], ctx: Any) -> Any:
    """The message list itself."""
    return ctx.message_list


class Returns(Processor):
    """Returns the messages of one hook in some way, and notes their ids."""

    id = "returns"

    def __init__(self, hook: str, way: Any) -> None:
        self.way = way
        self.ids: list[str] = []
        setattr(self, hook, self.give)

    def give(self, subject: Any, ctx: Any) -> Any:
        messages = ctx.messages
        self.ids = [message.id for message in messages]
        return self.way(messages, ctx)


def origins(result: Any, message_ids: set[str]) -> list[str]:
    """Where each message of the list came from."""
    answer = {message.id for message in result.messages}
    return [
        "history" if m.id in message_ids else "answer" if m.id in answer else "input"
        for m in result.all_messages
    ]


async def outcome(mode: str, processor: Any = None, hook: str = "process_input") -> Any:
    """Everything that must be the same with and without the processor."""
    look, _ = counted("look", 7)
    lane = "input_processors" if "input" in hook else "output_processors"
    lists: dict[str, Any] = {lane: [processor]} if processor else {}
    bench = Bench([text("pre "), tool_call("look", {}, id="c1")], [text("post")], tools=[look], **lists)
    history = conversation("user: one", "assistant: first")
    await bench.seed(history)
    result = (await bench.run(mode)).result
    rows = await bench.rows()
    assert [row.id for row in rows] == [message.id for message in result.all_messages], (
        "ids: result = storage"
    )
    times = [row.created_at for row in rows if row.created_at is not None]
    assert times == sorted(times)
    if processor:
        assert set(processor.ids) <= {row.id for row in rows}, "ids: hook = storage"
    return (
        lines(result.all_messages),
        origins(result, {message.id for message in history}),
        lines(result.messages),
        lines(rows),
        [[part.type for part in row.content.parts] for row in rows],
        bench.receives(2),
        [(step.text, len(step.tool_calls), len(step.tool_results)) for step in result.steps],
    )


@both_modes
@pytest.mark.parametrize("way", [same, copies, back_and_forth, the_list])
@pytest.mark.parametrize("hook", HOOKS)
async def test_the_same_array_changes_nothing(hook: str, way: Any, mode: str) -> None:
    """Ids, number, borders, order, origin and what is stored are as without the processor.

    R3.3, R3.5, case 55.
    """
    assert await outcome(mode, Returns(hook, way), hook) == await outcome(mode)


@both_modes
async def test_swapped_history_is_this_runs_order_only(mode: str) -> None:
    """Two history messages swapped: the prompt has the new order, storage keeps its own, origins go with
    the messages.

    R3.3, R3.5, case 55.
    """

    def swap(messages: list[Any], ctx: Any) -> Any:
        return [messages[1], messages[0], *messages[2:]]

    bench = Bench([text("ok")], input_processors=[Returns("process_input", swap)])
    await bench.seed(conversation("user: one", "user: two"))
    result = (await bench.run(mode)).result
    assert bench.receives(1) == ["user: two", "user: one", "user: x"]
    assert origins(result, {"old-0", "old-1"}) == ["history", "history", "input", "answer"]
    assert await bench.stored() == ["user: one", "user: two", "user: x", "assistant: ok"]
    await bench.run(mode, "y", input_processors=[])
    assert bench.receives(2)[:2] == ["user: one", "user: two"]


@both_modes
async def test_a_new_id_is_a_new_message_and_a_missing_one_is_removed(mode: str) -> None:
    """A message with a new id is added with the stage's source; a missing history message is gone for this
    run only.

    R3.3, R3.5, case 55.
    """

    def change(messages: list[Any], ctx: Any) -> Any:
        return [*messages[1:], messages[-1].replace(id="fresh")]

    bench = Bench([text("ok")], input_processors=[Returns("process_input", change)])
    await bench.seed(conversation("user: one", "assistant: first"))
    await bench.run(mode)
    assert bench.receives(1) == ["user: .", "assistant: first", "user: x", "user: x"]
    assert await bench.stored() == ["user: one", "assistant: first", "user: x", "user: x", "assistant: ok"]
    assert (await bench.rows())[3].id == "fresh"
