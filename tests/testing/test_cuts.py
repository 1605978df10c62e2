"""``python -m interlock.testing.cuts``: a guard tried from the command line."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from interlock import UsageError
from interlock.processors import RegexFilter
from interlock.testing.cuts import load_guard, main, plain_console

FILTER = "interlock.processors:RegexFilter"
PIN = json.dumps({"rules": {"pin": "[0-9]{4}"}})

LEAKY = """
from interlock.processors import RegexFilter
from interlock.release.scanner import TextScanner

class Forgetful(TextScanner):
    def feed(self, text, *, final=False):
        return super().feed(text, final=True)

class Leaky(RegexFilter):
    examples = [("my pin [is] :x: 1234.", "my pin [is] :x: [PIN].")]

    def __init__(self):
        super().__init__({"pin": "[0-9]{4}"})

    def new_scanner(self):
        return Forgetful(self.rules)

leaky = Leaky()
guards = [RegexFilter({"pin": "[0-9]{4}"}, id="a"), RegexFilter({"x": "x"}, id="b")]

def make(rule, *, id):
    return RegexFilter({"r": rule}, id=id)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with guards, good and bad."""
    name = f"guards_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(LEAKY)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def run(*arguments: str, terminal: bool = False) -> tuple[int, str]:
    """The exit status, and what was reported."""
    out = io.StringIO()
    console = plain_console() if not terminal else Console(force_terminal=True, width=100)
    console.file = out
    status = main(arguments, console=console)
    return status, out.getvalue()


def test_an_exact_guard() -> None:
    """How many, how many equal, the longest held text, and the cut that held most; exit 0."""
    status, told = run(FILTER, "--args", PIN, "--examples", "200", "--seed", "5")
    assert status == 0
    assert "200 cuts of 12 texts, seed 5" in told
    assert "equal to the whole text        200" in told
    assert "different                        0" in told
    assert "longest held text                3 characters" in told
    assert "The cut that held most" in told


def test_a_guard_that_leaks(module: str) -> None:
    """A difference is shown with as few cuts as make it, brackets and all; exit 1."""
    status, told = run(f"{module}:Leaky", "--examples", "100")
    assert status == 1
    assert "The first that differs" in told
    assert "expected  'my pin [is] :x: [PIN].'" in told
    assert "got       'my pin [is] :x: " in told
    assert run(f"{module}:leaky", "--examples", "50")[0] == 1


def test_guards_made_in_every_way(module: str) -> None:
    """A list of guards; a function with arguments as a list or by name."""
    assert run(f"{module}:guards", "--examples", "50")[0] == 0
    args = json.dumps({"rule": "x", "id": "r"})
    assert run(f"{module}:make", "--args", args, "--examples", "50")[0] == 0
    with pytest.raises(UsageError, match="cannot be made"):
        load_guard(f"{module}:make", '["x", "r"]')


def test_rules_are_made_up_where_none_are_given() -> None:
    """The filter alone can be tried; the report says with which rules."""
    guard, made_up = load_guard(FILTER)
    assert isinstance(guard, RegexFilter)
    assert made_up is not None
    status, told = run(FILTER, "--examples", "50")
    assert status == 0
    assert "needs arguments; tried with --args" in told
    assert load_guard(FILTER, PIN)[1] is None


def test_a_text_of_ones_own(tmp_path: Path) -> None:
    """--text cuts a file instead of examples."""
    file = tmp_path / "text.txt"
    file.write_text("naïve 1234 \U0001f600 5678", encoding="utf-8")
    status, told = run(FILTER, "--args", PIN, "--text", str(file), "--examples", "1_00")
    assert status == 0
    assert "100 cuts of 1 text," in told


def test_a_terminal_sees_progress() -> None:
    """While it works; the report is the same."""
    status, told = run(FILTER, "--args", PIN, "--examples", "100", terminal=True)
    assert status == 0
    assert "100/100" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["no_such_module:x"], "there is no no_such_module:x"),
        (["interlock.processors:Nothing"], "there is no"),
        (["interlock.processors"], "module:attribute"),
        ([FILTER, "--args", "{"], "no JSON"),
        ([FILTER, "--args", "5"], "JSON object"),
        ([FILTER, "--args", '{"rulez": 1}'], "cannot be made"),
        ([FILTER, "--args", '{"rules": {"a": "("}}'], "does not compile"),
        ([FILTER, "--text", "/no/such/file"], "--text"),
        (["interlock.testing.cuts:SAMPLE_RULES"], "take guards"),
        (["interlock.testing.cuts:SAMPLE_RULES", "--args", "[]"], "made already"),
    ],
)
def test_what_cannot_be_tried(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Told on standard error; exit 2, so that it is no difference."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert told in " ".join(captured.err.split())
    assert captured.out == ""


@pytest.mark.parametrize("number", ["0", "many"])
def test_a_wrong_number(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    """argparse says so."""
    with pytest.raises(SystemExit, match="2"):
        main([FILTER, "--examples", number])
    assert "--examples" in capsys.readouterr().err


def test_as_a_program() -> None:
    """``python -m`` runs it, without a warning."""
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "interlock.testing.cuts",
        FILTER,
        "--args",
        PIN,
        "--examples",
        "30",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "30 cuts" in done.stdout
