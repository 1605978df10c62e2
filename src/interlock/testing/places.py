"""Where removed spans of a text would stand in what was sent of it, and whether pieces of them do."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from interlock.core.record import FrozenRecord

Span: TypeAlias = tuple[int, int]


class Leak(FrozenRecord, frozen=True):
    """A piece of a removed span in the sent text. Without a span: the sent text does not fit from ``start`` on."""

    start: int
    end: int
    span: Span | None = None


def first_leak(
    sent: str, whole: str, spans: Sequence[Span], min_piece: int = 3, replacements: Sequence[str] = ()
) -> Leak | None:
    """The first piece of a span that stands in the place of one.

    The sent text is read as the kept parts of the whole text with something in between, or else (a stream that
    stopped) a beginning of that. If it can be read so that nothing in between is a piece of a span, all is well.

    Args:
        sent: what was sent.
        whole: the text before spans were replaced.
        spans: the places that were replaced.
        min_piece: the shortest piece that counts. A shorter span counts when the whole of it stands in its place.
        replacements: texts in which nothing is a piece of a span.

    >>> first_leak("to [NAME]b", "to Bob", [(3, 6)]) is None
    True
    >>> first_leak("to Bob", "to Bob", [(3, 6)])
    Leak(start=3, end=6, span=(3, 6))
    """
    spans = _merged(spans)
    kept = [whole[end:start] for (_, end), (start, _) in pairwise([(0, 0), *spans, (len(whole), len(whole))])]
    leaks = _pieces_of_spans(sent, whole, spans, min_piece, replacements)
    for stopped in (False, True):
        if _unread(sent, whole, kept, spans, leaks, min_piece, stopped) is None:
            return None
        reached = _unread(sent, whole, kept, spans, [], 0, stopped)
        if reached is None:
            return _first_in_between(sent, whole, kept, spans, leaks)
    return Leak(reached, len(sent))


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged


def _pieces_of_spans(
    sent: str, whole: str, spans: Sequence[Span], length: int, replacements: Sequence[str]
) -> list[int]:
    """Where ``length`` characters of some span stand in the sent text, replacements left out."""
    grams = {whole[at : at + length] for start, end in spans for at in range(start, end - length + 1)}
    innocent = [(at, at + len(each)) for each in replacements if each for at in _occurrences(sent, each)]
    return [
        at
        for at in range(len(sent) - length + 1)
        if sent[at : at + length] in grams
        and not any(start <= at and at + length <= end for start, end in innocent)
    ]


def _occurrences(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _unread(
    sent: str,
    whole: str,
    kept: Sequence[str],
    spans: Sequence[Span],
    leaks: Sequence[int],
    min_piece: int,
    stopped: bool,
) -> int | None:
    """None if the sent text can be read with no leak in between; else from where on it cannot."""
    starts = [0]
    reached = 0
    for index, part in enumerate(kept):
        if stopped and any(part.startswith(sent[at:]) for at in starts):
            return None
        ends = [at + len(part) for at in starts if sent.startswith(part, at)]
        reached = max([reached, *ends])
        if not ends:
            return reached
        if index == len(spans):
            return None if ends[-1] == len(sent) else reached
        span = whole[slice(*spans[index])]
        short = span if len(span) < min_piece else None
        if stopped and _clean(sent, ends, len(sent), leaks, min_piece, short):
            return None
        candidates = sorted({*_occurrences(sent, kept[index + 1]), *_tails(sent, kept[index + 1], stopped)})
        starts = [at for at in candidates if _clean(sent, ends, at, leaks, min_piece, short)]
    return reached


def _tails(sent: str, part: str, stopped: bool) -> list[int]:
    """Where the sent text ends with a beginning of a kept part: for a stream that stopped there."""
    last = range(max(len(sent) - len(part) + 1, 0), len(sent)) if stopped else range(0)
    return [at for at in last if part.startswith(sent[at:])]


def _clean(
    sent: str, ends: Sequence[int], until: int, leaks: Sequence[int], length: int, short: str | None
) -> bool:
    """Whether from one of these places to ``until`` there is no leak."""
    for place in reversed(ends[: bisect_right(ends, until)]):
        first = bisect_left(leaks, place)
        if first < len(leaks) and leaks[first] + length <= until:
            return False  # an earlier place has this leak too
        if short is None or sent[place:until] != short:
            return True
    return False


def _first_in_between(
    sent: str, whole: str, kept: Sequence[str], spans: Sequence[Span], leaks: Sequence[int]
) -> Leak:
    """The first leak outside the kept parts, which are taken where they come first."""
    at = 0
    for index, span in enumerate(spans):
        at += len(kept[index])
        following = sent.find(kept[index + 1], at) if kept[index + 1] else -1
        until = following if following >= 0 else len(sent)
        text = whole[slice(*span)]
        here = [place for place in leaks if at <= place < until] or leaks
        if sent[at:until] == text or not leaks:
            return Leak(at, at + len(text), span)
        if here is not leaks or following < 0:
            return _grown(sent, whole, spans, here[0])
        at = following
    return _grown(sent, whole, spans, leaks[0])


def _grown(sent: str, whole: str, spans: Sequence[Span], place: int) -> Leak:
    """The longest piece of a span that stands at this place."""
    longest = Leak(place, place)
    for start, end in spans:
        for at in range(start, end):
            size = 0
            while at + size < end and sent[place + size : place + size + 1] == whole[at + size]:
                size += 1
            if size > longest.end - longest.start:
                longest = Leak(place, place + size, (start, end))
    return longest
