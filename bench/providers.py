"""What reading a provider's stream costs: our adapters beside the official SDK and pydantic-ai's own.

``python bench/providers.py`` prints one JSON object of figures; ``bench/run.py`` starts it and judges the ratios. All
read the same answers from a server in another process. Counted is this process's CPU time, so that waiting costs
nothing; each reader is timed in turns and its best turn is taken.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from sse_server import BURST, PACED, RATE

from interlock.chunks import TextDelta
from interlock.core.model import LanguageModel, ModelRequest, PromptMessage, PromptText
from interlock.models.openai_compatible import OpenAICompatible

HERE = Path(__file__).parent
TURNS = 9
STREAMS = {"own": 60, "sdk": 20, "pydantic_adapter": 12}
"""How many paced streams each reads at once: enough to be measured, few enough to keep up."""
REQUEST = ModelRequest(prompt=(PromptMessage(role="user", content=(PromptText(text="hi"),)),))
IMPORTS = {
    "import_openai": "import openai",
    "import_interlock": "import interlock",
    "import_adapter": "import interlock.models.openai_compatible",
}

Reader = Callable[[], Awaitable[int]]


@contextmanager
def server() -> Iterator[str]:
    """The server's address."""
    command = [sys.executable, str(HERE / "sse_server.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


async def read_model(model: LanguageModel) -> int:
    """Read an answer through one of our models; its text chunks."""
    texts = 0
    async with aclosing(model.stream(REQUEST)) as chunks:
        async for chunk in chunks:
            texts += type(chunk) is TextDelta
    return texts


def own(address: str) -> Reader:
    model = OpenAICompatible("m", base_url=f"{address}/v1", api_key="key-of-the-bench")
    return lambda: read_model(model)


def sdk(address: str) -> Reader:
    client = import_module("openai").AsyncOpenAI(base_url=f"{address}/v1", api_key="key-of-the-bench")

    async def read() -> int:
        texts = 0
        stream = await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in stream:
            texts += bool(chunk.choices and chunk.choices[0].delta.content)
        return texts

    return read


def pydantic_model(address: str) -> Any:
    """pydantic-ai's model of OpenAI chat, or None if it is not installed."""
    try:
        openai_models = import_module("pydantic_ai.models.openai")
        provider = import_module("pydantic_ai.providers.openai").OpenAIProvider
    except ImportError:
        return None
    return openai_models.OpenAIChatModel(
        "m", provider=provider(base_url=f"{address}/v1", api_key="key-of-the-bench")
    )


def pydantic_own(model: Any) -> Reader:
    messages, models = import_module("pydantic_ai.messages"), import_module("pydantic_ai.models")

    async def read() -> int:
        texts = 0
        prompt = [messages.ModelRequest(parts=[messages.UserPromptPart("hi")])]
        async with model.request_stream(prompt, None, models.ModelRequestParameters()) as stream:
            async for event in stream:
                texts += isinstance(event, messages.PartDeltaEvent | messages.PartStartEvent)
        return texts

    return read


def pydantic_adapter(model: Any) -> Reader | None:
    try:
        adapter = import_module("interlock.models.pydantic_ai").PydanticAIModel
    except ImportError:
        return None
    made = adapter(model)
    return lambda: read_model(made)


def readers(address: str) -> dict[str, Reader]:
    """What there is to measure, by name."""
    found: dict[str, Reader | None] = {"own": own(address), "sdk": sdk(address)}
    model = pydantic_model(address)
    if model is not None:
        found |= {"pydantic_own": pydantic_own(model), "pydantic_adapter": pydantic_adapter(model)}
    return {name: reader for name, reader in found.items() if reader is not None}


async def cpu_per_chunk(address: str) -> dict[str, float]:
    """Microseconds of CPU time a chunk, by reader."""
    found = readers(f"{address}/burst")
    times: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(TURNS):
        for name, read in found.items():
            began = time.process_time()
            texts = await read()
            times[name].append(time.process_time() - began)
            assert texts == BURST, f"{name} read {texts} of {BURST} chunks"
    return {f"{name}_us": min(row) / BURST * 1e6 for name, row in times.items()}


async def streams_per_core(address: str) -> dict[str, float]:
    """How many streams of RATE chunks a second one core would sustain, from the CPU time some of them took."""
    sustained: dict[str, float] = {}
    found = readers(f"{address}/paced")
    for name, count in STREAMS.items():
        if name not in found:
            continue
        read = found[name]
        await read()  # connections and imports are not what is measured
        began = time.process_time()
        texts = await asyncio.gather(*(read() for _ in range(count)))
        used = time.process_time() - began
        assert set(texts) == {PACED}
        sustained[f"{name}_streams"] = count * (PACED / RATE) / used
    return sustained


def import_times() -> dict[str, float]:
    """Milliseconds of CPU time each import takes in a fresh interpreter, its byte code compiled before."""
    cache = str(HERE / ".scratch" / "pycache")
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = cache
    times: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for turn in range(8):
        for name, statement in IMPORTS.items():
            code = (
                f"import time; began = time.process_time(); {statement}; print(time.process_time() - began)"
            )
            command = [sys.executable, "-c", code]
            done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
            if turn:
                times[name].append(float(done.stdout) * 1e3)
    return {f"{name}_ms": min(row) for name, row in times.items()}


async def measure() -> dict[str, float]:
    """All figures."""
    with server() as address:
        return {**import_times(), **await cpu_per_chunk(address), **await streams_per_core(address)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
