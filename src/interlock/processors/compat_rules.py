"""What one provider wrote into a history and another refuses: the built-in rules of ProviderHistoryCompat.

A rule either changes the prompt of a call, before it is made, or repairs the messages after a provider has refused
them. Facts about providers are from their public documentation and error messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from interlock.core.message_list import MessageList
from interlock.core.messages import Message, Part, ReasoningPart, TextPart, ToolInvocationPart
from interlock.core.model import (
    LanguageModel,
    Prompt,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptText,
    PromptToolCall,
    PromptToolResult,
)
from interlock.core.record import FrozenRecord, Metadata
from interlock.core.shapes import is_dict

ApplyToPrompt: TypeAlias = Callable[[Prompt, LanguageModel, MessageList], Prompt | None]
Fix: TypeAlias = Callable[[Sequence[Message]], bool]


class CompatRule(FrozenRecord, frozen=True, kw_only=True):
    """One incompatibility between providers, and what to do about it.

    Attributes:
        name: for logs and errors.
        error_patterns: what a refusal says, in its message or body; with ``fix``.
        fix: repairs the live messages in place; returns whether it changed any, and the call is then made again.
        apply_to_prompt: gets the prompt, the model it is for and the message list it was built from; returns the prompt
            to send in this one call, or None for no change.
    """

    name: str
    error_patterns: tuple[re.Pattern[str], ...] = ()
    fix: Fix | None = None
    apply_to_prompt: ApplyToPrompt | None = None


# ---------------------------------------------------------------------------------------------------- whose model it is


def _names(model: LanguageModel, *words: str) -> bool:
    """Whether provider or model id tell of one of these."""
    known = f"{model.provider} {model.model_id}".lower()
    return any(word in known for word in words)


def _is_anthropic(model: LanguageModel) -> bool:
    return _names(model, "anthropic", "claude")


def _family(provider: str) -> str:
    """``anthropic.messages`` and ``anthropic`` are one provider."""
    return provider.partition(".")[0].lower()


# ------------------------------------------------------------------------------------------------ prompt rewriting


def _filtered(prompt: Prompt, keep: Callable[[PromptPart], bool]) -> Prompt | None:
    """The prompt without the assistant's parts that are not kept; an answer without any is left out. None: all are."""
    changed = False
    messages: list[PromptMessage] = []
    for message in prompt:
        if message.role != "assistant" or isinstance(message.content, str):
            messages.append(message)
            continue
        content = tuple(part for part in message.content if keep(part))
        if len(content) == len(message.content):
            messages.append(message)
            continue
        changed = True
        if content:
            messages.append(message.replace(content=content))
    return tuple(messages) if changed else None


def _has_key(options: Metadata | None, key: str) -> bool:
    return options is not None and key in options


def _signature(options: Metadata | None) -> str | None:
    """The signature a thinking block was signed with; encrypted blocks have their data instead."""
    own = (options or {}).get("anthropic")
    if not is_dict(own):
        return None
    found: Any = own.get("signature") or own.get("redactedData")
    return found if isinstance(found, str) else None


def _strip_foreign_provider_tools(prompt: Prompt, model: LanguageModel, _: MessageList) -> Prompt | None:
    """Calls a provider ran itself mean nothing to another one: the call goes, and its result with it."""
    family = _family(model.provider)
    foreign = {
        part.tool_call_id
        for message in prompt
        if not isinstance(message.content, str)
        for part in message.content
        if isinstance(part, PromptToolCall)
        and part.provider_executed
        and part.provider_options
        and not any(_family(key) == family for key in part.provider_options)
    }
    if not foreign:
        return None
    return _filtered(
        prompt,
        lambda part: (
            not (isinstance(part, PromptToolCall | PromptToolResult) and part.tool_call_id in foreign)
        ),
    )


def _strip_all_reasoning(prompt: Prompt, model: LanguageModel, _: MessageList) -> Prompt | None:
    if not _names(model, "cerebras"):
        return None
    return _filtered(prompt, lambda part: not isinstance(part, PromptReasoning))


def _strip_empty_signed(prompt: Prompt, model: LanguageModel, _: MessageList) -> Prompt | None:
    """A signature over a text that is lost: the provider would find that they do not belong together."""
    if not _is_anthropic(model):
        return None

    def lost(part: PromptPart) -> bool:
        if not isinstance(part, PromptReasoning) or part.text or part.redacted is not None:
            return False
        own: Any = (part.provider_options or {}).get("anthropic")
        return is_dict(own) and bool(own.get("signature")) and not own.get("redactedData")

    return _filtered(prompt, lambda part: not lost(part))


def _strip_foreign_reasoning(prompt: Prompt, model: LanguageModel, _: MessageList) -> Prompt | None:
    if not _is_anthropic(model):
        return None
    return _filtered(
        prompt,
        lambda part: not isinstance(part, PromptReasoning) or _has_key(part.provider_options, "anthropic"),
    )


def _strip_foreign_signed(prompt: Prompt, model: LanguageModel, messages: MessageList) -> Prompt | None:
    """Several providers speak Anthropic's protocol and sign under its name; none can check another's signature."""
    family = _family(model.provider)
    foreign: set[str] = set()
    for message in messages.get.all.db():
        stamp = (message.content.metadata or {}).get("provider")
        if isinstance(stamp, str) and _family(stamp) != family:
            foreign.update(filter(None, (_part_signature(part) for part in message.content.parts)))
    if not foreign:
        return None
    return _filtered(
        prompt,
        lambda part: (
            not isinstance(part, PromptReasoning)
            or (_signature(part.provider_options) or part.redacted) not in foreign
        ),
    )


def _part_signature(part: Part) -> str | None:
    if not isinstance(part, ReasoningPart):
        return None
    return _signature(part.provider_metadata) or part.redacted


_REMINDER = re.compile(r"(</?)system-reminder\b")


def _rename_reminders(prompt: Prompt, model: LanguageModel, _: MessageList) -> Prompt | None:
    """Azure's filter takes these wrappers for an attack on the prompt."""
    if _family(model.provider) not in ("azure", "azure-openai"):
        return None
    renamed = tuple(_renamed(message) for message in prompt)
    return None if renamed == prompt else renamed


def _renamed(message: PromptMessage) -> PromptMessage:
    if message.role not in ("system", "user"):
        return message
    if isinstance(message.content, str):
        return message.replace(content=_REMINDER.sub(r"\1memory-context", message.content))
    content = tuple(
        part.replace(text=_REMINDER.sub(r"\1memory-context", part.text))
        if isinstance(part, PromptText)
        else part
        for part in message.content
    )
    return message.replace(content=content)


# -------------------------------------------------------------------------------------------- repairs after a refusal


def _parts(messages: Sequence[Message]) -> Iterator[Part]:
    for message in messages:
        yield from message.content.parts


def _fix_tool_ids(messages: Sequence[Message]) -> bool:
    """Ids of letters, digits, ``_`` and ``-`` only; calls that had different ids keep different ones."""
    calls = [part for part in _parts(messages) if isinstance(part, ToolInvocationPart)]
    taken = {part.tool_call_id for part in calls}
    renamed: dict[str, str] = {}
    for part in calls:
        old = part.tool_call_id
        if re.fullmatch(r"[a-zA-Z0-9_-]+", old):
            continue
        if old not in renamed:
            plain = new = re.sub(r"[^a-zA-Z0-9_-]", "_", old) or "call"
            count = 1
            while new in taken:
                count += 1
                new = f"{plain}_{count}"
            taken.add(new)
            renamed[old] = new
        part.tool_call_id = renamed[old]
    return bool(renamed)


_RESPONSES = ("openai", "azure")
_ITEM_KEYS = ("itemId", "resultItemId")


def _fix_orphan_items(messages: Sequence[Message]) -> bool:
    """Messages that refer to a stored item whose reasoning is gone are sent by value from here on."""
    changed = False
    before: Message | None = None
    for message in messages:
        if message.role == "assistant" and not _has_reasoning(message) and not _thinks_for_next(before):
            for part in message.content.parts:
                changed = _drop_item(part) or changed
        before = message
    return changed


def _has_reasoning(message: Message) -> bool:
    return any(isinstance(part, ReasoningPart) for part in message.content.parts)


def _thinks_for_next(message: Message | None) -> bool:
    """Whether it holds nothing but the reasoning of the row behind it: old rows split an answer so."""
    if message is None or message.role != "assistant" or not _has_reasoning(message):
        return False
    return not any(isinstance(part, TextPart) and part.text for part in message.content.parts)


def _drop_item(part: Part) -> bool:
    metadata = dict(part.provider_metadata or {})
    for provider in _RESPONSES:
        own: Any = metadata.get(provider)
        if is_dict(own) and any(key in own for key in _ITEM_KEYS):
            metadata[provider] = {key: value for key, value in own.items() if key not in _ITEM_KEYS}
    if metadata == (part.provider_metadata or {}):
        return False
    part.provider_metadata = metadata
    return True


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.DOTALL)


COMPAT_RULES: tuple[CompatRule, ...] = (
    CompatRule(name="strip-foreign-provider-executed-tools", apply_to_prompt=_strip_foreign_provider_tools),
    CompatRule(
        name="anthropic-tool-id-format",
        error_patterns=(_pattern(r"tool_use(\.|_)id.{0,80}pattern"), _pattern(r"tool_call_id.{0,80}invalid")),
        fix=_fix_tool_ids,
    ),
    CompatRule(name="cerebras-strip-reasoning-content", apply_to_prompt=_strip_all_reasoning),
    CompatRule(name="anthropic-strip-empty-signed-reasoning-content", apply_to_prompt=_strip_empty_signed),
    CompatRule(name="anthropic-strip-foreign-reasoning-content", apply_to_prompt=_strip_foreign_reasoning),
    CompatRule(name="anthropic-strip-foreign-signed-reasoning", apply_to_prompt=_strip_foreign_signed),
    CompatRule(name="azure-system-reminder-transform", apply_to_prompt=_rename_reminders),
    CompatRule(
        name="openai-orphan-item-id",
        error_patterns=(_pattern(r"of type 'message' was provided without its required 'reasoning' item"),),
        fix=_fix_orphan_items,
    ),
)
"""The built-in rules, in order."""
