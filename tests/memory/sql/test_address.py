"""Addresses of databases, as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import UsageError
from interlock.memory.sql.address import checked_address


@pytest.mark.parametrize(
    ("given", "driver", "database"),
    [
        ("sqlite:///agent.db", "sqlite+aiosqlite", "agent.db"),
        ("sqlite:////var/agent.db", "sqlite+aiosqlite", "/var/agent.db"),
        ("sqlite+aiosqlite:///agent.db", "sqlite+aiosqlite", "agent.db"),
        ("postgresql://u:p@host/db", "postgresql+asyncpg", "db"),
        ("postgres://u:p@host/db", "postgresql+asyncpg", "db"),
        ("postgresql+asyncpg://u:p@host/db", "postgresql+asyncpg", "db"),
    ],
)
def test_usual_addresses_are_taken(given: str, driver: str, database: str) -> None:
    """The driver is put in; nobody has to know it."""
    url = checked_address(given)
    assert (url.drivername, url.database) == (driver, database)


def test_sslmode_is_understood() -> None:
    """The address that libpq and the reference take works here too."""
    assert checked_address("postgres://h/db?sslmode=require").query == {"ssl": "require"}


@pytest.mark.parametrize(
    "given",
    ["", "agent.db", "mysql://h/db", "postgresql+psycopg://h/db", "sqlite://", "sqlite:///:memory:", None],
)
def test_other_addresses_are_refused(given: Any) -> None:
    """The error says what to write, and does not repeat what may hold a password."""
    with pytest.raises(UsageError, match=r"sqlite:///agent\.db"):
        checked_address(given)
