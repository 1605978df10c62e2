"""What a database's failure means, and what to do about it, as a StorageError."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from sqlalchemy.engine import URL
from sqlalchemy.exc import TimeoutError as PoolTimeout

from interlock.core.errors import StorageError

_SQLITE = {
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened: does its folder exist, and may this process write there?",
    sqlite3.SQLITE_READONLY: "permission denied: this process may not write the file or its folder",
    sqlite3.SQLITE_PERM: "permission denied: this process may not use the file",
    sqlite3.SQLITE_AUTH: "permission denied",
    sqlite3.SQLITE_FULL: "the disk is full: make room, then send the turn again",
    sqlite3.SQLITE_BUSY: "another program keeps the file locked: end its transaction",
    sqlite3.SQLITE_LOCKED: "another program keeps the file locked: end its transaction",
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database: give another path, or restore it from a backup",
    sqlite3.SQLITE_CORRUPT: "the file is corrupt: restore it from a backup",
    sqlite3.SQLITE_IOERR: "reading or writing the file failed: look at the disk",
    sqlite3.SQLITE_TOOBIG: "a message is too large for the database",
}
"""By primary result code; the page "Result and Error Codes" of SQLite's documentation."""

VALUE = "a value cannot be stored: ids, titles and metadata cannot hold NUL or half of a surrogate pair"
"""Said alone: the database's own words quote the value."""

_POSTGRES = {
    "08": "the database is away: is the server running, and is the address right?",
    "57P": "the database is away: the server is shutting down or starting",
    "53100": "the disk is full: make room on the server, then send the turn again",
    "53200": "the server is out of memory",
    "53300": "the server has no connection left: raise max_connections, or lower pool_size",
    "53": "the server is out of resources",
    "42501": "permission denied: grant this user SELECT, INSERT, UPDATE and DELETE on the mastra_ and interlock_ "
    "tables, and CREATE on the schema",
    "28": "permission denied: the user or the password is refused",
    "3D000": "there is no such database: create it",
    "42P01": "a table is missing though the version says it is there: restore it, or delete the table "
    "interlock_version to have missing tables made",
    "42703": "a column is missing: the tables were made by a version of the reference that does not fit",
    "25006": "permission denied: the server is read-only (a replica?)",
    "22": "a value cannot be stored",
    "22021": VALUE,
    "22P02": VALUE,
    "22P05": VALUE,
    "40": "other transactions kept getting in the way",
    "XX": "the database is corrupt: look at the server's log",
}
"""By SQLSTATE, or how it begins; PostgreSQL's appendix "Error Codes". The longest that fits counts."""


def storage_error(problem: BaseException, url: URL) -> StorageError:
    """The problem as a StorageError: the database (without its password), what is wrong, what to do."""
    where = url.render_as_string(hide_password=True)
    return StorageError(f"{where}: {_advice(problem)}")


def _advice(problem: BaseException) -> str:
    if isinstance(problem, PoolTimeout):
        return "no connection became free: raise pool_size"
    for cause in _causes(problem):
        known = _known(cause)
        if known == VALUE:
            return known
        if known is not None:
            return f"{known} ({_first_line(cause)})"
    return _first_line(problem)


def _known(cause: BaseException) -> str | None:
    code = getattr(cause, "sqlite_errorcode", None)
    if isinstance(code, int):
        if code == sqlite3.SQLITE_ERROR and str(cause).startswith("no such "):
            return _POSTGRES["42P01"]
        return _SQLITE.get(code & 0xFF)
    state = getattr(cause, "sqlstate", None)
    if isinstance(state, str):
        if str(cause).startswith(
            "invalid input for query argument"
        ):  # the driver's, before it asks the server
            return VALUE
        fitting = [begin for begin in _POSTGRES if state.startswith(begin)]
        return _POSTGRES[max(fitting, key=len)] if fitting else None
    if isinstance(cause, UnicodeError):
        return VALUE
    if isinstance(cause, OSError | TimeoutError):
        return _POSTGRES["08"]
    return None


def sqlstate(problem: BaseException) -> str:
    """The SQLSTATE in the problem or what caused it; empty if there is none."""
    return next((str(cause.sqlstate) for cause in _causes(problem) if getattr(cause, "sqlstate", None)), "")  # type: ignore[attr-defined]


def is_locked(problem: BaseException) -> bool:
    """Whether SQLite said that another has the lock."""
    codes = (getattr(cause, "sqlite_errorcode", 0) for cause in _causes(problem))
    return any(code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) for code in codes)


def _causes(problem: BaseException | None) -> Iterator[BaseException]:
    """The problem and what is behind it, the driver's own error among them."""
    while problem is not None:
        yield problem
        problem = getattr(problem, "orig", None) or problem.__cause__


def _first_line(problem: BaseException) -> str:
    """The first line: databases put values of rows into the others."""
    text = str(getattr(problem, "orig", None) or problem).strip()
    return text.partition("\n")[0] or type(problem).__name__
