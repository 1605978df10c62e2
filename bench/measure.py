"""What the benchmarks measure with, and the reference to measure against."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

SCRATCH = Path(__file__).parent / ".scratch"
REFERENCE = "@mastra/core@1.71.0"
TURNS = 7


async def timed(work: Callable[[], Awaitable[Any]], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    await work()
    return clock() - started


async def best_of(
    *works: Callable[[], Awaitable[Any]], turns: int = TURNS, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """The best time of each, timed in turns, in seconds. ``time.process_time`` leaves out what others do meanwhile."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(turns):
        for row, work in zip(times, works, strict=True):
            row.append(await timed(work, clock))
    return [min(row) for row in times]


class Report:
    """Prints figures, remembers which ratios were missed."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def figure(self, name: str, value: str) -> None:
        print(f"       {name:<66} {value}")

    def against(self, name: str, value: float, unit: str, aim: float) -> None:
        """An absolute figure beside what it should be; it decides nothing."""
        note = "" if value <= aim else "  <- above"
        self.figure(name, f"{value:.2f} {unit} (aim: {aim:g} {unit}){note}")

    def ratio(
        self, name: str, value: float, *, at_most: float | None = None, at_least: float | None = None
    ) -> None:
        held = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
        limit = f"at most {at_most:.4g}" if at_most is not None else f"at least {at_least:.4g}"
        print(f"{'ok    ' if held else 'MISSED'} {name:<66} {value:.4g} ({limit})")
        if not held:
            self.missed.append(name)


def install_reference() -> Path | None:
    if shutil.which("npm") is None:
        return None
    if not (SCRATCH / "node_modules" / "@mastra" / "core").is_dir():
        print("       installing the reference into bench/.scratch (once) ...")
        SCRATCH.mkdir(exist_ok=True)
        (SCRATCH / "package.json").write_text('{"private": true, "type": "module"}\n')
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", REFERENCE]
        subprocess.run(command, cwd=SCRATCH, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for script in Path(__file__).parent.glob("*.mjs"):
        shutil.copy(script, SCRATCH)
    return SCRATCH
