"""The arguments of a tool call, which are JSON in a text, through guards."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec import json

from interlock.guarding import Guard
from interlock.release.channels import Channel, texts_in_value, visit_async
from interlock.sse.texts import guarded_whole

ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


async def guarded_arguments(text: str, guards: Sequence[Guard]) -> str:
    """Complete arguments through guards: each string in them, keys too; as one text where they are no JSON.

    Args:
        text: the arguments.
        guards: those that look at arguments.

    Raises:
        TripWireError: a guard blocks.
    """

    async def all_guarded(texts: list[str], channel: Channel) -> list[str]:
        return [await guarded_whole(each, guards, channel) for each in texts]

    try:
        value = await visit_async(texts_in_value(json.decode(text), "tool-arguments"), all_guarded)
        return json.encode(value).decode()
    except (msgspec.DecodeError, RecursionError):
        pass  # cut off at the token limit, say
    plain = _unescaped(text)
    made = await guarded_whole(plain, guards, "tool-arguments")
    return made if made != plain else await guarded_whole(text, guards, "tool-arguments")


def _unescaped(text: str) -> str:
    """What the escapes in torn JSON stand for: a guard would not see through them."""
    return ESCAPE.sub(_character, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return ESCAPED.get(escape[2], escape[2])
