"""ctx.stream_parts: there for whoever looks, kept for nobody else (R4.6)."""

from __future__ import annotations

import functools
import operator
from typing import Any

import pytest

from harness_runs import Hooks, echo_tool, in_both_modes, make_agent, play
from interlock import When
from interlock.chunks import TextDelta
from interlock.core.stream_parts import may_read_stream_parts
from interlock.testing import ScriptedModel, text, tool_call

pytestmark = pytest.mark.anyio


def _shout(chunk: Any, ctx: Any) -> Any:
    return chunk.replace(text=chunk.text.upper()) if isinstance(chunk, TextDelta) else chunk


@in_both_modes
async def test_stream_parts_are_the_chunks_this_processor_got(mode: str) -> None:
    """ctx.stream_parts: what this processor got so far in the run, this one included, not what others got (R4.6)."""
    counts: list[tuple[int, bool]] = []

    def look(chunk: Any, ctx: Any) -> Any:
        counts.append((len(ctx.stream_parts), ctx.stream_parts[-1] is chunk))
        return None if isinstance(chunk, TextDelta) else chunk

    later: list[int] = []

    def look_later(chunk: Any, ctx: Any) -> Any:
        later.append(len(ctx.stream_parts))
        return chunk

    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("a", "b")])
    agent = make_agent(
        model,
        Hooks("a", process_output_stream=look),
        Hooks("b", process_output_stream=look_later),
        tools=[echo_tool()],
    )
    await play(agent, mode=mode)
    assert counts == [(n, True) for n in range(1, 13)]
    assert later == list(range(1, 11))


@in_both_modes
@pytest.mark.parametrize(
    "hook", ["process_output_step", "process_tool_result", "process_output_result", "process_llm_response"]
)
async def test_stream_parts_in_the_other_hooks_of_a_processor(hook: str, mode: str) -> None:
    """ctx carries stream_parts in every hook: a processor may look back at what it got in the stream (R4, R4.6)."""
    seen: list[list[str]] = []

    def look(subject: Any, ctx: Any) -> None:
        seen.append([chunk.type for chunk in ctx.stream_parts])

    processor = Hooks("p", process_output_stream=lambda chunk, ctx: chunk, **{hook: look})
    model = ScriptedModel([tool_call("echo", {"value": 1})], [text("done")])
    await play(make_agent(model, processor, tools=[echo_tool()]), mode=mode)
    assert seen
    assert seen[0][:3] == ["step-start", "tool-call", "finish"]


@in_both_modes
async def test_stream_parts_for_a_condition(mode: str) -> None:
    """The predicate of When gets ctx and may look at stream_parts as well (R4.6, R10.3)."""
    shout = Hooks("shout", process_output_stream=_shout)
    late = When(lambda ctx: len(ctx.stream_parts) > 3, shout)
    agent = make_agent(ScriptedModel([text("a", "b", "c")]), output_processors=[late])
    seen = await play(agent, mode=mode)
    assert seen.result.text == "aBC"


def _helper(ctx: Any) -> int:
    return len(ctx.stream_parts)


class _Reads:
    """Hooks that look at ctx.stream_parts, in ways that are easy to overlook."""

    kept: Any = None

    def plainly(self, chunk: Any, ctx: Any) -> Any:
        return ctx.stream_parts[-1]

    async def asynchronously(self, chunk: Any, ctx: Any) -> Any:
        return ctx.stream_parts[-1]

    def after_other_attributes(self, chunk: Any, ctx: Any) -> Any:
        ctx.state["x"] = ctx.retry_count
        return ctx.stream_parts[-1]

    def passed_on(self, chunk: Any, ctx: Any) -> Any:
        _helper(ctx)
        return chunk

    def passed_on_beside_others(self, chunk: Any, ctx: Any) -> Any:
        print(chunk, ctx, sep="", end="", file=None) if chunk is None else _helper(ctx)
        return chunk

    def captured(self, chunk: Any, ctx: Any) -> Any:
        return (lambda: ctx.stream_parts[-1])()

    def captured_in_a_comprehension(self, chunk: Any, ctx: Any) -> Any:
        return next(ctx.stream_parts for _ in range(1))[-1]

    def aliased(self, chunk: Any, ctx: Any) -> Any:
        other = ctx
        return other.stream_parts[-1]

    def aliased_in_a_tuple(self, chunk: Any, ctx: Any) -> Any:
        first, second = chunk, ctx
        return second.stream_parts[-1] or first

    def swapped(self, chunk: Any, ctx: Any) -> Any:
        chunk, ctx = ctx, chunk
        return chunk.stream_parts[-1]

    def stored(self, chunk: Any, ctx: Any) -> Any:
        self.kept = ctx
        return self.kept.stream_parts[-1]

    def by_name(self, chunk: Any, ctx: Any) -> Any:
        return getattr(ctx, "stream_parts")[-1]  # noqa: B009

    def by_attrgetter(self, chunk: Any, ctx: Any) -> Any:
        return operator.attrgetter("stream_parts")(ctx)[-1]

    def in_a_container(self, chunk: Any, ctx: Any) -> Any:
        return {"ctx": ctx}["ctx"].stream_parts[-1]

    def in_an_f_string(self, chunk: Any, ctx: Any) -> Any:
        return chunk if f"{ctx.stream_parts}" != "[]" else None

    def matched(self, chunk: Any, ctx: Any) -> Any:
        match ctx:
            case object(stream_parts=parts):
                return parts[-1]
            case _:
                return None

    def with_a_walrus(self, chunk: Any, ctx: Any) -> Any:
        return (it := ctx).stream_parts[-1] or it

    def conditional(self, chunk: Any, ctx: Any) -> Any:
        return (ctx if chunk else chunk).stream_parts[-1]

    def as_a_default(self, chunk: Any, ctx: Any) -> Any:
        def inner(given: Any = ctx) -> Any:
            return given.stream_parts[-1]

        return inner()

    def called_otherwise(self, part: Any, context: Any) -> Any:
        return context.stream_parts[-1]

    def with_more_parameters(self, chunk: Any, ctx: Any, limit: int = 3) -> Any:
        return ctx.stream_parts[-1]

    def with_a_keyword(self, chunk: Any, ctx: Any, *, limit: int = 3) -> Any:
        return ctx.stream_parts[-limit:][-1]

    def variadic(self, *args: Any) -> Any:
        return args[1].stream_parts[-1]

    def among_locals(self, chunk: Any, ctx: Any) -> Any:
        return locals()["ctx"].stream_parts[-1]

    def evaluated(self, chunk: Any, ctx: Any) -> Any:
        return eval("ctx.stream_parts[-1]")

    def by_dunder(self, chunk: Any, ctx: Any) -> Any:
        return ctx.__getattribute__("stream_parts")[-1]


def _wrapping(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(self: Any, chunk: Any, ctx: Any) -> Any:
        function(self, chunk, ctx)
        return ctx.stream_parts[-1]

    return wrapper


class _ReadsOutside:
    """Hooks whose own code does not look at ctx.stream_parts, but what is around it does."""

    @_wrapping
    def wrapped(self, chunk: Any, ctx: Any) -> Any:
        return chunk

    partial = functools.partial(lambda option, chunk, ctx: ctx.stream_parts[-1], 1)


class _CallableReads:
    def __call__(self, chunk: Any, ctx: Any) -> Any:
        return ctx.stream_parts[-1]


READING = {
    **{name: getattr(_Reads(), name) for name in vars(_Reads) if callable(getattr(_Reads, name))
       and not name.startswith("__")},
    "wrapped": _ReadsOutside().wrapped,
    "partial": _ReadsOutside.partial,
    "callable object": _CallableReads(),
}  # fmt: skip


@pytest.mark.parametrize("form", READING)
def test_a_hook_that_may_read_stream_parts_is_found_out(form: str) -> None:
    """may_read_stream_parts is False only when that is certain: what was not kept cannot be shown (R4.6)."""
    assert may_read_stream_parts(READING[form]) is True


@in_both_modes
@pytest.mark.parametrize("form", READING)
async def test_stream_parts_are_there_however_they_are_read(form: str, mode: str) -> None:
    """Each of these ways to look at ctx.stream_parts works: none finds it empty (R4.6)."""
    seen = await play(
        make_agent(ScriptedModel([text("a")]), Hooks("p", process_output_stream=READING[form])), mode=mode
    )
    assert seen.error is None
    assert seen.result.text == "a"


def test_a_hook_that_does_not_read_them_is_spared() -> None:
    """Plain hooks that use ctx for other attributes only keep nothing (R2.2, design)."""

    def unused(chunk: Any, ctx: Any) -> Any:
        return chunk

    async def state_only(chunk: Any, ctx: Any) -> Any:
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        if ctx.retry_count > 3:
            ctx.abort("enough")
        return chunk

    assert may_read_stream_parts(unused) is False
    assert may_read_stream_parts(state_only) is False
