"""What a provider attached to a part, so that it goes back with the part: signatures, ids, details.

Filed under the provider's name, in the names the reference's rows have (``signature``, ``redactedData``,
``thoughtSignature``, ``reasoningEncryptedContent``, ``itemId``), so that threads go from one to the other.
Rules kept here:

1. No text hides in metadata, where no guard looks: details that quote the answer are left out (spec R0.3).
2. A signature vouches for a text. If the text was edited since, the signature is not sent back: providers
   refuse the pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple, TypeAlias, cast

from pydantic_ai.messages import ModelResponsePart, NativeToolCallPart, NativeToolReturnPart, ThinkingPart

from interlock.core.chunks import Metadata
from interlock.core.shapes import is_dict

Json: TypeAlias = dict[str, Any]

SIGNATURES: Final = {"openai": "reasoningEncryptedContent", "azure": "reasoningEncryptedContent"}
"""What the signature of a thought is called, by provider; ``signature`` for any other."""

REDACTED_THINKING: Final = "redacted_thinking"
"""The id pydantic-ai gives Anthropic's encrypted thinking."""

THOUGHT_SIGNATURE: Final = "thought_signature"
"""Where pydantic-ai keeps Gemini's signatures, which any part may carry."""

STORED_PARTS: Final = (ThinkingPart, NativeToolCallPart)
"""Parts whose id is kept. OpenAI answers the id of a text or call with its own copy, and a guard may have changed
ours."""

QUOTES: Final = frozenset(
    {"citations", "annotations", "logprobs", "raw_content", "refusal", "unmapped", "moderation"}
)
"""Details that quote the answer: citations become ``source`` chunks, the rest is not kept."""


class Origin(NamedTuple):
    """What a part brings back to its provider.

    Attributes:
        provider: pydantic-ai's name of the provider.
        id: the provider's id of the part.
        signature: over the part.
        details: pydantic-ai's ``provider_details``.
        system: whose keys verify the signature, where it is not the provider's name.
        kind: of a tool the provider runs itself, in pydantic-ai's words.
        result_details: likewise ``details``, of such a tool's result.
    """

    provider: str
    id: str | None = None
    signature: str | None = None
    details: Json | None = None
    system: str | None = None
    kind: Any = None
    result_details: Json | None = None


def part_metadata(part: ModelResponsePart, provider: str | None, system: str | None) -> Metadata | None:
    """The metadata of a part, once it is complete.

    Args:
        part: the part.
        provider: of the response, for parts that do not name theirs.
        system: the response's canonical system.

    Returns:
        None if there is nothing to send back.
    """
    name = part.provider_name or provider
    if not name:
        return None
    details = dict(part.provider_details or {})
    thought = details.pop(THOUGHT_SIGNATURE, None)
    signature: str | None = getattr(part, "signature", None)
    kept: Json = {}
    if signature and getattr(part, "id", None) == REDACTED_THINKING:
        kept["redactedData"] = signature
    elif signature:
        kept[SIGNATURES.get(name, "signature")] = signature
    if thought:
        kept["thoughtSignature"] = thought
    if isinstance(part, STORED_PARTS) and part.id and part.id != REDACTED_THINKING:
        kept["itemId"] = part.id
    details = plain({key: value for key, value in details.items() if key not in QUOTES})
    if details:
        kept["details"] = details
    if not kept:
        return None
    if system and system != name:
        kept["system"] = system
    text = _text(part)
    if text and (signature or thought):
        kept["textDigest"] = digest(text)
    return {name: kept}


def native_call_metadata(
    call: NativeToolCallPart, result: NativeToolReturnPart | None, provider: str | None, system: str | None
) -> Metadata | None:
    """The metadata of a call the provider ran itself, with what its result needs to go back."""
    metadata = part_metadata(call, provider, system) or {}
    name = call.provider_name or provider
    if not name:
        return None
    kept: Json = metadata.setdefault(name, {})
    if call.tool_kind:
        kept["toolKind"] = call.tool_kind
    details: Json = plain(result.provider_details or {}) if result is not None else {}
    if details:
        kept["resultDetails"] = details
    return metadata


def origin_of(
    options: Mapping[str, Any] | None, *, text: str | None = None, prefer: str = ""
) -> Origin | None:
    """What part metadata says, in pydantic-ai's terms; None if it says nothing.

    Args:
        options: metadata by provider.
        text: the part's text as it is now.
        prefer: the provider that is asked now, should several have left something.
    """
    entries = {name: value for name, value in (options or {}).items() if is_dict(value)}
    name = prefer if prefer in entries else next(iter(entries), None)
    if name is None:
        return None
    kept = entries[name]
    details: Json = dict(kept.get("details") or {})
    redacted = kept.get("redactedData")
    signature = redacted or kept.get("signature") or kept.get("reasoningEncryptedContent")
    thought = kept.get("thoughtSignature")
    part_id = REDACTED_THINKING if redacted else kept.get("itemId")
    if text is not None and kept.get("textDigest") not in (None, digest(text)):
        signature = thought = part_id = None
    if thought:
        details[THOUGHT_SIGNATURE] = thought
    return Origin(
        name,
        part_id,
        signature,
        details or None,
        kept.get("system"),
        kept.get("toolKind"),
        kept.get("resultDetails"),
    )


def digest(text: str) -> str:
    """A short fingerprint of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def plain(value: Any) -> Any:
    """The value as JSON knows it; anything else as its text, bytes left out."""
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value)
        return {str(key): plain(item) for key, item in fields.items() if not isinstance(item, bytes)}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [plain(item) for item in cast("Iterable[Any]", value)]
    return str(cast("object", value))


def _text(part: ModelResponsePart) -> str | None:
    content: Any = getattr(part, "content", None)
    return content if isinstance(content, str) else None
