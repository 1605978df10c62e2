"""Lets these tests import what they share."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interlock.memory import ConversationStore

sys.path.insert(0, str(Path(__file__).parent))

import notation


@pytest.fixture
async def every_store(store: ConversationStore) -> AsyncIterator[None]:
    """The case against a store of each kind: in the process, rows in SQLite, rows in PostgreSQL."""
    notation.KEPT[:] = [store]
    yield
    notation.KEPT.clear()
