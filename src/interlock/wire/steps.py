"""A step's record as the reference writes it: a list of contents beside usage and outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interlock.core.chunks import File, Source, StepRecord, ToolCall, ToolResult
from interlock.core.errors import UsageError
from interlock.core.jsonable import jsonable
from interlock.core.shapes import is_mapping
from interlock.wire.fields import (
    Json,
    built,
    camel,
    fields_of,
    list_at,
    object_at,
    payload_of,
    snake,
    tripwire_form,
    tripwire_from,
    usage_form,
    usage_from,
)


def request_form(step: StepRecord | None) -> Json:
    """What was sent to the provider, as far as it is known."""
    return {} if step is None or step.request is None else {"body": jsonable(step.request)}


def response_form(step: StepRecord | None) -> Json:
    """Who answered: id, timestamp, modelId, headers."""
    known = None if step is None else step.response
    if not is_mapping(known):
        return {}
    return {camel(name): jsonable(value) for name, value in known.items() if value is not None}


def step_form(step: StepRecord) -> Json:
    """A step."""
    form: Json = {
        "content": list(_contents(step)),
        "finishReason": step.finish_reason,
        "usage": usage_form(step.usage),
        "warnings": jsonable(step.warnings),
        "request": request_form(step),
        "response": response_form(step),
    }
    if step.provider_metadata is not None:
        form["providerMetadata"] = jsonable(step.provider_metadata)
    if step.tripwire is not None:
        form["tripwire"] = tripwire_form(step.tripwire)
    return form


def _contents(step: StepRecord) -> Iterator[Json]:
    if step.reasoning:
        yield {"type": "reasoning", "text": step.reasoning}
    if step.text:
        yield {"type": "text", "text": step.text}
    for source in step.sources:
        yield {"type": "source", **payload_of(source)}
    for file in step.files:
        inner = {"base64Data": file.data, "mediaType": file.mime_type, "type": "file"}
        form: Json = {"type": "file", "file": inner}
        yield (
            form
            if file.provider_metadata is None
            else {**form, "providerOptions": jsonable(file.provider_metadata)}
        )
    for call in step.tool_calls:
        yield {"type": "tool-call", **_of_call(call)}
    for result in step.tool_results:
        output = {
            "type": "text" if isinstance(result.result, str) else "json",
            "value": jsonable(result.result),
        }
        yield {"type": "tool-result", **_of_call(result), "output": output}


def _of_call(chunk: ToolCall | ToolResult) -> Json:
    form: Json = {
        "toolCallId": chunk.tool_call_id,
        "toolName": chunk.tool_name,
        "input": jsonable(chunk.args),
    }
    if chunk.provider_executed:
        form["providerExecuted"] = True
    if chunk.provider_metadata is not None:
        form["providerOptions"] = jsonable(chunk.provider_metadata)
    return form


# ---------------------------------------------------------------------------------------------------------------- back


def steps_from(steps: list[Any], kind: str) -> list[StepRecord]:
    """Step records. One that was withdrawn has the number of the step that follows it."""
    records: list[StepRecord] = []
    number = 0
    for step in steps:
        if not is_mapping(step):
            raise UsageError(f"a step of a {kind} chunk must be an object, not {type(step).__name__}")
        records.append(_step_from(step, number, kind))
        number += records[-1].tripwire is None
    return records


def _step_from(form: Mapping[str, Any], number: int, kind: str) -> StepRecord:
    response = {snake(key): value for key, value in object_at(form, "response", kind).items()}
    record = StepRecord(
        step_number=number,
        usage=usage_from(form.get("usage") or {}, kind),
        finish_reason=str(form.get("finishReason") or "unknown"),
        request=object_at(form, "request", kind).get("body"),
        response=response or None,
        warnings=list_at(form, "warnings") or [],
        provider_metadata=form.get("providerMetadata"),
        tripwire=tripwire_from(form.get("tripwire"), kind),
    )
    for content in list_at(form, "content") or ():
        if is_mapping(content):
            _take_content(record, content, kind)
    return record


def _take_content(record: StepRecord, content: Mapping[str, Any], kind: str) -> None:
    options = content.get("providerOptions")
    match content.get("type"):
        case "text":
            record.text += str(content.get("text") or "")
        case "reasoning":
            record.reasoning += str(content.get("text") or "")
        case "source":
            record.sources.append(built(Source, fields_of(Source, content), kind))
        case "file":
            inner = object_at(content, "file", kind)
            file = {
                "data": inner.get("base64Data"),
                "mime_type": inner.get("mediaType"),
                "provider_metadata": options,
            }
            record.files.append(built(File, file, kind))
        case "tool-call":
            call = {**content, "args": content.get("input"), "providerMetadata": options}
            record.tool_calls.append(built(ToolCall, fields_of(ToolCall, call), kind))
        case "tool-result":
            value = object_at(content, "output", kind).get("value")
            result = {**content, "args": content.get("input"), "result": value, "providerMetadata": options}
            record.tool_results.append(built(ToolResult, fields_of(ToolResult, result), kind))
        case _:
            pass
