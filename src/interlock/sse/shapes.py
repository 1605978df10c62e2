"""The shapes an event's JSON must have. What has another one cannot be guarded, so it does not pass."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

Json: TypeAlias = dict[str, Any]


class Unreadable(Exception):
    """Something in the stream is not what it should be. Says what, never what stands there."""


def object_of(value: Any, what: str) -> Json:
    """The value, which must be an object.

    Raises:
        Unreadable: it is none.
    """
    if not isinstance(value, dict):
        raise _wrong(what)
    return cast(Json, value)


def list_of(value: Any, what: str) -> list[Any]:
    """The value, which must be an array; an empty one in place of null.

    Raises:
        Unreadable: it is none.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong(what)
    return cast("list[Any]", value)


def _wrong(what: str) -> Unreadable:
    return Unreadable(f"{what} is not of the form it should be")
