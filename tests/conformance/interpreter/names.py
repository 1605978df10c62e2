"""The scenarios' camelCase names and the library's snake_case ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HOOKS = {
    "processInput": "process_input",
    "processInputStep": "process_input_step",
    "processLLMRequest": "process_llm_request",
    "processLLMResponse": "process_llm_response",
    "processAPIError": "process_api_error",
    "processOutputStream": "process_output_stream",
    "processOutputStep": "process_output_step",
    "processToolResult": "process_tool_result",
    "processOutputResult": "process_output_result",
}


def snake(name: str) -> str:
    """``maxOutputTokens`` as ``max_output_tokens``."""
    return re.sub(r"([A-Z])", r"_\1", name).lower()


def camel(name: str) -> str:
    """``max_output_tokens`` as ``maxOutputTokens``."""
    return re.sub(r"_(\w)", lambda match: match.group(1).upper(), name)


def snake_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping with its own keys in snake_case; values stay."""
    return {snake(key): value for key, value in values.items()}


def camel_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping with its own keys in camelCase; values stay."""
    return {camel(key): value for key, value in values.items()}
