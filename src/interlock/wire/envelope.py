"""The envelope around a payload."""

from __future__ import annotations

from typing import Any

from interlock.core.chunks import (
    Chunk,
    DataChunk,
    Finish,
    ObjectResult,
    OtherChunk,
    PartialObject,
    StepFinish,
)
from interlock.core.errors import UsageError
from interlock.core.jsonable import jsonable
from interlock.core.shapes import is_mapping
from interlock.wire.ends import end_from_wire, finish_payload, step_finish_payload
from interlock.wire.fields import SIMPLE, Json, built, fields_of, payload_of

_ENVELOPE = frozenset({"type", "runId", "from"})


def to_wire(chunk: Chunk, *, run_id: str | None = None) -> Json:
    """A chunk as the JSON object that clients get.

    Args:
        chunk: any chunk.
        run_id: the run's id, for ``runId``.

    Returns:
        An object of plain JSON values.

    >>> from interlock.chunks import TextDelta
    >>> to_wire(TextDelta("Hi", id="t1"), run_id="r1")
    {'type': 'text-delta', 'runId': 'r1', 'from': 'AGENT', 'payload': {'id': 't1', 'text': 'Hi'}}
    """
    if isinstance(chunk, DataChunk):
        return _data_form(chunk)
    envelope: Json = {"type": chunk.type}
    if run_id is not None:
        envelope["runId"] = run_id
    envelope["from"] = "AGENT"
    match chunk:
        case StepFinish():
            envelope["payload"] = step_finish_payload(chunk)
        case Finish():
            envelope["payload"] = finish_payload(chunk)
        case PartialObject() | ObjectResult():
            envelope["object"] = jsonable(chunk.object)  # the one chunk without a payload
        case OtherChunk():
            envelope["payload"] = jsonable(chunk.payload)
        case _:
            envelope["payload"] = payload_of(chunk)
    return envelope


def from_wire(obj: Any) -> Chunk:
    """A chunk from its JSON object.

    Args:
        obj: the envelope, or the payload's fields flat beside ``type``. Finish and step-finish may also have
            ``finishReason`` and ``usage`` in the place of ``stepResult`` and ``output``.

    Returns:
        The chunk; one of a type this version does not know is an OtherChunk.

    Raises:
        UsageError: something that is no chunk; the text says what was given.
    """
    if not is_mapping(obj) or not isinstance(obj.get("type"), str) or not obj["type"]:
        raise UsageError(
            f"a chunk is an object with a type, such as {{'type': 'text-delta', ...}}, not {obj!r:.80}"
        )
    kind: str = obj["type"]
    if kind.startswith("data-"):
        return built(DataChunk, {name: obj[name] for name in _DATA_KEYS if obj.get(name) is not None}, kind)
    if kind in _OBJECTS and "payload" not in obj:
        return _OBJECTS[kind](obj.get("object"))
    payload = obj["payload"] if "payload" in obj else {key: obj[key] for key in obj if key not in _ENVELOPE}
    is_end = kind in (StepFinish.type, Finish.type)
    if not is_end and kind not in SIMPLE:
        return OtherChunk(type=kind, payload=payload)
    if not is_mapping(payload):
        raise UsageError(f"a {kind} chunk's payload must be an object, not {type(payload).__name__}")
    if is_end:
        return end_from_wire(kind, payload)
    return built(SIMPLE[kind], fields_of(SIMPLE[kind], payload), kind)


_OBJECTS = {PartialObject.type: PartialObject, ObjectResult.type: ObjectResult}
_DATA_KEYS = ("type", "id", "data", "transient")


def _data_form(chunk: DataChunk) -> Json:
    form: Json = {"type": chunk.type}
    if chunk.id is not None:
        form["id"] = chunk.id
    form["data"] = jsonable(chunk.data)
    if chunk.transient:
        form["transient"] = True
    return form
