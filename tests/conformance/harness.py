"""Runs scenarios against the library and writes the traces they leave.

    python tests/conformance/harness.py SCENARIO_DIR OUT_DIR [--only ID[,ID...]]

Any folder of scenarios in the language of VOCABULARY.md will do; the traces have the form of EXPECTED.md, one file
per scenario, ready for ``compare.py EXPECTED_DIR OUT_DIR``. The harness interprets: it knows no scenario and expects
nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from interpreter.world import World  # found beside this file, however it is started


def run_scenario(scenario: dict[str, Any]) -> dict[str, Any]:
    """The trace that a scenario leaves."""
    try:
        return asyncio.run(World(scenario).run())
    except Exception as problem:  # one that cannot be read must not keep the others from running
        return {"id": scenario.get("id"), "harness_error": f"{type(problem).__name__}: {problem}"}


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenarios", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", metavar="ID[,ID...]")
    args = parser.parse_args(argv)
    only = {name for name in args.only.split(",") if name}
    files = [path for path in sorted(args.scenarios.glob("*.json")) if not only or path.stem in only]
    if not files or only - {path.stem for path in files}:
        sys.stderr.write(f"no such scenario in {args.scenarios}\n")
        return 2
    args.out.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.ERROR)  # what on_violation raises is logged, on purpose
    try:
        for path in files:
            trace = run_scenario(json.loads(path.read_text(encoding="utf-8")))
            text = json.dumps(trace, ensure_ascii=False, indent=1)
            (args.out / path.name).write_text(text + "\n", encoding="utf-8")
    finally:
        logging.disable(logging.NOTSET)
    sys.stdout.write(f"{len(files)} traces in {args.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
