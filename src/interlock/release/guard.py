"""SpanGuard: a guard says where its spans are; everything else is done here (spec R0).

The same code covers the input messages, every channel of the output and the tools' results; what is removed leaves in
none of them, wherever the stream is cut.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

from msgspec import json

from interlock.core.chunks import (
    Chunk,
    DataChunk,
    Finish,
    Source,
    StepFinish,
    StepStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
)
from interlock.core.context import HookContext
from interlock.core.errors import InterlockError, UsageError
from interlock.core.messages import Message, TextPart, ToolInvocationPart
from interlock.core.processor import Processor
from interlock.core.record import Record
from interlock.core.step import map_strings
from interlock.release.line import Line
from interlock.release.scanner import Span, TextScanner
from interlock.release.track import Track, through

log = logging.getLogger("interlock")

Channel: TypeAlias = Literal[
    "input", "text", "reasoning", "tool-arguments", "tool-results", "data", "sources"
]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
Strategy: TypeAlias = Literal["redact", "block", "filter", "warn", "detect"]
Redaction: TypeAlias = Literal["placeholder", "mask", "hash", "remove"]


class Detection(Record, kw_only=True):
    """One find of a guard.

    Attributes:
        rule: the rule's name.
        channel: where it was found.
        offset: characters from the start of that text.
        length: characters.
        replacement: what stands there now; None where the text was left as it is.
        text: what was found, only if the guard was told to report it.
    """

    rule: str
    channel: str
    offset: int
    length: int
    replacement: str | None = None
    text: str | None = None


class SpanGuard(Processor):
    """Base of guards that find spans of text. A subclass gives ``new_scanner``.

    Args:
        id: the processor's id.
        strategy: ``redact`` (replace each span), ``filter`` (remove it), ``block`` (abort), ``warn`` (leave it, record
            a violation) or ``detect`` (leave it, tell ``on_detection`` only).
        channels: which texts are guarded; all by default.
        redaction: what stands for a span: its ``placeholder`` (``[NAME]``), a ``mask`` of its length that keeps the
            format, a short ``hash`` (equal texts get equal hashes), or nothing (``remove``).
        replacement: a text, or a function of (rule, text), instead.
        on_detection: told of each find.
        report_text: whether finds carry the text that was found. Reports then hold what was removed.
        error_strategy: when a check fails (a pattern takes too long, too much text is held): ``strict`` blocks with
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
        self.id = id
        for name, value, known in (
            ("strategy", strategy, get_args(Strategy)),
            ("redaction", redaction, get_args(Redaction)),
            ("error_strategy", error_strategy, ("strict", "warn")),
        ):
            if value not in known:
                raise UsageError(
                    f"{type(self).__name__} {id!r}: {name} must be one of {', '.join(known)}, not {value!r}"
                )
        unknown = [channel for channel in channels if channel not in CHANNELS]
        if unknown or isinstance(channels, str):
            raise UsageError(
                f"{type(self).__name__} {id!r}: channels are {', '.join(CHANNELS)}; not {channels!r}"
            )
        self.strategy: Strategy = strategy
        self.channels = frozenset(channels)
        self.redaction: Redaction = redaction
        self.replacement = replacement
        self.on_detection = on_detection
        self.report_text = report_text
        self.error_strategy = error_strategy
        self.process_data_parts = "data" in self.channels
        self.process_tool_errors = "tool-results" in self.channels
        left_out = [channel for channel in CHANNELS if channel not in self.channels]
        if left_out:
            self.description = f"does not guard: {', '.join(left_out)}"
            log.info("%s %r does not guard %s", type(self).__name__, id, ", ".join(left_out))

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
            replacement = self._stands_for(span.rule, text)
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
            return self.replacement if isinstance(self.replacement, str) else self.replacement(rule, text)
        if self.redaction == "mask":
            return "".join("*" if char.isalnum() else char for char in text)
        if self.redaction == "hash":
            return f"[{rule.upper()}:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}]"
        return f"[{rule.upper()}]"

    def _teller(self, ctx: HookContext) -> Callable[[Detection], None]:
        def tell(detection: Detection) -> None:
            if self.on_detection is not None:
                self.on_detection(detection)
            detail = {"rule": detection.rule, "channel": detection.channel, "offset": detection.offset}
            if self.strategy == "block":
                ctx.abort(
                    f"{detection.rule} found in {detection.channel}", metadata={**detail, "strategy": "block"}
                )
            if self.strategy != "detect":
                ctx.violation(f"{detection.rule} found in {detection.channel}", detail)

        return tell

    def _failure(self, ctx: HookContext) -> Callable[[InterlockError], None]:
        def failed(problem: InterlockError) -> None:
            if self.error_strategy == "strict":
                ctx.abort(f"a check could not be made: {problem}", metadata={"check_failed": True})
            ctx.violation(f"a check could not be made: {problem}", {"check_failed": True})

        return failed

    def _guarded(self, text: str, channel: Channel, ctx: HookContext) -> str:
        """A whole text through the guard."""
        return self._guarded_together([text], channel, ctx)[0]

    def _guarded_together(self, texts: list[str], channel: Channel, ctx: HookContext) -> list[str]:
        return through(self.open_track(channel, self._teller(ctx), self._failure(ctx)), texts)

    def _guarded_value(self, value: Any, channel: Channel, ctx: HookContext) -> Any:
        return map_strings(value, lambda text: self._guarded(text, channel, ctx))

    # ---------------------------------------------------------------------------------------------------------- input

    def process_input(self, messages: list[Message], ctx: HookContext) -> None:
        """What this call brought; remembered messages were judged when they came."""
        if "input" not in self.channels:
            return
        here = {message.id for message in messages}
        for message in (*ctx.message_list.get.input.db(), *ctx.message_list.get.context.db()):
            if message.id in here:
                self._guard_message(message, ctx)

    def _guard_message(self, message: Message, ctx: HookContext) -> None:
        parts = [part for part in message.content.parts if isinstance(part, TextPart)]
        texts = self._guarded_together([part.text for part in parts], "input", ctx)
        for part, text in zip(parts, texts, strict=True):
            part.text = text
        if message.content.content is not None:
            message.content.content = self._guarded(message.content.content, "input", ctx)
        for part in message.content.parts:
            if isinstance(part, ToolInvocationPart):
                part.args = self._guarded_value(part.args, "input", ctx)
                part.result = self._guarded_value(part.result, "input", ctx)

    # --------------------------------------------------------------------------------------------------------- output

    def process_output_stream(self, chunk: Chunk, ctx: HookContext) -> list[Chunk] | Chunk:
        """Each chunk in its order, as soon as the text in front of it is decided."""
        line: Line = ctx.state.get("line") or self._new_line(ctx)
        match chunk:
            case StepStart() | StepFinish():
                self._new_line(ctx)  # what a rejected attempt held is gone with it
                return chunk
            case Finish():
                return [*line.finish(), chunk]
            case ToolInputStart() | ToolInputDelta() | ToolInputEnd() if "tool-arguments" in self.channels:
                return []  # streamed arguments wait for the call they lead to
            case ToolCall() if "tool-arguments" in self.channels:
                return [piece for each in self._guarded_call(chunk, ctx) for piece in line.push(each)]
            case DataChunk() if "data" in self.channels:
                return line.push(chunk.replace(data=self._guarded_value(chunk.data, "data", ctx)))
            case Source() if "sources" in self.channels:
                return line.push(self._guarded_source(chunk, ctx))
            case _:
                return line.push(chunk)  # of tools' results, the texts have passed process_tool_result

    def _new_line(self, ctx: HookContext) -> Line:
        tell, failed = self._teller(ctx), self._failure(ctx)

        def open_track(channel: str) -> Track | None:
            return self.open_track(channel, tell, failed) if channel in self.channels else None

        ctx.state["line"] = line = Line(open_track)
        return line

    def _guarded_call(self, chunk: ToolCall, ctx: HookContext) -> list[Chunk]:
        """The call with its final arguments, told as one delta before it."""
        call = chunk.replace(args=self._guarded_value(chunk.args, "tool-arguments", ctx))
        if chunk.invalid is not None:
            call.invalid = self._guarded(chunk.invalid, "tool-arguments", ctx)
        text = json.encode(call.args).decode()
        return [
            ToolInputStart(
                tool_call_id=call.tool_call_id,
                tool_name=call.tool_name,
                provider_executed=call.provider_executed,
            ),
            ToolInputDelta(tool_call_id=call.tool_call_id, args_text=text, tool_name=call.tool_name),
            ToolInputEnd(tool_call_id=call.tool_call_id),
            call,
        ]

    def _guarded_source(self, chunk: Source, ctx: HookContext) -> Source:
        def guarded(text: str | None) -> str | None:
            return None if text is None else self._guarded(text, "sources", ctx)

        return chunk.replace(
            title=guarded(chunk.title), url=guarded(chunk.url), filename=guarded(chunk.filename)
        )

    def process_tool_result(self, result: ToolResult, ctx: HookContext) -> ToolResult | None:
        """A tool's result, or the error it failed with."""
        if "tool-results" not in self.channels:
            return None
        return result.replace(result=self._guarded_value(result.result, "tool-results", ctx))
