"""Tools: typed functions the model may call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, get_args, get_type_hints, overload

from interlock.core.errors import UsageError
from interlock.core.model import ToolSpec
from interlock.core.shapes import is_mapping

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter


class Writer(Protocol):
    """Sends custom ``data-*`` chunks to the client (spec R9)."""

    def custom(self, chunk: Any, message_id: str | None = None) -> Awaitable[None]:
        """Send a chunk.

        The chunk is checked and taken at once; awaiting the result waits until it has passed the processors.

        Args:
            chunk: ``{"type": "data-...", "data": ..., "transient": False}`` or a DataChunk.
            message_id: the message it is stored with; by default the answer under way.

        Raises:
            UsageError: a type without the ``data-`` prefix.
        """
        ...


class ToolContext:
    """What a tool may ask for: give a parameter this annotation and it is passed in, not asked of the model.

    Attributes:
        tool_call_id: the call's id.
        request_context: the call's RequestContext.
        writer: sends custom data chunks; a tool in a thread need not await it.
    """

    __slots__ = ("_cancelled", "request_context", "tool_call_id", "writer")

    def __init__(
        self,
        tool_call_id: str,
        request_context: Any,
        writer: Writer,
        cancelled: Callable[[], bool],
    ) -> None:
        self.tool_call_id = tool_call_id
        self.request_context = request_context
        self.writer = writer
        self._cancelled = cancelled

    @property
    def cancelled(self) -> bool:
        """True once the run was cancelled or blocked: a tool in a thread should then stop by itself."""
        return self._cancelled()


ToolFunction: TypeAlias = Callable[..., Any]


class Tool:
    """A tool: a function with a name, a description and a schema. Usually made by :func:`tool`.

    Args:
        function: the code, ``def`` (runs in a thread) or ``async def``.
        name: as the model calls it; the function's name by default.
        description: for the model; the docstring's first part by default.
        repeatable: False for a tool whose effect must not happen twice: a step in which it ran is not retried
            (spec R7.1).
        parameters: the arguments' JSON schema, instead of the one read from the annotations; the arguments are
            then passed as they came, checked for required names only.

    Raises:
        UsageError: a parameter without a name (``*args``), a docstring-less lambda without a name, ...
    """

    def __init__(
        self,
        function: ToolFunction,
        *,
        name: str | None = None,
        description: str | None = None,
        repeatable: bool = True,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)
        if not re.fullmatch(r"[A-Za-z_][\w.-]*", self.name):
            raise UsageError(
                f"tool name {self.name!r}: give a name with tool(name=...), letters, digits, _ . -"
            )
        self.repeatable = repeatable
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  # a callable object with an async __call__
        )
        text = inspect.getdoc(function) or ""
        self.description = text.split("\n\n")[0].strip() if description is None else description
        self._context_parameter: str | None = None
        self._fields: dict[str, str] = {}
        self._arguments = self._read_signature(text, with_model=parameters is None)
        self.has_given_schema = parameters is not None
        self.parameters: dict[str, Any] = parameters if parameters is not None else self._schema()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, as in a unit test."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    @property
    def spec(self) -> ToolSpec:
        """The tool as the model sees it."""
        return ToolSpec(name=self.name, description=self.description, parameters=self.parameters)

    def bind(self, args: Any, context: ToolContext) -> dict[str, Any]:
        """Check and convert the model's arguments.

        Args:
            args: what the model gave, an object of arguments by name.
            context: handed to the parameter annotated ToolContext, if there is one.

        Returns:
            The keyword arguments to call the function with.

        Raises:
            ValueError: the arguments do not fit; the text says which and why, for the model to read.
        """
        if not is_mapping(args):
            raise ValueError(f"arguments for {self.name} must be a JSON object, not {type(args).__name__}")
        if self.has_given_schema:
            missing = [key for key in self.parameters.get("required", []) if key not in args]
            if missing:
                raise ValueError(f"arguments for {self.name}: missing {', '.join(missing)}")
            bound = dict(args)
        else:
            bound = self._validate(args)
        if self._context_parameter:
            bound[self._context_parameter] = context
        return bound

    def _validate(self, args: Mapping[Any, Any]) -> dict[str, Any]:
        from pydantic import ValidationError

        try:
            assert self._arguments is not None
            model: BaseModel = self._arguments.validate_python(dict(args))
        except ValidationError as problem:
            details = "; ".join(
                f"{'.'.join(map(str, error['loc'])) or 'arguments'}: {error['msg']}"
                for error in problem.errors(include_input=False, include_url=False)
            )
            raise ValueError(f"invalid arguments for {self.name}: {details}") from None
        return {parameter: getattr(model, field) for field, parameter in self._fields.items()}

    def _schema(self) -> dict[str, Any]:
        assert self._arguments is not None
        schema = self._arguments.json_schema()
        schema.pop("title", None)
        for prop in schema.get("properties", {}).values():
            prop.pop("title", None)
        return schema

    def _read_signature(self, docstring: str, *, with_model: bool) -> TypeAdapter[Any] | None:
        code = self.function if inspect.isroutine(self.function) else type(self.function).__call__
        try:
            signature = inspect.signature(self.function)
            hints = get_type_hints(code, include_extras=True)
        except (TypeError, ValueError, NameError) as problem:
            raise UsageError(f"tool {self.name!r}: cannot read its signature ({problem})") from problem
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            if _is_context(hints.get(parameter.name)):
                self._context_parameter = parameter.name
            else:
                parameters.append(parameter)
        return self._arguments_model(parameters, hints, docstring) if with_model else None

    def _arguments_model(
        self, parameters: list[inspect.Parameter], hints: dict[str, Any], docstring: str
    ) -> TypeAdapter[Any]:
        # pydantic takes longer to import than the rest of the library: only those who define tools wait for it
        from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, create_model
        from pydantic.errors import PydanticSchemaGenerationError

        descriptions = _argument_descriptions(docstring)
        fields: dict[str, Any] = {}
        for index, parameter in enumerate(parameters):
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise UsageError(
                    f"tool {self.name!r}: parameter {parameter} has no name the model could use; write named "
                    "parameters, or give the arguments' schema with tool(parameters=...)"
                )
            info: dict[str, Any] = {"alias": parameter.name}
            if parameter.name in descriptions:
                info["description"] = descriptions[parameter.name]
            default = ... if parameter.default is parameter.empty else parameter.default
            # a name of its own: parameters may be called what a model's methods are called
            field = Field(default, **info)
            fields[f"argument_{index}"] = (hints.get(parameter.name, Any), field)
            self._fields[f"argument_{index}"] = parameter.name
        name = re.sub(r"\W", "_", self.name)
        try:
            return TypeAdapter(create_model(name, __config__=ConfigDict(extra="forbid"), **fields))
        except (PydanticSchemaGenerationError, PydanticUserError) as problem:
            raise UsageError(
                f"tool {self.name!r}: no JSON schema for its parameters ({problem.message})"
            ) from problem


def _is_context(hint: Any) -> bool:
    """Whether a parameter asks for the ToolContext, optionally too."""
    return hint is ToolContext or ToolContext in get_args(hint)


def _argument_descriptions(docstring: str) -> dict[str, str]:
    """The descriptions in a docstring's ``Args:`` section (Google style) or its ``:param name:`` lines."""
    found = {name: text.strip() for name, text in re.findall(r":param\s+(?:\S+\s+)?(\w+):\s*(.+)", docstring)}
    section = re.search(r"^(Args|Arguments|Parameters):\n((?:[ \t]+.*\n?|\n)*)", docstring, re.MULTILINE)
    if section:
        for name, text in re.findall(
            r"^[ \t]+(\w+)(?:\s*\([^)]*\))?:[ \t]*(.+(?:\n[ \t]{5,}.+)*)", section.group(2), re.MULTILINE
        ):
            found[name] = re.sub(r"\s+", " ", text).strip()
    return found


@overload
def tool(function: ToolFunction, /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    repeatable: bool = True,
    parameters: dict[str, Any] | None = None,
) -> Callable[[ToolFunction], Tool]: ...
def tool(
    function: ToolFunction | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    repeatable: bool = True,
    parameters: dict[str, Any] | None = None,
) -> Tool | Callable[[ToolFunction], Tool]:
    """Make a tool of a typed function.

    The arguments' JSON schema comes from the annotations, the descriptions from the docstring. A plain ``def``
    runs in a thread. Arguments as for :class:`Tool`.

    >>> @tool
    ... def weather(city: str) -> dict:
    ...     '''Current weather of a city.'''
    ...     return {"city": city, "celsius": 21}
    >>> weather.name, weather.description, weather.parameters["required"]
    ('weather', 'Current weather of a city.', ['city'])
    """

    def make(function: ToolFunction) -> Tool:
        return Tool(
            function, name=name, description=description, repeatable=repeatable, parameters=parameters
        )

    return make if function is None else make(function)


ToolSet: TypeAlias = dict[str, Tool]


def tool_set(tools: Iterable[Any] | Mapping[str, Any] | None, *, where: str) -> ToolSet:
    """Tools by name, from a list of tools or functions, or a mapping of name to either.

    Args:
        tools: what the user gave.
        where: named in the error.

    Raises:
        UsageError: something that is no tool, or two tools of one name.
    """
    if tools is None:
        return {}
    if isinstance(tools, str | Tool) or not hasattr(tools, "__iter__"):
        raise UsageError(f"{where}: tools must be a list or a mapping of tools, not {type(tools).__name__}")
    named: ToolSet = {}
    pairs: list[tuple[str | None, Any]] = (
        list(tools.items()) if is_mapping(tools) else [(None, entry) for entry in tools]
    )
    for name, entry in pairs:
        if not isinstance(entry, Tool) and not callable(entry):
            raise UsageError(f"{where}: {entry!r} is not a tool; write @tool above the function")
        made = entry if isinstance(entry, Tool) else Tool(entry, name=name)
        key = name or made.name
        if key in named:
            raise UsageError(f"{where}: two tools have the same name {key!r}")
        named[key] = made if made.name == key else _renamed(made, key)
    return named


def _renamed(entry: Tool, name: str) -> Tool:
    return Tool(
        entry.function,
        name=name,
        description=entry.description,
        repeatable=entry.repeatable,
        parameters=entry.parameters if entry.has_given_schema else None,
    )
