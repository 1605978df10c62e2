"""Our settings, tools and schema as pydantic-ai's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.native_tools import AbstractNativeTool
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from interlock.core.errors import UsageError
from interlock.core.model import ModelRequest, ToolSpec
from interlock.models.pydantic_ai_history import build_history

Json: TypeAlias = dict[str, Any]

SETTINGS = {"max_output_tokens": "max_tokens", "timeout": "request_timeout"}
"""Settings we name otherwise. Our ``timeout`` is for the whole call, retries included."""
KNOWN = frozenset(ModelSettings.__annotations__)
STORE = "openai_store"
"""Off unless asked for: OpenAI answers an item it has stored with its own copy, whatever a guard made of it."""


class Call(NamedTuple):
    """What ``Model.request_stream`` takes, and one warning for each thing it could not express."""

    messages: list[ModelMessage]
    settings: ModelSettings
    parameters: ModelRequestParameters
    warnings: list[Json]


def build_call(
    model: Model[Any], request: ModelRequest, native_tools: Sequence[AbstractNativeTool] = ()
) -> Call:
    """The request in pydantic-ai's terms.

    Args:
        model: that will be asked.
        request: what to ask. Its ``provider_options`` of the model's provider are that provider's settings in
            pydantic-ai's names, with or without the provider in front.
        native_tools: tools the provider runs itself.

    Raises:
        UsageError: a tool_choice there is no word for, or a file that cannot be read.
    """
    warnings: list[Json] = []
    parameters = ModelRequestParameters(
        function_tools=[_tool(spec) for spec in request.tools],
        native_tools=list(native_tools),
        **_output(model, request.structured_output),
    )
    settings = _settings(model, request, warnings)
    history = build_history(request.prompt, model.system, warnings)
    messages = model.prepare_messages(history, parameters)
    return Call(messages, settings, parameters, warnings)


def _settings(model: Model[Any], request: ModelRequest, warnings: list[Json]) -> ModelSettings:
    settings: Json = {"max_retries": int(request.settings.get("max_retries") or 0)}
    for name, value in request.settings.items():
        ours = SETTINGS.get(name, name)
        if value is None or name == "max_retries":
            continue
        if ours not in KNOWN or ours in model.unsupported_settings:
            warnings.append({"type": "unsupported-setting", "setting": name})
        else:
            settings[ours] = value
    if request.tools and request.tool_choice not in (None, "auto"):
        settings["tool_choice"] = _tool_choice(request.tool_choice)
    if "OpenAIResponses" in type(model).__name__ and STORE not in (model.settings or {}):
        settings[STORE] = False
    settings.update(_own(request.provider_options, model.system))
    if "max_retries" in model.unsupported_settings:
        del settings["max_retries"]
    return cast("ModelSettings", settings)


def _own(options: Mapping[str, Any], provider: str) -> Json:
    given: Mapping[str, Any] = options.get(provider) or {}
    return {_own_name(name, value, provider): value for name, value in given.items()}


def _own_name(name: str, value: Any, provider: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    prefix = f"{provider.replace('-', '_')}_"
    general = snake in KNOWN and not isinstance(value, Mapping)
    return snake if general or snake.startswith(prefix) or snake == "extra_body" else prefix + snake


def _tool(spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(
        name=spec.name, parameters_json_schema=spec.parameters, description=spec.description
    )


def _tool_choice(choice: Any) -> Any:
    match choice:
        case "required" | "none":
            return choice
        case {"type": "tool", "toolName": str(name)}:
            return [name]
        case _:
            raise UsageError(
                f"tool_choice {choice!r}: write 'auto', 'required', 'none' "
                "or {'type': 'tool', 'toolName': name}"
            )


def _output(model: Model[Any], schema: Any) -> Json:
    if schema is None:
        return {}
    wanted = OutputObjectDefinition(schema, name=_schema_name(schema), description=schema.get("description"))
    mode = "native" if has_native_schema(model) else "prompted"
    return {"output_mode": mode, "output_object": wanted}


def has_native_schema(model: Model[Any]) -> bool:
    """Whether the provider itself holds answers to a JSON schema; else they are asked for it in words."""
    return bool(model.profile.get("supports_json_schema_output", False))


def _schema_name(schema: Mapping[str, Any]) -> str:
    return re.sub(r"[^\w-]", "_", str(schema.get("title") or "answer"), flags=re.ASCII)[:64]
