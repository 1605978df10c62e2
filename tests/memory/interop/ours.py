"""Our side of a shared database."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from interlock.memory import Memory
from interlock.memory.sql import SqlStore


@asynccontextmanager
async def remembering(url: str, **options: Any) -> AsyncGenerator[Memory]:
    """Memory in the database there, closed at the end."""
    store = SqlStore(url)
    try:
        yield Memory(store, **options)
    finally:
        await store.close()
