"""A program that dies: forks writers of turns and kills each at a random moment. ``crash.py url runs seed``."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import sys
import time

import interlock.memory.sql  # noqa: F401  # pyright: ignore[reportUnusedImport]  (before the forks: they are quick then)
from interlock import Agent
from interlock.memory import Memory
from interlock.testing import ScriptedModel, text

QUESTIONS = 5
"""User messages of a turn; the answer is one more."""


async def write(url: str, run: int, started: int) -> None:
    """Turns for ever, in two threads at once."""
    async with Memory(url, last_messages=4) as memory:
        model = ScriptedModel([text("a", "nswer")], repeat_last=True)
        agent = Agent(id="a", model=model, memory=memory)

        async def talk(thread: str) -> None:
            for n in itertools.count():
                questions = [f"{n}-{k}" for k in range(QUESTIONS)]
                await agent.generate(questions, memory={"thread": thread, "resource": "r"})
                if not n:
                    os.write(started, b".")

        await asyncio.gather(talk(f"{run}-a"), talk(f"{run}-b"))


def main(url: str, runs: int, seed: int) -> None:
    """Fork, wait a little, kill; so many times."""
    chance = random.Random(seed)
    for run in range(runs):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            asyncio.run(write(url, run, writing))
        os.read(reading, 1)
        time.sleep(chance.uniform(0, 0.15))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
