"""A tool's result as plain JSON values (spec R4.8)."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from interlock.core.shapes import is_mapping, is_sequence

_PLAIN = (str, int, bool, type(None))


def jsonable(value: Any) -> Any:
    """The value as JSON can hold it: dates as ISO text, models and dataclasses as objects, functions left out,
    a reference to something that contains it as ``"[Circular]"``, and what is left as its text.

    >>> import datetime
    >>> jsonable({"at": datetime.date(2026, 1, 2), "call": print, "n": (1, 2)})
    {'at': '2026-01-02', 'n': [1, 2]}
    """
    return _plain(value, ())


def _plain(value: Any, above: tuple[int, ...]) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if id(value) in above:
        return "[Circular]"
    inside = (*above, id(value))
    if is_mapping(value):
        return {str(k): _plain(v, inside) for k, v in value.items() if not _left_out(v)}
    if isinstance(value, set | frozenset):
        value = list(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if is_sequence(value):
        return [None if _left_out(item) else _plain(item, inside) for item in value]
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump(mode="json"), inside)
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return _plain(_builtins(value), inside)


def _builtins(value: Any) -> Any:
    try:
        built = msgspec.to_builtins(value, str_keys=True, enc_hook=_as_fields)
    except (TypeError, ValueError, RecursionError):
        return str(value)
    return str(value) if built is value else built


def _as_fields(value: Any) -> Any:
    fields = getattr(value, "__dict__", None)
    if not fields:
        return str(value)
    return {name: field for name, field in fields.items() if not _left_out(field)}


def _left_out(value: Any) -> bool:
    return callable(value) and not hasattr(value, "model_dump")
