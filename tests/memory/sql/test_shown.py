"""What was shown is what is stored, with the streaming guards and a database (R0.1, R8.2)."""

from __future__ import annotations

import random
from typing import Any

import pytest

from interlock import Agent, ModelError
from interlock.memory import Memory
from interlock.processors import KeywordFilter, RegexFilter
from interlock.testing import ScriptedModel, error, random_cuts
from interlock.testing import text as says

pytestmark = pytest.mark.anyio
SAID = "Your pin is 1234, mine 5678 9; write to ann@example.org or say open sesame, e\u0301t\u00e9 \U0001f600. Bye 12"
GUARDS: dict[str, Any] = {
    "none": list,
    "patterns": lambda: [RegexFilter({"pin": r"\b\d{4}\b", "mail": r"[\w.]+@[\w.]+\w"}, strategy="redact")],
    "words": lambda: [KeywordFilter(["open sesame", "bye"], strategy="redact")],
    "a row": lambda: [
        RegexFilter({"pin": r"\b\d{4}\b"}, strategy="redact"),
        KeywordFilter(["open sesame"], strategy="redact"),
    ],
    "blocks": lambda: [KeywordFilter(["open sesame"], strategy="block")],
}


@pytest.mark.parametrize("release", ["live", "step", "run"])
@pytest.mark.parametrize("guards", GUARDS)
async def test_what_was_shown_is_what_is_stored(database_url: str, guards: str, release: Any) -> None:
    """For random cuts and three ends: the answer is whole, the provider fails in its midst, the listener leaves."""
    chance = random.Random(f"{guards} {release}")
    async with Memory(database_url) as memory:
        for number, cut in enumerate(random_cuts(SAID, seed=11, count=6)):
            whole = ""
            for end in ("whole", "fails", "leaves"):
                thread: Any = {"thread": f"{number}-{end}", "resource": "r"}
                at = chance.randrange(1, len(cut) + 1)
                script = [says(*cut)] if end != "fails" else [says(*cut[:at]), error(500, "away")]
                agent = Agent(
                    id="a", model=ScriptedModel(script), memory=memory, output_processors=GUARDS[guards]()
                )
                shown: list[str] = []
                stream = agent.stream("hi", memory=thread, release=release)
                try:
                    async with stream:
                        async for piece in stream.text_stream:
                            shown.append(piece)
                            if end == "leaves" and len(shown) == at:
                                break
                        if end == "leaves":
                            await stream.cancel()
                            shown += [piece async for piece in stream.text_stream]
                    blocked = (await stream.result()).tripwire is not None
                except ModelError:
                    assert end == "fails"
                    blocked = False
                stored = await memory.messages(thread["thread"], resource="r")
                if blocked:
                    assert stored == []
                    continue
                assert [message.role for message in stored[:1]] == ["user"]
                kept = "".join(message.text for message in stored[1:])
                whole = kept if end == "whole" else whole
                # under `run` the answer is accepted before it leaves, so that it is kept whole (R8.2)
                assert kept == (whole if release == "run" and end == "leaves" and shown else "".join(shown))
