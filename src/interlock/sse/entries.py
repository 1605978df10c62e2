"""What waits to leave: an event as it came, with what has been decided of its texts, and the bytes it leaves as."""

from __future__ import annotations

from typing import Any, cast

from interlock.sse.blocks import with_data
from interlock.sse.calls import KINDS
from interlock.sse.shapes import Json
from interlock.sse.texts import Piece

FRAME = ("id", "object", "created", "model", "system_fingerprint", "service_tier", "provider")
"""What an event repeats of the answer; an event that is added repeats it too."""


class Entry:
    """Lines as they came, or an event that may have to change.

    Attributes:
        lines: as they came.
        event: what its data say; None where nothing has to be looked at.
        changed: something other than its texts has changed.
        pieces: its pieces of texts, each with the choice it stands in.
    """

    __slots__ = ("changed", "event", "lines", "pieces")

    def __init__(self, lines: list[bytes], event: Json | None = None) -> None:
        self.lines = lines
        self.event = event
        self.changed = False
        self.pieces: list[tuple[Json, Piece]] = []

    @property
    def decided(self) -> bool:
        """Whether all of it may leave."""
        return all(piece.done for _, piece in self.pieces)

    def take_part(self) -> bytes:
        """What is decided of an event that waits, as an event of its own; empty if there is nothing."""
        choices: list[Json] = []
        for choice, piece in self.pieces:
            delta: Json | None = choice.get("delta")
            if delta is None or not piece.out or piece.holder is not delta:
                continue  # only a string can be told in parts
            part: Json = {"role": delta["role"]} if delta.get("role") else {}
            part[piece.key] = piece.out
            choices.append({"index": choice.get("index", 0), "delta": part, "finish_reason": None})
            piece.out, piece.cut = "", True
        if not choices:
            return b""
        return with_data(self.lines, {**frame_of(self.event or {}), "choices": choices})

    def rendered(self, *, guarded: bool) -> bytes:
        """An event whose texts are decided; as it came, where nothing changed; empty if nothing is left of it.

        Args:
            guarded: there are guards: log probabilities stay only where they say what the text says.
        """
        if self.event is None:
            return b"".join(self.lines)
        for choice in cast("list[Json]", self.event.get("choices") or ()):
            pieces = [piece for of, piece in self.pieces if of is choice]
            whole = all(piece.unchanged for piece in pieces)
            if guarded and choice.get("logprobs") and not (whole and _repeats(choice["logprobs"], pieces)):
                choice["logprobs"] = None
                self.changed = True
            if not whole:
                self.changed = True
                for piece in pieces:
                    piece.holder[piece.key] = piece.out
        if not self.changed:
            return b"".join(self.lines)
        return b"" if _says_nothing(self.event) else with_data(self.lines, self.event)


def frame_of(event: Json) -> Json:
    """What an event repeats of the answer."""
    return {key: event[key] for key in FRAME if key in event}


def added(frame: Json, index: int, delta: Json) -> Entry:
    """An event that did not come: a delta of one choice."""
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
    entry = Entry([b"data:\n", b"\n"], {**frame, "choices": [choice]})
    entry.changed = True
    return entry


def _repeats(logprobs: Any, pieces: list[Piece]) -> bool:
    """Whether log probabilities say nothing but the text beside them."""
    return _tokens(logprobs) in ("", "".join(piece.text for piece in pieces))


def _tokens(logprobs: Any) -> str | None:
    """The text log probabilities repeat; None where they are of an unknown form."""
    if not isinstance(logprobs, dict) or not set(cast(Json, logprobs)) <= {"content", "refusal"}:
        return None
    found: list[str] = []
    for items in cast(Json, logprobs).values():
        for item in items or ():
            if not isinstance(item, dict) or not isinstance(token := cast(Json, item).get("token"), str):
                return None
            if cast(Json, item).get("bytes") not in (None, list(token.encode())):
                return None  # a part of a character, which the text has only when the rest is there
            found.append(token)
    return "".join(found)


def _says_nothing(event: Json) -> bool:
    """Whether nothing is left of an event but its frame."""
    for key, value in event.items():
        if value and key not in (*FRAME, "choices", "obfuscation"):
            return False
    choices = cast("list[Json]", event.get("choices") or [])
    for choice in choices:
        if any(value for key, value in choice.items() if key not in ("index", "delta")):
            return False
        for key, value in cast(Json, choice.get("delta") or {}).items():
            if value and not (key == "tool_calls" and all(_empty_call(call) for call in value)):
                if key == "function_call" and not any(value.values()):
                    continue
                return False
    return bool(choices)


def _empty_call(call: Json) -> bool:
    for_tool: list[Json] = [call.get(kind) or {} for kind in KINDS]
    return not any(value for each in for_tool for value in each.values()) and not any(
        value for key, value in call.items() if key not in ("index", "type", *KINDS)
    )
