"""Every hook in its sync and its async form: a strict type checker accepts all of it (test_typing.py runs one)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from interlock import (
    Agent,
    CachedResponse,
    ErrorProcessor,
    HookContext,
    InputChange,
    InputProcessor,
    LLMRequest,
    LLMResponse,
    Message,
    MessageList,
    ModelError,
    OutputProcessor,
    OutputResult,
    OutputStep,
    Processor,
    ProcessorViolation,
    Retry,
    RunOutcome,
    StepChange,
    StepInput,
    StructuredOutput,
    ToolContext,
    tool,
)
from interlock.chunks import Chunk, TextDelta, ToolResult
from interlock.testing import ScriptedModel, text


class SyncInput(InputProcessor):
    id = "sync-input"

    def process_input(self, messages: list[Message], ctx: HookContext) -> list[Message]:
        if any("bomb" in message.text for message in messages):
            ctx.abort("no", metadata={"category": "words"})
        return messages

    def process_input_step(self, step: StepInput, ctx: HookContext) -> StepChange | None:
        return StepChange(tool_choice="none") if ctx.step_number > 2 else None

    def process_llm_request(self, request: LLMRequest, ctx: HookContext) -> LLMRequest:
        return request.map_text(str.strip)

    def process_llm_response(self, response: LLMResponse, ctx: HookContext) -> None:
        ctx.state["chunks"] = response.raw_chunks


class AsyncInput(InputProcessor):
    id = "async-input"

    async def process_input(self, messages: list[Message], ctx: HookContext) -> InputChange:
        return InputChange(messages=messages, system_messages=["Be brief."])

    async def process_input_step(self, step: StepInput, ctx: HookContext) -> MessageList:
        return ctx.message_list

    async def process_llm_request(self, request: LLMRequest, ctx: HookContext) -> CachedResponse | None:
        return CachedResponse([TextDelta("cached")]) if ctx.state else None

    async def process_llm_response(self, response: LLMResponse, ctx: HookContext) -> None:
        await ctx.writer.custom({"type": "data-seen", "data": len(response.chunks)})


class SyncOutput(OutputProcessor):
    id = "sync-output"

    def process_output_stream(self, chunk: Chunk, ctx: HookContext) -> Chunk | None:
        match chunk:
            case TextDelta(text=piece):
                return chunk.replace(text=piece.upper()) if piece else None
            case _:
                return chunk

    def process_output_step(self, output: OutputStep, ctx: HookContext) -> None:
        if not output.text:
            ctx.abort("say something", retry=True)

    def process_tool_result(self, result: ToolResult, ctx: HookContext) -> ToolResult:
        return result.replace(result=None)

    def process_output_result(self, result: OutputResult, ctx: HookContext) -> list[Message] | None:
        return ctx.messages if result.steps else None


class AsyncOutput(OutputProcessor):
    id = "async-output"

    async def process_output_stream(self, chunk: Chunk, ctx: HookContext) -> Sequence[Chunk]:
        return [chunk, chunk]

    async def process_output_step(self, output: OutputStep, ctx: HookContext) -> MessageList:
        return ctx.message_list

    async def process_tool_result(self, result: ToolResult, ctx: HookContext) -> None:
        ctx.message_list.update_tool_invocation(result.tool_call_id, result={"hidden": True})

    async def process_output_result(self, result: OutputResult, ctx: HookContext) -> None:
        await ctx.writer.custom({"type": "data-usage", "data": result.usage.total_tokens})


class SyncError(ErrorProcessor):
    id = "sync-error"

    def process_api_error(self, error: Exception, ctx: HookContext) -> Retry | None:
        return Retry() if isinstance(error, ModelError) and error.status == 400 else None


class AsyncError(ErrorProcessor):
    id = "async-error"

    async def process_api_error(self, error: Exception, ctx: HookContext) -> Retry | None:
        return Retry() if ctx.retry_count == 0 else None


class Everywhere(Processor):
    id = "everywhere"

    async def process_input(self, messages: list[Message], ctx: HookContext) -> None: ...

    def process_output_stream(self, chunk: Chunk, ctx: HookContext) -> Chunk:
        return chunk

    def on_violation(self, violation: ProcessorViolation) -> None:
        print(violation.processor_id, violation.message)

    async def on_run_end(self, outcome: RunOutcome, ctx: HookContext) -> None:
        print(outcome.kind, outcome.result.text)


@tool
async def search(query: str, context: ToolContext) -> str:
    """Search the archive."""
    await context.writer.custom({"type": "data-search", "data": query})
    return "nothing"


agent = Agent(
    id="typed",
    model=ScriptedModel([text("Hi")]),
    tools=[search],
    input_processors=[SyncInput(), AsyncInput(), Everywhere()],
    output_processors=[SyncOutput(), AsyncOutput(), Everywhere()],
    error_processors=lambda context: [SyncError(), AsyncError()] if context.get("careful") else [],
)


async def use() -> str:
    async with agent.stream("Hi", max_steps=2, release="step") as stream:
        async for chunk in stream:
            if isinstance(chunk, TextDelta):
                print(chunk.text)
        result = await stream.result()
    tripwire = result.tripwire
    return tripwire.reason if tripwire is not None else result.text


class Town(TypedDict):
    name: str


async def typed_objects(agent: Agent) -> str | None:
    """``result.object`` is of the type that was asked for."""
    town: Town | None = (await agent.generate("hi", structured_output=Town, max_steps=2)).object
    number: int | None = agent.generate_sync("hi", structured_output=StructuredOutput(int)).object
    async with agent.stream("hi", structured_output=Town) as stream:
        again: Town | None = (await stream.result()).object
    anything: Any = (await agent.generate("hi", structured_output={"type": "object"})).object
    return town["name"] if town and again and number else anything
