"""The base of every plain data type here: a msgspec Struct with ``replace``."""

from __future__ import annotations

from typing import Any, Self, TypeAlias, TypeVar

from msgspec import Struct, structs

from interlock.core.errors import UsageError

S = TypeVar("S", bound=Struct)

Metadata: TypeAlias = dict[str, Any]
"""Provider metadata: a provider's name to whatever it attached (signatures, log-probabilities, ...)."""


class Record(Struct):
    """A small data object. ``replace`` gives a changed copy; in-place assignment works too."""

    def replace(self, **fields: Any) -> Self:
        """A copy with other field values.

        Args:
            **fields: new values by field name.

        Raises:
            UsageError: a field this object does not have; the text lists those it has.
        """
        return _replaced(self, fields)


class FrozenRecord(Struct, frozen=True):
    """A small data object that refuses in-place assignment."""

    def replace(self, **fields: Any) -> Self:
        """A copy with other field values; see :meth:`Record.replace`."""
        return _replaced(self, fields)


def _replaced(record: S, fields: dict[str, Any]) -> S:
    try:
        return structs.replace(record, **fields)
    except TypeError:
        known = record.__struct_fields__
        wrong = ", ".join(name for name in fields if name not in known)
        raise UsageError(
            f"{type(record).__name__}.replace: no field {wrong}; it has {', '.join(known)}"
        ) from None
