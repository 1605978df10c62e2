"""When: processors that run only if something holds."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.core.errors import UsageError
from interlock.core.pipeline import Composition, Flattened, Predicate
from interlock.core.processor import BaseProcessor, Lane, Processor
from interlock.processors.chain import Chain


class When(Composition, Processor):
    """Processors behind a condition, which is asked at each hook call (spec R10.3).

    Args:
        predicate: gets ctx and tells, sync or async, whether the hook is called. When it is not, the subject passes
            unchanged.
        *processors: the members, in order.
        id: a name for the whole.

    >>> from interlock import Processor
    >>> class Log(Processor):
    ...     id = "log"
    ...     def process_input(self, messages, ctx): print(len(messages))
    >>> only_for_acme = When(lambda ctx: ctx.request_context.get("tenant") == "acme", Log())
    """

    def __init__(self, predicate: Predicate, *processors: BaseProcessor, id: str = "when") -> None:
        if not callable(predicate):
            raise UsageError(f"When needs a function of ctx first, not {type(predicate).__name__}")
        self.id = id
        self.predicate = predicate
        self._members = Chain(*processors)

    def flatten(self, lane: Lane) -> Iterator[Flattened]:
        """The members, each with this condition in front."""
        for processor, conditions in self._members.flatten(lane):
            yield processor, (self.predicate, *conditions)
