"""Vectors in PostgreSQL, searched by pgvector: the laws of all indexes, on a real server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock.memory import Scope
from interlock.memory.sql import SqlStore
from memory.index_laws import LAWS, MODEL, found, row, unit

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("law", LAWS)
async def test_it_keeps_the_law(law: Any, postgres_url: str) -> None:
    """Exact within its scope, by model, whatever was put and deleted."""
    store = SqlStore(postgres_url)
    await law(store.vector_index())
    await store.close()


async def test_many_make_the_table_at_once(postgres_url: str) -> None:
    """The first searches of several processes do not get into each other's way."""
    stores = [SqlStore(postgres_url) for _ in range(4)]
    indexes = [store.vector_index() for store in stores]
    await asyncio.gather(*(index.upsert(MODEL, [row(str(n), unit(1, 0))]) for n, index in enumerate(indexes)))
    assert sorted(await found(indexes[0], Scope("r"))) == ["0", "1", "2", "3"]
    for store in stores:
        await store.close()
