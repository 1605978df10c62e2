"""Texts through LangChain's PIIMiddleware, in the pieces they are given in. Runs in an environment of its own.

Usage: ``python guards_langchain.py TASK.json``; the task and what is printed are as in ``guards.mjs``. Read is the
stream that the middleware guards (``astream_events``, version 3); with ``--messages`` the usual one.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import PIIMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

ASKED = {"messages": [{"role": "user", "content": "hi"}]}


class Says(BaseChatModel):
    """A model that says these pieces."""

    pieces: list[str]

    @property
    def _llm_type(self) -> str:
        return "says"

    def _generate(self, *args: Any, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("".join(self.pieces)))])

    async def _astream(self, *args: Any, **options: Any) -> Any:
        for piece in self.pieces:
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))


async def sent_of(
    pieces: list[str], rules: list[dict[str, str]], *, messages: bool
) -> tuple[list[str], float]:
    middleware = [
        PIIMiddleware(rule["name"], strategy="redact", detector=rule["pattern"], apply_to_output=True)
        for rule in rules
    ]
    agent = create_agent(Says(pieces=pieces), middleware=middleware)
    begun = time.perf_counter()
    if messages:
        sent = [str(chunk.content) async for chunk, _ in agent.astream(ASKED, stream_mode="messages")]
    else:
        run = await agent.astream_events(ASKED, version="v3")
        sent = []
        async for message in run.messages:
            deltas = [delta async for delta in message.text]
            shown, final = "".join(deltas), str(await message.text)
            # what it still holds at the end comes with the finished text only: counted as sent where that goes on
            sent += [*deltas, final.removeprefix(shown) if final.startswith(shown) else ""]
    return sent, time.perf_counter() - begun


async def main(task: dict[str, Any]) -> None:
    messages = "--messages" in sys.argv
    sent = [(await sent_of(pieces, task["rules"], messages=messages))[0] for pieces in task["cuts"]]
    bare: list[float] = []
    guarded: list[float] = []
    for _ in range(task["turns"]):
        bare.append((await sent_of(task["timed"], [], messages=messages))[1])
        guarded.append((await sent_of(task["timed"], task["rules"], messages=messages))[1])
    print(json.dumps({"sent": sent, "bare": bare, "guarded": guarded}))


warnings.simplefilter("ignore")  # the stream it guards is a beta
asyncio.run(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
