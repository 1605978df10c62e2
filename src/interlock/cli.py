"""The command line: ``interlock demo``."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console

from interlock import InterlockError, LanguageModel, __version__
from interlock.agent import RELEASES, Release
from interlock.demo import SAMPLES, Screen, answer, demo_agent
from interlock.models.local import LocalModel, LocalServer

INTERRUPTED = 130  # as shells count: 128 + SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program.

    Args:
        arguments: the command line, ``sys.argv`` by default.

    Returns:
        The exit status: 0, 1 after an error, 130 after Ctrl-C.
    """
    options = _parser().parse_args(arguments)
    screen = Screen(Console(highlight=False))
    try:
        with running_model(screen) as model:
            demo(model, options.question or _questions(screen), screen, release=options.release)
    except InterlockError as problem:
        print(f"interlock: {problem}", file=sys.stderr)  # noqa: T201  # what programs are for
        return 1
    except KeyboardInterrupt:
        screen.interrupted()
        return INTERRUPTED
    return 0


def demo(
    model: LanguageModel, questions: Iterable[str], screen: Screen, *, release: Release = "live"
) -> None:
    """Put questions to the demo's agent, one run each.

    Args:
        model: what answers.
        questions: taken one by one, the next when the last was answered.
        screen: where to show it.
        release: when text goes to the screen.
    """
    agent = demo_agent(model, release=release)
    with asyncio.Runner() as runner:
        for question in questions:
            runner.run(answer(agent, question, screen))


@contextmanager
def running_model(screen: Screen) -> Generator[LanguageModel]:
    """The local model, running; stopped again at the end."""
    # one thread: two that have to wait for each other on a busy machine are ten times slower
    server = LocalServer(n_ctx=2048, n_parallel=1, threads=1)
    with screen.working(
        "Starting the local model", "SmolLM2-135M runs on this machine: real, tiny, often wrong."
    ):
        server.start()
    with server:
        yield LocalModel(server)


def _questions(screen: Screen) -> Iterator[str]:
    if sys.stdin is None or sys.stdin.closed:  # pyright: ignore[reportUnnecessaryComparison]  # as under pythonw
        yield from SAMPLES
        return
    asked = False
    for line in _typed(screen) if sys.stdin.isatty() else sys.stdin:
        if question := line.strip():
            asked = True
            yield question
    if not asked:
        yield from SAMPLES


def _typed(screen: Screen) -> Iterator[str]:
    hint = "Ask something; an empty line ends (or, at once, asks three samples)."
    screen.console.print(hint, style="dim")
    try:
        while line := screen.console.input("[bold]> [/]").strip():
            yield line
    except EOFError:
        screen.console.print()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="interlock", description="A processor pipeline around an LLM agent's loop."
    )
    parser.add_argument("--version", action="version", version=f"interlock {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "demo",
        help="questions to a small real model, with processors at work",
        description="Put questions to a small real model on this machine and see what each processor does. "
        "Without arguments they are read from standard input, one a line; without any, three samples are asked.",
    )
    command.add_argument("question", nargs="*", help="a question, in quotes", metavar="QUESTION")
    command.add_argument(
        "--release",
        choices=RELEASES,
        default="live",
        help="when text is shown: live at once, step once accepted, ...",
    )
    return parser
