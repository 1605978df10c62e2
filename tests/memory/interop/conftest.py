"""Tests against other programs: a PostgreSQL server, and the reference on Node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.interop.reference import Reference, Shared


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    """A process of Node with the reference in it, for all tests of a module."""
    with Reference() as process:
        yield process


@pytest.fixture(params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, reference: Reference, tmp_path: Path) -> Iterator[Shared]:
    """A fresh database that both sides can reach."""
    if request.param == "sqlite":
        path = tmp_path / "shared.db"
        database = Shared(f"sqlite:///{path}", reference, f"file:{path}")
    else:
        url: str = request.getfixturevalue("postgres_url")
        database = Shared(url, reference, url)
    yield database
    database.mastra("close")
