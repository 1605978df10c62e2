"""step-finish and finish: the chunks that carry steps, usage and, at the end, the messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.core.chunks import Finish, StepFinish, StepRecord, Usage
from interlock.core.errors import UsageError
from interlock.core.forms import core_message, ui_message
from interlock.core.given import given_messages
from interlock.core.jsonable import jsonable
from interlock.core.messages import Message
from interlock.core.prompt import build_messages
from interlock.core.shapes import is_mapping
from interlock.wire.fields import (
    Json,
    list_at,
    object_at,
    payload_of,
    tripwire_form,
    tripwire_from,
    usage_form,
    usage_from,
)
from interlock.wire.steps import request_form, response_form, step_form, steps_from


def step_finish_payload(chunk: StepFinish) -> Json:
    """The payload of a step-finish."""
    # a failed call that is asked again has no record: the last one is then of the step before
    own = chunk.steps[-1] if chunk.steps and (chunk.finish_reason != "retry" or chunk.tripwire) else None
    result: Json = {
        "reason": chunk.finish_reason,
        "warnings": jsonable(chunk.warnings),
        "isContinued": chunk.is_continued,
    }
    payload: Json = {
        "stepResult": {**result, **_retry(chunk)},
        "metadata": _metadata(own, chunk.provider_metadata),
        "output": _output(chunk.text, own, chunk.usage, chunk.steps),
        "processorRetryCount": chunk.processor_retry_count,
    }
    if chunk.processor_retry_feedback is not None:
        payload["processorRetryFeedback"] = chunk.processor_retry_feedback
    if chunk.tripwire is not None:
        payload["tripwire"] = tripwire_form(chunk.tripwire)
    return payload


def _retry(chunk: StepFinish) -> Json:
    trip = chunk.tripwire
    if trip is None or chunk.finish_reason != "retry":
        return {}
    form: Json = {"retryReason": trip.reason, "retryProcessorId": trip.processor_id}
    return form if trip.metadata is None else {**form, "retryMetadata": jsonable(trip.metadata)}


def finish_payload(chunk: Finish) -> Json:
    """The payload of a finish: the run's, or a model's own, which has no steps."""
    if chunk.steps is None:
        provider = chunk.provider_metadata
        metadata = {} if provider is None else {"providerMetadata": jsonable(provider)}
        output = {} if chunk.usage is None else {"usage": usage_form(chunk.usage)}
        return {"stepResult": {"reason": chunk.finish_reason}, "output": output, "metadata": metadata}
    last = chunk.steps[-1] if chunk.steps else None
    warnings: list[Any] = jsonable(last.warnings) if last else []
    messages = chunk.messages or []
    return {
        "stepResult": {"reason": chunk.finish_reason, "warnings": warnings, "isContinued": False},
        "metadata": _metadata(last, chunk.provider_metadata),
        "output": _output(last.text if last else "", last, chunk.usage or Usage(), chunk.steps),
        "processorRetryCount": chunk.processor_retry_count,
        "response": {
            **response_form(last),
            "messages": jsonable([core_message(message) for message in build_messages(messages)]),
            "uiMessages": jsonable([ui_message(message) for message in messages]),
        },
    }


def _output(text: str, own: StepRecord | None, usage: Usage, steps: list[StepRecord]) -> Json:
    return {
        "text": text,
        "toolCalls": [payload_of(call) for call in own.tool_calls] if own else [],
        "usage": usage_form(usage),
        "steps": [step_form(step) for step in steps],
    }


def _metadata(own: StepRecord | None, provider: Any) -> Json:
    found = provider or (own.provider_metadata if own else None)
    form: Json = {} if found is None else {"providerMetadata": jsonable(found)}
    return {**form, **response_form(own), "request": request_form(own)}


# ---------------------------------------------------------------------------------------------------------------- back


def end_from_wire(kind: str, payload: Mapping[str, Any]) -> StepFinish | Finish:
    """A step-finish or finish from its payload, full or reduced."""
    outcome, output = object_at(payload, "stepResult", kind), object_at(payload, "output", kind)
    usage = output.get("usage", payload.get("usage"))
    steps = list_at(output, "steps")
    records = None if steps is None else steps_from(steps, kind)
    fields: Json = {
        "finish_reason": str(outcome.get("reason") or payload.get("finishReason") or "unknown"),
        "provider_metadata": object_at(payload, "metadata", kind).get("providerMetadata"),
        "processor_retry_count": int(payload.get("processorRetryCount") or 0),
    }
    spent = None if usage is None else usage_from(usage, kind)
    if kind == Finish.type:
        return Finish(**fields, usage=spent, steps=records, messages=_messages(payload, kind))
    return StepFinish(
        **fields,
        usage=spent or Usage(),
        is_continued=bool(outcome.get("isContinued", payload.get("isContinued"))),
        text=str(output.get("text") or payload.get("text") or ""),
        steps=records or [],
        processor_retry_feedback=payload.get("processorRetryFeedback"),
        tripwire=tripwire_from(payload.get("tripwire"), kind),
        warnings=list_at(outcome, "warnings") or [],
    )


def _messages(payload: Mapping[str, Any], kind: str) -> list[Message] | None:
    shown = list_at(object_at(payload, "response", kind), "uiMessages")
    return None if shown is None else [_message(form) for form in shown]


def _message(form: Any) -> Message:
    if not is_mapping(form):
        raise UsageError(f"a message must be an object, not {type(form).__name__}")
    metadata = dict(form.get("metadata") or {})
    created = metadata.pop("createdAt", None)
    return given_messages({**form, "metadata": metadata, "createdAt": created}, new_id=str)[0]
