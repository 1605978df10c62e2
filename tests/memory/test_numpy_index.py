"""The index in this process keeps the laws of all indexes."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.core.errors import UsageError
from interlock.memory import NumpyIndex, Scope
from memory.index_laws import LAWS


@pytest.mark.anyio
@pytest.mark.parametrize("law", LAWS)
async def test_it_keeps_the_law(law: Any) -> None:
    """Exact within its scope, by model, whatever was put and deleted."""
    await law(NumpyIndex())


def test_a_scope_names_somebody() -> None:
    """Threads without a resource have no common scope."""
    with pytest.raises(UsageError):
        Scope(None)
