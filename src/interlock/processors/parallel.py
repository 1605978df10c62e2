"""Parallel: checks that run at the same time."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from interlock.core.context import HookContext, Latch
from interlock.core.errors import TripWire, UsageError
from interlock.core.hooks import HOOKS, LANES, implemented
from interlock.core.pipeline import Composition, is_async
from interlock.core.processor import BaseProcessor, Processor
from interlock.core.result import RunOutcome

log = logging.getLogger("interlock")


class Parallel(Processor):
    """Checks that run at the same time on the same subject (spec R10.3).

    The first abort in list order wins and cancels those after it; those before it are waited for. A member that
    returns a change is an error, unless it is the one named by ``keep``.

    Args:
        *processors: the checks.
        keep: the id of the member whose change counts.
        id: a name for the whole; tripwires carry the member's own id.

    Raises:
        UsageError: no members, a member with process_output_stream or a composition, an unknown ``keep``.
    """

    def __init__(self, *processors: BaseProcessor, keep: str | None = None, id: str = "parallel") -> None:
        if not processors:
            raise UsageError("Parallel needs at least one processor")
        for member in processors:
            _check_member(member)
        if keep is not None and keep not in {member.id for member in processors}:
            raise UsageError(f"Parallel: keep={keep!r} is no member's id")
        self.id = id
        self.processors = processors
        self.keep = keep
        self.process_tool_errors = any(member.process_tool_errors for member in processors)
        judges = [member for member in processors if "process_output_step" in implemented(member, "output")]
        self.observes = all(member.observes for member in judges)
        for hook in HOOKS:
            members = [
                m
                for m in processors
                if isinstance(m, LANES[hook.lane]) and hook.name in implemented(m, hook.lane)
            ]
            if members:
                setattr(self, hook.name, self._hook(hook.name, members))

    async def on_run_end(self, outcome: RunOutcome, ctx: HookContext) -> None:
        """Tell each member of the end."""
        for member in self.processors:
            try:
                answer = member.on_run_end(outcome, ctx.member(member, Latch()))
                if inspect.isawaitable(answer):
                    await answer
            except (Exception, TripWire) as problem:
                log.warning(
                    "on_run_end of processor %r raised %s; it was ignored", member.id, type(problem).__name__
                )

    def _hook(
        self, name: str, members: list[BaseProcessor]
    ) -> Callable[[Any, HookContext], Coroutine[Any, Any, Any]]:
        async def run_members(subject: Any, ctx: HookContext) -> Any:
            tasks = [asyncio.create_task(self._check(member, name, subject, ctx)) for member in members]
            kept: Any = None
            try:
                for member, task in zip(members, tasks, strict=True):
                    returned = await task
                    if returned is not None:
                        if member.id != self.keep:
                            raise UsageError(
                                f"Parallel {self.id!r}: member {member.id!r} returned a change from {name}; checks "
                                f"return nothing, or name the member with keep={member.id!r}"
                            )
                        kept = returned
            except TripWire as trip:
                ctx.stop_with(trip)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            return kept

        return run_members

    async def _check(self, member: BaseProcessor, name: str, subject: Any, ctx: HookContext) -> Any:
        if name == "process_tool_result" and subject.is_error and not member.process_tool_errors:
            return None
        latch = Latch()
        context = ctx.member(member, latch)
        function = partial(getattr(member, name), subject, context)
        try:
            returned = function()
            if is_async(getattr(member, name)) or inspect.isawaitable(returned):
                returned = await returned
        except BaseException as problem:
            if latch.trip is not None and not isinstance(problem, asyncio.CancelledError):
                raise latch.trip from None
            if isinstance(problem, Exception):
                if member.on_error == "open":
                    detail = {"error": type(problem).__name__}
                    context.violation(f"{name} failed and was passed over", detail)
                    return None
                problem.add_note(f"raised in processor {member.id!r}, hook {name}")
            raise
        if latch.trip is not None:
            raise latch.trip
        return returned


def _check_member(member: Any) -> None:
    if isinstance(member, Composition | Parallel) or not isinstance(member, BaseProcessor):
        raise UsageError(f"Parallel: members are single processors, not {type(member).__name__}")
    if isinstance(member, LANES["output"]) and "process_output_stream" in implemented(member, "output"):
        raise UsageError(
            f"Parallel: processor {member.id!r} has process_output_stream; chunks pass one after the other, "
            "so put it in the list itself"
        )
