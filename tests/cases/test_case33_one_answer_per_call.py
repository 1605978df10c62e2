"""Case 33: two processors answer the same call."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, Cap, both_modes, counted

from interlock import Processor
from interlock.testing import text, tool_call

pytestmark = pytest.mark.anyio


class Errors(Processor):
    """Notes what it sees of results and errors."""

    id = "errors"
    process_tool_errors = True

    def __init__(self) -> None:
        self.chunks: list[str] = []
        self.results: list[Any] = []

    def process_output_stream(self, chunk: Any, ctx: Any) -> Any:
        if chunk.type in ("tool-result", "tool-error"):
            self.chunks.append(f"{chunk.type} {chunk.tool_call_id}")
        return chunk

    def process_tool_result(self, result: Any, ctx: Any) -> None:
        self.results.append((result.tool_call_id, result.is_error))


class NoErrors(Errors):
    id = "no-errors"
    process_tool_errors = False


@both_modes
async def test_the_first_answer_stays(mode: str) -> None:
    """The call does not run; one result, the first; the unknown tool's error is a result the model sees and
    passes the hooks.

    R4.7, R4.8, case 33.
    """
    look, runs = counted("look", 7)
    errors, no_errors = Errors(), NoErrors()
    bench = Bench(
        [tool_call("look", {}, id="c1"), tool_call("nosuch", {}, id="c2")],
        [text("done")],
        tools=[look],
        output_processors=[Cap("cap", "limit reached"), Cap("cap2", "limit reached (2)"), errors, no_errors],
    )
    ran = await bench.run(mode)
    assert runs == []
    assert ran.result.text == "done"
    _, calls, results = bench.receives(2)
    assert calls == "assistant: call look + call nosuch"
    assert results.startswith("tool: limit reached + ")
    assert "nosuch" in results.split(" + ")[1]
    assert "look" in results.split(" + ")[1], "the error says which tools there are"
    assert errors.chunks == ["tool-result c1", "tool-error c2"]
    assert errors.results == [("c1", None), ("c2", True)]
    assert no_errors.results == [("c1", None)]
    if mode == "stream":
        (result,) = ran.of_type("tool-result")
        assert (result.tool_call_id, result.result) == ("c1", "limit reached")
        assert [chunk.tool_call_id for chunk in ran.of_type("tool-error")] == ["c2"]
