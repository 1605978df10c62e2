"""Chain: several processors as one."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.core.errors import UsageError
from interlock.core.pipeline import Composition, Flattened
from interlock.core.processor import BaseProcessor, Lane, Processor


class Chain(Composition, Processor):
    """Processors in a row, as one entry of a list. Each keeps its id, its state and its name in a tripwire.

    Args:
        *processors: the members, in order.
        id: a name for the whole.
    """

    def __init__(self, *processors: BaseProcessor, id: str = "chain") -> None:
        if not processors:
            raise UsageError("Chain needs at least one processor")
        self.id = id
        self.processors = processors

    def flatten(self, lane: Lane) -> Iterator[Flattened]:
        """The members, compositions among them flattened too."""
        for processor in self.processors:
            if isinstance(processor, Composition):
                yield from processor.flatten(lane)
            else:
                yield processor, ()
