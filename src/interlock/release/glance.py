"""Most of a text holds nothing for any rule: one cheap look at what came says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from interlock.release.heads import any_start
from interlock.release.pattern import ExactPattern

LOOK_CLOSER = -1
"""A rule has found something: its scanner has to say what."""

LONGEST = 512
"""Characters for which a glance is worth it."""

Look: TypeAlias = Callable[[str, int], Any]


class _Looks(NamedTuple):
    """How to look for a pattern: in one search, or in the two that the pattern itself takes."""

    one: Look | None
    pattern: ExactPattern


class Glance:
    """Looks at a text for several patterns at once.

    Patterns that begin with something rare (a digit, say) are not looked for where there is nothing of the kind.

    Args:
        patterns: the patterns, none of which needs the whole text.

    Attributes:
        reach: characters it may be asked about.
    """

    __slots__ = ("_always", "_rare", "_starts", "reach")

    def __init__(self, patterns: Sequence[ExactPattern]) -> None:
        self.reach = min([LONGEST, *(pattern.untimed for pattern in patterns)])
        if any(pattern.needs_whole_text for pattern in patterns):
            self.reach = 0
        always = [pattern for pattern in patterns if pattern.starts is None or pattern.look is None]
        rare = [pattern for pattern in patterns if pattern not in always]
        self._always = [_Looks(pattern.look, pattern) for pattern in always]
        self._rare = [_Looks(pattern.look, pattern) for pattern in rare]
        starts = [start for pattern in rare for start in pattern.starts or ()]
        self._starts = re.compile(any_start(starts)).search if rare else None

    def first_undecided(self, text: str, start: int) -> int:
        """The first place from which future text could make, extend or revoke a match, and no match in front of it.

        Args:
            text: the text so far; at most ``reach`` characters of it from ``start`` on.
            start: where to begin: no match reaches over it.

        Returns:
            The place, or ``LOOK_CLOSER`` where there may be a match.
        """
        safe = len(text)
        for look, pattern in self._always:
            if look is not None:
                begin = start
                if pattern.gate is not None:
                    literal, before, wide = pattern.gate
                    window = text[start:]
                    if literal not in window and window.isascii():
                        # a match can begin only in a run of what may stand in front of the gate
                        begin += len(window.rstrip(before))
                        if wide:
                            safe = min(safe, begin)
                            continue
                if begin >= safe:
                    continue
                found = look(text, begin)
                if found is not None and (place := found.start()) < safe:
                    if found.lastindex is not None:
                        return LOOK_CLOSER
                    safe = place
            elif pattern.search(text, start) is not None:
                return LOOK_CLOSER
            else:
                safe = min(safe, pattern.first_undecided(text, start))
        if self._starts is None or (found := self._starts(text, start)) is None:
            return safe
        begin = found.start()
        for look, _ in self._rare:
            if begin >= safe:
                break
            assert look is not None
            found = look(text, begin)
            if found is not None and (place := found.start()) < safe:
                if found.lastindex is not None:
                    return LOOK_CLOSER
                safe = place
        return safe
