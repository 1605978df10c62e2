"""The blocks of text and of reasoning that are open, and in which the client read last."""

from __future__ import annotations

from interlock.core.chunks import ReasoningEnd, ReasoningStart, TextEnd, TextStart
from interlock.core.messages import Mark, ReasoningPart, TextPart


class Block:
    """A block: its text is brought into its part when somebody looks.

    Attributes:
        id: its id as long as it is open; None then.
        part: what it is in the messages.
        pieces: text that is not in the part yet.
        mark: the part's.
    """

    __slots__ = ("id", "mark", "part", "pieces")

    def __init__(self, id: str, part: TextPart | ReasoningPart) -> None:
        self.id: str | None = id
        self.part = part
        self.pieces: list[str] = []
        assert part.mark is not None
        self.mark: Mark = part.mark

    def close(self) -> None:
        """No more text comes."""
        self.id = None
        self.join()

    def join(self) -> None:
        """Bring its text into its part."""
        if self.pieces:
            text = "".join(self.pieces)
            self.pieces.clear()
            self.part.text += text


class Blocks:
    """The blocks of one kind.

    Args:
        start: the chunk that opens one.
        end: the chunk that closes one.
        part: what one is in the messages.

    Attributes:
        open: those that are open, by id.
        last: the one that got text last.
    """

    __slots__ = ("end", "last", "open", "part", "start")

    def __init__(
        self,
        start: type[TextStart | ReasoningStart],
        end: type[TextEnd | ReasoningEnd],
        part: type[TextPart | ReasoningPart],
    ) -> None:
        self.start = start
        self.end = end
        self.part = part
        self.open: dict[str, Block] = {}
        self.last: Block | None = None

    def is_behind(self, block: Block) -> bool:
        """Whether a later block has got text since this one did."""
        return self.last is not None and self.last is not block and self.last.mark.serial > block.mark.serial

    def ends(self) -> list[TextEnd | ReasoningEnd]:
        """The ends of those that are open."""
        return [self.end(id=block_id) for block_id in self.open]

    def clear(self) -> None:
        """Forget them."""
        self.open.clear()
        self.last = None
