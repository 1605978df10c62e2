"""What the network may do to an answer, at each provider."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from fault_server import RESET, chunked, head, whole
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wired import TOOLS, TURN, ask, chunks_of, each_wire, shape_of

from interlock.core.errors import ModelError

pytestmark = pytest.mark.anyio
FEW = settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])


@each_wire(own=True)
async def test_a_slow_answer_is_the_same(wire: Any, own: bool) -> None:
    """Pauses, also inside a character and between head and body, change nothing."""
    body = wire.body(TURN)
    inside = body.index("é".encode()) + 1
    slowly = [
        head(content_length=str(len(body))),
        0.02,
        body[:inside],
        0.02,
        body[inside:-30],
        0.02,
        body[-30:],
    ]
    asked = ask(tools=TOOLS)
    slow = await chunks_of(wire, *slowly, own=own, request=asked)
    assert shape_of(slow) == shape_of(await chunks_of(wire, whole(body), own=own, request=asked))


@each_wire(own=True)
@FEW
@given(place=st.integers(0, 20_000), reset=st.booleans())
def test_an_answer_cut_anywhere_is_whole_or_an_error(wire: Any, own: bool, place: int, reset: bool) -> None:
    """Wherever the connection ends, nobody takes half an answer for one."""
    body = wire.body(TURN)
    piece = body[: place % len(body)]
    ends = [0.01, RESET] if reset else []

    async def run() -> None:
        whole_ = shape_of(await chunks_of(wire, whole(body), own=own, request=ask(tools=TOOLS)))
        with suppress(ModelError):
            cut = shape_of(await chunks_of(wire, head(), piece, *ends, own=own, request=ask(tools=TOOLS)))
            assert cut.chunks == whole_.chunks
            assert cut.finish.finish_reason == whole_.finish.finish_reason

    asyncio.run(run())


@each_wire(own=True)
def test_each_single_boundary(wire: Any, own: bool) -> None:
    """Every byte boundary alone, where characters of more than one byte are: one read before it, one after."""
    body = wire.body(TURN)
    first, last = body.index("Héllo".encode()), body.index(b"rld")

    async def run() -> None:
        expected = shape_of(await chunks_of(wire, whole(body), own=own, request=ask(tools=TOOLS)))
        for cut in range(first, last):
            pieces = chunked(body[:cut], body[cut:])
            assert shape_of(await chunks_of(wire, pieces, own=own, request=ask(tools=TOOLS))) == expected, cut

    asyncio.run(run())
