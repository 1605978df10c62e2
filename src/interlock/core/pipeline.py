"""From three lists of processors to nine tuples of calls, once; and how one hook is called.

What is decided here, once, is not asked again while a run goes: which hooks are overridden, which are async, where
compositions put a condition in front.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from interlock.core.errors import UsageError
from interlock.core.hooks import HOOKS, LANES, hooks_of
from interlock.core.processor import BaseProcessor, Lane
from interlock.core.shapes import described
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
                _check(processor, lane, seen)
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


def _check(processor: Any, lane: Lane, seen: set[str]) -> None:
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
        if not callable(getattr(processor, hook)):
            given = described(getattr(processor, hook))
            raise UsageError(
                f"{where}: processor {processor.id!r}: {hook} is {given}; write a method of that name"
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


def implemented(processor: BaseProcessor, lane: Lane) -> tuple[str, ...]:
    """The lane's hooks that this processor has: methods it overrides or callables assigned to it."""
    base = LANES[lane]
    return tuple(
        hook
        for hook in hooks_of(lane)
        if hook in getattr(processor, "__dict__", ())
        or getattr(type(processor), hook, getattr(base, hook)) is not getattr(base, hook)
    )


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
