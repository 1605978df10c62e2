"""What guards cost while text streams, beside the bare loop and beside other libraries' filters.

The text is plain English, cut into pieces of five characters as a fast model sends them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any

from measure import Report, best_of

from interlock import Agent, ModelRequest, guard_stream
from interlock.chunks import Chunk, Finish, TextDelta, TextEnd, TextStart, Usage
from interlock.processors import KeywordFilter, RegexFilter

ENGLISH = """\
The ferry left the harbour a little after seven, while the lamps along the quay were still lit. Nobody on deck spoke \
much; most of the passengers had found a place out of the wind and were looking back at the town. "We will be there \
before noon," the mate said, and poured himself another cup of coffee. It had rained all week, and the hills behind \
the last houses were greener than anyone remembered them.

Anna had brought a book, but she did not open it. She was thinking about the letter in her pocket: two pages, written \
in a hurry, with a question at the end that she could not answer yet. Should she stay for the winter? There was work \
enough, her brother wrote, and the room under the roof was free again (the old tenant had moved to the coast). On the \
other hand, the city had its own promises; it always had. By the time the first islands came into sight she had made \
up her mind at least twice - once each way.

At the third island a boy came aboard with a basket of pears. He sold them for next to nothing, he said, because his \
uncle's trees did not know when to stop. The mate bought six, tasted one, and bought six more. Somebody began to sing.
"""
PIECE = 5
DELTAS = 4_000
EMAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"

TEN = {
    "email": EMAIL,
    "card": r"\b\d{4}(?:[ -]?\d{4}){3}\b",
    "ip": r"(?<!\d)\d{1,3}(?:\.\d{1,3}){3}(?!\d)",
    "key": r"\bsk-[A-Za-z0-9-]{16,}",
    "url": r"https?://[^\s<>\"]+",
    "iban": r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}\b",
    "ssn": r"\b\d{3}-\d{2}-\d{4}\b",
    "pem": r"-----BEGIN [A-Z ]+-----[^-]+-----END [A-Z ]+-----",
    "token": r"(?i)\bbearer\s+[\w.~+/-]+=*",
}


def english(characters: int) -> str:
    return (ENGLISH * (characters // len(ENGLISH) + 1))[:characters]


def pieces_of(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


class Says:
    """A model that says these pieces; ``waits``: as one that waits for its provider in front of each."""

    provider = model_id = "says"

    def __init__(self, pieces: Iterable[str], *, waits: bool = False) -> None:
        self.pieces = pieces
        self.waits = waits

    async def stream(self, request: ModelRequest | None) -> AsyncGenerator[Chunk, None]:
        yield TextStart(id="t")
        for piece in self.pieces:
            if self.waits:
                await asyncio.sleep(0)
            yield TextDelta(piece, "t")
        yield TextEnd(id="t")
        yield Finish(finish_reason="stop", usage=Usage(input_tokens=1, output_tokens=1, total_tokens=2))


class Timed(RegexFilter):
    """Notes how long each chunk took it, in nanoseconds."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.took: list[int] = []

    def process_output_stream(self, chunk: Chunk, ctx: Any) -> Any:
        begun = time.perf_counter_ns()
        out = super().process_output_stream(chunk, ctx)
        self.took.append(time.perf_counter_ns() - begun)
        return out


def one_rule(kind: type[RegexFilter] = RegexFilter) -> RegexFilter:
    return kind({"email": EMAIL})


def preset(kind: type[RegexFilter] = RegexFilter) -> RegexFilter:
    return kind(presets=["pii"])


def ten_guards() -> list[Any]:
    guards: list[Any] = [RegexFilter({name: pattern}, id=name) for name, pattern in TEN.items()]
    return [*guards, KeywordFilter(words(1_000), rule="rival")]


def words(count: int) -> list[str]:
    return [f"acme{number:06x}" for number in range(count)]


async def read(pieces: list[str], guards: list[Any]) -> None:
    async with Agent(id="bench", model=Says(pieces), output_processors=guards).stream("hi") as stream:
        async for _ in stream:
            pass


# ------------------------------------------------------------------------------------------------------ time per chunk


async def per_chunk(report: Report) -> None:
    """The limits are the microseconds aimed at: a chunk of the bare loop takes about one."""
    pieces = pieces_of(english(DELTAS * PIECE))
    for name, guards, limit in (
        ("one e-mail rule", [one_rule()], 3),
        ("the preset pii", [preset()], 8),
        ("ten guards", ten_guards(), 50),
    ):
        guarded, bare = await best_of(
            lambda g=guards: read(pieces, g), lambda: read(pieces, []), clock=time.process_time
        )
        report.ratio(
            f"{name}: added per chunk, in chunks of the bare loop", (guarded - bare) / bare, at_most=limit
        )
        report.against(
            f"{name}: added per chunk of 5 characters", (guarded - bare) / DELTAS * 1e6, "µs", limit
        )


async def slowest(report: Report) -> None:
    """How long the guard's hook takes for a chunk, the clock's own time included."""
    pieces = pieces_of(english(DELTAS * PIECE))
    for name, made in (("one e-mail rule", one_rule), ("the preset pii", preset)):
        guard = made(Timed)
        for _ in range(3):
            guard.took.clear()
            await read(pieces, [guard])
        took = sorted(guard.took)
        median, late = took[len(took) // 2] / 1e3, took[len(took) * 99 // 100] / 1e3
        report.figure(
            f"{name}: time of a chunk, median / 99th percentile / worst",
            f"{median:.2f} / {late:.2f} / {took[-1] / 1e3:.1f} µs",
        )


async def first_text(report: Report) -> None:
    model = Says(pieces_of(english(500)), waits=True)

    async def until_text(guards: list[Any]) -> float:
        begun = time.perf_counter()
        async with Agent(id="bench", model=model, output_processors=guards).stream("hi") as stream:
            async for _ in stream.text_stream:
                return time.perf_counter() - begun
        raise AssertionError("no text")

    for name, guards in (
        ("one e-mail rule", [one_rule()]),
        ("the preset pii", [preset()]),
        ("ten guards", ten_guards()),
    ):
        pairs = [(await until_text([]), await until_text(guards)) for _ in range(100)]
        added = min(guarded for _, guarded in pairs) - min(bare for bare, _ in pairs)
        report.against(f"{name}: added time to the first text", added * 1e3, "ms", 1)


# ----------------------------------------------------------------------------------------------------------- held text


async def held(report: Report) -> None:
    """What is held is never more than the word under way."""
    pieces = pieces_of(english(DELTAS * PIECE))
    for name, guards in (("one e-mail rule", [one_rule()]), ("the preset pii", [preset()])):
        longest, beyond = await longest_held(pieces, guards)
        report.figure(f"{name}: longest held text on plain English", f"{longest} characters")
        report.ratio(f"{name}: most characters held beyond the word under way", beyond, at_most=0)


async def longest_held(pieces: list[str], guards: list[Any]) -> tuple[int, int]:
    """The most characters that were held at once, and the most of them in front of the word under way."""
    fed = given = longest = beyond = 0
    word = ""

    async def source() -> AsyncGenerator[str, None]:
        nonlocal fed, longest, beyond, word
        for piece in pieces:
            yield piece  # asked for the next one, the guards have given what they could
            fed += len(piece)
            word = (word + piece).split(" ")[-1].split("\n")[-1]
            longest = max(longest, fed - given)
            beyond = max(beyond, fed - given - len(word))

    async for out in guard_stream(source(), guards):
        given += len(out)
    return longest, beyond


# ----------------------------------------------------------------------------------------------------- cost of a length


async def flat(report: Report) -> None:
    """A character costs the same in a short text and in a long one."""

    async def through(text: str, guards: list[Any], times: int = 1, piece: int = PIECE) -> None:
        for _ in range(times):
            pieces = (text[at : at + piece] for at in range(0, len(text), piece))
            async for _ in guard_stream(pieces, guards):
                pass

    own = time.process_time
    guard = [one_rule()]
    kilobyte, hundred, large = english(1_000), english(100_000), english(10_000_000)
    short, middle = await best_of(
        lambda: through(kilobyte, guard, 100), lambda: through(hundred, guard), clock=own
    )
    # as long a time of each, in turns: a machine that is slower for some seconds is so for both
    many, long = await best_of(
        lambda: through(hundred, guard, 100), lambda: through(large, guard), turns=3, clock=own
    )
    report.figure(
        "cost per character in a text of 1 kB / 100 kB / 10 MB",
        " / ".join(f"{each * 1e9:.0f}" for each in (short / 1e5, middle / 1e5, long / 1e7)) + " ns",
    )
    report.ratio("one e-mail rule: a character of 100 kB against one of 1 kB", middle / short, at_most=1.3)
    report.ratio("one e-mail rule: a character of 10 MB against one of 100 kB", long / many, at_most=1.3)
    one, ten = await best_of(
        lambda: through(large[:1_000_000], guard, piece=1_000_000),
        lambda: through(large, guard, piece=10_000_000),
        turns=3,
        clock=own,
    )
    report.ratio("one chunk: a character of 10 MB against one of 1 MB", ten / one / 10, at_most=1.3)
    pem = (
        "-----BEGIN PRIVATE KEY-----"
        + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 600
        + "-----END PRIVATE KEY-----"
    )
    key = [RegexFilter({"pem": TEN["pem"]})]
    half, full = await best_of(
        lambda: through(pem[: len(pem) // 2], key), lambda: through(pem, key), clock=own
    )
    report.ratio("one match of 20 kB while it comes, against one of 10 kB", full / half, at_most=3)
    hundred_terms, many_terms = [KeywordFilter(words(100))], [KeywordFilter(words(100_000))]
    few, many = await best_of(
        lambda: through(hundred, hundred_terms), lambda: through(hundred, many_terms), clock=own
    )
    report.ratio("a list of 100,000 words against one of 100", many / few, at_most=1.5)


PARTS: tuple[Callable[[Report], Any], ...] = (per_chunk, slowest, first_text, held, flat)


async def main() -> None:
    report = Report()
    for part in PARTS:
        await part(report)


if __name__ == "__main__":
    asyncio.run(main())
