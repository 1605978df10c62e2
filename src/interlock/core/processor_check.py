"""What may stand in a list of processors: mistakes are told when the list is given, not when a hook is missed."""

from __future__ import annotations

import difflib
import inspect
from functools import lru_cache
from typing import Any

from interlock.core.errors import UsageError
from interlock.core.hooks import HOOKS, LANES, hooks_of, implemented
from interlock.core.processor import BaseProcessor, Lane
from interlock.core.shapes import described

_ALIKE = 0.9
"""From which ratio of difflib on a name counts as one that was meant to be a hook's."""


def check_processor(processor: Any, lane: Lane, seen: set[str]) -> None:
    """What stands in a list of processors.

    Args:
        processor: one member of the list.
        lane: which list.
        seen: the ids in front of it; its own are added.

    Raises:
        UsageError: it is none, has no id or one that is there already, has no hook of this list, or a hook that
            cannot be called or is nearly one's name (a guard that is never asked guards nothing).
    """
    where = f"{lane}_processors"
    if isinstance(processor, type):
        raise UsageError(f"{where}: {processor.__name__} is a class; write {processor.__name__}()")
    if not isinstance(processor, BaseProcessor):
        raise UsageError(
            f"{where}: {type(processor).__name__} is not a processor; subclass interlock.Processor and give it an id"
        )
    if not isinstance(processor.id, str) or not processor.id:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"{where}: {type(processor).__name__} has no id; write id = '...' in the class")
    if processor.on_error not in ("closed", "open"):
        raise UsageError(
            f"{where}: processor {processor.id!r}: on_error is 'closed' or 'open', not {processor.on_error!r}"
        )
    for hook in implemented(processor, lane):
        _check_hook(getattr(processor, hook), f"{where}: processor {processor.id!r}: {hook}")
    for name, meant in _misspelled(type(processor)).items():
        raise UsageError(
            f"{where}: processor {processor.id!r} has {name}, which is no hook; write {meant}, or _{name} if it is "
            "something else"
        )
    if not isinstance(processor, LANES[lane]) or not implemented(processor, lane):
        raise UsageError(
            f"{where}: processor {processor.id!r} ({type(processor).__name__}) implements none of the hooks of this "
            f"list: {', '.join(hooks_of(lane))}{_elsewhere(processor)}"
        )
    if processor.id in seen:
        raise UsageError(
            f"{where}: two processors have the same id {processor.id!r}; give one of them another id"
        )
    ids = [processor.id, *(member.id for member in getattr(processor, "processors", ()))]
    for each in ids[1:]:
        if each in seen:
            raise UsageError(
                f"{where}: two processors have the same id {each!r}; give one of them another id"
            )
    if len(set(ids)) != len(ids):
        raise UsageError(
            f"{where}: processor {processor.id!r} has members with the same id; give them ids of their own"
        )
    seen.update(ids)


def _elsewhere(processor: BaseProcessor) -> str:
    lanes = [lane for lane in LANES if implemented(processor, lane)]
    return f"; it belongs in {' and '.join(f'{lane}_processors' for lane in lanes)}" if lanes else ""


def _check_hook(function: Any, where: str) -> None:
    if not callable(function):
        raise UsageError(f"{where} is {described(function)}; write a method of that name")
    code = getattr(function, "__code__", None)
    if code is None:
        return  # a partial, or an object that is called: only a call can tell
    most: int = code.co_argcount - inspect.ismethod(function)
    least = most - len(getattr(function, "__defaults__", None) or ())
    unnamed = code.co_flags & inspect.CO_VARARGS
    named = code.co_kwonlyargcount - len(getattr(function, "__kwdefaults__", None) or ())
    if least > 2 or (most < 2 and not unnamed) or named > 0:
        given = ", ".join(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        raise UsageError(f"{where} is called with (subject, ctx); yours takes ({given})")


@lru_cache(maxsize=1024)
def _misspelled(kind: type) -> dict[str, str]:
    """Names of a class that are nearly a hook's, and the hook."""
    hooks = [hook.name for hook in HOOKS]
    names = [name for name in dir(kind) if name.startswith("process") and name not in hooks]
    alike = {name: difflib.get_close_matches(name, hooks, 1, _ALIKE) for name in names}
    return {name: found[0] for name, found in alike.items() if found}
