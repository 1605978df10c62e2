"""Addresses of databases, as people write them."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from interlock.core.errors import UsageError

_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+asyncpg",
    "postgres": "postgresql+asyncpg",
}
_EXAMPLES = "sqlite:///agent.db, sqlite:////var/lib/agent.db, postgresql://user:password@host/database"


def checked_address(given: Any) -> URL:
    """The address with the driver that is used.

    Raises:
        UsageError: no address, or one of a database that is not supported.

    >>> checked_address("postgres://me:secret@db/chat?sslmode=require").drivername
    'postgresql+asyncpg'
    """
    try:
        url = make_url(given)
    except (ArgumentError, ValueError, TypeError, AttributeError):
        raise UsageError(f"the database's address must be like {_EXAMPLES}") from None
    kind = url.drivername.partition("+")[0]
    if kind not in _DRIVERS or url.drivername not in (kind, _DRIVERS[kind]):
        raise UsageError(f"no database {url.drivername!r}; write {_EXAMPLES}")
    url = url.set(drivername=_DRIVERS[kind])
    if kind == "sqlite":
        if url.database in (None, "", ":memory:"):
            raise UsageError(
                "an SQLite database in memory ends with its connection; Memory() keeps conversations in this "
                "process, sqlite:///agent.db in a file"
            )
        return url
    return _with_ssl(url)


def _with_ssl(url: URL) -> URL:
    """``sslmode``, as libpq and the reference have it, by the driver's name for it."""
    query = dict(url.query)
    mode = query.pop("sslmode", None)
    if mode is not None:
        query.setdefault("ssl", mode)
    return url.set(query=query)
