"""Fixtures and settings for all tests."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

from interlock.memory import ConversationStore, InMemoryStore
from interlock.memory.sql import SqlStore
from memory.postgres import Postgres

collect_ignore = ["examples", "typing"]  # programs and type tests, see test_examples.py and test_typing.py

# derandomized: what passes here passes there; a run under HYPOTHESIS_PROFILE=search looks for new cases
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("search", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"


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


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ConversationStore]:
    """An empty store of each kind."""
    if request.param == "memory":
        yield InMemoryStore()
        return
    url = f"sqlite:///{tmp_path / 'agent.db'}" if request.param == "sqlite" else None
    made = SqlStore(url or request.getfixturevalue("postgres_url"))
    yield made
    await made.close()
