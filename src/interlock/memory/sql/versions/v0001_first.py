"""The first version: the reference's memory tables, where it has not made them yet, and usage."""

from __future__ import annotations

from alembic.operations import Operations
from sqlalchemy import Column, Table, inspect

from interlock.memory.sql.tables import make_tables

revision = "0001"
down_revision = None


def upgrade(op: Operations) -> None:
    """Make what is missing: tables, indexes, and columns that older versions of the reference did not have."""
    connection = op.get_bind()
    there = inspect(connection)
    for table in make_tables(connection.dialect.name).metadata.sorted_tables:
        if not there.has_table(table.name):
            table.create(connection)
            continue
        known = {column["name"] for column in there.get_columns(table.name)}
        _add_columns(op, table, known)
        indexed = {index["name"] for index in there.get_indexes(table.name)}
        for index in table.indexes:
            if index.name not in indexed:
                index.create(connection)


def _add_columns(op: Operations, table: Table, known: set[str]) -> None:
    for column in table.columns:
        if column.name in known:
            continue
        if not column.nullable:
            raise LookupError(f"the table {table.name} has no column {column.name}")
        op.add_column(table.name, Column(column.name, column.type, server_default=column.server_default))


def downgrade(op: Operations) -> None:
    """Drop what is ours alone; conversations stay."""
    op.drop_table("interlock_usage")
