"""The documentation: its examples run, and its tables say what the code says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from interlock.core.hooks import HOOKS, Hook

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_runs(page: Path) -> None:
    """A page's Python blocks run from top to bottom, like one program."""
    source = page.read_text()
    names: dict[str, Any] = {"__name__": page.stem}
    for block in BLOCK.finditer(source):
        lines_above = source.count("\n", 0, block.start(1))
        exec(compile("\n" * lines_above + block[1], page, "exec"), names)


def test_the_readme_has_examples() -> None:
    """A fence written in another way would go untested."""
    source = (ROOT / "README.md").read_text()
    assert len(BLOCK.findall(source)) >= 6
    assert source.count("```") == 2 * (len(BLOCK.findall(source)) + source.count("```sh\n"))


def test_the_hook_table_is_the_hooks() -> None:
    """The README's table is made of HOOKS; the failure shows the one to paste."""
    table = re.search(r"<!-- hooks:.*?-->\n(.*?)<!-- /hooks -->", (ROOT / "README.md").read_text(), re.DOTALL)
    assert table is not None
    assert table[1] == hook_table()


def hook_table() -> str:
    """The nine hooks as a Markdown table."""
    head = "| hook | list | when | subject | may return | None means |\n|---|---|---|---|---|---|\n"
    return head + "".join(map(_row, HOOKS))


def _row(hook: Hook) -> str:
    returns = (
        "nothing" if hook.returns == "nothing" else ", ".join(f"`{r}`" for r in hook.returns.split(", "))
    )
    return f"| `{hook.name}` | {hook.lane} | {hook.when} | `{hook.subject}` | {returns} | {hook.none} |\n"


def test_what_the_readme_points_to_exists() -> None:
    """Files the README points to are there."""
    pointers = re.compile(r"\]\((?!https?:)([^)#]+)\)|`((?:src|tests|docs)/[\w./]+)`")
    for target in pointers.findall((ROOT / "README.md").read_text()):
        assert (ROOT / "".join(target)).exists(), target
