"""Fixtures and settings for all tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

collect_ignore = ["examples", "typing"]  # programs and type tests, see test_examples.py and test_typing.py

# derandomized: what passes here passes there; a run under HYPOTHESIS_PROFILE=search looks for new cases
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("search", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"
