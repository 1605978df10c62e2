"""Addresses of pages: what the preset ``urls`` finds."""

from __future__ import annotations

from interlock.processors.presets.rule import PresetRule

_URL_TAIL = r"(?:[.,:;!?'*_~]{0,16}(?:[^\W_]|[\-/#%&=+@$|]|[(][^\s()<>\"`]{0,256}[)]))"
_URLS = (
    rf"(?<![A-Za-z0-9])(?i:https?|wss?|ftps?)://(?:\[[0-9A-Fa-f:.]{{2,45}}\]|[^\W_]|[\-$%]){_URL_TAIL}{{0,2048}}",
    rf"(?<![\w@/.\-])(?i:www)\.(?:[^\W_][\w\-]{{0,62}}\.){{1,6}}[^\W\d_]{{2,24}}(?:(?=[/?#:]){_URL_TAIL}{{1,2048}})?",
)

URLS: tuple[PresetRule, ...] = (PresetRule(name="url", patterns=_URLS),)
