"""The reference under test: its own process, its own Node; a machine that cannot have it is told so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from memory.interop.reference import Reference, installed, node


def test_node_comes_with_the_development_dependencies() -> None:
    """No Node is needed on the machine: the one that runs is the package's."""
    assert node().is_relative_to(Path(pytest.__file__).parent.parent)
    done = subprocess.run([node(), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("v")


def test_without_the_registry_it_fails_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are never skipped: where the packages cannot be had, the error names what is missing."""
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    with pytest.raises(RuntimeError, match=r"these tests need the npm registry once.*ECONNREFUSED"):
        installed(tmp_path / "packages")


def test_what_fails_over_there_is_an_error_here(reference: Reference, tmp_path: Path) -> None:
    """An operation that throws in the other process is reported with its words, and the next one works."""
    with pytest.raises(RuntimeError, match="the reference: save: "):
        reference("save", url=f"file:{tmp_path}/x.db", messages=[{"id": "m"}])
    with pytest.raises(RuntimeError, match="not a function"):
        reference("no-such-operation", url="x")
    reference("close", url=f"file:{tmp_path}/x.db")
