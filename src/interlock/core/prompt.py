"""From the message list to the provider-neutral prompt, always well formed (spec R3.8).

Every tool call has exactly one result after it, none is orphaned, and no prompt begins with an assistant message,
whatever processors or storage did. Stored history is not rewritten for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from interlock.core.jsonable import jsonable
from interlock.core.messages import (
    FilePart,
    Message,
    Part,
    ReasoningPart,
    StepStartPart,
    SystemMessage,
    TextPart,
    ToolInvocationPart,
)
from interlock.core.model import (
    Prompt,
    PromptFile,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptText,
    PromptToolCall,
    PromptToolResult,
)

# Some providers refuse a conversation that opens with the assistant.
OPENING = PromptMessage(role="user", content=(PromptText(text="."),))


def build_prompt(system: Iterable[SystemMessage], messages: Iterable[Message]) -> Prompt:
    """The prompt of these system messages and this conversation."""
    head = [PromptMessage(role="system", content=message.content) for message in system]
    return well_formed([*head, *build_messages(messages)])


def build_messages(messages: Iterable[Message]) -> list[PromptMessage]:
    """The conversation as prompt messages, each step of an answer followed by its tools' results."""
    built: list[PromptMessage] = []
    for message in messages:
        parts = message.content.parts or _fallback(message)
        if message.role == "assistant":
            for step in _split_steps(parts):
                built.extend(_assistant_step(step))
        elif message.role == "system":
            built.append(PromptMessage(role="system", content=message.text))
        elif content := tuple(p for part in parts for p in _user_part(part)):
            built.append(PromptMessage(role="user", content=content))
    return built


def _fallback(message: Message) -> list[Part]:
    return [TextPart(text=message.content.content)] if message.content.content else []


def _split_steps(parts: Iterable[Part]) -> list[list[Part]]:
    """The parts of each step. Old rows lack borders: text after an own tool's result opens a step too."""
    steps: list[list[Part]] = [[]]
    answered = False
    for part in parts:
        if isinstance(part, StepStartPart) or (
            answered and isinstance(part, TextPart) and part.type == "text"
        ):
            steps.append([])
            answered = False
        if isinstance(part, ToolInvocationPart) and part.state in ("result", "output-error"):
            answered = answered or not part.provider_executed
        steps[-1].append(part)
    return steps


def _assistant_step(parts: Iterable[Part]) -> list[PromptMessage]:
    content: list[PromptPart] = []
    results: list[PromptPart] = []
    for part in parts:
        if isinstance(part, ToolInvocationPart):
            if part.state not in ("result", "output-error"):
                continue  # an open call is left out: no provider accepts one
            content.append(_call(part))
            (content if part.provider_executed else results).append(_result(part))
        else:
            content.extend(_answer_part(part))
    made = [PromptMessage(role="assistant", content=tuple(content))] if content else []
    return [*made, PromptMessage(role="tool", content=tuple(results))] if results else made


def _call(part: ToolInvocationPart) -> PromptToolCall:
    return PromptToolCall(
        tool_call_id=part.tool_call_id,
        tool_name=part.tool_name,
        input={} if part.args is None else part.args,
        provider_executed=part.provider_executed,
        provider_options=part.provider_metadata,
    )


def _result(part: ToolInvocationPart) -> PromptToolResult:
    if part.state == "output-error":
        return PromptToolResult(
            tool_call_id=part.tool_call_id,
            tool_name=part.tool_name,
            kind="error-text",
            value=part.error_text or "error",
        )
    is_text = isinstance(part.result, str)
    return PromptToolResult(
        tool_call_id=part.tool_call_id,
        tool_name=part.tool_name,
        kind="text" if is_text else "json",
        value=part.result if is_text else jsonable(part.result),
    )


def _answer_part(part: Part) -> Iterable[PromptPart]:
    if isinstance(part, ReasoningPart) and part.type == "reasoning":
        return (
            PromptReasoning(text=part.text, redacted=part.redacted, provider_options=part.provider_metadata),
        )
    return _user_part(part)


def _user_part(part: Part) -> Iterable[PromptPart]:
    if isinstance(part, TextPart) and part.type == "text":
        return (PromptText(text=part.text, provider_options=part.provider_metadata),) if part.text else ()
    if isinstance(part, FilePart) and part.type == "file":
        return (
            PromptFile(
                media_type=part.mime_type,
                data=part.data,
                filename=part.filename,
                provider_options=part.provider_metadata,
            ),
        )
    return ()  # citations, custom data, retyped and unknown parts are not for the model


# ------------------------------------------------------------------------------------------------------------ repair


def well_formed(prompt: Sequence[PromptMessage]) -> Prompt:
    """The prompt with calls and results paired, empty messages dropped and an opening where one is needed."""
    repaired: list[PromptMessage] = []
    for index, message in enumerate(prompt):
        if message.role == "tool":
            continue  # results are put after the calls they answer
        if message.role == "assistant" and not isinstance(message.content, str):
            repaired.extend(_paired(message, prompt[index + 1 :]))
        elif (kept := _without_calls(message)).content:
            repaired.append(kept)
    first = next((i for i, message in enumerate(repaired) if message.role != "system"), None)
    if first is not None and repaired[first].role == "assistant":
        repaired.insert(first, OPENING)
    return tuple(repaired)


def _without_calls(message: PromptMessage) -> PromptMessage:
    """A message of any other role: calls and results have no place in it."""
    if isinstance(message.content, str):
        return message
    kept = tuple(p for p in message.content if not isinstance(p, PromptToolCall | PromptToolResult))
    return message if kept == message.content else message.replace(content=kept)


def _paired(message: PromptMessage, following: Sequence[PromptMessage]) -> list[PromptMessage]:
    assert not isinstance(message.content, str)
    inside = {p.tool_call_id: p for p in reversed(message.content) if isinstance(p, PromptToolResult)}
    kept: list[PromptPart] = []
    results: list[PromptPart] = []
    called: set[str] = set()
    for part in message.content:
        if isinstance(part, PromptToolResult):
            continue
        if not isinstance(part, PromptToolCall):
            kept.append(part)
            continue
        if part.tool_call_id in called:
            continue
        if part.tool_call_id in inside:
            kept += [part, inside[part.tool_call_id]]
        elif answer := _answer(part.tool_call_id, following):
            kept.append(part)
            results.append(answer)
        called.add(part.tool_call_id)
    if not kept:
        return []
    made = [message if tuple(kept) == message.content else message.replace(content=tuple(kept))]
    return [*made, PromptMessage(role="tool", content=tuple(results))] if results else made


def _answer(tool_call_id: str, following: Sequence[PromptMessage]) -> PromptToolResult | None:
    """The first result for a call, looked for until a later message makes a call with the same id."""
    for message in following:
        if isinstance(message.content, str):
            continue
        for part in message.content:
            if isinstance(part, PromptToolResult) and part.tool_call_id == tool_call_id:
                return part
            if isinstance(part, PromptToolCall) and part.tool_call_id == tool_call_id:
                return None
    return None


def prompt_text(prompt: Prompt) -> str:
    """Everything readable in a prompt, one line a part: for tests and logs."""
    lines: list[str] = []
    for message in prompt:
        if isinstance(message.content, str):
            lines.append(message.content)
            continue
        for part in message.content:
            match part:
                case PromptText() | PromptReasoning():
                    lines.append(part.text)
                case PromptToolCall():
                    lines.append(f"{part.tool_name}({part.input!r})")
                case PromptToolResult():
                    lines.append(str(part.value))
                case PromptFile():
                    lines.append(f"[{part.media_type}]")
    return "\n".join(lines)
