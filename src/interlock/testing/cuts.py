"""``python -m interlock.testing.cuts module:Guard``: is what a guard streams the same however the text is cut?"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from interlock.core.errors import InterlockError, UsageError
from interlock.core.shapes import is_dict, is_list
from interlock.testing.trial import CutReport, check_guard

WRONG_USE = 2

SAMPLE_RULES = {
    "email": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "card": r"\b\d{4}(?:[ -]?\d{4}){3}\b",
    "api key": r"\bsk-[a-z]+-[A-Za-z0-9]{16,}",
    "ip": r"(?<!\d)\d{1,3}(?:\.\d{1,3}){3}(?!\d)",
}
"""For a guard that needs rules and is given none."""


def main(arguments: Sequence[str] | None = None, *, console: Console | None = None) -> int:
    """Run the program.

    Args:
        arguments: the command line, ``sys.argv`` by default.
        console: where to report.

    Returns:
        The exit status: 0, 1 when a cut made a difference, 2 when there was nothing to try.
    """
    options = _parser().parse_args(arguments)
    console = console or plain_console()
    try:
        guard, given = load_guard(options.guard, options.args)
        texts = None if options.text is None else [_read(options.text)]
        if given:
            console.print(f"{options.guard} needs arguments; tried with --args '{given}'", style="dim")
        begun = time.perf_counter()
        report = _checked(guard, texts, options.examples, options.seed, console)
    except InterlockError as problem:
        plain_console(stderr=True).print(f"interlock.testing.cuts: {problem}")
        return WRONG_USE
    _show(report, options.guard, time.perf_counter() - begun, console)
    return 0 if report.ok else 1


def plain_console(*, stderr: bool = False) -> Console:
    """A console that prints texts as they are: what is in brackets or between colons is no markup."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def load_guard(name: str, args: str | None = None) -> tuple[Any, str | None]:
    """The guard of a name, made if the name is that of a class or function.

    Args:
        name: ``module:attribute``.
        args: its arguments as JSON: an object for arguments by name, a list for others.

    Returns:
        The guard, and the arguments that were made up because it needs some.

    Raises:
        UsageError: no such guard, or the arguments do not fit.
    """
    made = _attribute(name)
    if not (inspect.isclass(made) or inspect.isroutine(made)):
        if args is not None:
            raise UsageError(f"{name} is made already; --args are for a class or function")
        return made, None
    if args is None and _takes_rules(made):
        try:
            return made(), None
        except (TypeError, UsageError):  # not without rules
            given = json.dumps({"rules": SAMPLE_RULES}, ensure_ascii=False)
            return _made(name, made, given), given
    return _made(name, made, args), None


def _made(name: str, made: Any, args: str | None) -> Any:
    parsed = _arguments(args)
    try:
        return made(**parsed) if is_dict(parsed) else made(*parsed)
    except TypeError as problem:
        raise UsageError(f"{name} cannot be made with these arguments: {problem}; see --args") from problem


def _attribute(name: str) -> Any:
    module, _, path = name.partition(":")
    if not module or not path:
        raise UsageError(
            f"a guard is named module:attribute, as interlock.processors:RegexFilter, not {name!r}"
        )
    try:
        found: Any = importlib.import_module(module)
        for each in path.split("."):
            found = getattr(found, each)
    except (ImportError, AttributeError) as problem:
        raise UsageError(f"there is no {name}: {problem}") from problem
    return found


def _takes_rules(made: Any) -> bool:
    try:
        return "rules" in inspect.signature(made).parameters
    except (TypeError, ValueError):
        return False


def _arguments(args: str | None) -> dict[str, Any] | list[Any]:
    try:
        parsed: Any = json.loads(args or "[]")
    except ValueError as problem:
        raise UsageError(f"--args is no JSON: {problem}") from None
    if not is_dict(parsed) and not is_list(parsed):
        raise UsageError("--args is a JSON object, for arguments by name, or a list")
    return parsed


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"--text: {problem}") from problem


def _checked(guard: Any, texts: list[str] | None, cuts: int, seed: int, console: Console) -> CutReport:
    if not console.is_terminal:
        return check_guard(guard, examples=texts, cuts=cuts, seed=seed)
    columns = (TextColumn("cutting"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("cutting", total=cuts)
        every = max(cuts // 200, 1)

        def advance(done: int) -> None:
            if done % every == 0 or done == cuts:
                progress.update(task, completed=done)

        return check_guard(guard, examples=texts, cuts=cuts, seed=seed, progress=advance)


def _show(report: CutReport, name: str, seconds: float, console: Console) -> None:
    different = report.cuts - report.equal
    console.print(
        f"{name}: {report.cuts:,} cuts of {report.texts} {'text' if report.texts == 1 else 'texts'}, "
        f"seed {report.seed}, {seconds:.1f} s"
    )
    console.print(f"  equal to the whole text  {report.equal:>9,}", style="green" if report.ok else None)
    console.print(f"  different                {different:>9,}", style=None if report.ok else "bold red")
    console.print(f"  longest held text        {report.longest_held:>9,} characters")
    if report.worst is not None:
        console.print(
            "The cut that held most:" if report.ok else "The first that differs, with as few cuts as do:"
        )
        for line in str(report.worst).splitlines():
            console.print(f"  {line}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m interlock.testing.cuts",
        description="Try a guard over random ways of cutting texts into chunks: what it gives has to be the same.",
    )
    parser.add_argument(
        "guard", help="module:attribute: a guard, a list of guards, or a class or function that makes one"
    )
    parser.add_argument("--examples", type=_number, default=10_000, metavar="N", help="how many cuts (10000)")
    parser.add_argument("--text", metavar="FILE", help="cut this text instead of the guard's own examples")
    parser.add_argument("--seed", type=int, default=0, help="another number gives other cuts (0)")
    parser.add_argument("--args", metavar="JSON", help="""arguments, as '{"rules": {"pin": "[0-9]{4}"}}'""")
    return parser


def _number(given: str) -> int:
    number = int(given.replace("_", "").replace(",", ""))
    if number < 1:
        raise ValueError
    return number


if __name__ == "__main__":
    sys.exit(main())
