"""The hooks of each stage but the stream's: whom to call with what, and what to make of the answers (spec R4)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from msgspec import UNSET

from interlock.core.attempt import Attempt
from interlock.core.calling import blame, invoke
from interlock.core.chunks import Chunk, ToolError, ToolResult
from interlock.core.errors import UsageError
from interlock.core.frozen import frozen_prompt
from interlock.core.jsonable import jsonable
from interlock.core.messages import ToolInvocationPart
from interlock.core.model import Prompt, PromptMessage
from interlock.core.pipeline import HookCall
from interlock.core.prompt import build_prompt, well_formed
from interlock.core.returns import check_list, replace_system, take_messages, wrong_return
from interlock.core.run import Run
from interlock.core.shapes import is_dict, is_sequence
from interlock.core.step import (
    CachedResponse,
    InputChange,
    LLMRequest,
    LLMResponse,
    OutputResult,
    OutputStep,
    Retry,
    StepChange,
)
from interlock.core.tool import tool_set

TOOL_CHOICES = ("auto", "none", "required")


async def process_input(run: Run) -> None:
    """R4.1: once, on the messages without system messages."""
    run.stage = "process_input"
    for call in run.pipeline.calls["process_input"]:
        shown = run.stage_messages()
        returned = await invoke(run, call, list(shown))
        try:
            messages, system = returned, None
            if isinstance(returned, InputChange):
                messages, system = returned.messages, returned.system_messages
            if messages is not None and not take_messages(
                run, call, messages, shown, "input", empty_is_change=True
            ):
                raise wrong_return(call, returned)
            if system is not None:
                replace_system(run, call, system)
        except UsageError as problem:
            raise blame(run, call, problem) from None
    run.ledger.settle()
    run.base_system = run.message_list.system_messages


async def process_input_step(run: Run, attempt: Attempt) -> None:
    """R4.2: before each step; what one changes the next one sees."""
    run.stage = "process_input_step"
    for call in run.pipeline.calls["process_input_step"]:
        shown = run.stage_messages()
        step = attempt.input
        subject = step.replace(
            messages=list(shown), system_messages=run.message_list.system_messages, tools=dict(step.tools)
        )
        returned = await invoke(run, call, subject)
        if returned is None:
            continue
        try:
            if isinstance(returned, StepChange):
                _change_step(run, attempt, call, returned, shown)
            elif not take_messages(run, call, returned, shown, "input", empty_is_change=True):
                raise wrong_return(call, returned)
        except UsageError as problem:
            raise blame(run, call, problem) from None
    run.ledger.settle()


def _change_step(run: Run, attempt: Attempt, call: HookCall, change: StepChange, shown: list[Any]) -> None:
    if change.messages is not UNSET and change.message_list is not UNSET:
        raise wrong_return(call, change, "it has both messages and message_list; give one of them")
    if change.message_list is not UNSET:
        check_list(run, call, change.message_list)  # type: ignore[arg-type]
    where = f"processor {call.processor.id!r}: {call.hook}"
    fields: dict[str, Any] = {}
    for name in ("provider_options", "model_settings"):
        if (value := getattr(change, name)) is not UNSET:
            fields[name] = value
    for name in ("provider_options", "model_settings"):
        if not isinstance(fields.get(name, {}), dict):
            raise UsageError(f"{where}: StepChange.{name} must be a dict, not {type(fields[name]).__name__}")
    if change.model is not UNSET:
        fields["model"] = run.edges.resolve_model(change.model)
    if change.structured_output is not UNSET:
        given = change.structured_output  # the runtime's own processor says what the model gets
        fields["structured_output"] = (
            given if call.processor.is_framework else run.edges.resolve_schema(given, where)
        )
    if change.tools is not UNSET:
        fields["tools"] = tool_set(change.tools, where=where)
    if change.tool_choice is not UNSET:
        fields["tool_choice"] = checked_tool_choice(change.tool_choice, where)
    if change.active_tools is not UNSET:
        fields["active_tools"] = checked_names(change.active_tools, where)
    if change.system_messages is not UNSET:
        replace_system(run, call, change.system_messages)
    if change.messages is not UNSET and not take_messages(
        run, call, change.messages, shown, "input", empty_is_change=True
    ):
        raise wrong_return(call, change, "messages must be a list of messages")
    attempt.input = attempt.input.replace(**fields)


def checked_tool_choice(given: Any, where: str) -> Any:
    """A tool choice, or UsageError: ``auto``, ``none``, ``required``, or ``{"type": "tool", "toolName": name}``."""
    if given is None:
        return "auto"
    if given in TOOL_CHOICES or (is_dict(given) and isinstance(given.get("toolName"), str)):
        return given
    raise UsageError(
        f"{where}: tool_choice must be 'auto', 'none', 'required' or {{'type': 'tool', 'toolName': ...}}, not {given!r}"
    )


def checked_names(given: Any, where: str) -> list[str] | None:
    """A list of tool names, or UsageError."""
    if given is None:
        return None
    if not is_sequence(given) or not all(isinstance(name, str) for name in given):
        raise UsageError(f"{where}: active_tools must be a list of tool names, not {given!r}")
    return list(given)


async def process_llm_request(run: Run, attempt: Attempt) -> Prompt | list[Chunk]:
    """R4.3: the final prompt. Returns it, or the chunks of the first CachedResponse, which stand for the call."""
    run.stage = "process_llm_request"
    prompt = build_prompt(run.message_list.prompt_system(), run.ledger.messages())
    calls = run.pipeline.calls["process_llm_request"]
    if not calls:
        return prompt
    request = LLMRequest(prompt=frozen_prompt(prompt), model=attempt.input.model)
    cached: list[Chunk] | None = None
    for call in calls:
        returned = await invoke(run, call, request)
        if returned is None:
            continue
        try:
            if isinstance(returned, CachedResponse):
                chunks = _cached_chunks(call, returned)
                cached = chunks if cached is None else cached
            else:
                request = _checked_request(call, returned, request)
        except UsageError as problem:
            raise blame(run, call, problem) from None
    return cached if cached is not None else well_formed(request.prompt)


def _cached_chunks(call: HookCall, response: CachedResponse) -> list[Chunk]:
    chunks: list[Any] = list(response.chunks)
    if not all(isinstance(chunk, Chunk) for chunk in chunks):
        raise wrong_return(
            call, response, "CachedResponse takes chunks (response.raw_chunks, interlock.chunks)"
        )
    return deepcopy(chunks)


def _checked_request(call: HookCall, returned: Any, request: LLMRequest) -> LLMRequest:
    if not isinstance(returned, LLMRequest):
        raise wrong_return(call, returned)
    if returned.model is not request.model:
        raise wrong_return(call, returned, "with another model; change the model in process_input_step")
    prompt: Any = returned.prompt
    if not is_sequence(prompt) or not all(isinstance(message, PromptMessage) for message in prompt):
        raise wrong_return(call, returned, "its prompt must be a tuple of PromptMessage")
    return returned.replace(prompt=frozen_prompt(tuple(prompt)))


async def process_api_error(run: Run, error: Exception) -> bool:
    """R4.5: a call has finally failed. Returns whether the step is to be tried again."""
    run.stage = "process_api_error"
    for call in run.pipeline.calls["process_api_error"]:
        returned = await invoke(run, call, error)
        if returned is not None and not isinstance(returned, Retry):
            raise blame(run, call, wrong_return(call, returned))
        if isinstance(returned, Retry):
            return run.error_retries < run.retry_cap
    return False


async def process_llm_response(run: Run, attempt: Attempt) -> None:
    """R4.4: the step's stream is complete."""
    run.stage = "process_llm_response"
    for call in run.pipeline.calls["process_llm_response"]:
        subject = LLMResponse(
            chunks=list(run.transcript.clean or ()),
            raw_chunks=list(attempt.raw),
            model=attempt.input.model,
            from_cache=attempt.from_cache,
            warnings=attempt.warnings,
            request=attempt.request,
            raw_response=attempt.raw_response,
        )
        await invoke(run, call, subject)
    run.ledger.settle()


async def process_output_step(run: Run, attempt: Attempt) -> None:
    """R4.7: the response, before its tools run."""
    run.stage = "process_output_step"
    run.message_list.first_answer_stays(True)
    for call in run.pipeline.calls["process_output_step"]:
        record = run.record(attempt)
        subject = OutputStep(
            text=record.text,
            tool_calls=record.tool_calls,
            finish_reason=record.finish_reason,
            usage=record.usage,
            provider_metadata=record.provider_metadata,
        )
        await _take_returned_messages(run, call, subject)
    run.message_list.first_answer_stays(False)


async def _take_returned_messages(run: Run, call: HookCall, subject: Any) -> None:
    shown = run.stage_messages()
    returned = await invoke(run, call, subject)
    if returned is not None:
        try:
            if not take_messages(run, call, returned, shown, "response", empty_is_change=False):
                raise wrong_return(call, returned)
        except UsageError as problem:
            raise blame(run, call, problem) from None
    run.ledger.settle()


async def process_tool_result(run: Run, result: ToolResult) -> ToolResult:
    """R4.8: one tool's result, or its error for those who asked for errors. Returns what they made of it."""
    run.stage = "process_tool_result"
    for call in run.pipeline.calls["process_tool_result"]:
        if result.is_error and not call.processor.process_tool_errors:
            continue
        shown = run.stage_messages()
        returned = await invoke(run, call, result)
        result = _taken_result(run, call, result, returned, shown)
        run.ledger.settle()
    part = run.ledger.find_call(result.tool_call_id)
    if (
        part is not None
    ):  # written before its chunk passes the chain: dropping that hides it from the client only
        _write_result(part, result.result, is_error=bool(result.is_error))
    return result


def _taken_result(
    run: Run, call: HookCall, result: ToolResult, returned: Any, shown: list[Any]
) -> ToolResult:
    part = run.ledger.find_call(result.tool_call_id)
    if isinstance(returned, ToolResult):
        value = returned.result if result.provider_executed else jsonable(returned.result)
        if part is not None:
            _write_result(part, value, is_error=bool(result.is_error))
        return result.replace(result=value)
    if returned is not None:
        try:
            if not take_messages(run, call, returned, shown, "response", empty_is_change=False):
                raise wrong_return(call, returned)
        except UsageError as problem:
            raise blame(run, call, problem) from None
        part = run.ledger.find_call(result.tool_call_id)
    if part is None:
        return result
    if part.state == "result" and (part.result is not result.result or result.is_error):
        return result.replace(result=part.result, is_error=None)
    if part.state == "output-error" and result.is_error:
        return result.replace(result=part.error_text)
    return result


def _write_result(part: ToolInvocationPart, value: Any, *, is_error: bool) -> None:
    if is_error:
        part.state, part.error_text = "output-error", str(value)
    else:
        part.state, part.result, part.error_text = "result", value, None


def result_chunk(result: ToolResult) -> ToolResult | ToolError:
    """The chunk that brings an own tool's result, or error, to the client."""
    if not result.is_error:
        return result
    return ToolError(
        tool_call_id=result.tool_call_id,
        tool_name=result.tool_name,
        args=result.args,
        error=str(result.result),
    )


async def process_output_result(run: Run) -> None:
    """R4.9: once, the final answer."""
    run.stage = "process_output_result"
    for call in run.pipeline.calls["process_output_result"]:
        result = run.result()
        subject = OutputResult(
            text=result.text, usage=result.usage, finish_reason=result.finish_reason, steps=result.steps
        )
        await _take_returned_messages(run, call, subject)
