"""StructuredOutputProcessor: a second model makes the object out of an answer in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, Generic, Literal, TypeAlias, TypeVar, get_args

from msgspec import UNSET, json

from interlock.core.chunks import ErrorChunk, Finish, TextDelta
from interlock.core.context import HookContext
from interlock.core.errors import ModelError, UsageError
from interlock.core.jsonable import jsonable
from interlock.core.model import (
    LanguageModel,
    ModelRequest,
    PromptMessage,
    PromptText,
    has_native_structured_output,
)
from interlock.core.processor import OutputProcessor
from interlock.core.step import OutputResult
from interlock.models.router import resolve_model
from interlock.processors.partial_objects import ObjectReader
from interlock.schema import Mismatch, Schema

T = TypeVar("T")
ErrorStrategy: TypeAlias = Literal["strict", "warn", "fallback"]

MOST_RETRIES = 100
TASK = """\
You turn texts into JSON. Take what the text says and put it into the form that this JSON schema asks for:

{schema}

Answer with the JSON only, without words around it and without a code fence. Invent nothing: where the text does not say
something, use null or an empty value if the schema allows it."""
AGAIN = "That JSON was not accepted: {why}. Answer again with JSON that follows the schema."


class StructuredOutputProcessor(OutputProcessor, Generic[T]):
    """Makes the object out of the final answer with a second model; the answer's text stays as it is.

    The second model sees what the processors before this one have left, never what they removed. While it answers,
    ``object`` chunks go out, held as the text is; ``result.object`` is the validated object.

    Args:
        schema: as for ``structured_output=``.
        model: the second model, or a router id.
        instructions: what it is told instead of the usual task; the schema goes along natively where it can.
        error_strategy: what it means that no fitting object came, or that the model failed: ``strict`` blocks with a
            tripwire, ``warn`` records a violation and leaves the object None, ``fallback`` gives ``fallback``.
        fallback: the object to give then.
        max_retries: how often the second model is asked again because its answer does not fit.
        provider_options: for its calls, by provider.
        model_settings: for its calls: temperature, max_output_tokens, ...
        id: the processor's id.

    Raises:
        UsageError: an option that cannot work.
    """

    id = "structured-output"
    name = "Structured Output"

    def __init__(
        self,
        schema: type[T] | Mapping[str, Any] | Schema[T],
        *,
        model: LanguageModel | str | Mapping[str, Any],
        instructions: str | None = None,
        error_strategy: ErrorStrategy = "strict",
        fallback: Any = UNSET,
        max_retries: int = 2,
        provider_options: Mapping[str, Any] | None = None,
        model_settings: Mapping[str, Any] | None = None,
        id: str = "structured-output",
    ) -> None:
        self.id = id
        self.schema: Schema[T] = schema if isinstance(schema, Schema) else Schema(schema, type(self).__name__)
        self.model = resolve_model(model)
        self.instructions = instructions
        self.fallback = checked_options(
            type(self).__name__, self.schema, error_strategy, fallback, max_retries
        )
        self.error_strategy: ErrorStrategy = error_strategy
        self.max_retries = max_retries
        self.provider_options = dict(provider_options or {})
        self.model_settings = dict(model_settings or {})

    async def process_output_result(self, result: OutputResult, ctx: HookContext) -> None:
        """The final answer: the object is made of it, or what ``error_strategy`` says happens."""
        try:
            ctx.set_object(await self._structured(_told(result), ctx))
        except (Mismatch, ModelError) as problem:
            said = str(problem) if isinstance(problem, Mismatch) else f"the model failed: {problem}"
            self._failed(f"no object of the schema {self.schema.title} could be made: {said}", ctx)

    def _failed(self, said: str, ctx: HookContext) -> None:
        if self.error_strategy == "strict":
            ctx.abort(said, metadata={"schema": self.schema.title})
        give_up(ctx, said, self.error_strategy, self.fallback, self.schema.title)

    async def _structured(self, text: str, ctx: HookContext) -> T:
        native = has_native_structured_output(self.model)
        wanted, inside = self.schema.wrapped() if native else (self.schema.json, None)
        task = self.instructions or TASK.format(schema=json.encode(wanted).decode())
        prompt = [PromptMessage(role="system", content=task), _message("user", text)]
        for attempt in range(self.max_retries + 1):
            request = ModelRequest(
                prompt=tuple(prompt),
                settings=self.model_settings,
                provider_options=self.provider_options,
                structured_output=wanted if native else None,
            )
            answer = await self._ask(request, inside, ctx)
            try:
                return self.schema.read(answer, inside=inside)
            except Mismatch as problem:
                if attempt == self.max_retries:
                    raise
                # an empty message is one that no provider accepts
                prompt += [_message("assistant", answer or "."), _message("user", AGAIN.format(why=problem))]
        raise AssertionError("the last attempt returns or raises")

    async def _ask(self, request: ModelRequest, inside: str | None, ctx: HookContext) -> str:
        reader = ObjectReader(lambda text: self.schema.partial(text, inside=inside))
        pieces: list[str] = []
        async with aclosing(self.model.stream(request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextDelta):
                    pieces.append(chunk.text)
                    if reader.push(chunk.text):
                        await ctx.writer.object(reader.said)
                elif isinstance(chunk, Finish) and chunk.usage is not None:
                    ctx.count_usage(chunk.usage)
                elif isinstance(chunk, ErrorChunk):
                    raise _as_model_error(chunk.error)
        return "".join(pieces)


def _message(role: Literal["user", "assistant"], text: str) -> PromptMessage:
    return PromptMessage(role=role, content=(PromptText(text=text),))


def _told(result: OutputResult) -> str:
    """The answer as the second model reads it, with what the tools said on the way."""
    results = [each for step in result.steps for each in step.tool_results]
    if not results:
        return result.text or "(no answer)"
    lines = [f"{each.tool_name}: {json.encode(jsonable(each.result)).decode()}" for each in results]
    return "\n".join(["# Tool results", *lines, "", "# Answer", result.text or "(no answer)"])


def _as_model_error(error: Any) -> ModelError:
    return error if isinstance(error, ModelError) else ModelError(str(error))


# ------------------------------------------------------------------------ shared with the option of the same kind


def checked_options(
    where: str, schema: Schema[Any], error_strategy: Any, fallback: Any, max_retries: Any
) -> Any:
    """The fallback as an object of the schema's type.

    Raises:
        UsageError: an option that cannot work.
    """
    if error_strategy not in get_args(ErrorStrategy):
        known = ", ".join(get_args(ErrorStrategy))
        raise UsageError(f"{where}: error_strategy must be one of {known}, not {error_strategy!r}")
    if (
        not isinstance(max_retries, int)
        or isinstance(max_retries, bool)
        or not 0 <= max_retries <= MOST_RETRIES
    ):
        raise UsageError(
            f"{where}: max_retries must be a whole number from 0 to {MOST_RETRIES}, not {max_retries!r}"
        )
    if (error_strategy == "fallback") != (fallback is not UNSET):
        raise UsageError(
            f"{where}: error_strategy='fallback' and fallback=... go together; give both or neither"
        )
    if fallback is UNSET or fallback is None:
        return fallback
    try:
        return schema.convert(fallback)
    except Mismatch as problem:
        raise UsageError(f"{where}: the fallback does not fit the schema: {problem}") from None


def give_up(ctx: HookContext, said: str, error_strategy: ErrorStrategy, fallback: Any, title: str) -> None:
    """No object came, and the run goes on: a violation tells it, and the fallback stands in where there is one."""
    instead = error_strategy == "fallback"
    ctx.violation(said, {"schema": title, "fallback": instead})
    if instead:
        ctx.set_object(fallback)


__all__ = ["ErrorStrategy", "StructuredOutputProcessor", "checked_options", "give_up"]
