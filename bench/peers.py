"""The same texts, cut the same way, through other libraries' filters and through ours."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import regex
from guards import DELTAS, EMAIL, Says, english, pieces_of, read
from measure import SCRATCH, Report, best_of, install_reference

from interlock import Agent
from interlock.processors import RegexFilter
from interlock.testing import never_sent, random_cuts

LANGCHAIN = "langchain==1.5.2"
CUTS = 300
TURNS = 5

KEY = r"-----BEGIN KEY-----[A-Za-z0-9+/=]+-----END KEY-----"
TEXTS = {
    "e-mail": (
        EMAIL,
        "Hello Anna, please write to bob.smith@example.com or, on weekends, to ann@corp.company-internal.example.org. "
        "The list is at team+list@mail.example.net; a handle such as @anna or a price such as 3 @ 4 is no address. "
        "Thank you, and see you on Monday!",
    ),
    "key": (
        KEY,
        "Here is what you asked for: -----BEGIN KEY-----"
        + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 10
        + "-----END KEY-----"
        " Keep it safe, and do not paste it into a chat.",
    ),
}
"""The second has a match longer than the 128 characters that both others hold back."""


async def against_peers(report: Report) -> None:
    for name, (pattern, text) in TEXTS.items():
        cuts = list(random_cuts(text, count=CUTS, seed=4, empty_chunks=False))
        sent = [await ours(pieces, name, pattern) for pieces in cuts]
        right = rightly(sent, text, pattern, f"[{name.upper()}]")
        report.ratio(f"{name}: random cuts right, of {CUTS}", right, at_least=CUTS)
        task = {
            "rules": [{"name": name, "pattern": pattern, "replacement": f"[{name.upper()}]"}],
            "cuts": cuts,
            "timed": pieces_of(english(DELTAS * 5)) if name == "e-mail" else [],
            "turns": TURNS if name == "e-mail" else 0,
        }
        for peer, placeholder in (
            ("Mastra", f"[{name.upper()}]"),
            ("LangChain", f"[REDACTED_{name.upper()}]"),
        ):
            run = mastra if peer == "Mastra" else langchain
            came = run(task)
            if came is None:
                report.figure(peer, "not measured: it could not be installed")
                report.missed.append(f"{peer} could not be measured")
                continue
            report.figure(
                f"{name}: random cuts right, of {CUTS}: {peer}",
                str(rightly(came["sent"], text, pattern, placeholder)),
            )
            if came["guarded"]:
                await per_chunk(report, peer, came)
        came = langchain({**task, "turns": 0}, "--messages")
        if came is not None:
            right = rightly(came["sent"], text, pattern, f"[REDACTED_{name.upper()}]")
            report.figure(f"{name}: random cuts right, of {CUTS}: LangChain, the usual stream", str(right))


async def ours(pieces: list[str], name: str, pattern: str) -> list[str]:
    agent = Agent(id="bench", model=Says(pieces), output_processors=[RegexFilter({name: pattern})])
    async with agent.stream("hi") as stream:
        sent = [piece async for piece in stream.text_stream]
        assert (await stream.result()).text == "".join(sent)
    return sent


def rightly(sent: list[list[str]], text: str, pattern: str, placeholder: str) -> int:
    """How often the client got what the filter makes of the whole text, and no piece of what it removes."""
    spans = [found.span() for found in regex.finditer(pattern, text)]
    whole = regex.sub(pattern, placeholder, text)
    return sum("".join(pieces) == whole and clean(pieces, spans, text, placeholder) for pieces in sent)


def clean(pieces: list[str], spans: list[tuple[int, int]], text: str, placeholder: str) -> bool:
    try:
        never_sent(pieces, spans, whole=text, replacements=[placeholder])
    except AssertionError:
        return False
    return True


async def per_chunk(report: Report, peer: str, came: dict[str, Any]) -> None:
    theirs, without = min(came["guarded"]), min(came["bare"])
    pieces = pieces_of(english(DELTAS * 5))
    guarded, bare = await best_of(
        lambda: read(pieces, [RegexFilter({"e-mail": EMAIL})]), lambda: read(pieces, [])
    )
    report.figure(
        f"{peer}: time per chunk, with the filter / without / added",
        f"{theirs / DELTAS * 1e6:.0f} / {without / DELTAS * 1e6:.0f} / {(theirs - without) / DELTAS * 1e6:.1f} µs",
    )
    report.figure(
        "ours: time per chunk, with the filter / without / added",
        f"{guarded / DELTAS * 1e6:.1f} / {bare / DELTAS * 1e6:.1f} / {(guarded - bare) / DELTAS * 1e6:.1f} µs",
    )
    report.ratio(f"time per chunk with one e-mail rule, against {peer}", guarded / theirs, at_most=1)


def mastra(task: dict[str, Any]) -> dict[str, Any] | None:
    folder = install_reference()
    return None if folder is None else answer(task, ["node", "guards.mjs"], folder)


def langchain(task: dict[str, Any], *options: str) -> dict[str, Any] | None:
    folder = SCRATCH / "langchain"
    python = folder / "bin" / "python"
    if not python.exists():
        print("       installing LangChain into bench/.scratch (once) ...")
        venv.create(folder, with_pip=True)
        command = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", LANGCHAIN]
        if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode != 0:
            return None
    return answer(task, [str(python), str(Path(__file__).parent / "guards_langchain.py")], SCRATCH, *options)


def answer(task: dict[str, Any], command: list[str], folder: Path, *options: str) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(task, file)
        file.flush()
        done = subprocess.run(
            [*command, file.name, *options], cwd=folder, check=True, capture_output=True, text=True
        )
    return json.loads(done.stdout.strip().splitlines()[-1])


if __name__ == "__main__":
    whole = Report()
    asyncio.run(against_peers(whole))
    sys.exit(1 if whole.missed else 0)
