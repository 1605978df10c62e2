"""One call of the model: its stream, read chunk by chunk and handed to the chain (spec R1.2c, d)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from copy import deepcopy
from typing import Any

from interlock.core import stages
from interlock.core.attempt import Attempt
from interlock.core.calling import heed
from interlock.core.chunks import (
    Abort,
    Chunk,
    ErrorChunk,
    Finish,
    Metadata,
    ObjectResult,
    PartialObject,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    ResponseMetadata,
    Start,
    StepFinish,
    StepStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolResult,
    TripWireChunk,
    Usage,
)
from interlock.core.errors import ModelError
from interlock.core.model import ModelRequest, Prompt
from interlock.core.run import Run
from interlock.core.shapes import is_dict

_DELTAS = (TextDelta, ReasoningDelta)
_STARTS: dict[type[Chunk], type[Chunk]] = {TextStart: TextEnd, ReasoningStart: ReasoningEnd}
# the first StepStart opens the step; the others belong to the run
_NOT_THE_MODELS = frozenset({Start, StepStart, StepFinish, TripWireChunk, Abort, PartialObject, ObjectResult})
_NOT_KEPT = frozenset({ResponseMetadata, ErrorChunk})


class CallFailed(Exception):
    """The model's call or its stream failed; not a hook."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


async def read_response(run: Run, attempt: Attempt, answer: Prompt | list[Chunk]) -> None:
    """Call the model, or replay what a cache had, and pass every chunk through the output processors.

    Leaving early, by an abort or a cancellation, closes the model's stream at once.

    Raises:
        CallFailed: the call was rejected, or the stream broke.
    """
    run.transcript.restart()
    run.delivery.open_step()
    attempt.from_cache = isinstance(answer, list)
    stream = (
        replay(answer)
        if isinstance(answer, list)
        else attempt.input.model.stream(model_request(run, attempt, answer))
    )
    feed = run.chain.feed if run.chain.hooks else run.transcript.take
    keep = attempt.raw if run.keeps_response else None
    async with aclosing(stream):
        advance = stream.__anext__
        while True:
            try:
                chunk = await advance()
            except StopAsyncIteration:
                break
            except Exception as problem:
                await open_step(run, attempt)
                raise CallFailed(as_model_error(problem)) from problem
            if run.alert:
                await heed(run)
            if not attempt.opened:
                if type(chunk) is Finish:
                    note_finish(run, attempt, chunk)  # paid for, even if somebody objects to the step-start
                await open_step(run, attempt, chunk)
            if type(chunk) in _DELTAS:
                if keep is not None:
                    keep.append(chunk.replace())
                pending = feed(chunk)
                if pending is not None:
                    await pending
            else:
                await take_chunk(run, attempt, chunk)
    await open_step(run, attempt)
    await end_response(run, attempt)


async def replay(chunks: list[Chunk]) -> AsyncGenerator[Chunk, None]:
    """A cached response as a stream."""
    for chunk in chunks:
        yield chunk


def model_request(run: Run, attempt: Attempt, prompt: Prompt) -> ModelRequest:
    """The request of this step."""
    step = attempt.input
    active = attempt.active_tools()
    tools = () if step.tool_choice == "none" else tuple(tool.spec for tool in active.values())
    return ModelRequest(
        prompt=prompt,
        tools=tools,
        tool_choice=step.tool_choice if active else "auto",
        settings=step.model_settings,
        provider_options=step.provider_options,
        structured_output=step.structured_output,
        wants_raw=run.keeps_response,
    )


def as_model_error(problem: Exception) -> Exception:
    """A provider's failure as ModelError; what a model raised otherwise keeps its text."""
    if isinstance(problem, ModelError):
        return problem
    error = ModelError(str(problem) or type(problem).__name__)
    error.__cause__ = problem
    return error


async def open_step(run: Run, attempt: Attempt, first: Chunk | None = None) -> None:
    """The model's stream has opened, or failed to: step-start goes out, once (R1.4)."""
    if attempt.opened:
        return
    attempt.opened = True
    run.stage = "process_output_stream"
    run.attempts.append(attempt)
    start = first if isinstance(first, StepStart) else StepStart()
    attempt.warnings = start.warnings
    attempt.request = start.request
    await run.chain.feed(start)


async def take_chunk(run: Run, attempt: Attempt, chunk: Chunk) -> None:
    """A chunk of the model that is not just a delta."""
    kind = type(chunk)
    if kind in _NOT_THE_MODELS:
        return
    if attempt.early_results:
        await take_early_results(run, attempt)
    if run.keeps_response and kind not in _NOT_KEPT:
        attempt.raw.append(deepcopy(chunk))  # a cache must not keep what a hook edits in place
    if kind in _STARTS:
        attempt.open_blocks[_STARTS[kind], chunk.id] = None  # type: ignore[attr-defined]
    elif kind in _STARTS.values():
        attempt.open_blocks.pop((kind, chunk.id), None)  # type: ignore[attr-defined]
    elif isinstance(chunk, Finish):
        note_finish(run, attempt, chunk)
        return
    elif isinstance(chunk, ResponseMetadata):
        note_response(attempt, chunk)
        return
    elif isinstance(chunk, ErrorChunk):
        raise CallFailed(as_model_error(_as_exception(chunk.error)))
    elif isinstance(chunk, ToolCall):
        chunk = with_own_id(run, attempt, chunk)
    elif isinstance(chunk, ToolResult):
        await take_provider_result(run, attempt, chunk)
        return
    await run.chain.feed(chunk)


def with_own_id(run: Run, attempt: Attempt, chunk: ToolCall) -> ToolCall:
    """The call, with an id of its own should the model have used one twice in this step."""
    taken = {getattr(part, "tool_call_id", None) for part in run.ledger.response_parts(attempt.number)}
    if chunk.tool_call_id and chunk.tool_call_id not in taken:
        return chunk
    return chunk.replace(tool_call_id=f"{chunk.tool_call_id or 'call'}-{run.edges.new_id()}")


async def take_provider_result(run: Run, attempt: Attempt, chunk: ToolResult) -> None:
    """A provider-executed tool's result: its chunk waits for process_tool_result (R4.8)."""
    part = run.ledger.find_call(chunk.tool_call_id)
    if part is None:  # dropped, or still in a guard's hands behind text that is not decided
        attempt.early_results.append(chunk)
        return
    result = await stages.process_tool_result(run, chunk.replace(args=part.args, provider_executed=True))
    run.stage = "process_output_stream"
    await run.chain.feed(result.replace(args=chunk.args))


async def take_early_results(run: Run, attempt: Attempt) -> None:
    """Results that came while their call was waiting, as soon as it is there."""
    early, attempt.early_results = attempt.early_results, []
    for chunk in early:
        await take_provider_result(run, attempt, chunk)


def note_response(attempt: Attempt, chunk: ResponseMetadata) -> None:
    """Remember who answered."""
    for name, value in (
        ("id", chunk.id),
        ("model_id", chunk.model_id),
        ("timestamp", chunk.timestamp),
        ("headers", chunk.headers),
    ):
        if value is not None:
            attempt.response[name] = value
    if chunk.raw is not None:
        attempt.raw_response = chunk.raw


def note_finish(run: Run, attempt: Attempt, chunk: Finish) -> None:
    """The response is paid for, whatever processors make of it: it is counted at once, and once (R5.3)."""
    if attempt.finish is not None:
        return
    usage = Usage() if attempt.from_cache or chunk.usage is None else chunk.usage
    if usage.total_tokens == 0:
        usage = usage.replace(total_tokens=usage.input_tokens + usage.output_tokens)
    attempt.finish = chunk.replace(usage=usage)
    attempt.finish_reason = chunk.finish_reason
    attempt.usage = usage
    attempt.provider_metadata = chunk.provider_metadata
    if run.chain.hooks or any(
        not call.processor.is_framework for call in run.pipeline.calls["process_output_step"]
    ):
        attempt.provider_metadata = without_logprobs(chunk.provider_metadata)
    run.usage = run.usage + usage


def without_logprobs(metadata: Metadata | None) -> Metadata | None:
    """Log-probabilities spell the model's text token by token: where hooks may change it, they must not tell it."""
    if metadata is None:
        return None
    return {
        provider: {key: value for key, value in values.items() if key != "logprobs"}
        if is_dict(values)
        else values
        for provider, values in metadata.items()
    }


async def end_response(run: Run, attempt: Attempt) -> None:
    """Close what the model left open, then show its finish (R4.6)."""
    for end, block_id in list(attempt.open_blocks):
        await run.chain.feed(end(id=block_id))  # type: ignore[call-arg]
    if attempt.finish is None:
        note_finish(run, attempt, Finish(finish_reason="stop" if attempt.from_cache else "unknown"))
    assert attempt.finish is not None
    await run.chain.feed(attempt.finish)
    await take_early_results(run, attempt)
    await run.transcript.close_blocks()
    run.transcript.step_complete()
    attempt.complete = True


def _as_exception(error: Any) -> Exception:
    return error if isinstance(error, Exception) else ModelError(str(error))


__all__: Sequence[str] = ("CallFailed", "read_response")
