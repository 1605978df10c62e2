"""Every scenario leaves the trace that the contract demands (VOCABULARY.md, EXPECTED.md)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import compare
import pytest
from harness import main, run_scenario
from interpreter import conditions, ops

HERE = Path(__file__).parent
SCENARIOS = HERE / "scenarios" / "public"
EXPECTED = HERE / "expected" / "public"
SHARED = HERE.parents[2] / "shared" / "conformance"
COPIES = ("VOCABULARY.md", "EXPECTED.md", "compare.py", "scenarios/public/*.json", "expected/public/*.json")


def read(path: Path) -> dict[str, Any]:
    """A JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(path.stem for path in SCENARIOS.glob("*.json")))
def test_scenario(name: str) -> None:
    """The scenario's trace is the expected one."""
    actual = run_scenario(read(SCENARIOS / f"{name}.json"))
    found = list(compare.differences(read(EXPECTED / f"{name}.json"), actual))
    assert not found, "\n".join(
        f"{d.path}: expected {d.expected!r:.400}, got {d.got!r:.400} {d.note}" for d in found
    )


def vocabulary(begin: str, end: str) -> str:
    """What VOCABULARY.md says between two headings."""
    text = (HERE / "VOCABULARY.md").read_text(encoding="utf-8")
    return text[text.index(begin) : text.index(end)]


def test_the_interpreter_knows_the_whole_language() -> None:
    """Every op and condition of VOCABULARY.md is interpreted, and no other."""
    rows = [
        line.split("` |")[0] + "`"
        for line in vocabulary("### Ops", "## Tools").splitlines()
        if line[:3] == "| `"
    ]
    assert set(re.findall(r"`([a-z_]+)", " ".join(rows))) == ops.KNOWN
    named = set(re.findall(r"`([a-z_]+)", vocabulary("### Conditions", "*Hook text*"))) - {"when"}
    assert named == conditions.KNOWN


def test_every_scenario_has_its_expected_trace() -> None:
    """Scenarios and expected traces are the same set."""
    assert {path.name for path in SCENARIOS.glob("*.json")} == {path.name for path in EXPECTED.glob("*.json")}


def test_the_command_line_writes_traces(tmp_path: Path) -> None:
    """``harness.py SCENARIO_DIR OUT_DIR --only ID`` writes one trace a scenario; an unknown id is refused."""
    assert main([str(SCENARIOS), str(tmp_path), "--only", "life-text-stream,input-empty-string"]) == 0
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == ["input-empty-string", "life-text-stream"]
    assert compare.main([str(EXPECTED), str(tmp_path), "--only", "life-text-stream", "--quiet"]) == 0
    assert main([str(SCENARIOS), str(tmp_path), "--only", "no-such-scenario"]) == 2


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared folder is not beside the repository")
def test_copies_are_the_shared_ones() -> None:
    """The copies here say what the shared folder says; the failure names those that differ."""
    theirs = {path.relative_to(SHARED) for pattern in COPIES for path in SHARED.glob(pattern)}
    ours = {path.relative_to(HERE) for pattern in COPIES for path in HERE.glob(pattern)}
    changed = {name for name in theirs & ours if (SHARED / name).read_bytes() != (HERE / name).read_bytes()}
    differing = sorted(str(name) for name in changed | (theirs ^ ours))
    assert not differing, f"copy these from {SHARED} again: {', '.join(differing)}"
