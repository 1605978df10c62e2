"""The base of every plain data type here: a msgspec Struct with ``replace``."""

from __future__ import annotations

from typing import Any, Self

from msgspec import Struct, structs

from interlock.core.errors import UsageError


class Record(Struct):
    """A small data object. ``replace`` gives a changed copy; in-place assignment works unless it is frozen."""

    def replace(self, **fields: Any) -> Self:
        """A copy with other field values.

        Args:
            **fields: new values by field name.

        Raises:
            UsageError: a field this object does not have; the text lists those it has.
        """
        try:
            return structs.replace(self, **fields)
        except TypeError:
            known = self.__struct_fields__
            wrong = ", ".join(name for name in fields if name not in known)
            raise UsageError(
                f"{type(self).__name__}.replace: no field {wrong}; it has {', '.join(known)}"
            ) from None
