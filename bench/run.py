"""What the pipeline, the guards and memory cost: ``make bench``.

Ratios between things timed in the same run decide (exit status 1 when one is missed); absolute figures are printed
for the record and decide nothing. Each pair is timed in turns and the best of each is taken, so that a machine whose
speed drifts treats both alike.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import guards
import peers
from measure import Report, best_of, install_reference

from interlock import Agent, ModelRequest, Processor
from interlock.chunks import Chunk, Finish, TextDelta, TextEnd, TextStart, Usage
from memory import conversations

DELTAS = 2_000


class Deltas:
    """A model that says ``hello`` n times."""

    provider = model_id = "deltas"

    def __init__(self, n: int) -> None:
        self.n = n

    async def stream(self, request: ModelRequest | None) -> AsyncGenerator[Chunk, None]:
        yield TextStart(id="t")
        for _ in range(self.n):
            yield TextDelta("hello", "t")
        yield TextEnd(id="t")
        yield Finish(finish_reason="stop", usage=Usage(input_tokens=1, output_tokens=1, total_tokens=2))


class Pass(Processor):
    """Lets every chunk through."""

    def __init__(self, number: int) -> None:
        self.id = f"pass-{number}"

    async def process_output_stream(self, chunk: Chunk, ctx: Any) -> Chunk:
        return chunk


def passes(k: int) -> list[Pass]:
    return [Pass(number) for number in range(k)]


async def read_stream(n: int, k: int) -> None:
    agent = Agent(id="bench", model=Deltas(n), output_processors=passes(k))
    async with agent.stream("hi") as stream:
        async for _ in stream:
            pass


async def by_hand(n: int, k: int) -> None:
    hooks = [processor.process_output_stream for processor in passes(k)]
    async for chunk in Deltas(n).stream(None):
        for hook in hooks:
            chunk = await hook(chunk, None)


async def against_hand_written(report: Report) -> None:
    ours, hand = await best_of(lambda: read_stream(DELTAS, 10), lambda: by_hand(DELTAS, 10), turns=15)
    report.ratio("10 stream hooks, against a hand-written loop awaiting them", ours / hand, at_most=3)
    for k in (0, 1, 10):
        (seconds,) = await best_of(lambda k=k: read_stream(DELTAS, k))
        report.figure(f"per chunk, read to the end, {k} async hooks", f"{seconds / DELTAS * 1e6:.2f} µs")


async def linear(report: Report) -> None:
    short, long = await best_of(lambda: read_stream(20_000, 1), lambda: read_stream(200_000, 1), turns=3)
    report.ratio("200,000 deltas against 20,000", long / short, at_most=11)


async def memory(report: Report) -> None:
    peaks: list[int] = []
    for n in (2_000, 20_000):
        tracemalloc.start()
        await read_stream(n, 1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    per_delta = (peaks[1] - peaks[0]) / 18_000
    report.figure(
        "peak memory of a run of 2,000 / 20,000 deltas", f"{peaks[0] / 1e3:.0f} / {peaks[1] / 1e3:.0f} kB"
    )
    # the result keeps the text: 5 characters a delta, held once as pieces and once joined
    report.ratio("bytes kept per delta of 5 characters", per_delta, at_most=40)


async def empty_run(report: Report) -> None:
    model = Deltas(1)
    agent = Agent(id="bench", model=model)

    async def runs() -> None:
        for _ in range(500):
            await agent.generate("hi")

    async def bare() -> None:
        for _ in range(500):
            async for _ in model.stream(None):
                pass

    ours, own = await best_of(runs, bare, turns=15)
    report.figure(
        "an empty run (generate, one step, no processors), own time", f"{(ours - own) / 500 * 1e6:.1f} µs"
    )


async def concurrent(report: Report) -> None:
    n, runs = 200, 1_000

    async def one() -> None:
        for _ in range(20):
            await read_stream(n, 1)

    async def many() -> None:
        await asyncio.gather(*(read_stream(n, 1) for _ in range(runs)))

    alone, together = await best_of(one, many, turns=3)
    rate_alone, rate_together = 20 * n / alone, runs * n / together
    report.ratio(
        "chunks per second, 1,000 concurrent runs against one", rate_together / rate_alone, at_least=0.7
    )
    report.figure("chunks per second: one run / 1,000 at once", f"{rate_alone:,.0f} / {rate_together:,.0f}")
    report.figure(
        "peak memory of this process so far",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB",
    )


async def against_reference(report: Report) -> None:
    folder = install_reference()
    if folder is None:
        report.figure("the reference", "not measured: npm is not there")
        report.missed.append("the reference could not be measured")
        return
    for k, limit in ((10, 1 / 30), (0, 1 / 15)):
        (before,) = await best_of(lambda k=k: read_stream(DELTAS, k))
        theirs = min(reference_times(folder, k)) / 1e9 * DELTAS
        (after,) = await best_of(lambda k=k: read_stream(DELTAS, k))
        ours = min(before, after)
        report.ratio(f"time per chunk against the reference, {k} hooks", ours / theirs, at_most=limit)
        report.figure(f"the reference per chunk, {k} hooks", f"{theirs / DELTAS * 1e6:.0f} µs")


def reference_times(folder: Path, k: int) -> list[float]:
    command = ["node", "reference.mjs", str(DELTAS), str(k), "3"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


async def providers(report: Report) -> None:
    """The adapters, in a process of their own: the SDKs they are compared with are large."""
    command = [sys.executable, str(Path(__file__).parent / "providers.py")]
    done = await asyncio.to_thread(subprocess.run, command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    judged = [
        ("own adapter per chunk, against the official SDK", "own_us", "sdk_us", 1 / 5),
        (
            "pydantic-ai adapter per chunk, against pydantic-ai",
            "pydantic_adapter_us",
            "pydantic_own_us",
            1.15,
        ),
        ("import interlock, against import openai", "import_interlock_ms", "import_openai_ms", 1 / 4),
        ("importing the own adapter, against import openai", "import_adapter_ms", "import_openai_ms", 1 / 2),
    ]
    for name, ours, theirs, limit in judged:
        if ours in found and theirs in found:
            report.ratio(name, found[ours] / found[theirs], at_most=limit)
    for name, value in found.items():
        label, _, unit = name.rpartition("_")
        if unit == "streams":
            report.figure(f"streams of 50 chunks a second one core sustains, {label}", f"{value:,.0f}")
        else:
            report.figure(f"CPU time, {label}", f"{value:.1f} {unit.replace('us', 'µs a chunk')}")


async def main() -> int:
    report = Report()
    own = (against_hand_written, linear, memory, empty_run, concurrent, providers, against_reference)
    for part in (*own, *guards.PARTS, peers.against_peers, conversations):
        await part(report)
    if report.missed:
        print(f"missed: {'; '.join(report.missed)}")
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
