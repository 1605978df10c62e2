"""Case 09: the second model call (with a tool result) passes the request hooks too."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, both_modes, counted, masked

from interlock import ErrorProcessor, Processor, Retry
from interlock.testing import error, text, tool_call

pytestmark = pytest.mark.anyio


class Req(Processor):
    """Counts its calls and masks digits in the outgoing prompt."""

    id = "req"

    def __init__(self) -> None:
        self.counts = {"input": 0, "step": 0, "request": 0}
        self.latest: list[str] = []

    def process_input(self, messages: Any, ctx: Any) -> None:
        self.counts["input"] += 1

    def process_input_step(self, step: Any, ctx: Any) -> None:
        self.counts["step"] += 1
        self.latest.append(ctx.message_list.get.input.db()[-1].text)

    def process_llm_request(self, request: Any, ctx: Any) -> Any:
        self.counts["request"] += 1
        return request.map_text(masked)


@both_modes
async def test_the_call_with_the_tool_result_is_masked(mode: str) -> None:
    """Both calls pass both hooks; what is masked for the request is stored as it was. R1.2, R4.3, case 09."""
    look, _ = counted("look", "secret 1234")
    req = Req()
    bench = Bench([tool_call("look", {}, id="c1")], [text("done")], tools=[look], input_processors=[req])
    await bench.run(mode, "go")
    assert req.counts == {"input": 1, "step": 2, "request": 2}
    assert bench.receives(2)[-1] == "tool: secret ****"
    assert await bench.stored() == ["user: go", "assistant: look → secret 1234 | done"]
    assert req.latest == ["go", "go"], "a tool result is not user input"


class Once(Processor):
    """Asks the answer once more."""

    id = "once"

    def process_output_step(self, output: Any, ctx: Any) -> None:
        if output.text == "bad":
            ctx.abort("again", retry=True)


@both_modes
async def test_a_call_made_again_by_a_retry_is_masked(mode: str) -> None:
    """A third call, caused by a retry, passes the hooks as well. R1.2, R7.1, case 09."""
    look, _ = counted("look", "secret 1234")
    req = Req()
    bench = Bench(
        [tool_call("look", {})],
        [text("bad")],
        [text("done")],
        tools=[look],
        input_processors=[req],
        output_processors=[Once()],
        max_processor_retries=1,
    )
    await bench.run(mode, "go")
    assert req.counts == {"input": 1, "step": 3, "request": 3}
    assert "tool: secret ****" in bench.receives(3)
    assert "1234" not in bench.model.calls[2].prompt_text


class Again(ErrorProcessor):
    """Asks a failed call again."""

    id = "again"

    def process_api_error(self, error: Any, ctx: Any) -> Retry:
        return Retry()


@both_modes
async def test_a_call_made_again_by_an_error_hook_is_masked(mode: str) -> None:
    """A third call, caused by an error hook, passes the hooks as well. R1.2, R4.5, case 09."""
    look, _ = counted("look", "secret 1234")
    req = Req()
    bench = Bench(
        [tool_call("look", {})],
        [error(400, "no")],
        [text("done")],
        tools=[look],
        input_processors=[req],
        error_processors=[Again()],
    )
    await bench.run(mode, "go")
    assert req.counts == {"input": 1, "step": 3, "request": 3}
    assert "1234" not in bench.model.calls[2].prompt_text
