"""UnitGuard: a judge looks at each unit of a text once; everything else is done here (spec R0).

The judge may take its time (ask a model, say): what is behind the unit waits in order, and leaves when it is judged.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from interlock.core.chunks import (
    Chunk,
    DataChunk,
    Finish,
    ReasoningDelta,
    StepFinish,
    StepStart,
    TextDelta,
    ToolResult,
)
from interlock.core.context import HookContext
from interlock.core.errors import UsageError
from interlock.core.messages import Message
from interlock.core.processor import MaybeAwaitable
from interlock.release.channels import (
    CHANNELS,
    Channel,
    ChannelGuard,
    Detection,
    Strategy,
    texts_in_chunk,
    texts_in_message,
    texts_in_value,
    visit_async,
)
from interlock.release.line import Line
from interlock.release.scanner import FURTHEST, HeldTooLong
from interlock.release.unit_track import Failed, Unit, UnitTrack, Verdict
from interlock.release.units import UnitCutter, UnitKind

log = logging.getLogger("interlock")

_STATE = "interlock.unit-guard"


class _Step:
    """What a guard holds of one attempt at a step."""

    __slots__ = ("attempt", "line", "streaming", "tracks")

    def __init__(self, attempt: tuple[int, int]) -> None:
        self.attempt = attempt
        self.streaming = True
        self.tracks: dict[str, UnitTrack | None] = {}
        self.line = Line(self.tracks.get)

    async def finish(self) -> list[Chunk]:
        """The step's texts are complete."""
        for track in self.tracks.values():
            if track is not None:
                await track.judge("", final=True)
        left = self.line.finish()
        self.tracks.clear()
        return left


class UnitGuard(ChannelGuard):
    """Base of guards that judge units of text. A subclass gives ``judge``, ``async def`` or ``def``.

    Each unit is judged once, whatever chunks it came in. Text waits for its verdict, and everything behind it waits in
    order; the joined client text is the same for every way of cutting the stream, if the judge's verdicts are. The text
    blocks of a step are one text, whatever stands between them; a unit of reasoning ends where text follows it.

    Args:
        id: the processor's id, and the rule's name in reports.
        unit: ``"sentence"``, ``"word"``, ``"answer"`` (the whole text), or a number of characters. See
            :class:`interlock.release.units.UnitCutter`.
        strategy: what a verdict that objects leads to: ``block`` (abort), ``redact`` (the verdict's replacement, or
            the placeholder), ``filter`` (the unit is left out), ``warn`` (it stays, with a violation) or ``detect``
            (it stays, ``on_detection`` is told).
        channels: which texts are guarded; all by default.
        placeholder: stands for a redacted unit without a replacement, in front of its white space; ``[ID]`` by default.
        on_detection: told of each verdict that objects.
        report_text: whether finds carry the unit's text. Reports then hold what was removed.
        error_strategy: when ``judge`` raises, or more text waits than may: ``strict`` blocks with
            ``{"check_failed": True}``, ``warn`` records a violation and lets the unit go.
        latency_budget: seconds a verdict may take. For an async ``judge`` only: a plain one cannot be interrupted.
        late: when it takes longer: ``closed`` blocks with ``{"check_failed": True}``, ``open`` records a violation and
            lets the unit go.
        cap: characters that may wait for the end of a unit.

    Raises:
        UsageError: an unknown option, or no ``judge``.

    >>> class Polite(UnitGuard):
    ...     def judge(self, unit, ctx):
    ...         return Verdict.block("rude") if "fool" in unit.text else Verdict.allow()
    >>> guard = Polite(id="polite", unit="sentence", strategy="redact")
    """

    def __init__(
        self,
        *,
        id: str,
        unit: UnitKind = "sentence",
        strategy: Strategy = "block",
        channels: Sequence[Channel] = CHANNELS,
        placeholder: str | None = None,
        on_detection: Callable[[Detection], object] | None = None,
        report_text: bool = False,
        error_strategy: Literal["strict", "warn"] = "strict",
        latency_budget: float | None = None,
        late: Literal["closed", "open"] = "closed",
        cap: int = FURTHEST,
    ) -> None:
        super().__init__(
            id=id,
            strategy=strategy,
            channels=channels,
            on_detection=on_detection,
            report_text=report_text,
            error_strategy=error_strategy,
        )
        self._check_option("late", late, ("closed", "open"))
        if isinstance(unit, int):
            if isinstance(unit, bool) or not 0 < unit <= cap:
                raise UsageError(
                    f"{self._named}: a unit of {unit!r} characters; at least 1, at most {cap} (cap)"
                )
        else:
            self._check_option("unit", unit, ("sentence", "word", "answer"))
        if type(self).judge is UnitGuard.judge:
            raise UsageError(f"{self._named}: override judge(unit, ctx)")
        if latency_budget is not None:
            if not latency_budget > 0:
                raise UsageError(
                    f"{self._named}: latency_budget is a number of seconds, not {latency_budget!r}"
                )
            if not inspect.iscoroutinefunction(self.judge):
                raise UsageError(
                    f"{self._named}: latency_budget needs an `async def judge`: a plain one cannot be interrupted"
                )
        self.unit: UnitKind = unit
        self.placeholder = f"[{id.upper()}]" if placeholder is None else placeholder
        self.latency_budget = latency_budget
        self.late = late
        self.cap = cap

    @property
    def _named(self) -> str:
        return f"{type(self).__name__} {self.id!r}"

    def judge(self, unit: Unit, ctx: HookContext) -> MaybeAwaitable[Verdict]:
        """Judge one unit.

        Args:
            unit: the unit.
            ctx: the hook's context.

        Returns:
            ``Verdict.allow()``, ``Verdict.replace(text)`` or ``Verdict.block(reason)``.
        """
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------ what a verdict means

    async def _decide(
        self, unit: Unit, ctx: HookContext, tell: Callable[[Detection], object], failed: Failed
    ) -> str | None:
        """What stands for a unit; None where it stays."""
        verdict = await self._verdict(unit, ctx, failed)
        if verdict is None or verdict.kind == "allow":
            return None
        replacement = self._stands_for(unit, verdict)
        tell(
            Detection(
                rule=self.id,
                channel=unit.channel,
                offset=unit.offset,
                length=len(unit.text),
                replacement=replacement,
                text=unit.text if self.report_text else None,
                reason=verdict.reason,
                scores=verdict.scores,
            )
        )
        return replacement

    def _stands_for(self, unit: Unit, verdict: Verdict) -> str | None:
        if self.strategy == "filter":
            return ""
        if self.strategy != "redact":
            return None
        if verdict.text is not None:
            return verdict.text
        return self.placeholder + unit.text[len(unit.text.rstrip()) :]

    async def _verdict(self, unit: Unit, ctx: HookContext, failed: Failed) -> Verdict | None:
        """The judge's verdict; None if there is none and the unit goes on without."""
        clock = asyncio.timeout(self.latency_budget)
        try:
            async with clock:
                verdict: Any = self.judge(unit, ctx)
                if inspect.isawaitable(verdict):
                    verdict = await verdict
        except Exception as problem:
            cause, place = type(problem).__name__, _place(problem)
            too_late = isinstance(problem, TimeoutError) and clock.expired()
        else:
            if not isinstance(verdict, Verdict):
                raise UsageError(
                    f"{self._named}: judge returned a {type(verdict).__name__}; "
                    "it returns Verdict.allow(), Verdict.replace(text) or Verdict.block(reason)"
                )
            return verdict
        # out here, the exception is not the context of what is raised: it may hold the text
        if too_late:
            said = f"no verdict within {self.latency_budget} s"
            failed(said, closed=self.late == "closed", cause=cause)
        else:
            log.warning("%s: judge raised %s (%s)", self._named, cause, place)
            failed(f"judge raised {cause}", cause=cause)
        return None

    # ------------------------------------------------------------------------------------------------ texts on the way

    def open_track(
        self, channel: Channel, tell: Callable[[Detection], object], failed: Failed, ctx: HookContext
    ) -> UnitTrack:
        """A text of this channel through the guard.

        Args:
            channel: where the text belongs.
            tell: told of each find, before anything behind it leaves.
            failed: told when a check cannot be made; it raises to stop.
            ctx: what the judge gets.
        """

        async def decide(unit: Unit) -> str | None:
            return await self._decide(unit, ctx, tell, failed)

        def too_long(problem: HeldTooLong) -> None:
            failed(problem, cause=type(problem).__name__)

        return UnitTrack(UnitCutter(self.unit), channel, self.cap, decide, too_long)

    def _track(self, channel: Channel, ctx: HookContext) -> UnitTrack:
        def failed(problem: object, *, closed: bool | None = None, cause: str | None = None) -> None:
            self._check_failed(problem, ctx, closed=closed, cause=cause)

        return self.open_track(channel, lambda find: self._tell(find, ctx), failed, ctx)

    def _guarded(self, ctx: HookContext) -> Callable[[list[str], Channel], Awaitable[list[str]]]:
        async def guarded(texts: list[str], channel: Channel) -> list[str]:
            track = self._track(channel, ctx)
            await track.judge("".join(texts), final=True)
            return [track.take(len(text))[1] for text in texts]

        return guarded

    async def process_input(self, messages: list[Message], ctx: HookContext) -> None:
        """What this call brought; remembered messages were judged when they came."""
        for message in self._messages_brought(messages, ctx):
            await visit_async(texts_in_message(message), self._guarded(ctx))

    async def process_output_stream(self, chunk: Chunk, ctx: HookContext) -> list[Chunk] | Chunk:
        """Each chunk in its order, as soon as the text in front of it is judged."""
        step = self._step(ctx)
        match chunk:
            case StepFinish() if chunk.finish_reason != "retry":
                return [*await step.finish(), chunk]
            case StepStart() | StepFinish():
                return chunk
            case Finish():
                step.streaming = False
                return [*await step.finish(), chunk]
            case TextDelta() | ReasoningDelta():
                channel: Channel = "text" if type(chunk) is TextDelta else "reasoning"
                if channel not in step.tracks:
                    step.tracks[channel] = self._track(channel, ctx) if channel in self.channels else None
                if channel == "text" and chunk.text and (thought := step.tracks.get("reasoning")) is not None:
                    await thought.judge("", final=True)  # else the answer would wait for the end of the step
                if (track := step.tracks[channel]) is not None:
                    await track.judge(chunk.text)
                return step.line.push(chunk)
            case _:
                texts = texts_in_chunk(chunk, self.channels, streaming=step.streaming)
                whole = [chunk] if texts is None else await visit_async(texts, self._guarded(ctx))
                if type(chunk) is DataChunk:
                    return whole  # custom data waits for nothing (spec R7.5)
                return [piece for each in whole for piece in step.line.push(each)]

    def _step(self, ctx: HookContext) -> _Step:
        """This attempt at this step; what a rejected one held is gone with it."""
        attempt = (ctx.step_number, ctx.retry_count)
        step: _Step | None = ctx.state.get(_STATE)
        if step is None or step.attempt != attempt:
            step = ctx.state[_STATE] = _Step(attempt)
        return step

    async def process_tool_result(self, result: ToolResult, ctx: HookContext) -> ToolResult | None:
        """A tool's result, or the error it failed with."""
        if "tool-results" not in self.channels:
            return None
        texts = texts_in_value(result.result, "tool-results")
        return result.replace(result=await visit_async(texts, self._guarded(ctx)))


def _place(problem: Exception) -> str:
    """Where it was raised; never what it says, which may be the text."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
