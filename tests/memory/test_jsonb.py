"""Binary JSON as libsql writes it is read; anything else is refused."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.memory.jsonb import decode

# what SQLite's own jsonb() made of the JSON beside it (libsql 0.5, SQLite 3.45 format)
SAMPLES = [
    ("cc0d17611331176e6c17623b010002", '{"a":1,"n":{"b":[true,null,false]}}'),
    ("0b", "[]"),
    ("0c", "{}"),
    ("1778", '"x"'),
    (
        "c820c3a95c6e5c7530306539205c22715c22205c5c205c75643833645c7564653030",
        '"\u00e9\\n\\u00e9 \\"q\\" \\\\ \\ud83d\\ude00"',
    ),
    ("752d31322e356533", "-12.5e3"),
    ("c31e313233343536373839303132333435363738393031323334353637383930", "123456789012345678901234567890"),
    ("cb0dab7b4b13311332133313341335", "[[[[1,2],3],4],5]"),
    ("00", "null"),
    ("cc181761443078314617625969745c27731763262e3517641333", '{"a":31,"b":"it\'s","c":0.5,"d":3}'),
]


@pytest.mark.parametrize(("blob", "text"), SAMPLES)
def test_what_sqlite_wrote_is_read(blob: str, text: str) -> None:
    """Every kind of element that jsonb() makes, JSON5's included."""
    assert decode(bytes.fromhex(blob)) == json.loads(text)


def _encoded(value: Any) -> bytes:
    """The plainest JSONB of a value, written from the format's description."""
    match value:
        case None:
            return b"\x00"
        case bool():
            return b"\x01" if value else b"\x02"
        case int():
            return _element(3, str(value).encode())
        case float():
            return _element(5, repr(value).encode())
        case str():
            return _element(10, value.encode())
        case list():
            return _element(11, b"".join(_encoded(item) for item in value))
        case _:
            return _element(12, b"".join(_encoded(part) for pair in dict(value).items() for part in pair))


def _element(kind: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 12:
        return bytes([size << 4 | kind]) + payload
    if size < 256:
        return bytes([0xC0 | kind, size]) + payload
    return bytes([0xE0 | kind]) + struct.pack(">I", size) + payload


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text("ab\u00e9", max_size=9), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_value_survives(value: Any) -> None:
    """decode(encode(x)) == x, sizes of one, two and five header bytes included."""
    assert decode(_encoded(value)) == value


@given(st.binary(max_size=60))
def test_other_bytes_are_refused_in_one_way(blob: bytes) -> None:
    """A corrupt value is a ValueError or some value, never another exception: the caller makes it a StorageError."""
    with suppress(ValueError):
        decode(blob)


def test_a_value_nested_without_end_does_not_exhaust_the_stack() -> None:
    """A thousand brackets are refused as corrupt."""
    blob = b"\x0b"
    for _ in range(1_000):
        blob = _element(11, blob)
    with pytest.raises(ValueError, match="nested too deeply"):
        decode(blob)
