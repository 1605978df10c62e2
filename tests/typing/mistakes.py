"""Mistakes that a type checker has to see: each line with ``# error`` must be reported (test_typing.py checks)."""
# ruff: noqa: D101, D102

from __future__ import annotations

from interlock import Agent, ErrorProcessor, HookContext, InputProcessor, LLMRequest, Message, OutputProcessor
from interlock.chunks import Chunk
from interlock.testing import ScriptedModel, text


class Input(InputProcessor):
    id = "input"

    def process_input(self, messages: list[Message], ctx: HookContext) -> list[Message]:
        return messages


class Output(OutputProcessor):
    id = "output"

    def process_output_stream(self, chunk: Chunk, ctx: HookContext) -> Chunk:
        return chunk


class WrongReturn(InputProcessor):
    id = "wrong-return"

    def process_input(self, messages: list[Message], ctx: HookContext) -> str:  # error
        return "hello"


class WrongAsyncReturn(OutputProcessor):
    id = "wrong-async-return"

    async def process_output_stream(self, chunk: Chunk, ctx: HookContext) -> int:  # error
        return 1


class WrongSubject(InputProcessor):
    id = "wrong-subject"

    def process_llm_request(self, request: str, ctx: HookContext) -> LLMRequest | None:  # error
        return None


model = ScriptedModel([text("Hi")])
Agent(id="a", model=model, input_processors=[Output()])  # error
Agent(id="b", model=model, output_processors=[Input()])  # error
Agent(id="c", model=model, error_processors=[Output()])  # error
Agent(id="d", model=model, release="sometimes")  # error
Agent(id="e", model=model).stream("Hi", max_step=2)  # error


class Fix(ErrorProcessor):
    id = "fix"


Agent(id="f", model=model, error_processors=[Fix()])
