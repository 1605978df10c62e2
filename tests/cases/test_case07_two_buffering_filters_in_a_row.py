"""Case 07: two rewriting filters with different units."""

from __future__ import annotations

import re
from typing import Any

import pytest
from notation import Bench, HoldBack, both_modes

from interlock.processors import RegexFilter, Unit, UnitGuard, Verdict
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


class Polite(UnitGuard):
    """Judges whole sentences; fool becomes friend."""

    def judge(self, unit: Unit, ctx: Any) -> Verdict:
        if "fool" not in unit.text:
            return Verdict.allow()
        return Verdict.replace(unit.text.replace("fool", "friend"), reason="rude")


@both_modes
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("pieces", [PIECES, list("".join(PIECES)), ["".join(PIECES)]])
async def test_a_pattern_guard_and_a_judge_in_a_row(pieces: list[str], swapped: bool, mode: str) -> None:
    """RegexFilter holds words, UnitGuard sentences: the second gets what the first lets out, to its last character.

    R0.2, R4.6, case 07.
    """
    mails = RegexFilter({"email": r"\w+@[\w.]*\w"})
    judge = Polite(id="polite", unit="sentence", strategy="redact")
    bench = Bench([text(*pieces)], output_processors=[judge, mails] if swapped else [mails, judge])
    ran = await bench.run(mode)
    assert ran.result.text == "Call [EMAIL]. You friend! Bye."
    if mode == "stream":
        assert ran.text_concat == ran.result.text
        ran.never_contains("ann", "fool")
    assert await bench.stored() == ["user: x", "assistant: Call [EMAIL]. You friend! Bye."]
