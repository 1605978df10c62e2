"""The pytest plugin: a fixture that tries a guard over cuts.

Switch it on with ``pytest -p interlock.testing.plugin``, or with ``pytest_plugins = ["interlock.testing.plugin"]`` in
the top ``conftest.py``; who does not use it pays nothing for it.

::

    def test_my_guard(guard_cuts):
        guard_cuts(MyGuard(), cuts=500)

``pytest --guard-cuts=20000`` tries more, in all tests at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from interlock.testing.trial import CutReport, Example


class GuardCuts(Protocol):
    """What the fixture gives."""

    def __call__(
        self, guard: Any, cuts: int = 200, *, examples: Sequence[Example] | None = None, seed: int = 0
    ) -> CutReport:
        """Try a guard; the test fails if any cut makes a difference."""
        ...


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option for longer searches."""
    parser.getgroup("interlock").addoption(
        "--guard-cuts",
        type=int,
        default=None,
        metavar="N",
        help="guard_cuts tries N cuts of each guard, whatever the tests say",
    )


@pytest.fixture
def guard_cuts(pytestconfig: pytest.Config) -> GuardCuts:
    """Try a guard's own examples (else invented ones) over random cuts: ``guard_cuts(guard, cuts=200)``."""
    from interlock.testing.trial import check_guard

    def tried(
        guard: Any, cuts: int = 200, *, examples: Sequence[Example] | None = None, seed: int = 0
    ) -> CutReport:
        __tracebackhide__ = True
        wanted: int | None = pytestconfig.getoption("guard_cuts")
        report = check_guard(guard, examples=examples, cuts=wanted or cuts, seed=seed)
        if not report.ok:
            pytest.fail(f"{type(guard).__name__}: {report}", pytrace=False)
        return report

    return tried
