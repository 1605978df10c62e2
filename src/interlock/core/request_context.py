"""RequestContext: what a caller knows about a request, for processors, tools and list functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any


class RequestContext(MutableMapping[str, Any]):
    """A mapping of names to values that travels with one call.

    Args:
        values: a mapping to start from.
        **named: more values.

    >>> RequestContext(tenant="acme").get("tenant")
    'acme'
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        self._values: dict[str, Any] = {**(values or {}), **named}

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._values[key] = value

    def __delitem__(self, key: str) -> None:
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def set(self, key: str, value: Any) -> None:
        """Set a value."""
        self._values[key] = value

    def __repr__(self) -> str:
        return f"RequestContext({', '.join(self._values)})"  # values may be secrets
