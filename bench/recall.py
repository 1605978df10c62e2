"""Semantic recall over 10,000 messages: the search without the embedding, in SQLite (numpy) and PostgreSQL (pgvector).

python bench/recall.py [postgresql://...]
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy

from interlock.core.messages import Content, Message, TextPart
from interlock.core.result import Turn
from interlock.memory import MessageVectors, Scope, SemanticRecall
from interlock.memory.sql import SqlStore

MESSAGES = 10_000
DIMENSIONS = 384
THREADS = 100
ROUNDS = 50


class Known:
    """An embedder that takes no time."""

    model_id = "bench"

    def __init__(self, vectors: Any) -> None:
        self.vectors = vectors
        self.next = 0

    async def embed(self, texts: Any, *, kind: str) -> Any:
        self.next += 1
        return self.vectors[self.next % len(self.vectors)][None, :]


async def measure(url: str, name: str) -> None:
    random = numpy.random.default_rng(1)
    vectors = random.normal(size=(MESSAGES, DIMENSIONS)).astype(numpy.float32)
    vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)
    store = SqlStore(url)
    index = store.vector_index()
    per_thread = MESSAGES // THREADS
    for thread in range(THREADS):
        ids = range(thread * per_thread, (thread + 1) * per_thread)
        content = Content(parts=[TextPart(text="what was said " * 5)])
        messages = [Message(id=str(i), role="user", content=content.replace()) for i in ids]
        await store.save_turn(Turn(thread_id=str(thread), resource_id="r", messages=messages))
        rows = [
            MessageVectors(message_id=str(i), thread_id=str(thread), resource_id="r", vectors=[vectors[i]])
            for i in ids
        ]
        await index.upsert("bench", rows)
    recall = SemanticRecall(store, index, Known(vectors), cache_size=0)  # type: ignore[arg-type]
    started = time.perf_counter()
    await recall.recall("q0", thread_id="0", resource_id="r")
    print(f"{name}: first {1000 * (time.perf_counter() - started):.1f} ms", end="; ")
    for what in ("search", "search and messages"):
        times: list[float] = []
        for number in range(ROUNDS):
            started = time.perf_counter()
            if what == "search":
                await index.search("bench", vectors[number], scope=Scope("r"), top_k=4)
            else:
                found = await recall.recall(f"q{number + 1}", thread_id="0", resource_id="r")
                assert len(found) >= 4
            times.append(1000 * (time.perf_counter() - started))
        worst = sorted(times)[int(ROUNDS * 0.95)]
        print(f"{what}: median {statistics.median(times):.1f} ms, 95 % below {worst:.1f} ms", end="; ")
    print()
    await store.close()


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        await measure(f"sqlite:///{Path(folder) / 'bench.db'}", "SQLite and numpy")
    for url in sys.argv[1:]:
        await measure(url, "PostgreSQL and pgvector")


asyncio.run(main())
