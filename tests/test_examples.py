"""The examples: whole programs that use the library as a user would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent / "examples").glob("*.py"))
ORIGINALS = Path(__file__).parents[2] / "shared" / "examples"


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda program: program.stem)
def test_it_runs(program: Path, tmp_path: Path) -> None:
    """It ends well, with warnings as errors, from another directory, and prints nothing."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-X", "dev", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    # asyncio's debug mode tells of callbacks that took 0.1 s: that is the machine's matter, imports do
    said = [line for line in ran.stderr.splitlines() if not line.startswith("Executing <")]
    assert (ran.returncode, ran.stdout, said) == (0, "", [])


@pytest.mark.skipif(not ORIGINALS.is_dir(), reason="the originals are not here")
@pytest.mark.parametrize("program", EXAMPLES, ids=lambda program: program.stem)
def test_it_is_the_original(program: Path) -> None:
    """A copy has not drifted from the example it was copied from."""
    assert program.read_text() == (ORIGINALS / program.name).read_text()


def test_there_are_examples() -> None:
    """An empty directory would pass everything above."""
    assert len(EXAMPLES) >= 9
