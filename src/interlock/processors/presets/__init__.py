r"""Ready-made rules: personal data, secrets and addresses of pages.

A preset rule is data until it is built, so neither ``regex`` nor ``phonenumbers`` is imported before it is used. Every
pattern is bounded and has one way to read a text, so that its cost is linear; it starts with something specific, so
that little waits while a text is streaming. Several patterns of one rule are searched independently: a candidate that
one of them rejects does not hide what another one finds inside it.

>>> [rule.name for rule in PRESETS["urls"]]
['url']
>>> from interlock.release.scanner import TextScanner
>>> rules = [rule for preset in PRESETS["pii"] if preset.name == "card" for rule in preset.rules()]
>>> TextScanner(rules).feed("Card 4539 1488 0343 6467, order 4539 1488 0343 6468.", final=True)[1]
[Span(rule='card', start=5, end=24)]
"""

from __future__ import annotations

from interlock.core.errors import UsageError
from interlock.processors.presets.personal import PII
from interlock.processors.presets.rule import PresetRule
from interlock.processors.presets.secret_keys import SECRETS
from interlock.processors.presets.urls import URLS
from interlock.release.scanner import Rule

PRESETS: dict[str, tuple[PresetRule, ...]] = {"pii": PII, "secrets": SECRETS, "urls": URLS}
"""The presets by name, each a number of rules to build."""


def preset_rules(name: str, *, region: str = "US") -> list[Rule]:
    """All rules of a preset, built.

    Args:
        name: ``pii``, ``secrets`` or ``urls``.
        region: the country whose national phone numbers ``pii`` finds beside the international ones.

    Raises:
        UsageError: there is no such preset, or a library it needs is missing.
    """
    if name not in PRESETS:
        raise UsageError(f"no preset {name!r}; there is {', '.join(PRESETS)}")
    return [rule for preset in PRESETS[name] for rule in preset.rules(region)]


__all__ = ["PRESETS", "PresetRule", "preset_rules"]
