"""From three lists of processors to nine tuples of calls, once; and how one hook is called.

What is decided here, once, is not asked again while a run goes: which hooks are overridden, which are async, where
compositions put a condition in front.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from interlock.core.hooks import HOOKS, implemented
from interlock.core.processor import BaseProcessor, Lane
from interlock.core.processor_check import check_processor
from interlock.core.stream_parts import may_read_stream_parts

if TYPE_CHECKING:
    from interlock.core.context import HookContext

Predicate: TypeAlias = "Callable[[HookContext], bool | Awaitable[bool]]"
Flattened: TypeAlias = tuple[BaseProcessor, tuple[Predicate, ...]]


class Composition(BaseProcessor):
    """A processor made of processors. ``flatten`` gives its members with the conditions on each."""

    def flatten(self, lane: Lane) -> Iterator[Flattened]:
        """The members, in order."""
        raise NotImplementedError


class HookCall:
    """One processor's implementation of one hook.

    Attributes:
        member: which context of the run it gets.
        reads_parts: whether anything of the processor could look at ``ctx.stream_parts``.
        index: its place among the calls of its hook.
    """

    __slots__ = ("conditions", "function", "hook", "index", "is_async", "member", "processor", "reads_parts")

    def __init__(
        self, hook: str, processor: BaseProcessor, member: int, conditions: tuple[Predicate, ...]
    ) -> None:
        self.hook = hook
        self.processor = processor
        self.member = member
        self.conditions = conditions
        self.function: Callable[[Any, Any], Any] = getattr(processor, hook)
        self.is_async = is_async(self.function)
        self.index = -1
        self.reads_parts = False


class Member:
    """A processor in one list: it has a context of its own in each run."""

    __slots__ = ("hooks", "lane", "processor")

    def __init__(self, processor: BaseProcessor, lane: Lane, hooks: tuple[str, ...]) -> None:
        self.processor = processor
        self.lane: Lane = lane
        self.hooks = hooks


class Pipeline:
    """The compiled processors of an agent or a call.

    Args:
        lists: the processors of each lane, framework's own included, in order.

    Attributes:
        has_error_processors: whether process_api_error has anybody to ask.
        must_hold_steps: whether a step's text has to wait for its judges (release policy ``auto``, spec R7.5).

    Raises:
        UsageError: a processor without id, without a hook of its list, twice in one list, or no processor at all.
    """

    __slots__ = ("calls", "has_error_processors", "members", "must_hold_steps")

    def __init__(self, lists: Mapping[Lane, Sequence[BaseProcessor]]) -> None:
        self.members: list[Member] = []
        calls: dict[str, list[HookCall]] = {hook.name: [] for hook in HOOKS}
        for lane, processors in lists.items():
            seen: set[str] = set()
            for index, (processor, conditions) in enumerate(_flattened(processors, lane)):
                check_processor(processor, lane, seen)
                processor.processor_index = index
                hooks = implemented(processor, lane)
                self.members.append(Member(processor, lane, hooks))
                for hook in hooks:
                    calls[hook].append(HookCall(hook, processor, len(self.members) - 1, conditions))
        for row in calls.values():
            for index, call in enumerate(row):
                call.index = index
        for call in calls["process_output_stream"]:
            call.reads_parts = _reads_parts(call, calls)
        self.calls: dict[str, tuple[HookCall, ...]] = {hook: tuple(row) for hook, row in calls.items()}
        self.has_error_processors = bool(self.calls["process_api_error"])
        self.must_hold_steps = any(not call.processor.observes for call in self.calls["process_output_step"])


def _reads_parts(stream: HookCall, calls: Mapping[str, Sequence[HookCall]]) -> bool:
    """Any hook of the processor may look at what its stream hook got, and so may the conditions in front of it."""
    own = [call for row in calls.values() for call in row if call.processor is stream.processor]
    functions = [function for call in own for function in (call.function, *call.conditions)]
    if overrides_end(stream.processor):
        functions.append(stream.processor.on_run_end)
    return any(may_read_stream_parts(function) for function in functions)


def overrides_end(processor: BaseProcessor) -> bool:
    """Whether a processor has an on_run_end of its own."""
    return "on_run_end" in vars(processor) or type(processor).on_run_end is not BaseProcessor.on_run_end


def _flattened(processors: Sequence[BaseProcessor], lane: Lane) -> Iterator[Flattened]:
    for processor in processors:
        if isinstance(processor, Composition):
            members = list(processor.flatten(lane))
            # a composition may have members for several lists; without one for this list, all are refused
            yield from [each for each in members if implemented(each[0], lane)] or members
        else:
            yield processor, ()


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives an awaitable; asked once, at compile time."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func  # type: ignore[attr-defined]
    call = getattr(type(function), "__call__", None)  # noqa: B004  # a callable object's own
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


async def holds(conditions: Sequence[Predicate], ctx: HookContext) -> bool:
    """Whether all conditions of a call are met (spec R10.3: asked at each hook call)."""
    for condition in conditions:
        answer = condition(ctx)
        if not isinstance(answer, bool) and inspect.isawaitable(answer):
            answer = await answer
        if not answer:
            return False
    return True
