"""SQLite's binary JSON, read: the reference keeps metadata that way, and older SQLite libraries cannot read it.

Format: the SQLite documentation's page "The SQLite JSONB Format". An element is a header (low half of its first byte:
the type; high half: the size, or how many bytes of size follow), then its payload.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

_DEEPEST = 200  # a corrupt value must not exhaust the stack
_SIZE_BYTES = {12: 1, 13: 2, 14: 4, 15: 8}
_ARRAY, _OBJECT = 11, 12


def decode(blob: bytes) -> Any:
    """What a JSONB value says.

    >>> decode(bytes.fromhex("4c177a1331"))
    {'z': 1}

    Raises:
        ValueError: the bytes are no JSONB value.
    """
    values = list(_elements(blob, 0))
    if len(values) != 1:
        raise ValueError("a JSONB value is one element")
    return values[0]


def _elements(blob: bytes, depth: int) -> Iterator[Any]:
    """The values of elements that stand one after the other."""
    if depth > _DEEPEST:
        raise ValueError("JSONB nested too deeply")
    at = 0
    while at < len(blob):
        kind, start, end = _header(blob, at)
        yield _value(kind, blob[start:end], depth)
        at = end


def _header(blob: bytes, at: int) -> tuple[int, int, int]:
    """Type, start and end of the payload of the element at a place."""
    kind, size = blob[at] & 0x0F, blob[at] >> 4
    start = at + 1
    if (more := _SIZE_BYTES.get(size)) is not None:
        size = int.from_bytes(blob[start : start + more], "big")
        start += more
    if start + size > len(blob):
        raise ValueError("JSONB cut short")
    return kind, start, start + size


def _value(kind: int, payload: bytes, depth: int) -> Any:
    if kind == _ARRAY:
        return list(_elements(payload, depth + 1))
    if kind == _OBJECT:
        values = list(_elements(payload, depth + 1))
        if len(values) % 2 or not all(isinstance(key, str) for key in values[::2]):
            raise ValueError("a JSONB object has a text before each value")
        return dict(zip(values[::2], values[1::2], strict=True))
    if kind not in _SCALARS:
        raise ValueError(f"JSONB has no type {kind}")
    return _SCALARS[kind](payload.decode())


def _integer(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    return sign * int(digits, 16 if digits[:2].lower() == "0x" else 10)


def _escaped(text: str) -> str:
    value: Any = json.loads(f'"{text}"', strict=False)
    return str(value)


def _escaped_loosely(text: str) -> str:
    """JSON5 has more escapes; those that JSON knows too are read, the rest are rare enough to be refused."""
    return _escaped(text.replace("\\'", "'").replace("\\\n", ""))


_SCALARS: dict[int, Callable[[str], Any]] = {
    0: lambda text: None,
    1: lambda text: True,
    2: lambda text: False,
    3: _integer,
    4: _integer,
    5: float,
    6: float,
    7: str,
    8: _escaped,
    9: _escaped_loosely,
    10: str,
}
