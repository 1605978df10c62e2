"""A step as results list it, derived from the message list whenever somebody asks (spec R0.1)."""

from __future__ import annotations

from interlock.core.attempt import Attempt
from interlock.core.chunks import File, StepRecord, ToolCall, ToolResult, TripWireInfo
from interlock.core.errors import TripWire
from interlock.core.ledger import Ledger
from interlock.core.messages import FilePart, ReasoningPart, SourcePart, TextPart, ToolInvocationPart
from interlock.core.rewriting import source_chunk


def step_record(ledger: Ledger, attempt: Attempt) -> StepRecord:
    """A step as the message list now has it; of one that was not accepted only what it cost."""
    ledger.sync()
    record = StepRecord(
        step_number=attempt.number,
        usage=attempt.usage,
        finish_reason=attempt.finish_reason,
        request=attempt.request,
        response=attempt.response or None,
        warnings=attempt.warnings,
        provider_metadata=attempt.provider_metadata,
        tripwire=attempt.tripwire,
    )
    if attempt.tripwire is None or attempt.accepted:
        _fill(record, ledger)
    return record


def _fill(record: StepRecord, ledger: Ledger) -> None:
    texts: list[str] = []
    reasonings: list[str] = []
    for part in ledger.response_parts(record.step_number):
        match part:
            case TextPart(type="text"):
                texts.append(part.text)
            case ReasoningPart(type="reasoning"):
                reasonings.append(part.text)
            case ToolInvocationPart():
                record.tool_calls.append(_tool_call(part))
                if part.state == "result":
                    record.tool_results.append(_tool_result(part))
            case SourcePart():
                record.sources.append(source_chunk(part))
            case FilePart():
                record.files.append(_file(part))
            case _:
                pass
    record.text = "".join(texts)
    record.reasoning = "".join(reasonings)


def tripwire_info(trip: TripWire) -> TripWireInfo:
    """A tripwire as results carry it."""
    return TripWireInfo(
        reason=trip.reason, processor_id=trip.processor_id, retry=trip.retry, metadata=trip.metadata
    )


def _tool_call(part: ToolInvocationPart) -> ToolCall:
    """An invocation as the call that made it."""
    return ToolCall(
        tool_call_id=part.tool_call_id,
        tool_name=part.tool_name,
        args=part.args,
        provider_executed=part.provider_executed,
        invalid=part.invalid,
    )


def _tool_result(part: ToolInvocationPart) -> ToolResult:
    """An invocation as the result that answered it."""
    return ToolResult(
        tool_call_id=part.tool_call_id,
        tool_name=part.tool_name,
        args=part.args,
        result=part.result,
        provider_executed=part.provider_executed,
    )


def _file(part: FilePart) -> File:
    return File(mime_type=part.mime_type, data=part.data, provider_metadata=part.provider_metadata)
