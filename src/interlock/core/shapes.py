"""Questions about values from outside, in a form a type checker follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether it is an object, as JSON has them."""
    return isinstance(value, Mapping)


def is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether it is a dict."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether it is a list."""
    return isinstance(value, list)


def is_sequence(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Whether it is a list or a tuple."""
    return isinstance(value, list | tuple)


def described(value: object) -> str:
    """What a value is, for an error's text: its kind and its keys, never its content, which may be secret."""
    if is_mapping(value):
        kind = value.get("type", value.get("role"))
        keys = ", ".join(str(key) for key in value)
        return (
            f"a dict of {kind!r} with the keys {keys}"
            if isinstance(kind, str)
            else f"a dict with the keys {keys}"
        )
    if value is None:
        return "None"
    return f"a value of type {type(value).__name__}"
