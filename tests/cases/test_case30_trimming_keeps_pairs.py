"""Case 30: keep the last n messages, with tool steps in the way."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, both_modes, conversation, lines

from interlock import Processor
from interlock.prompt import PromptToolCall, PromptToolResult
from interlock.testing import text

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("every_store")]
THREAD = (
    "user: one",
    "assistant: call look c1",
    "tool: c1 → 7",
    "assistant: seven",
    "user: two",
    "assistant: call look c2",
    "tool: c2 → 8",
)
PROMPT_FORM: list[dict[str, Any]] = [
    {"role": "user", "content": "one"},
    {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "look", "input": {}}],
    },
    {
        "role": "tool",
        "content": [
            {
                "type": "tool-result",
                "toolCallId": "c1",
                "toolName": "look",
                "output": {"type": "text", "value": "7"},
            }
        ],
    },
    {"role": "assistant", "content": "seven"},
    {"role": "user", "content": "three"},
]


class Trim(Processor):
    """Keeps the last k messages; with ``parts``, cuts the first one kept in half as well."""

    id = "trim"

    def __init__(self, k: int, *, cut_results: bool = False) -> None:
        self.k = k
        self.cut_results = cut_results

    def process_input_step(self, step: Any, ctx: Any) -> Any:
        if self.cut_results:
            for message in step.messages:
                for part in message.content.parts:
                    if part.type == "tool-invocation":
                        part.state, part.result = "call", None
        return step.messages[-self.k :]


def check_pairs(bench: Bench) -> None:
    """Each call has its result right after it, and nothing else has one."""
    waiting: list[str] = []
    for message in bench.model.calls[0].request.prompt:
        parts = [] if isinstance(message.content, str) else message.content
        results = [part.tool_call_id for part in parts if isinstance(part, PromptToolResult)]
        assert results == waiting
        waiting = [part.tool_call_id for part in parts if isinstance(part, PromptToolCall)]
    assert waiting == []


@both_modes
@pytest.mark.parametrize("cut_results", [False, True])
@pytest.mark.parametrize("k", range(1, 9))
async def test_every_k_gives_whole_pairs(k: int, cut_results: bool, mode: str) -> None:
    """For every k each result has its call and each call its result; system and new message stay; history
    is stored as it was.

    R3.8, R3.5, case 30.
    """
    bench = Bench([text("ok")], instructions="sys", input_processors=[Trim(k, cut_results=cut_results)])
    await bench.seed(conversation(*THREAD))
    before = lines(await bench.rows())
    ran = await bench.run(mode, "three")
    assert ran.result.text == "ok"
    check_pairs(bench)
    prompt = bench.receives(1, system=True)
    assert prompt[0] == "system: sys"
    assert prompt[-1] == "user: three"
    assert await bench.stored() == [*before, "user: three", "assistant: ok"]


@pytest.mark.parametrize("k", range(1, 6))
async def test_pairs_of_prompt_form_input(k: int) -> None:
    """The same for a conversation given in prompt form, where results are messages of their own.

    R3.8, R11, case 30.
    """
    bench = Bench([text("ok")], input_processors=[Trim(k)])
    await bench.run("generate", PROMPT_FORM)
    check_pairs(bench)
    assert bench.receives(1)[-1] == "user: three"


async def test_a_conversation_of_tool_steps_only() -> None:
    """A conversation made only of tool steps can be trimmed too; the prompt does not begin with the
    assistant.

    R3.8, case 30.
    """
    steps = [line for i in range(4) for line in (f"assistant: call look c{i}", f"tool: c{i} → {i}")]
    bench = Bench([text("ok")], input_processors=[Trim(3)])
    await bench.seed(conversation("user: one", *steps))
    await bench.run("generate", "three")
    check_pairs(bench)
    assert bench.receives(1)[0] == "user: ."
    assert len(bench.receives(1)) == 6
