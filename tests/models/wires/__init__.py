"""What providers send for one and the same turn, each in its own wire format.

Bodies written from the providers' public documentation. A turn is a list of blocks, in the order the model made
them, and how it ended.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias


class Thought(NamedTuple):
    """Thinking, in pieces, with the provider's signature."""

    pieces: tuple[str, ...]
    signature: str = "c2lnbmVk"


class Said(NamedTuple):
    """Text, in pieces."""

    pieces: tuple[str, ...]


class Called(NamedTuple):
    """A tool call; its arguments are JSON text in pieces."""

    id: str
    name: str
    pieces: tuple[str, ...]


Block: TypeAlias = Thought | Said | Called

INPUT_TOKENS = 30
OUTPUT_TOKENS = 20
CACHED_TOKENS = 10
REASONING_TOKENS = 5


class Turn(NamedTuple):
    """One answer. ``ended``: stop, tool-calls or length."""

    blocks: tuple[Block, ...]
    ended: str = "stop"

    @property
    def has_calls(self) -> bool:
        """Whether it calls tools."""
        return any(isinstance(block, Called) for block in self.blocks)


def event(name: str, data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A named server-sent event."""
    return name, data
