"""The tables are made when they are missing, and brought to this version; alembic keeps count."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from interlock.core.errors import StorageError

VERSION = "0001"
"""The version that this code works with: the newest in ``versions``."""

VERSION_TABLE = "interlock_version"
_LOCK = 0x1_17E_210C
"""A number of our own: whoever holds PostgreSQL's advisory lock of this number may change the tables."""


def is_ready(connection: Connection) -> bool:
    """Whether the tables are there in this very version (asked at every start, so without alembic)."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return False
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalars().all()
    return list(found) == [VERSION]


def load_migrations() -> None:
    """Import what :func:`make_ready` needs; it takes a while."""
    for name in ("alembic.operations", "alembic.runtime.migration", "alembic.script"):
        import_module(name)


def make_ready(connection: Connection) -> None:
    """Make or change the tables, inside the transaction that the caller began and will commit.

    Raises:
        StorageError: the tables are of a version this one does not know, or do not fit.
    """
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext, RevisionStep
    from alembic.script import ScriptDirectory
    from alembic.script.revision import ResolutionError

    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    here = Path(__file__).parent
    scripts = ScriptDirectory(str(here), version_locations=[str(here / "versions")])

    def steps(current: Any, context: MigrationContext) -> Iterable[RevisionStep]:
        missing = list(scripts.iterate_revisions("head", current or "base"))
        return [RevisionStep(scripts.revision_map, script, True) for script in reversed(missing)]

    context = MigrationContext.configure(
        connection,
        opts={"version_table": VERSION_TABLE, "fn": steps, "transactional_ddl": True},
    )
    found = context.get_current_heads()
    try:
        for revision in found:
            scripts.revision_map.get_revision(revision)
        context.run_migrations(op=Operations(context))
    except ResolutionError:
        raise StorageError(
            f"the tables are of version {', '.join(found)}, which this version of interlock does not know "
            f"(it works with {VERSION}): upgrade interlock, or give it another database"
        ) from None
    except LookupError as problem:
        raise StorageError(
            f"{problem}: this table is not one that the reference or interlock made; give another database or schema"
        ) from None
