"""Vectors in SQLite, searched with numpy: the laws of all indexes, and what is kept in memory is never stale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.memory import NumpyIndex, Scope
from interlock.memory.sql import SqlStore
from interlock.memory.sql import vectors as module
from memory.index_laws import LAWS, MODEL, found, row, unit

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("law", LAWS)
async def test_it_keeps_the_law(law: Any, tmp_path: Path) -> None:
    """Exact within its scope, by model, whatever was put and deleted."""
    store = SqlStore(f"sqlite:///{tmp_path / 'a.db'}")
    await law(store.vector_index())
    await store.close()


CHANGES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(0, 3), st.integers(0, 5), st.booleans()), max_size=12
)


@given(changes=CHANGES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_what_others_write_is_found_at_once(changes: list[Any], tmp_path_factory: Any) -> None:
    """Two processes on one file: whatever one puts, replaces or deletes, the other's next search knows."""
    path = tmp_path_factory.mktemp("db") / "a.db"
    stores = [SqlStore(f"sqlite:///{path}") for _ in range(2)]
    one, other = (store.vector_index() for store in stores)
    plain = NumpyIndex()
    for name, pieces, angle, deletes in changes:
        if deletes:
            for index in (one, plain):
                await index.delete(scope=Scope("r"), message_ids=[name])
        else:
            vectors = [unit(numpy.cos(angle + i), numpy.sin(angle + i)) for i in range(pieces)]
            for index in (one, plain):
                await index.upsert(MODEL, [row(name, *vectors)])
        expected = await plain.search(MODEL, unit(1, 0), scope=Scope("r"), top_k=9)
        for index in (one, other):
            seen = await index.search(MODEL, unit(1, 0), scope=Scope("r"), top_k=9)
            assert {m.message_id: round(m.score, 5) for m in seen} == {
                m.message_id: round(m.score, 5) for m in expected
            }
    for store in stores:
        await store.close()


async def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scopes that were not searched for longest leave memory, and are read again when they are."""
    monkeypatch.setattr(module, "ROOM", 1)
    store = SqlStore(f"sqlite:///{tmp_path / 'a.db'}")
    index = store.vector_index()
    await index.upsert(MODEL, [row("a", unit(1, 0), thread="t"), row("b", unit(1, 0), thread="u")])
    for _ in range(2):
        assert await found(index, Scope("r", "t")) == ["a"]
        assert await found(index, Scope("r", "u")) == ["b"]
    await store.close()
