"""Ids of tool calls as a provider takes them: a thread may bring another's, which many refuse."""

from __future__ import annotations

import re
from hashlib import blake2b

ANYWHERE = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""What every provider takes but Mistral: Anthropic's characters, OpenAI's length."""

BY_PROVIDER = {
    "openai": re.compile(r".{1,40}", re.DOTALL),  # vLLM's ids are longer
    "mistral": re.compile(r"[A-Za-z0-9]{9}"),
}
"""What OpenAI-compatible providers take that are choosy; ids of the others go back to them as they came."""


def tool_id(given: str, accepted: re.Pattern[str] = ANYWHERE) -> str:
    """The call's id in a form the provider takes; the same in, the same out.

    Args:
        given: the id, of whatever provider.
        accepted: what is left as it is.

    >>> tool_id("call_1")
    'call_1'
    >>> len(tool_id("functions.weather:0", BY_PROVIDER["mistral"]))
    9
    """
    if accepted.fullmatch(given):
        return given
    digest = blake2b(given.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    made = f"call_{digest}"
    return made if accepted.fullmatch(made) else digest[:9]


def tool_id_for(provider: str, given: str) -> str:
    """The id as this OpenAI-compatible provider takes it."""
    accepted = BY_PROVIDER.get(provider)
    return given if accepted is None else tool_id(given, accepted)
