"""When is a pattern's verdict final? A pattern, and its twin that tells what future text could still change.

For a pattern P the twin K is built so that K can never match, but matches *partially* at every start from which some
path of P reads beyond the end of the text: K is P followed by a dead end, with each assertion that looks ahead
(``(?=X)``, ``(?!X)``, ``\\b``, ``\\B``, ``$``, ``\\Z``) opened to the path that reads what it looks at. So

1. the leftmost partial match of K is the first start that is undecided, and
2. what P does from every start before it is the same whatever text follows: no path from there touches the end.

Partial matching is the ``regex`` package's (it says whether a truncated text could still match).
"""

from __future__ import annotations

from typing import Any, Protocol, cast

from interlock.core.errors import UsageError

_DEAD_END = "(?!)"
_READS_AHEAD = {
    "b": rf"(?:(?s:.){_DEAD_END}|\b)",
    "B": rf"(?:(?s:.){_DEAD_END}|\B)",
    "Z": rf"(?:(?s:.){_DEAD_END}|\Z)",
}
_DOLLAR = rf"(?:\n?(?s:.){_DEAD_END}|$)"
# What the twin cannot follow: such a pattern is judged when the text is complete.
_BEYOND = ("(?(", "(?R", "(?P>", "(?&", "(?r", "(*", r"\K", r"\G", r"\X", r"\m", r"\M", r"\y", "(?<=", "{e", "{i", "{d", "{s")


class Found(Protocol):
    """A match object, as far as it is used here."""

    def start(self) -> int:
        """Where it begins."""
        ...

    def end(self) -> int:
        """Where it ends."""
        ...


class ExactPattern:
    """A pattern that can be searched in a text of which more may come.

    Args:
        name: the rule's name, for errors.
        source: the pattern, in the syntax of the ``regex`` package (a superset of ``re``).
        flags: ``regex`` flags.
        timeout: seconds one search may take; a pattern that takes longer fails closed.

    Attributes:
        needs_whole_text: the pattern looks at things this engine cannot follow; it is judged at the end of the text.

    Raises:
        UsageError: a pattern that does not compile.
    """

    def __init__(self, name: str, source: str, flags: int = 0, timeout: float = 1.0) -> None:
        import regex

        self.name = name
        self.source = source
        self._timeout = timeout
        try:
            self._pattern: Any = regex.compile(source, flags)
        except regex.error as problem:
            raise UsageError(f"rule {name!r}: the pattern does not compile: {problem}") from None
        unfollowed = self._pattern.flags & (regex.FULLCASE | regex.WORD | regex.VERBOSE | regex.REVERSE | regex.VERSION1)
        twin = None if unfollowed or _is_beyond(source) else open_assertions(source)
        self.needs_whole_text = twin is None
        self._twin: Any = None if twin is None else regex.compile(f"(?:{twin}){_DEAD_END}", flags)

    def search(self, text: str, start: int) -> Found | None:
        """The first match from ``start`` on, as the text stands.

        Raises:
            TimeoutError: the search took too long.
        """
        return cast("Found | None", self._pattern.search(text, start, timeout=self._timeout))

    def first_undecided(self, text: str, start: int) -> int:
        """The first place from ``start`` on from which future text could make, extend or revoke a match.

        Raises:
            TimeoutError: the search took too long.
        """
        if self._twin is None:
            return start
        found = self._twin.search(text, start, partial=True, timeout=self._timeout)
        return len(text) if found is None else found.start()


def _is_beyond(source: str) -> bool:
    plain = source.replace("\\\\", "")
    return any(sign in plain for sign in _BEYOND if sign != "(?<=") or _looks_behind_ahead(plain)


def _looks_behind_ahead(source: str) -> bool:
    """Whether a look-behind has something in it that looks ahead: too tangled to follow."""
    for sign in ("(?<=", "(?<!"):
        at = source.find(sign)
        while at >= 0:
            inner = source[at + 4 : _closing(source, at)]
            if any(ahead in inner for ahead in ("(?=", "(?!", r"\b", r"\B", "$", r"\Z")):
                return True
            at = source.find(sign, at + 1)
    return False


def open_assertions(source: str) -> str:
    """The pattern with every assertion that looks ahead opened to the path that reads what it looks at."""
    opened: list[str] = []
    index = 0
    while index < len(source):
        step = _token(source, index)
        token = source[index : index + step]
        if token == "$":
            opened.append(_DOLLAR)
        elif len(token) == 2 and token[0] == "\\" and token[1] in _READS_AHEAD:
            opened.append(_READS_AHEAD[token[1]])
        elif token in ("(?=", "(?!"):
            end = _closing(source, index)
            inner = source[index + 3 : end]
            # a branch reset keeps the numbers of the groups the same in both
            opened.append(f"(?|{open_assertions(inner)}{_DEAD_END}|{token}{inner}))")
            step = end + 1 - index
        else:
            opened.append(token)
        index += step
    return "".join(opened)


def _token(source: str, index: int) -> int:
    """The length of what stands at index: an escape, a class, a group's opening, or one character."""
    if source[index] == "\\":
        return 2
    if source[index] == "[":
        return _class_end(source, index) - index
    if source.startswith(("(?=", "(?!"), index):
        return 3
    return 1


def _class_end(source: str, index: int) -> int:
    at = index + 1
    if source[at : at + 1] == "^":
        at += 1
    if source[at : at + 1] == "]":
        at += 1
    while at < len(source) and source[at] != "]":
        if source.startswith("[:", at):
            at = source.find(":]", at) + 1
        at += 2 if source[at] == "\\" else 1
    return at + 1


def _closing(source: str, index: int) -> int:
    """The index of the parenthesis that closes the one at index."""
    depth = 0
    at = index
    while at < len(source):
        char = source[at]
        if char == "\\":
            at += 2
            continue
        if char == "[":
            at = _class_end(source, at)
            continue
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0:
            return at
        at += 1
    return len(source)
