"""Case 18: one rule for the text after a tripwire."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, both_modes, lines

from interlock import Processor
from interlock.chunks import TextEnd
from interlock.testing import text

pytestmark = pytest.mark.anyio


class Trip(Processor):
    """Blocks in one hook."""

    id = "trip"

    def __init__(self, hook: str) -> None:
        setattr(self, hook, self.block)

    def block(self, subject: Any, ctx: Any) -> Any:
        if hasattr(subject, "type") and not isinstance(subject, TextEnd):
            return subject
        return ctx.abort("no")


@both_modes
@pytest.mark.parametrize("release", ["auto", "live", "step", "run"])
@pytest.mark.parametrize("hook", ["process_output_stream", "process_output_step", "process_output_result"])
async def test_the_blocked_text_is_withheld_in_every_place(hook: str, release: str, mode: str) -> None:
    """Text, steps, messages and store agree: withheld, whichever hook blocks, read or awaited.

    R5.2, R5.3, R8.2, case 18.
    """
    bench = Bench([text("Deli", "very Friday")], output_processors=[Trip(hook)])
    ran = await bench.run(mode, "when?", release=release)
    result = ran.result
    assert result.tripwire is not None
    assert (result.tripwire.reason, result.tripwire.processor_id) == ("no", "trip")
    assert result.finish_reason == "other"
    assert result.text == ""
    assert [step.text for step in result.steps] == [""]
    assert result.steps[0].tripwire == result.tripwire
    assert result.messages == []
    assert lines(result.all_messages) == ["user: when?"], (
        "the user's message is never altered by an output block"
    )
    assert await bench.stored() == [], "nothing of the turn, the user's message included"
    if mode == "stream":
        assert ran.types.count("tripwire") == 1
        assert ran.types[-1] == "tripwire"
        assert result.released_text == ran.text_concat
    if release == "run":
        assert result.released_text == ""
