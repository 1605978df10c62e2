"""What an answer cites: titles, addresses and quotations, each a whole text of the channel ``sources``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interlock.core.shapes import is_dict
from interlock.guarding import Guard
from interlock.sse.shapes import Json
from interlock.sse.texts import COPIES, Piece, guarded_whole, pieces_at

SOURCES = frozenset({"annotations", "citations", "citation", "search_results"})
"""Where providers put them: in a delta (OpenAI, OpenRouter, LiteLLM) or beside the choices (Perplexity, xAI)."""


async def guard_sources(holder: Json, guards: Sequence[Guard]) -> bool:
    """The sources in a delta or an event through guards, in place. Returns whether something changed.

    Args:
        holder: the delta or the event.
        guards: those that look at sources.

    Raises:
        TripWireError: a guard blocks.
    """
    changed = False
    for piece in _cited(holder) if guards else ():
        made = await guarded_whole(piece.text, guards, "sources")
        if made != piece.text:
            piece.holder[piece.key] = made
            changed = True
    return changed


def _cited(holder: Json) -> Iterator[Piece]:
    for field in holder:
        if field in SOURCES:
            yield from (piece for _, piece in pieces_at(holder, field, ()))
    if is_dict(copies := holder.get(COPIES)):
        yield from _cited(copies)
