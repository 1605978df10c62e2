"""The types tell: correct hooks pass a strict checker, a wrong lane and a wrong return do not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent / "typing"


def reported(file: Path, tmp_path: Path) -> dict[int, str]:
    """What pyright in strict mode says of a file, by line (from 1)."""
    settings = {
        "include": [str(file)],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "reportUnusedExpression": False,
    }
    config = tmp_path / "pyrightconfig.json"
    config.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(file)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1, done.stdout
    problems = [entry for entry in report["generalDiagnostics"] if entry["severity"] == "error"]
    return {entry["range"]["start"]["line"] + 1: entry["message"] for entry in problems}


@pytest.mark.timeout(180)
def test_every_hook_in_both_forms_type_checks(tmp_path: Path) -> None:
    """R2.3, R2.4: every hook, sync and async, with the types the docs name, passes a strict type checker."""
    assert reported(EXAMPLES / "hooks.py", tmp_path) == {}


@pytest.mark.timeout(180)
def test_a_wrong_lane_and_a_wrong_return_are_type_errors(tmp_path: Path) -> None:
    """R2.4: a processor in the wrong list, a wrong return, subject or option is reported on its line, and no other."""
    file = EXAMPLES / "mistakes.py"
    expected = {n for n, line in enumerate(file.read_text().splitlines(), 1) if line.endswith("# error")}
    assert set(reported(file, tmp_path)) == expected
