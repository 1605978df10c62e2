"""Who could look at ``ctx.stream_parts``: keeping what a processor gets costs memory for the whole stream."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from types import CodeType
from typing import Any

from interlock.core.shapes import is_sequence

_LOOKS_AROUND = frozenset({"locals", "vars", "eval", "exec", "dir", "getattr", "super"})


def may_read_stream_parts(function: Callable[..., Any]) -> bool:
    """Whether a hook could look at ``ctx.stream_parts``.

    Certain to be False only for plain Python code that uses its ctx for nothing but other attributes: any other use
    (ctx passed on, captured, stored, or code we cannot read) counts as True.

    Args:
        function: a hook, taking (subject, ctx), or a condition, taking (ctx).
    """
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return True
    return _code_may_read(code, inspect.ismethod(function))


@lru_cache(maxsize=4096)
def _code_may_read(code: CodeType, bound: bool) -> bool:
    """The same of a function's code; remembered, since calls with lists of their own are compiled each time."""
    names = code.co_varnames[bound : code.co_argcount]
    if not names or _LOOKS_AROUND & set(code.co_names):
        return True
    ctx_name = names[min(1, len(names) - 1)]
    if ctx_name in code.co_cellvars:
        return True
    return any(
        _uses_ctx(step, following, ctx_name) for step, following in pairwise(dis.get_instructions(code))
    )


def _uses_ctx(step: dis.Instruction, following: dis.Instruction, ctx_name: str) -> bool:
    """Whether an instruction does anything with ctx but read an attribute other than ``stream_parts``."""
    if not step.opname.startswith("LOAD_FAST"):
        return False
    loaded: Any = step.argval
    names = loaded if is_sequence(loaded) else (loaded,)
    if ctx_name not in names:
        return False
    attribute = str(following.argval)
    reads = following.opname in ("LOAD_ATTR", "LOAD_METHOD") and attribute != "stream_parts"
    return not reads or attribute.startswith("__") or names[-1] != ctx_name or names.count(ctx_name) > 1
