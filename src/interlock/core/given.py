"""What a caller may give as input (spec R11): a string, strings, role/content dicts, stored or UI messages."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from interlock.core.errors import UsageError
from interlock.core.messages import (
    Content,
    DataPart,
    FilePart,
    Message,
    OtherPart,
    Part,
    ReasoningPart,
    Role,
    SourcePart,
    StepStartPart,
    TextPart,
    ToolInvocationPart,
)
from interlock.core.shapes import described, is_list, is_mapping
from interlock.core.stored import message_from_row, part_from_row

ROLES: tuple[str, ...] = get_args(Role)


def given_messages(given: Any, *, new_id: Callable[[], str]) -> list[Message]:
    """The messages a caller meant.

    Args:
        given: a string, a message, or a list of either; messages as Message objects, role/content dicts (a string
            or parts), stored rows (``content.format`` 2) or UI messages (``parts``).
        new_id: makes the ids of those without one.

    Returns:
        Messages, system ones among them. Tool results are joined to the calls they answer.

    Raises:
        UsageError: empty text, an unknown role or part, or nothing at all; the text says what was given.
    """
    single = isinstance(given, str | Message) or is_mapping(given)
    items: list[Any] = [given] if single else _listed(given)
    if not items:
        raise UsageError("the input is empty: give a string or at least one message")
    messages: list[Message] = []
    for item in items:
        if is_mapping(item) and item.get("role") == "tool":
            _join_results(messages, item)
        else:
            messages.append(_message(item, new_id))
    return messages


def refuse_nothing(messages: Iterable[Message]) -> None:
    """Raise unless there is anything but system messages: a model needs something to answer.

    Raises:
        UsageError: nothing to send.
    """
    if all(message.role == "system" for message in messages):
        raise UsageError(
            "the input has system messages only: there is nothing to answer; give a user message"
        )


def _listed(given: Any) -> list[Any]:
    if given is None or isinstance(given, bytes) or not isinstance(given, Iterable):
        raise UsageError(f"the input must be a string or a list of messages, not {type(given).__name__}")
    items: Iterable[Any] = given  # pyright: ignore[reportUnknownVariableType]
    return list(items)


def _message(item: Any, new_id: Callable[[], str]) -> Message:
    if isinstance(item, str):
        return _text_message(item, new_id)
    if isinstance(item, Message):
        return item if item.id else item.replace(id=new_id())
    if not is_mapping(item):
        raise UsageError(
            f"a message must be a string, a Message or a dict with role and content, not {described(item)}"
        )
    message = _from_mapping(item)
    if not message.id:
        message.id = new_id()
    return message


def _text_message(text: str, new_id: Callable[[], str]) -> Message:
    if not text:
        raise UsageError("the input is an empty string: there is nothing to send; give some text")
    return Message(id=new_id(), role="user", content=Content(parts=[TextPart(text=text)]))


def _from_mapping(item: Mapping[str, Any]) -> Message:
    role = item.get("role")
    if role not in ROLES:
        raise UsageError(f"unknown role {role!r} in a message; a role is one of {', '.join(ROLES)}")
    content = item.get("content")
    if is_mapping(content):
        message = message_from_row(item)
    elif is_list(item.get("parts")):
        message = _from_ui(item)
    elif isinstance(content, str):
        if not content:
            raise UsageError(f"a {role} message has an empty string as content; give some text")
        message = _plain(item, [TextPart(text=content)])
    elif is_list(content):
        message = _plain(item, [_core_part(part) for part in content])
    else:
        raise UsageError(
            f"a message's content must be a string or a list of parts, not {type(content).__name__}"
        )
    if (
        all(isinstance(p, TextPart) and not p.text for p in message.content.parts)
        and not message.content.content
    ):
        raise UsageError(f"a {role} message is empty: it has no parts, or empty text only")
    return message


def _plain(item: Mapping[str, Any], parts: list[Part]) -> Message:
    content: dict[str, Any] = {"format": 2, "parts": []}
    if item.get("metadata"):
        content["metadata"] = item["metadata"]
    message = message_from_row({**item, "content": content})
    message.content.parts = parts
    return message


def _core_part(part: Any) -> Part:
    """A part of a role/content message (the form prompts have)."""
    if isinstance(part, Part):
        return part
    if not is_mapping(part):
        raise UsageError(f"a content part must be a dict with a type, not {described(part)}")
    options = part.get("providerOptions") or part.get("providerMetadata")
    match part.get("type"):
        case "text" if isinstance(part.get("text"), str):
            return TextPart(text=part["text"], provider_metadata=options)
        case "reasoning" if isinstance(part.get("text"), str):
            return ReasoningPart(text=part["text"], provider_metadata=options)
        case "file" | "image":
            return _file_part(part, options)
        case "tool-call":
            return ToolInvocationPart(
                tool_call_id=_named(part, "toolCallId"),
                tool_name=_named(part, "toolName"),
                args=part.get("input", part.get("args")),
                provider_executed=part.get("providerExecuted"),
                provider_metadata=options,
            )
        case kind if isinstance(kind, str) and kind.startswith("data-"):
            return DataPart(type=kind, data=part.get("data"))
        case "tool-invocation" | "source" | "step-start":
            return part_from_row(part)
        case kind:
            raise UsageError(
                f"unknown part type {kind!r} in a message; a part is text, file, image, reasoning, tool-call, "
                "tool-result (in a tool message) or data-*"
            )


def _file_part(part: Mapping[str, Any], options: Any) -> FilePart:
    data = part.get("data", part.get("image", part.get("url")))
    if is_mapping(data) and isinstance(data.get("url"), str):
        data = data["url"]
    if isinstance(data, bytes | bytearray):
        data = b64encode(data).decode()
    if not isinstance(data, str) or not data:
        raise UsageError(
            f"a {part.get('type')} part needs data: bytes, base64 text, a data URL, a URL or a provider's file id"
        )
    media_type = (
        part.get("mediaType") or part.get("mimeType") or ("image/*" if part.get("type") == "image" else None)
    )
    if media_type is None:
        raise UsageError("a file part needs a mediaType, such as 'application/pdf'")
    return FilePart(mime_type=media_type, data=data, filename=part.get("filename"), provider_metadata=options)


def _from_ui(item: Mapping[str, Any]) -> Message:
    return _plain(item, [_ui_part(part) for part in item["parts"]])


def _ui_part(part: Any) -> Part:
    """A part of a UI message (the form chat clients keep)."""
    if not is_mapping(part) or not isinstance(part.get("type"), str):
        raise UsageError(f"a UI message's part must be an object with a type, not {described(part)}")
    kind: str = part["type"]
    if kind == "dynamic-tool" or (kind.startswith("tool-") and kind not in ("tool-invocation", "tool-call")):
        return _ui_tool_part(
            part, part.get("toolName") if kind == "dynamic-tool" else kind.removeprefix("tool-")
        )
    if kind == "reasoning" and isinstance(part.get("text"), str):
        return ReasoningPart(text=part["text"], provider_metadata=part.get("providerMetadata"))
    if kind == "file" and isinstance(part.get("url"), str):
        return FilePart(
            mime_type=part.get("mediaType") or "application/octet-stream",
            data=part["url"],
            filename=part.get("filename"),
        )
    if kind in ("source-url", "source-document"):
        fields = {str(k): v for k, v in part.items() if k not in ("type", "sourceId")}
        return SourcePart(
            source={"sourceType": kind.removeprefix("source-"), "id": part.get("sourceId"), **fields}
        )
    if kind == "step-start":
        return StepStartPart()
    known = part_from_row(part)
    if isinstance(known, OtherPart):
        raise UsageError(f"unknown part type {kind!r} in a UI message")
    return known


_UI_STATES = {
    "input-streaming": "partial-call",
    "input-available": "call",
    "output-available": "result",
    "output-error": "output-error",
}


def _ui_tool_part(part: Mapping[str, Any], name: Any) -> ToolInvocationPart:
    state: Any = _UI_STATES.get(str(part.get("state")), "call")
    return ToolInvocationPart(
        tool_call_id=_named(part, "toolCallId"),
        tool_name=str(name or ""),
        args=part.get("input"),
        state=state,
        result=part.get("output"),
        error_text=part.get("errorText"),
        provider_executed=part.get("providerExecuted"),
        provider_metadata=part.get("callProviderMetadata"),
    )


def _named(part: Mapping[str, Any], key: str) -> str:
    value = part.get(key)
    if not isinstance(value, str) or not value:
        raise UsageError(f"a {part.get('type')} part needs a {key}")
    return value


def _join_results(messages: list[Message], item: Mapping[str, Any]) -> None:
    """Put a tool message's results where the calls are."""
    content = item.get("content")
    if not is_list(content) or not content:
        raise UsageError("a tool message's content must be a list of tool-result parts")
    for part in content:
        if not is_mapping(part) or part.get("type") != "tool-result":
            raise UsageError(f"a tool message holds tool-result parts only, not {described(part)}")
        call = _open_call(messages, str(part.get("toolCallId") or ""))
        if call is None:
            raise UsageError(f"the tool result for {part.get('toolCallId')!r} has no tool call before it")
        output = part.get("output", part.get("result"))
        kind = output.get("type") if is_mapping(output) else None
        value = output.get("value") if is_mapping(output) and kind in _OUTPUT_KINDS else output
        if kind in ("error-text", "error-json"):
            call.state, call.error_text = "output-error", str(value)
        else:
            call.state, call.result = "result", value


_OUTPUT_KINDS = ("text", "json", "error-text", "error-json", "content")


def _open_call(messages: list[Message], tool_call_id: str) -> ToolInvocationPart | None:
    for message in reversed(messages):
        for part in message.content.parts:
            if (
                isinstance(part, ToolInvocationPart)
                and part.tool_call_id == tool_call_id
                and part.state == "call"
            ):
                return part
    return None
