"""A key is nowhere but in the request: not in an error and what it refers to, not in a log, a chunk or a result."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from fault_server import HANG, RESET, Action, FaultServer, head, whole
from wired import HELLO, each_wire, model_at

from interlock import Agent, ModelError
from interlock.memory import Memory
from interlock.processors import StreamErrorRetry

pytestmark = pytest.mark.anyio

Script = Callable[[Any], list[Action]]

SCRIPTS: dict[str, Script] = {
    "answered": lambda wire: [whole(wire.body(HELLO), x_echo=wire.KEY)],
    "refused": lambda wire: [whole(wire.error(401, f"bad key {wire.KEY}"), 401, "application/json")],
    "limited": lambda wire: [whole(wire.error(429, f"slow, {wire.KEY}"), 429, "application/json")],
    "web page": lambda wire: [whole(f"<html>{wire.KEY}".encode(), 200, "text/html")],
    "error inside": lambda wire: [whole(wire.stream_error(f"lost {wire.KEY}"))],
    "reset": lambda wire: [head(), wire.body(HELLO)[:-90], 0.02, RESET],
    "unanswered": lambda wire: [RESET],
    "silent": lambda wire: [HANG],
}


def referred_to(problem: BaseException) -> list[BaseException]:
    """An error and all it refers to."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [problem]
    while waiting:
        each = waiting.pop()
        if each is not None and not any(each is known for known in found):
            found.append(each)
            waiting += [each.__context__, each.__cause__]
    return found


@each_wire(own=True)
@pytest.mark.parametrize("script", SCRIPTS)
async def test_the_key_is_nowhere(
    wire: Any, own: bool, script: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every log on, a provider that repeats the key wherever it can, a retry: nothing shows it (spec R0.3)."""
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    actions = SCRIPTS[script](wire)
    memory = Memory()
    async with (
        FaultServer(actions, actions) as server,
        model_at(server, wire, own=own, silence=0.2) as model,
    ):
        agent = Agent(id="a", model=model, memory=memory, error_processors=[StreamErrorRetry()])
        async with agent.stream("Hi", memory={"thread": "t", "resource": "r"}) as stream:
            try:
                async for chunk in stream:
                    shown.append(repr(chunk))
                shown.append(repr(await stream.result()))
            except ModelError as problem:
                shown.append("".join(traceback.format_exception(problem)))
                for each in referred_to(problem):
                    shown += [str(each), repr(each), repr(vars(each))]
                    shown += [
                        repr(vars(value)) for value in vars(each).values() if hasattr(value, "__dict__")
                    ]
        shown += [repr(model), repr(agent), repr(await memory.messages("t", resource="r"))]
        sent = repr(server.requests)
    # a header in which a provider repeats the key is in the debug logs of httpcore and of Anthropic's SDK
    records = [each for each in caplog.records if script != "answered" or each.name == "interlock"]
    shown += [text for each in records for text in (each.getMessage(), repr(vars(each)))]
    assert wire.KEY in sent, "the provider itself must get it"
    assert [text for text in shown if wire.KEY in text] == []
