"""Conversations in SQLite and PostgreSQL, in the reference's tables (extra ``sql``)."""

from interlock.memory.sql.database import Database
from interlock.memory.sql.store import SqlStore

__all__ = ["Database", "SqlStore"]
