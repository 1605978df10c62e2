"""Semantic recall over 10,000 messages, without the embedding: in SQLite (numpy) and in PostgreSQL (pgvector)."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy
from measure import Report

from interlock.memory import MessageVectors, Scope, SemanticRecall, Turn
from interlock.memory.sql import SqlStore
from interlock.messages import Content, Message, TextPart

MESSAGES = 10_000
DIMENSIONS = 384
THREADS = 100
ROUNDS = 60
AIM = 20.0  # milliseconds


class Known:
    """An embedder that takes no time."""

    model_id = "bench"

    def __init__(self, vectors: Any) -> None:
        self.vectors = vectors
        self.next = 0

    async def embed(self, texts: Any, *, kind: str) -> Any:
        self.next += 1
        return self.vectors[self.next % len(self.vectors)][None, :]


async def fill(store: SqlStore, index: Any, vectors: Any) -> None:
    per_thread = MESSAGES // THREADS
    for thread in range(THREADS):
        ids = [f"recall-{n}" for n in range(thread * per_thread, (thread + 1) * per_thread)]
        content = Content(parts=[TextPart(text="what was said " * 5)])
        messages = [Message(id=id, role="user", content=content.replace()) for id in ids]
        name = f"recall-{thread}"
        await store.save_turn(Turn(thread_id=name, resource_id="recall", messages=messages))
        found = vectors[thread * per_thread : (thread + 1) * per_thread]
        rows = [
            MessageVectors(message_id=id, thread_id=name, resource_id="recall", vectors=[vector])
            for id, vector in zip(ids, found, strict=True)
        ]
        await index.upsert("bench", rows)


async def measure(report: Report, url: str, name: str) -> None:
    """Search, and search with reading what was found and what stands around it.

    The ratio is to two things that nobody can go below, timed in between: a product over all the vectors, and one
    turn's way to the database and back.
    """
    random = numpy.random.default_rng(1)
    vectors = random.normal(size=(MESSAGES, DIMENSIONS)).astype(numpy.float32)
    vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)
    store = SqlStore(url)
    index = store.vector_index()
    await fill(store, index, vectors)
    recall = SemanticRecall(store, index, Known(vectors), cache_size=0)  # type: ignore[arg-type]
    times: dict[str, list[float]] = {"search": [], "all": [], "least": []}
    started = time.perf_counter()
    await recall.recall("q", thread_id="recall-0", resource_id="recall")
    first = time.perf_counter() - started
    for number in range(ROUNDS):
        started = time.perf_counter()
        await index.search("bench", vectors[number], scope=Scope("recall"), top_k=4)
        times["search"].append(time.perf_counter() - started)
        started = time.perf_counter()
        found = await recall.recall(f"q{number}", thread_id="recall-0", resource_id="recall")
        times["all"].append(time.perf_counter() - started)
        assert len(found) >= 4
        started = time.perf_counter()
        vectors @ vectors[number]
        await store.messages(f"recall-{number % THREADS}", resource_id="recall", last=12)
        times["least"].append(time.perf_counter() - started)
    await store.close()
    medians = {what: 1e3 * statistics.median(row) for what, row in times.items()}
    report.ratio(
        f"{name}: recall over {MESSAGES:,}, against a product and one read",
        medians["all"] / medians["least"],
        at_most=6,
    )
    report.against(f"{name}: recall over {MESSAGES:,}, with the messages", medians["all"], "ms", AIM)
    report.figure(
        f"{name}: the search alone / the first of a scope", f"{medians['search']:.1f} / {1e3 * first:.0f} ms"
    )
