"""What a failed call says: an error with its causes, as texts to look for patterns in."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.core.errors import ModelError


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error, then what it came from, and so on; each once."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__


def texts_of(error: BaseException) -> list[str]:
    """The messages of the error and its causes, and the response bodies that came with them."""
    texts: list[str] = []
    for each in causes(error):
        texts.append(str(each))
        if isinstance(each, ModelError) and each.body:
            texts.append(each.body)
    return texts
