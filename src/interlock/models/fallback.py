"""Several models for one job: the next one answers when one fails, as long as nothing was heard of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias

from interlock.core.chunks import Chunk, ErrorChunk, ResponseMetadata, StepStart
from interlock.core.errors import ModelError, UsageError
from interlock.core.model import LanguageModel, ModelRequest

Json: TypeAlias = dict[str, Any]

THE_REQUESTS_FAULT = frozenset({400, 413, 422})
"""Statuses after which no other model is asked: what was sent is wrong, and error processors may repair it.

A refused key (401, 403), a missing model (404) or no credit (402) is one provider's matter: the next one may serve.
"""


class FallbackModel:
    """Models in the order in which they are tried.

    A model that fails before its first chunk, its own retries used up, is followed by the next, unless the request
    itself was at fault (400, 413, 422). Once a chunk is out there is no going back. Each model that failed is in the
    step's warnings, as ``{"type": "model-failed", "model": ..., "details": ...}``.

    Args:
        models: at least one. The first gives the whole its name, for processors that look at a step's model.

    Raises:
        UsageError: no models.
    """

    def __init__(self, models: Sequence[LanguageModel]) -> None:
        if not models:
            raise UsageError("a list of models as fallbacks needs at least one")
        self.models = tuple(models)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(_named(model) for model in self.models)})"

    @property
    def provider(self) -> str:
        """The first model's provider."""
        return self.models[0].provider

    @property
    def model_id(self) -> str:
        """The first model's name."""
        return self.models[0].model_id

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Call the models, one after the other, until one answers.

        Args:
            request: what to ask; provider options are each model's own.

        Raises:
            ModelError: the request was at fault, an answer broke off, or all failed: then the last one's error, its
                text naming all that were tried.
        """
        failed: list[Json] = []
        for model in self.models:
            head: list[Chunk] | None = []  # what a model says before it says anything; None once it has
            try:
                async with aclosing(model.stream(request)) as chunks:
                    async for chunk in chunks:
                        if head is None:
                            yield chunk
                        elif isinstance(chunk, StepStart | ResponseMetadata):
                            head.append(chunk)
                        elif isinstance(chunk, ErrorChunk):
                            raise _as_model_error(chunk.error)
                        else:
                            for opening in _opening(head, failed):
                                yield opening
                            head = None
                            yield chunk
                if head is not None:
                    for opening in _opening(head, failed):
                        yield opening
                return
            except ModelError as problem:
                is_last = model is self.models[-1]
                if head is None or problem.status in THE_REQUESTS_FAULT:
                    raise
                if is_last:
                    raise _with_all_tried(problem, failed)  # noqa: B904  # it is the same error
                failed.append({"type": "model-failed", "model": _named(model), "details": str(problem)})

    async def aclose(self) -> None:
        """Close this event loop's idle connections of all models."""
        for model in self.models:
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()


def _named(model: LanguageModel) -> str:
    return f"{model.provider}/{model.model_id}"


def _opening(head: list[Chunk], failed: list[Json]) -> list[Chunk]:
    """What comes before an answer, the failures before it among the warnings."""
    if not failed:
        return head
    if not any(isinstance(chunk, StepStart) for chunk in head):
        return [StepStart(warnings=list(failed)), *head]
    return [
        chunk.replace(warnings=[*failed, *chunk.warnings]) if isinstance(chunk, StepStart) else chunk
        for chunk in head
    ]


def _with_all_tried(problem: ModelError, failed: list[Json]) -> ModelError:
    if failed:
        before = "; ".join(f"{entry['model']}: {entry['details']}" for entry in failed)
        problem.message = f"{problem.message}; tried before it: {before}"
        problem.args = (problem.message,)
    return problem


def _as_model_error(error: Any) -> ModelError:
    return error if isinstance(error, ModelError) else ModelError(str(error))
