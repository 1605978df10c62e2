"""What an answer has to look like: a type or a JSON schema, and the reading of texts by it.

Types are pydantic's business (models, dataclasses, TypedDicts, whatever a TypeAdapter takes), JSON schemas that of
jsonschema-rs; unfinished JSON is read by pydantic's own parser. All of them are imported when the first schema is made.
"""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from interlock.core.errors import UsageError
from interlock.core.shapes import described, is_dict, is_list

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")
Json: TypeAlias = dict[str, Any]

MOST_PROBLEMS = 5
"""How many faults an answer is told of: the model reads them, and a long list helps nobody."""
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)
_NO_SCHEMA = (str, bytes, int, float, bool, type(None), list, tuple)


class Mismatch(Exception):
    """A text that does not say what the schema asks for. Its message names places and rules, never values."""


class Schema(Generic[T]):
    """The schema of an answer.

    Args:
        given: a pydantic model, dataclass, TypedDict or any other type pydantic knows; or a JSON schema as a mapping.
        where: whose option this is, for errors.

    Attributes:
        json: the JSON schema.
        title: a name for it.

    Raises:
        UsageError: nothing a schema can be made of, or a JSON schema that is none.

    >>> schema = Schema({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    >>> schema.read('Here it is: {"n": 3}')
    {'n': 3}
    >>> schema.partial('{"n": 3')
    {'n': 3}
    """

    def __init__(self, given: type[T] | Mapping[str, Any], where: str = "structured_output") -> None:
        self._adapter: TypeAdapter[T] | None = None
        if isinstance(given, Mapping):
            self.json: Json = dict(given)
            self._validator = _validator(self.json, where)
            name = self.json.get("title")
        else:
            self._adapter = _adapter(given, where)
            self.json = _json_schema(self._adapter, given, where)
            name = getattr(given, "__name__", None)
        self.title = name if isinstance(name, str) and name else "answer"

    def __repr__(self) -> str:
        return f"Schema({self.title})"

    @property
    def is_object(self) -> bool:
        """Whether every answer is a JSON object; providers ask for that."""
        return _resolved(self.json).get("type") == "object"

    def read(self, text: str, *, inside: str | None = None) -> T:
        """The object a text says.

        Args:
            text: an answer: JSON alone, or JSON in a fenced block or among words.
            inside: the key of the one property that holds the answer, where it had to be wrapped.

        Returns:
            It, of the schema's type.

        Raises:
            Mismatch: no JSON, or other than the schema asks for.
        """
        from pydantic_core import from_json

        for candidate in _candidates(text):
            try:
                value: Any = from_json(candidate, allow_inf_nan=False)
            except ValueError:
                continue
            if hides_text(candidate):
                raise Mismatch("it writes letters as escapes; write the characters themselves")
            return self.check(_unwrapped(value, inside))
        raise Mismatch("it holds no readable JSON" if text.strip() else "it is empty")

    def check(self, value: Any) -> T:
        """A JSON value as an object of the schema's type.

        Raises:
            Mismatch: it is other than the schema asks for.
        """
        if self._adapter is None:
            problems = [
                _problem(error.instance_path, error.message) for error in self._validator.iter_errors(value)
            ]
            if problems:
                raise Mismatch(_told(problems))
            return value
        from pydantic import ValidationError
        from pydantic_core import to_json

        try:
            return self._adapter.validate_json(to_json(value))
        except ValidationError as error:
            raise Mismatch(_faults(error)) from None

    def convert(self, value: Any) -> T:
        """A value that is given in code, plain or of the schema's type already.

        Raises:
            Mismatch: it is other than the schema asks for.
        """
        if self._adapter is None:
            return self.check(value)
        from pydantic import ValidationError

        try:
            return self._adapter.validate_python(value)
        except ValidationError as error:
            raise Mismatch(_faults(error)) from None

    def partial(self, text: str, *, inside: str | None = None) -> Any:
        """What an unfinished text says so far.

        Returns:
            Objects and lists of plain values, the last ones perhaps cut short; None while there is nothing.
        """
        from pydantic_core import from_json

        fence = _FENCE.search(text)
        said = fence.group(1) if fence else text
        if hides_text(said):
            return None
        start = min((at for at in (said.find("{"), said.find("[")) if at >= 0), default=-1)
        if start < 0:
            return None
        try:
            value = from_json(said[start:], allow_partial="trailing-strings", allow_inf_nan=False)
        except ValueError:
            return None
        if inside is not None:
            value = value.get(inside) if is_dict(value) else None
        return value if is_dict(value) or is_list(value) else None

    def wrapped(self) -> tuple[Json, str | None]:
        """The schema as providers take it, with an object at its root, and the key that then holds the answer."""
        if self.is_object:
            return self.json, None
        key = "elements" if self.json.get("type") == "array" else "value"
        inner = {name: value for name, value in self.json.items() if name not in ("$defs", "$schema")}
        outer: Json = {
            "type": "object",
            "properties": {key: inner},
            "required": [key],
            "additionalProperties": False,
        }
        return ({**outer, "$defs": self.json["$defs"]} if "$defs" in self.json else outer), key


# ------------------------------------------------------------------------------------------------------ making one


def _adapter(given: Any, where: str) -> TypeAdapter[Any]:
    from pydantic import PydanticUserError, TypeAdapter
    from pydantic_core import SchemaError

    if isinstance(given, _NO_SCHEMA) or (
        not isinstance(given, type) and callable(given) and _is_function(given)
    ):
        raise _no_schema(given, where)
    try:
        adapter: Any = TypeAdapter
        return adapter(_known_typed_dict(given))
    except (PydanticUserError, SchemaError, TypeError, NameError) as problem:
        raise UsageError(f"{where}: pydantic makes no schema of {given!r:.80}: {problem}") from None


def _known_typed_dict(given: Any) -> Any:
    """Before Python 3.12 pydantic takes typing_extensions' TypedDict only: the standard one as one of those."""
    import typing_extensions

    if sys.version_info >= (3, 12) or not typing.is_typeddict(given):
        return given
    hints = typing.get_type_hints(given, include_extras=True)
    said = (typing.Required, typing.NotRequired)
    fields = {
        key: hint
        if key in given.__required_keys__ or typing.get_origin(hint) in said
        else typing_extensions.NotRequired[hint]
        for key, hint in hints.items()
    }
    made: Any = typing_extensions.TypedDict
    return made(given.__name__, fields)


def _is_function(given: Any) -> bool:
    return hasattr(given, "__code__") or hasattr(given, "__func__")


def _no_schema(given: Any, where: str) -> UsageError:
    return UsageError(
        f"{where}: give a pydantic model, a dataclass, a TypedDict or a JSON schema (a dict), not {described(given)}"
    )


def _json_schema(adapter: TypeAdapter[Any], given: Any, where: str) -> Json:
    from pydantic import PydanticInvalidForJsonSchema

    try:
        return adapter.json_schema()
    except PydanticInvalidForJsonSchema as problem:
        raise UsageError(f"{where}: {given!r:.80} has no JSON schema: {problem.message}") from None


def _validator(schema: Json, where: str) -> Any:
    import jsonschema_rs

    try:
        # values stay out of messages; a schema that refers to other addresses is not looked up there
        return jsonschema_rs.validator_for(schema, mask="the value", retriever=_elsewhere)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError) as problem:
        said = str(problem).partition("\n")[0]
        raise UsageError(f"{where}: this is no JSON schema: {said}") from None


def _elsewhere(address: str) -> Any:
    raise ValueError(f"{address} is outside the schema; put it under $defs")


def _resolved(schema: Json) -> Json:
    """The schema that a reference at its root leads to."""
    for _ in range(8):
        name = str(schema.get("$ref") or "")
        found = re.fullmatch(r"#/(\$defs|definitions)/([^/]+)", name)
        group: Json = schema.get(found.group(1) if found else "") or {}
        inner: Any = group.get(found.group(2)) if found else None
        if not is_dict(inner):
            break
        schema = {**{key: schema[key] for key in ("$defs", "definitions") if key in schema}, **inner}
    return schema


# --------------------------------------------------------------------------------------------------- reading a text


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_SIGNS = "@.-+_:%#$"


def hides_text(text: str) -> bool:
    """Whether JSON has escapes where letters, digits or the signs of addresses could stand as they are.

    Guards judge the text: what it spells by escapes that nothing needs would be in the object and seen by none (R0.3).
    """
    if "\\u" not in text:
        return False
    codes = (found.group(1) for found in _ESCAPE.finditer(text))
    characters = (chr(int(code, 16)) for code in codes if code)
    return any(character.isalnum() or character in _SIGNS for character in characters)


def _candidates(text: str) -> Iterator[str]:
    """Where the JSON may be: the whole text, its first fenced block, from the first bracket to the last."""
    yield text.strip()
    fence = _FENCE.search(text)
    if fence:
        yield fence.group(1).strip()
    found = re.search(r"[{\[]", text)
    if found:
        last = text.rfind("}" if found.group() == "{" else "]")
        if last > found.start():
            yield text[found.start() : last + 1]


def _unwrapped(value: Any, inside: str | None) -> Any:
    if inside is None:
        return value
    if not is_dict(value) or inside not in value:
        raise Mismatch(f"it must be an object with the property {inside!r}")
    return value[inside]


def _problem(place: Any, message: str) -> str:
    path = ".".join(str(step) for step in place)
    return f"{path}: {message}" if path else message


def _faults(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return _told([_problem(fault["loc"], fault["msg"]) for fault in faults])


def _told(problems: list[str]) -> str:
    more = len(problems) - MOST_PROBLEMS
    return "; ".join(problems[:MOST_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
