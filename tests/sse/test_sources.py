"""What an answer cites, in whatever field providers put it."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import TripWireError
from interlock.processors import RegexFilter
from interlock.sse.sources import guard_sources

pytestmark = pytest.mark.anyio
PIN = RegexFilter({"pin": r"\d{4,6}"}, id="pin")


@pytest.mark.parametrize(
    "holder",
    [
        {
            "annotations": [
                {"type": "url_citation", "url_citation": {"url": "u/1234", "title": "1234", "start_index": 1}}
            ]
        },
        {"citations": ["https://a.test/1234", "https://b.test"]},
        {"search_results": [{"title": "1234", "snippet": "the 1234", "date": None}]},
        {"provider_specific_fields": {"citation": {"cited_text": "the 1234", "document_index": 0}}},
    ],
)
async def test_each_text_of_a_source(holder: dict[str, Any]) -> None:
    """Titles, addresses, quotations: nothing removed is left, and nothing else changes (R0.3)."""
    expected = repr(holder).replace("1234", "[PIN]")
    assert await guard_sources(holder, [PIN])
    assert repr(holder) == expected
    assert not await guard_sources(holder, [PIN])


async def test_what_is_no_source() -> None:
    """It stays: kinds, ids, signatures, other fields. Without guards everything does."""
    holder: dict[str, Any] = {
        "annotations": [{"type": "1234", "id": "1234"}],
        "title": "1234",
        "citations": None,
    }
    assert not await guard_sources(holder, [PIN])
    cited = {"citations": ["1234"]}
    assert not await guard_sources(cited, [])
    assert cited == {"citations": ["1234"]}


async def test_a_block() -> None:
    """It is raised, with the channel it is about (R5.1)."""
    with pytest.raises(TripWireError, match="pin found in sources"):
        await guard_sources({"citations": ["1234"]}, [RegexFilter({"pin": "1234"}, strategy="block")])
