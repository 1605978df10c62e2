"""The local model's process: it must never outlive the program that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from local_extra import needs_model

from interlock.models.local import LocalServer, find_weights

STARTS_ONE = """
import sys, time
from interlock.models.local import LocalServer
server = LocalServer(n_ctx=256, n_parallel=1, threads=1)
server.start()
print(server.pid, flush=True)
if sys.argv[1] == "wait":
    time.sleep(60)
"""


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that ended but was not collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(pid: int, *, within: float = 5.0) -> bool:
    """Whether the process ends within so many seconds."""
    deadline = time.monotonic() + within
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


@needs_model
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", ["exits", "killed"])
def test_ends_with_the_program(how: str) -> None:
    """When the program ends, properly or by SIGKILL, the server is gone soon after."""
    command = [sys.executable, "-c", STARTS_ONE, "wait" if how == "killed" else "go"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        pid = int(program.stdout.readline())
        if how == "killed":
            assert is_alive(pid)
            os.kill(program.pid, signal.SIGKILL)
    assert ends(pid)


@needs_model
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_closed_server_is_gone() -> None:
    """Leaving the context ends the process."""
    with LocalServer(n_ctx=256, n_parallel=1, threads=1) as server:
        pid = server.pid
        assert pid is not None
        assert is_alive(pid)
    assert not is_alive(pid)


@needs_model
def test_as_a_command() -> None:
    """``python -m`` starts it by hand; it reports its address and ends with its input."""
    command = [
        sys.executable,
        "-m",
        "interlock.models.local_server",
        "0",
        "--model",
        str(find_weights("smollm2")),
    ]
    with subprocess.Popen(
        [*command, "--ctx", "256", "--parallel", "1", "--threads", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"READY http://127.0.0.1:")
        process.stdin.close()
        assert process.wait(5) == 0
