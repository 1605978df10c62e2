"""What may stand in a list of processors (R2, R10.1); ids and lists are in test_pipeline.py."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from interlock import Agent, Processor, UsageError
from interlock.core.hooks import HOOKS
from interlock.testing import ScriptedModel, text


def agent_with(processor: Any) -> Agent:
    return Agent(id="a", model=ScriptedModel([text("ok")]), input_processors=[processor])


def made(**methods: Any) -> Processor:
    kind = type(
        "Made", (Processor,), {"id": "made", "process_llm_response": lambda self, r, ctx: None, **methods}
    )
    processor: Processor = kind()
    return processor


@pytest.mark.parametrize("hook", [hook.name for hook in HOOKS])
@pytest.mark.parametrize(
    "change", [lambda n: n + "s", lambda n: n[:-2] + n[-1], lambda n: n.replace("_", "", 1)]
)
def test_a_name_that_is_nearly_a_hooks_is_refused(hook: str, change: Any) -> None:
    """A guard whose hook is never asked would guard nothing: it is told at set-up, with the name that was meant."""
    name = change(hook)
    with pytest.raises(UsageError, match=f"has {name}, which is no hook; write {hook}"):
        agent_with(made(**{name: lambda self, subject, ctx: None}))


@pytest.mark.parametrize(
    "name", ["process_input_text", "process_all", "_process_inputs", "processes", "process"]
)
def test_other_names_are_the_users_own(name: str) -> None:
    """Methods that only begin alike are helpers."""
    agent_with(made(**{name: lambda self: None}))


def too_few(self: Any, subject: Any) -> None: ...
def too_many(self: Any, subject: Any, ctx: Any, more: Any) -> None: ...
def by_name(self: Any, subject: Any, *, ctx: Any) -> None: ...


@pytest.mark.parametrize("function", [too_few, too_many, by_name])
def test_a_hook_that_cannot_be_called_is_refused(function: Any) -> None:
    """What it is called with, and what it takes, is told at set-up."""
    with pytest.raises(
        UsageError, match=r"process_input is called with \(subject, ctx\); yours takes \(self, subject"
    ):
        agent_with(made(process_input=function))


def any_number(self: Any, *args: Any) -> None: ...
def with_default(self: Any, subject: Any, ctx: Any, more: int = 1, *, other: int = 2) -> None: ...


@functools.wraps(with_default)
def wrapped(*args: Any, **kwargs: Any) -> None:
    with_default(*args, **kwargs)


@pytest.mark.parametrize(
    "function", [any_number, with_default, wrapped, functools.partial(with_default, None)]
)
def test_whatever_can_be_called_with_two_is_taken(function: Any) -> None:
    """Defaults, ``*args``, decorators and partials."""
    agent_with(made(process_input=function))
    processor = made()
    processor.process_input = lambda messages, ctx: None  # type: ignore[method-assign]
    agent_with(processor)
