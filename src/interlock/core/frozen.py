"""JSON values that cannot be changed in place (spec R4.3: the prompt is frozen)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NoReturn

from interlock.core.model import Prompt, PromptMessage, PromptPart, PromptToolCall, PromptToolResult
from interlock.core.shapes import is_dict, is_sequence


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise TypeError(
        "the prompt is frozen: return request.replace(prompt=...) or request.map_text(...) instead"
    )


class FrozenDict(dict[str, Any]):
    """A dict that refuses changes; a copy of it does not."""

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: deepcopy(value, memo) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, (list(self.items()),))

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse  # type: ignore[assignment]


class FrozenList(list[Any]):
    """A list that refuses changes; a copy of it does not."""

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [deepcopy(value, memo) for value in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (tuple(self),))

    __setitem__ = __delitem__ = append = extend = insert = pop = remove = clear = sort = reverse = _refuse  # type: ignore[assignment]
    __iadd__ = __imul__ = _refuse  # type: ignore[assignment]


def frozen(value: Any) -> Any:
    """A JSON value as a frozen copy."""
    if is_dict(value):
        return FrozenDict({key: frozen(inner) for key, inner in value.items()})
    if is_sequence(value):
        return FrozenList([frozen(inner) for inner in value])
    return value


def frozen_prompt(prompt: Prompt) -> Prompt:
    """A prompt whose tool arguments, results and options are frozen too."""
    return tuple(_frozen_message(message) for message in prompt)


def _frozen_message(message: PromptMessage) -> PromptMessage:
    if isinstance(message.content, str):
        return message
    return message.replace(content=tuple(_frozen_part(part) for part in message.content))


def _frozen_part(part: PromptPart) -> PromptPart:
    fields: dict[str, Any] = {}
    if isinstance(part, PromptToolCall):
        fields["input"] = frozen(part.input)
    elif isinstance(part, PromptToolResult):
        fields["value"] = frozen(part.value)
    if part.provider_options is not None:
        fields["provider_options"] = frozen(part.provider_options)
    return part.replace(**fields) if fields else part
