"""A real PostgreSQL for the tests that ask for one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from memory.postgres import Postgres


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """The server, started by the first test of the run that asks for it and shared by all workers."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # each worker has its own below that of the run
    with Postgres(folder) as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """The address of a fresh database of this test's own, ``postgresql://...``; pgvector is there."""
    name = postgres.create()
    yield postgres.url(name)
    postgres.drop(name)


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a fresh database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'agent.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url
