"""KeywordFilter: a word list, of any length, wherever the stream is cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Unpack

from interlock.core.errors import UsageError
from interlock.core.shapes import is_mapping
from interlock.release.guard import GuardOptions, SpanGuard
from interlock.release.keyword_scanner import KeywordScanner
from interlock.release.keywords import LONGEST, KeywordIndex
from interlock.release.scanner import TextScanner


class KeywordFilter(SpanGuard):
    """Finds the words of a list in everything that passes; the cost does not grow with the list.

    Args:
        terms: words or phrases, or a mapping of these to rule names; up to 100,000.
        rule: the name of finds whose term has none.
        case_sensitive: whether upper and lower case differ.
        fold_diacritics: whether accents are passed over (``cafe`` finds ``café``).
        whole_words: whether a term must not be part of a longer word.
        options: strategy, channels, redaction, replacement, on_detection, report_text, error_strategy: see
            :class:`interlock.processors.SpanGuard`.

    Raises:
        UsageError: no terms, a term that cannot be looked for, or an unknown option.

    >>> import asyncio
    >>> from interlock import guard_text
    >>> asyncio.run(guard_text("Ask Acme about acmeism.", [KeywordFilter(["acme"], rule="rival")])).text
    'Ask [RIVAL] about acmeism.'
    """

    def __init__(
        self,
        terms: Iterable[str] | Mapping[str, str],
        *,
        rule: str = "keyword",
        case_sensitive: bool = False,
        fold_diacritics: bool = False,
        whole_words: bool = True,
        id: str = "keyword-filter",
        **options: Unpack[GuardOptions],
    ) -> None:
        super().__init__(id=id, **options)
        listed: Mapping[str, str] | list[str] = terms if is_mapping(terms) else list(terms)  # type: ignore[assignment]
        if isinstance(terms, str):
            raise UsageError(f"KeywordFilter: terms is a list: [{terms!r}]")
        if not listed:
            raise UsageError("KeywordFilter needs at least one term, such as ['acme']")
        self.index = KeywordIndex(
            listed,
            rule=rule,
            case_sensitive=case_sensitive,
            fold_diacritics=fold_diacritics,
            whole_words=whole_words,
        )

    def new_scanner(self) -> TextScanner:
        """A scanner of all terms for one text."""
        return TextScanner.of([KeywordScanner(self.index)], context=2 * LONGEST)
