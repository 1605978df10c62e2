"""Case 32: the last turn died between call and result."""

from __future__ import annotations

import pytest
from notation import Bench, both_modes, conversation

from interlock.testing import text

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("every_store")]


@both_modes
async def test_an_open_call_in_storage_heals_in_the_prompt(mode: str) -> None:
    """The stored open call is left out of the prompt, is not rewritten in storage, and does not hurt the
    third turn.

    R3.8, case 32.
    """
    bench = Bench([text("ok")], [text("ok2")])
    await bench.seed(conversation("user: one", "assistant: call look c9"))
    ran = await bench.run(mode, "two")
    assert ran.result.text == "ok"
    assert bench.receives(1) == ["user: one", "user: two"]
    assert await bench.stored() == ["user: one", "assistant: call look c9", "user: two", "assistant: ok"]
    third = await bench.run(mode, "three")
    assert third.result.text == "ok2"
    assert bench.receives(2) == ["user: one", "user: two", "assistant: ok", "user: three"]
