"""What working memory holds after a change: templates are replaced, objects are merged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from interlock.core.result import MemoryChange
from interlock.core.shapes import is_dict


def changed(current: str | None, changes: Iterable[MemoryChange]) -> str | None:
    """The text of working memory after these changes, one after the other.

    >>> changed('{"name": "Sam", "pet": {"cat": 1}}', [MemoryChange(scope="resource", value={"pet": {"dog": 2}})])
    '{"name": "Sam", "pet": {"cat": 1, "dog": 2}}'
    """
    for change in changes:
        if is_dict(change.value):
            current = json.dumps(merged(parsed(current), change.value), ensure_ascii=False)
        else:
            current = str(change.value)
    return None if current is None else storable(current)


def storable(text: str) -> str:
    """The text as every database takes it: without NUL and halves of surrogate pairs, which models can write.

    >>> storable("a\\0b")
    'ab'
    """
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def merged(current: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """An object with another merged into it: inner objects too; a value of None deletes; lists are replaced.

    >>> merged({"a": 1, "b": {"c": 2, "d": 3}}, {"a": None, "b": {"d": 4}, "e": [5]})
    {'b': {'c': 2, 'd': 4}, 'e': [5]}
    """
    result = dict(current)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif is_dict(value):
            inner: Any = result.get(key)
            result[key] = merged(inner if is_dict(inner) else {}, value)
        else:
            result[key] = value
    return result


def parsed(text: str | None) -> dict[str, Any]:
    """The object a text holds; an empty one when it holds none (a template's text, from before there was a schema)."""
    try:
        value: Any = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return value if is_dict(value) else {}
