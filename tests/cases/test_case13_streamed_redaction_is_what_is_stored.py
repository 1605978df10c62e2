"""Case 13: the redacted stream is what storage holds."""

from __future__ import annotations

from typing import Any

import pytest
from notation import Bench, HoldBack, both_modes, masked, said

from interlock.processors import KeywordFilter, RegexFilter
from interlock.testing import text

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("every_store")]


GUARDS = {
    "own": lambda: HoldBack("pin", masked),
    "patterns": lambda: RegexFilter({"pin": r"\d{4}"}, redaction="mask"),
    "words": lambda: KeywordFilter(["1234"], redaction="mask"),
}


@both_modes
@pytest.mark.parametrize("guard", GUARDS)
async def test_the_store_holds_what_was_shown(mode: str, guard: Any) -> None:
    """Client, result, the store itself and the next turn's prompt have the redacted text, and nothing has
    the raw.

    R0.1, R8.1, case 13.
    """
    bench = Bench([text("my pin ", "1234 ok")], [text("yes")], output_processors=[GUARDS[guard]()])
    ran = await bench.run(mode)
    if mode == "stream":
        assert ran.text_concat == "my pin **** ok"
        ran.never_contains("1234")
    assert await bench.stored() == ["user: x", "assistant: my pin **** ok"]
    assert "1234" not in said(*await bench.raw()), "no second copy in another field of the row"
    await bench.run(mode, "again")
    assert bench.receives(2) == ["user: x", "assistant: my pin **** ok", "user: again"]
