"""Long texts in pieces, as embedding models read no more than a page at a time."""

from __future__ import annotations

import re

from interlock.core.messages import Message

LONGEST = 1200
"""Characters of a piece: about 300 tokens of English, and not above 512 of most scripts."""
MOST = 32
"""Pieces of a message; what is beyond is not searched."""

_ENDS = (re.compile(r"\n\s*\n\s*"), re.compile(r"[.!?\u3002\uff01\uff1f]\s*|\n"), re.compile(r"\s+"))
"""Where a piece may end, best first: a paragraph, a sentence, a word."""


def pieces_of(message: Message) -> list[str]:
    """What of a message is searched for: its text, in pieces. Calls, results and reasoning are not."""
    return pieces(message.text)[:MOST]


def pieces(text: str) -> list[str]:
    """A text in pieces of at most :data:`LONGEST` characters, cut at paragraphs, sentences or words where there are.

    >>> pieces("  short ")
    ['short']
    """
    found: list[str] = []
    rest = text.strip()
    while len(rest) > LONGEST:
        cut = _cut(rest)
        found.append(rest[:cut].strip())
        rest = rest[cut:].strip()
    return [*found, rest] if rest else found


def query_of(text: str) -> str:
    """What a text is searched with: of a long one, beginning and end, where questions stand."""
    text = text.strip()
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}\n{text[-half:]}"


def _cut(text: str) -> int:
    for pattern in _ENDS:
        ends = [match.end() for match in pattern.finditer(text, LONGEST // 2, LONGEST)]
        if ends:
            return ends[-1]
    return LONGEST
