"""Arguments of a tool call through guards: as the value they are, or as the text they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.processors import RegexFilter
from interlock.sse.arguments import guarded_arguments

pytestmark = pytest.mark.anyio
PIN = RegexFilter({"pin": r"\d{4,6}"}, id="pin")
JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text('1a"\\é😀', max_size=7),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("1b", max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(value=JSON, ascii_only=st.booleans(), size=st.integers(0, 200))
async def test_no_string_keeps_a_span_whole_or_torn(value: Any, ascii_only: bool, size: int) -> None:
    """Of complete arguments every string is guarded, however it is written; of torn ones what there is. R0.3."""
    whole = json.dumps(value, ensure_ascii=ascii_only)
    made = json.loads(await guarded_arguments(whole, [PIN]))
    assert "1111" not in json.dumps(made)
    if "1111" not in whole:
        assert made == value
    assert "1111" not in await guarded_arguments(whole[:size], [PIN])


async def test_arguments_that_are_no_json() -> None:
    """Guarded as they stand and as their escapes read; what has nothing in it stays as it came."""
    assert await guarded_arguments('{"a": "\\u0031234 x', [PIN]) == '{"a": "[PIN] x'
    assert await guarded_arguments('{"a": "\\n\\u00e9', [PIN]) == '{"a": "\\n\\u00e9'
    assert await guarded_arguments("[" * 5_000 + '"1234"', [PIN]) == "[" * 5_000 + '"[PIN]"'


async def test_nobody_guards_arguments() -> None:
    """Without guards the value stays."""
    assert json.loads(await guarded_arguments('{"a": "1234"}', [])) == {"a": "1234"}
