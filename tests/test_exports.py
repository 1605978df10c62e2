"""The public names: importable, complete, documented."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import interlock

PUBLIC = [
    "interlock",
    "interlock.chunks",
    "interlock.processors",
    "interlock.memory",
    "interlock.models",
    "interlock.testing",
]
EXAMPLES = Path(__file__).parent / "examples"


@pytest.mark.parametrize("name", PUBLIC)
def test_all_is_importable_and_sorted(name: str) -> None:
    """Every name in ``__all__`` exists, once, in order; so ``import *`` works."""
    module = importlib.import_module(name)
    names = list(getattr(module, "__all__", []))
    assert len(set(names)) == len(names)
    assert names == sorted(names)
    for each in names:
        assert hasattr(module, each), f"{name}.{each}"


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in ("interlock.models",)])
def test_all_is_complete(name: str) -> None:
    """What a public module defines or imports from this library under a public name is in its ``__all__``."""
    module = importlib.import_module(name)
    public = {
        each
        for each, value in vars(module).items()
        if not each.startswith("_") and not inspect.ismodule(value) and _is_ours(value)
    }
    assert public <= set(module.__all__)


def _is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).startswith("interlock")


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_public_is_documented(name: str) -> None:
    """Every public class and function, and every public method and property of these, has a docstring of its own."""
    module = importlib.import_module(name)
    assert module.__doc__
    undocumented: list[str] = []
    for each in getattr(module, "__all__", []):
        value = getattr(module, each)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if not (value.__doc__ or "").strip():
            undocumented.append(each)
        if inspect.isclass(value) and _is_ours(value):
            undocumented += [f"{each}.{member}" for member in _bare_members(value)]
    assert undocumented == []


def _bare_members(cls: type) -> list[str]:
    bare: list[str] = []
    for member, value in vars(cls).items():
        if member.startswith("_") or not (inspect.isfunction(value) or isinstance(value, property)):
            continue
        function = value.fget if isinstance(value, property) else value
        if not (function.__doc__ or "").strip() and not inspect.getdoc(getattr(cls, member)):
            bare.append(member)
    return bare


def test_what_the_examples_import_exists() -> None:
    """The contract's examples import from the public modules only, and everything they import is there."""
    files = sorted(EXAMPLES.glob("*.py"))
    assert files
    missing: list[str] = []
    for file in files:
        for module_name, names in re.findall(
            r"^from (interlock[\w.]*) import (.+)$", file.read_text(), re.MULTILINE
        ):
            assert module_name in PUBLIC, f"{file.name}: {module_name} is not public"
            module = importlib.import_module(module_name)
            missing += [
                f"{file.name}: {module_name}.{name.strip()}"
                for name in names.split(",")
                if not hasattr(module, name.strip())
            ]
    assert missing == []


def test_the_names_of_the_contract_exist() -> None:
    """The classes that the contract names keep those names (spec, introduction and R2 to R10)."""
    names = [
        *(
            "Agent",
            "Processor",
            "InputProcessor",
            "OutputProcessor",
            "ErrorProcessor",
            "MessageList",
            "TripWire",
        ),
        *(
            "RequestContext",
            "ProcessorViolation",
            "InputChange",
            "StepChange",
            "CachedResponse",
            "Retry",
            "Chain",
        ),
        *("When", "Parallel", "ModelError", "UsageError", "Message", "tool"),
    ]
    assert [name for name in names if name not in interlock.__all__] == []


def test_the_version_is_the_packages() -> None:
    """``__version__`` is what the package says."""
    from importlib.metadata import version

    assert interlock.__version__ == version("interlock")


def test_the_package_is_typed() -> None:
    """``py.typed`` ships, so that users' type checkers read our types."""
    assert (Path(interlock.__file__).parent / "py.typed").exists()
