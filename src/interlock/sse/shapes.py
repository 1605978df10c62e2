"""The shapes an event's JSON must have. What has another one cannot be guarded, so it does not pass."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

Json: TypeAlias = dict[str, Any]

OTHERS = ("response.", "message_", "content_block_")
"""How the types of events begin in OpenAI's Responses and in Anthropic's Messages."""


class Unreadable(Exception):
    """Something in the stream is not what it should be. Says what, never what stands there."""


def object_of(value: Any, what: str) -> Json:
    """The value, which must be an object.

    Raises:
        Unreadable: it is none.
    """
    if not isinstance(value, dict):
        raise _wrong(what)
    return cast(Json, value)


def list_of(value: Any, what: str) -> list[Any]:
    """The value, which must be an array; an empty one in place of null.

    Raises:
        Unreadable: it is none.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong(what)
    return cast("list[Any]", value)


def of_chat(event: Json) -> bool:
    """Whether an event may be of a chat completion. Those of other APIs have their texts in other places."""
    if "choices" in event:
        return True
    kind = event.get("type")
    return "candidates" not in event and not (isinstance(kind, str) and kind.startswith(OTHERS))


def _wrong(what: str) -> Unreadable:
    return Unreadable(f"{what} is not of the form it should be")
