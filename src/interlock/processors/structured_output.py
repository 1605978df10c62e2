"""Structured output: an answer that is an object (spec R10.5, R10.6).

The runtime puts one processor last: it tells the model what is wanted, natively where the provider can be held to a
schema and in words where it cannot, and reads the object out of the text that all other processors have left. So the
object says what the released text says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Generic, TypeVar

from msgspec import UNSET, json

from interlock.core.context import HookContext
from interlock.core.errors import ModelError, UsageError
from interlock.core.hooks import implemented
from interlock.core.model import LanguageModel, has_native_structured_output
from interlock.core.pipeline import Composition
from interlock.core.processor import BaseProcessor, InputProcessor, OutputProcessor
from interlock.core.shapes import described, is_mapping
from interlock.core.step import OutputResult, OutputStep, StepChange, StepInput
from interlock.models.router import resolve_model
from interlock.processors.structuring import (
    MOST_RETRIES,
    ErrorStrategy,
    StructuredOutputProcessor,
    checked_options,
    give_up,
)
from interlock.schema import Mismatch, Schema

T = TypeVar("T")

PROCESSOR_ID = "structured-answer"
IN_WORDS = """\
Answer with JSON only, without words around it and without a code fence. It must follow this JSON schema:

{schema}"""
AFTER_TOOLS = """\
Call tools as you need them. Your answer after that must be JSON only, without words around it and without a code \
fence. It must follow this JSON schema:

{schema}"""
FOR_ANOTHER = """\
Answer in plain words. What you say will be put into a form afterwards, so cover everything that this JSON schema \
asks for:

{schema}"""


class StructuredOutput(Generic[T]):
    """What ``structured_output=`` takes beside a bare schema.

    Args:
        schema: a pydantic model, a dataclass, a TypedDict, any other type pydantic knows, or a JSON schema (a dict).
        model: a second model that makes the object out of the answer, which then may be in plain words: a model or a
            router id. See :class:`StructuredOutputProcessor`.
        instructions: what the model is told instead of the schema in words; nothing where the provider is held to
            the schema. With ``model``, what that one is told.
        error_strategy: what an answer leads to that is still wrong after the retries: ``strict`` raises ModelError
            (with ``model``: blocks), ``warn`` records a violation and leaves ``result.object`` None, ``fallback``
            gives ``fallback``.
        fallback: the object to give then.
        max_retries: how often the model is asked again because its answer does not fit. Where the agent or the call
            sets ``max_processor_retries``, that limits these too.
        native: whether the provider is held to the schema; by default if the model says that it can.
        provider_options: for the second model.

    Raises:
        UsageError: an option that cannot work.

    >>> from interlock import Agent
    >>> from interlock.testing import ScriptedModel, text
    >>> agent = Agent(id="a", model=ScriptedModel([text('{"n": 1}')]))
    >>> agent.generate_sync("Count.", structured_output=StructuredOutput(dict[str, int])).object
    {'n': 1}
    """

    def __init__(
        self,
        schema: type[T] | Mapping[str, Any] | Schema[T],
        *,
        model: LanguageModel | str | Mapping[str, Any] | None = None,
        instructions: str | None = None,
        error_strategy: ErrorStrategy = "strict",
        fallback: Any = UNSET,
        max_retries: int = 2,
        native: bool | None = None,
        provider_options: Mapping[str, Any] | None = None,
    ) -> None:
        where = "StructuredOutput"
        self.schema: Schema[T] = schema if isinstance(schema, Schema) else Schema(schema, where)
        self.fallback = checked_options(where, self.schema, error_strategy, fallback, max_retries)
        if instructions is not None and (not isinstance(instructions, str) or not instructions):
            raise UsageError(f"{where}: instructions must be a text, not {described(instructions)}")
        if native not in (None, True, False):
            raise UsageError(f"{where}: native must be True, False or None, not {native!r}")
        self.instructions = instructions
        self.error_strategy: ErrorStrategy = error_strategy
        self.max_retries = max_retries
        self.native = native
        self.structuring: StructuredOutputProcessor[T] | None = None
        if model is not None:
            self.structuring = StructuredOutputProcessor(
                self.schema,
                model=resolve_model(model),
                instructions=instructions,
                error_strategy=error_strategy,
                fallback=fallback,
                max_retries=max_retries,
                provider_options=provider_options,
            )

    def __repr__(self) -> str:
        return f"StructuredOutput({self.schema.title})"


class Plan:
    """What a step's answer has to be, and how it is asked for."""

    __slots__ = ("inside", "wanted")

    def __init__(self, wanted: StructuredOutput[Any], inside: str | None) -> None:
        self.wanted = wanted
        self.inside = inside


class StructuredAnswer(InputProcessor, OutputProcessor):
    """The runtime's own processor, behind all others: asks for the object, checks it, and hands it to the result.

    An answer that does not fit is refused as by any processor, with the reason as feedback (spec R7.3), as soon as its
    step is complete, and once more after the last edits of the final answer.
    """

    id = PROCESSOR_ID
    name = "Structured answer"
    is_framework = True
    observes = True  # partial objects are of use while the text comes: it need not wait for the check
    own_retries = MOST_RETRIES  # each call's own max_retries is counted here

    def process_input_step(self, step: StepInput, ctx: HookContext) -> StepChange | None:
        """Ask for the object: natively, or in a system message of this step."""
        wanted: StructuredOutput[Any] | None = step.structured_output
        plans: dict[int, Plan] = ctx.state.setdefault("plans", {})
        readers: dict[int, Callable[[str], Any]] = ctx.state.setdefault("readers", {})
        plans.pop(ctx.step_number, None)
        readers.pop(ctx.step_number, None)
        if wanted is None:
            return None
        native = has_native_structured_output(step.model) if wanted.native is None else wanted.native
        native = native and wanted.structuring is None
        schema, inside = wanted.schema.wrapped() if native else (wanted.schema.json, None)
        plans[ctx.step_number] = Plan(wanted, inside)
        if wanted.structuring is None:
            readers[ctx.step_number] = lambda text: wanted.schema.partial(text, inside=inside)
        if native:
            return StepChange(structured_output=schema)
        told = _in_words(wanted, with_tools=bool(step.tools))
        return StepChange(structured_output=None, system_messages=[*step.system_messages, told])

    def process_output_step(self, output: OutputStep, ctx: HookContext) -> None:
        """A response that may be the answer: refused at once if it does not fit, while retries are left."""
        plan = _plan(ctx)
        if plan is None or plan.wanted.structuring is not None:
            return
        if any(not call.provider_executed for call in output.tool_calls):
            return
        try:
            plan.wanted.schema.read(output.text, inside=plan.inside)
        except Mismatch as problem:
            self._ask_again(plan, problem, ctx)
            if plan.wanted.error_strategy == "strict":
                raise _mismatch(plan, problem) from None

    async def process_output_result(self, result: OutputResult, ctx: HookContext) -> None:
        """The final answer, as all edits left it."""
        plan = _plan(ctx)
        if plan is None:
            return
        if plan.wanted.structuring is not None:
            await plan.wanted.structuring.process_output_result(result, ctx)
            return
        last = ctx.steps[-1] if ctx.steps else None
        try:
            ctx.set_object(plan.wanted.schema.read(last.text if last else "", inside=plan.inside))
        except Mismatch as problem:
            if last is not None and not last.tool_calls:
                self._ask_again(plan, problem, ctx)
            if plan.wanted.error_strategy == "strict":
                raise _mismatch(plan, problem) from None
            give_up(
                ctx,
                _said(plan, problem),
                plan.wanted.error_strategy,
                plan.wanted.fallback,
                plan.wanted.schema.title,
            )

    def _ask_again(self, plan: Plan, problem: Mismatch, ctx: HookContext) -> None:
        """Raises while retries are left."""
        asked: dict[int, int] = ctx.state.setdefault("asked", {})
        count = asked.get(ctx.step_number, 0)
        if count < plan.wanted.max_retries and ctx.may_retry:
            asked[ctx.step_number] = count + 1
            ctx.abort(_said(plan, problem), retry=True, metadata={"schema": plan.wanted.schema.title})


def _plan(ctx: HookContext) -> Plan | None:
    return ctx.state.get("plans", {}).get(ctx.step_number)


def _said(plan: Plan, problem: Mismatch) -> str:
    return f"the answer does not fit the schema {plan.wanted.schema.title}: {problem}"


def _mismatch(plan: Plan, problem: Mismatch) -> ModelError:
    return ModelError(_said(plan, problem), code="schema-mismatch")


def _in_words(wanted: StructuredOutput[Any], *, with_tools: bool) -> str:
    if wanted.instructions is not None and wanted.structuring is None:
        return wanted.instructions
    schema = json.encode(wanted.schema.json).decode()
    return (
        FOR_ANOTHER if wanted.structuring is not None else AFTER_TOOLS if with_tools else IN_WORDS
    ).format(schema=schema)


def may_structure(processor: BaseProcessor) -> bool:
    """Whether a processor could ask for structured output by a StepChange."""
    if isinstance(processor, Composition):
        return any(may_structure(member) for member, _ in processor.flatten("input"))
    return "process_input_step" in implemented(processor, "input")


# -------------------------------------------------------------------------------------------------- what users give


@lru_cache(maxsize=256)
def _of_type(given: Any) -> StructuredOutput[Any]:
    return StructuredOutput(given)


def resolve_structured_output(given: Any, where: str) -> StructuredOutput[Any] | None:
    """What a user gives as ``structured_output``.

    Args:
        given: a StructuredOutput, or what it takes as its schema; None: the answer is text.
        where: whose option it is, for errors.

    Raises:
        UsageError: none of these.
    """
    if given is None or isinstance(given, StructuredOutput):
        return given  # pyright: ignore[reportUnknownVariableType]
    if is_mapping(given) and "schema" in given and not {"type", "properties", "$ref", "anyOf"} & given.keys():
        raise UsageError(
            f"{where}: structured_output is a mapping with a schema in it; write StructuredOutput(schema, ...)"
        )
    try:
        return _of_type(given) if isinstance(given, type) else StructuredOutput(given)
    except UsageError as problem:
        raise UsageError(f"{where}: structured_output: {problem}") from None


__all__ = [
    "PROCESSOR_ID",
    "StructuredAnswer",
    "StructuredOutput",
    "may_structure",
    "resolve_structured_output",
]
