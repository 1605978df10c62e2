"""Case 05: two detections overlap, two others touch."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from notation import Bench, both_modes

from interlock import Processor
from interlock.messages import TextPart
from interlock.processors import RegexFilter
from interlock.testing import text

pytestmark = pytest.mark.anyio
WHOLE = "Card 4000 1111 2222 3333.test and a@x.test b@x.test c@x.test, thanks."
FINDS = [
    ("CARD", "4000 1111 2222 3333"),
    ("URL", "3333.test"),
    ("EMAIL", "a@x.test"),
    ("EMAIL", "b@x.test"),
    ("EMAIL", "c@x.test"),
]


class Detector(Processor):
    """Merges overlapping detections (the longest gives the label) and replaces them by offsets of the
    original.
    """

    id = "pii"

    def __init__(self, finds: Any) -> None:
        self.finds = finds

    def process_output_result(self, result: Any, ctx: Any) -> None:
        for message in ctx.messages:
            for part in message.content.parts:
                if isinstance(part, TextPart):
                    part.text = self.redacted(part.text)

    def redacted(self, whole: str) -> str:
        spans = sorted(
            (whole.index(found), whole.index(found) + len(found), label) for label, found in self.finds
        )
        merged: list[tuple[int, int, str, int]] = []
        for start, end, label in spans:
            if merged and start < merged[-1][1]:
                first, last, name, length = merged.pop()
                if end - start > length:
                    name, length = label, end - start
                merged.append((first, max(last, end), name, length))
            else:
                merged.append((start, end, label, end - start))
        for start, end, label, _ in reversed(merged):
            whole = f"{whole[:start]}[{label}]{whole[end:]}"
        return whole


@both_modes
async def test_overlaps_are_replaced_once_in_any_order(mode: str) -> None:
    """A whole-text rewrite by offsets is what result and store have, whatever order the detections came in.

    R0.1, R4.9, case 05.
    """
    expected = "Card [CARD] and [EMAIL] [EMAIL] [EMAIL], thanks."
    for finds in itertools.islice(itertools.permutations(FINDS), 0, None, 17):
        bench = Bench([text(WHOLE)], output_processors=[Detector(finds)])
        ran = await bench.run(mode, release="run")
        assert ran.result.text == expected
        assert await bench.stored() == ["user: x", f"assistant: {expected}"]
        if mode == "stream":
            assert ran.text_concat == expected


RULES = {
    "card": r"\b\d{4}(?: \d{4}){3}\b",
    "url": r"\b\w+\.test\b(?!\w)",
    "email": r"\b\w@x\.test\b",
}


@both_modes
@pytest.mark.parametrize("pieces", [[WHOLE], list(WHOLE), [WHOLE[:20], WHOLE[20:30], WHOLE[30:]]])
async def test_the_built_in_filter_merges_overlaps(mode: str, pieces: list[str]) -> None:
    """Rules that overlap and rules that touch, in any order of the rules: each place is replaced once, under the
    name of the longest find.

    R0.1, R0.2, case 05.
    """
    expected = "Card [CARD] and [EMAIL] [EMAIL] [EMAIL], thanks."
    for names in itertools.permutations(RULES):
        guard = RegexFilter({name: RULES[name] for name in names})
        bench = Bench([text(*pieces)], output_processors=[guard])
        ran = await bench.run(mode)
        assert ran.result.text == expected
        assert [violation.detail["rule"] for violation in ran.result.violations] == ["card", *["email"] * 3]
        assert await bench.stored() == ["user: x", f"assistant: {expected}"]
        if mode == "stream":
            assert ran.text_concat == expected
            ran.never_contains("4000 1111", "2222 3333", "a@x")
