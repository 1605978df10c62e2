"""SpanGuard: a guard says where its spans are; everything else is done here (spec R0).

The same code covers the input messages, every channel of the output and the tools' results; what is removed leaves in
none of them, wherever the stream is cut.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, get_args

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
from interlock.core.errors import InterlockError, UsageError
from interlock.core.messages import Message
from interlock.release.channels import (
    CHANNELS,
    Channel,
    ChannelGuard,
    Detection,
    Strategy,
    texts_in_chunk,
    texts_in_message,
    texts_in_value,
    visit,
)
from interlock.release.line import Line
from interlock.release.scanner import FunctionFailed, Span, TextScanner
from interlock.release.track import Track, through

Redaction: TypeAlias = Literal["placeholder", "mask", "hash", "remove"]


class GuardOptions(TypedDict, total=False):
    """What every :class:`SpanGuard` takes beside its id; a guard of your own may pass them on.

    Attributes:
        strategy, channels, redaction, replacement, on_detection, report_text, error_strategy: see there.
    """

    strategy: Strategy
    channels: Sequence[Channel]
    redaction: Redaction
    replacement: str | Callable[[str, str], str] | None
    on_detection: Callable[[Detection], object] | None
    report_text: bool
    error_strategy: Literal["strict", "warn"]


_STATE = "interlock.span-guard"


class _Step:
    """What a guard holds of one attempt at a step; what a rejected one held is gone with it."""

    __slots__ = ("attempt", "line", "streaming")

    def __init__(self, line: Line, attempt: object) -> None:
        self.line = line
        self.attempt = attempt
        self.streaming = True


class SpanGuard(ChannelGuard):
    """Base of guards that find spans of text. A subclass gives ``new_scanner``.

    Args:
        id: the processor's id.
        strategy: ``redact`` (replace each span), ``filter`` (remove it), ``block`` (abort), ``warn`` (leave it, record
            a violation) or ``detect`` (leave it, tell ``on_detection`` only).
        channels: which texts are guarded; all by default.
        redaction: what stands for a span: its ``placeholder`` (``[NAME]``), a ``mask`` of its length that keeps the
            format, a short ``hash`` (equal texts get equal hashes), or nothing (``remove``).
        replacement: a text, or a function of (rule, text), instead. Where the function raises, or returns no text, the
            check has failed; under ``warn`` the placeholder stands there.
        on_detection: told of each find.
        report_text: whether finds carry the text that was found. Reports then hold what was removed.
        error_strategy: when a check fails (a pattern takes too long, too much text is held, a function that was given
            raises): ``strict`` blocks with
            ``{"check_failed": True}``, ``warn`` records a violation and lets the text go.

    Raises:
        UsageError: an unknown strategy, channel or redaction.
    """

    def __init__(
        self,
        *,
        id: str,
        strategy: Strategy = "redact",
        channels: Sequence[Channel] = CHANNELS,
        redaction: Redaction = "placeholder",
        replacement: str | Callable[[str, str], str] | None = None,
        on_detection: Callable[[Detection], object] | None = None,
        report_text: bool = False,
        error_strategy: Literal["strict", "warn"] = "strict",
    ) -> None:
        super().__init__(
            id=id,
            strategy=strategy,
            channels=channels,
            on_detection=on_detection,
            report_text=report_text,
            error_strategy=error_strategy,
        )
        self._check_option("redaction", redaction, get_args(Redaction))
        if not (replacement is None or isinstance(replacement, str) or callable(replacement)):
            raise UsageError(
                f"{type(self).__name__} {id!r}: replacement is a text or a function of (rule, text), "
                f"not {type(replacement).__name__}"
            )
        self.redaction: Redaction = redaction
        self.replacement = replacement

    def new_scanner(self) -> TextScanner:
        """A scanner for one text."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------- what a find means

    def open_track(
        self, channel: str, tell: Callable[[Detection], None], failed: Callable[[InterlockError], object]
    ) -> Track:
        """A text of this channel through the guard.

        Args:
            channel: where the text belongs.
            tell: told of each find, before anything behind it leaves.
            failed: told when the check cannot be made; it raises to stop.
        """

        def found(span: Span, text: str) -> str:
            try:
                replacement = self._stands_for(span.rule, text)
            except FunctionFailed as problem:
                failed(problem)
                replacement = _placeholder(span.rule)
            tell(
                Detection(
                    rule=span.rule,
                    channel=channel,
                    offset=span.start,
                    length=span.end - span.start,
                    replacement=replacement,
                    text=text if self.report_text else None,
                )
            )
            return text if replacement is None else replacement

        return Track(self.new_scanner(), found, failed)

    def _stands_for(self, rule: str, text: str) -> str | None:
        if self.strategy in ("warn", "detect"):
            return None
        if self.strategy == "filter" or (self.redaction == "remove" and self.replacement is None):
            return ""
        if self.replacement is not None:
            return (
                self.replacement
                if isinstance(self.replacement, str)
                else _text_of(self.replacement, rule, text)
            )
        if self.redaction == "mask":
            return "".join("*" if char.isalnum() else char for char in text)
        if self.redaction == "hash":
            return f"[{rule.upper()}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}]"
        return _placeholder(rule)

    def _guarded(self, ctx: HookContext) -> Callable[[list[str], Channel], list[str]]:
        return lambda texts, channel: through(self._track(channel, ctx), texts)

    def _track(self, channel: str, ctx: HookContext) -> Track:
        return self.open_track(
            channel, lambda find: self._tell(find, ctx), lambda problem: self._check_failed(problem, ctx)
        )

    # ---------------------------------------------------------------------------------------------------------- input

    def process_input(self, messages: list[Message], ctx: HookContext) -> None:
        """What this call brought; remembered messages were judged when they came."""
        for message in self._messages_brought(messages, ctx):
            visit(texts_in_message(message), self._guarded(ctx))

    # --------------------------------------------------------------------------------------------------------- output

    def process_output_stream(self, chunk: Chunk, ctx: HookContext) -> list[Chunk] | Chunk | None:
        """Each chunk in its order, as soon as the text in front of it is decided."""
        kept = ctx.state.get(_STATE)
        if kept is None or kept.attempt is not ctx.attempt:
            kept = ctx.state[_STATE] = _Step(self._new_line(ctx), ctx.attempt)
        if type(chunk) is TextDelta or type(chunk) is ReasoningDelta:
            out = kept.line.push_delta(chunk)
            return out[0] if len(out) == 1 else out or None
        return self._other_chunk(chunk, kept, ctx)

    def _other_chunk(self, chunk: Chunk, kept: _Step, ctx: HookContext) -> list[Chunk] | Chunk:
        match chunk:
            case StepFinish() if chunk.finish_reason != "retry":
                return [*kept.line.finish(), chunk]
            case StepStart() | StepFinish():
                return chunk
            case Finish():
                kept.streaming = False
                return [*kept.line.finish(), chunk]
            case _:
                texts = texts_in_chunk(chunk, self.channels, streaming=kept.streaming)
                whole = [chunk] if texts is None else visit(texts, self._guarded(ctx))
                if type(chunk) is DataChunk:
                    return whole  # custom data waits for nothing (spec R7.5)
                return [piece for each in whole for piece in kept.line.push(each)]

    def _new_line(self, ctx: HookContext) -> Line:
        return Line(lambda channel: self._track(channel, ctx) if channel in self.channels else None)

    def process_tool_result(self, result: ToolResult, ctx: HookContext) -> ToolResult | None:
        """A tool's result, or the error it failed with."""
        if "tool-results" not in self.channels:
            return None
        return result.replace(result=visit(texts_in_value(result.result, "tool-results"), self._guarded(ctx)))


def _placeholder(rule: str) -> str:
    return f"[{rule.upper()}]"


def _text_of(replacement: Callable[[str, str], Any], rule: str, text: str) -> str:
    """What a function gives for a find.

    Raises:
        FunctionFailed: it raised, or gave no text; else what was found would stay.
    """
    try:
        given = replacement(rule, text)
        what = f"its replacement returned {type(given).__name__}, not a text"
    except Exception as problem:
        given, what = None, f"its replacement raised {type(problem).__name__}"
    if isinstance(given, str):
        return given
    raise FunctionFailed(rule, what)
