"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PROJECT = Path(__file__).parents[2] / "pyproject.toml"

GUARDS = """
    from interlock.processors import RegexFilter
    from interlock.release.scanner import TextScanner

    class Exact(RegexFilter):
        examples = [("my pin is 1234.", "my pin is [PIN].")]

        def __init__(self):
            super().__init__({"pin": "[0-9]{4}"})

    class Forgetful(TextScanner):
        def feed(self, text, *, final=False):
            return super().feed(text, final=True)

    class Leaky(Exact):
        def new_scanner(self):
            return Forgetful(self.rules)
"""


def run(pytester: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    """Run tests with the plugin, whether or not it is installed as an entry point."""
    pytester.makepyfile(guards=GUARDS)
    pytester.makepyfile(test_it=f"from guards import Exact, Leaky\n{tests}")
    pytester.syspathinsert()
    return pytester.runpytest_inprocess(
        "-p",
        "no:interlock",
        "-p",
        "interlock.testing.plugin",
        "-p",
        "no:xdist",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
        *options,
    )


def test_an_exact_guard_passes(pytester: pytest.Pytester) -> None:
    """The fixture gives a function that tries the guard's examples and returns the report."""
    tests = "def test_it(guard_cuts):\n    assert guard_cuts(Exact(), 50).cuts == 50"
    run(pytester, tests).assert_outcomes(passed=1)


def test_a_guard_that_leaks_fails_with_its_worst_cut(pytester: pytest.Pytester) -> None:
    """The failure shows the cut, what was expected and what came; no traceback."""
    result = run(pytester, "def test_it(guard_cuts):\n    guard_cuts(Leaky())")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "Leaky: * of 200 cuts of 1 texts equal*",
            "cut *'my pin is *' | *",
            "expected*'my pin is [[]PIN[]].'",
            "got *",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_examples_and_seed(pytester: pytest.Pytester) -> None:
    """Of the test's own, instead of the guard's."""
    tests = (
        "def test_it(guard_cuts):\n    assert guard_cuts(Leaky(), 20, examples=['no pin'], seed=4).seed == 4"
    )
    run(pytester, tests).assert_outcomes(passed=1)


def test_async_tests_use_it_too(pytester: pytest.Pytester) -> None:
    """Inside a running event loop it works the same."""
    tests = (
        "import pytest\n@pytest.mark.anyio\n@pytest.mark.parametrize('anyio_backend', ['asyncio'])\n"
        "async def test_it(guard_cuts, anyio_backend):\n    guard_cuts(Exact(), 20)"
    )
    run(pytester, tests).assert_outcomes(passed=1)


def test_the_option_tries_more(pytester: pytest.Pytester) -> None:
    """``--guard-cuts`` counts, whatever the tests say."""
    tests = "def test_it(guard_cuts):\n    assert guard_cuts(Exact(), 5).cuts == 70"
    run(pytester, tests, "--guard-cuts=70").assert_outcomes(passed=1)


def test_nothing_else_needs_pytest() -> None:
    """The library and its test kit work where pytest is not installed."""
    program = (
        "import sys; sys.modules['pytest'] = None\n"
        "import interlock, interlock.testing, interlock.testing.cuts, interlock.testing.trial"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_unused_the_plugin_is_small() -> None:
    """Beside what interlock loads anyway there is the test kit and the wire; no rich, no regex, no pytest plugins."""
    program = (
        "import sys, pytest, interlock; before = set(sys.modules)\n"
        "import interlock.testing.plugin\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert all(name.startswith(("interlock.testing", "interlock.wire")) for name in done.stdout.split())
    assert "interlock.testing.cuts" not in done.stdout.split()
