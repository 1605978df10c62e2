"""Case 07: two rewriting filters with different units."""

from __future__ import annotations

import re

import pytest
from notation import Bench, HoldBack

from interlock.testing import text

pytestmark = pytest.mark.anyio
PIECES = ["Call ann@x.te", "st. You fo", "ol! Bye."]


def mail() -> HoldBack:
    """E-mail addresses become [EMAIL]."""
    return HoldBack("mail", lambda text: re.sub(r"\w+@[\w.]*\w", "[EMAIL]", text))


def polite() -> HoldBack:
    """Works on whole sentences; fool becomes friend."""
    return HoldBack("polite", lambda text: text.replace("fool", "friend"), border=r"[.!?]")


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("pieces", [PIECES, list("".join(PIECES)), ["".join(PIECES)]])
async def test_each_filter_has_its_own_buffer(pieces: list[str], swapped: bool) -> None:
    """The second gets the first's output, what it lets out at the end included; nothing twice, nothing
    lost.

    R4.6, R6, case 07.
    """
    processors = [polite(), mail()] if swapped else [mail(), polite()]
    bench = Bench([text(*pieces)], output_processors=processors)
    ran = await bench.run("stream")
    assert ran.text_concat == ran.result.text == "Call [EMAIL]. You friend! Bye."
    assert await bench.stored() == ["user: x", "assistant: Call [EMAIL]. You friend! Bye."]
