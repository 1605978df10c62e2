"""ProviderHistoryCompat: a conversation that goes on with another provider."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.core.context import HookContext
from interlock.core.errors import UsageError
from interlock.core.processor import ErrorProcessor, InputProcessor
from interlock.core.shapes import described, is_sequence
from interlock.core.step import LLMRequest, LLMResponse, Retry
from interlock.processors.compat_rules import COMPAT_RULES, CompatRule
from interlock.processors.error_texts import texts_of


class ProviderHistoryCompat(InputProcessor, ErrorProcessor):
    """Makes a history that one provider wrote readable for another.

    In ``input_processors`` it rewrites the prompt of each call where the model needs that; nothing of it is stored. In
    ``error_processors`` it repairs the messages after a provider has refused them, once a step. One object may stand in
    both. Answers are stamped with their provider in the message's metadata, since a signature does not tell who signed.

    Args:
        additional_rules: more rules, applied after the built-in ones.

    Raises:
        UsageError: something that is no rule, or a rule that does nothing.
    """

    id = "provider-history-compat"
    name = "Provider History Compat"

    def __init__(self, *, additional_rules: Sequence[CompatRule] = ()) -> None:
        if not is_sequence(additional_rules):
            raise UsageError(
                f"ProviderHistoryCompat: additional_rules must be a list, not {described(additional_rules)}"
            )
        self.rules = [*COMPAT_RULES, *map(_checked, additional_rules)]

    def process_llm_request(self, request: LLMRequest, ctx: HookContext) -> LLMRequest | None:
        """The prompt as this model can read it (spec R4.3)."""
        prompt = request.prompt
        for rule in self.rules:
            if rule.apply_to_prompt is not None:
                changed = rule.apply_to_prompt(prompt, request.model, ctx.message_list)
                prompt = prompt if changed is None else changed
        return None if prompt is request.prompt else request.replace(prompt=prompt)

    def process_llm_response(self, response: LLMResponse, ctx: HookContext) -> None:
        """Stamp the answer with its provider; the first of a message's steps does."""
        answer = ctx.message_list.get.response.db()
        if answer and not response.from_cache:
            content = answer[-1].content
            stamp = {"provider": response.model.provider, "modelId": response.model.model_id}
            content.metadata = {**stamp, **(content.metadata or {})}

    def process_api_error(self, error: Exception, ctx: HookContext) -> Retry | None:
        """Repair what the provider refused, if a rule knows it and it has not been tried yet (spec R4.5)."""
        if ctx.retry_count > 0:
            return None
        texts = texts_of(error)
        for rule in self.rules:
            known = any(pattern.search(text) for pattern in rule.error_patterns for text in texts)
            if known and rule.fix is not None and rule.fix(ctx.messages):
                return Retry()
        return None


def _checked(rule: object) -> CompatRule:
    if not isinstance(rule, CompatRule):
        raise UsageError(f"ProviderHistoryCompat: a rule is a CompatRule, not {described(rule)}")
    if rule.fix is None and rule.apply_to_prompt is None:
        raise UsageError(
            f"ProviderHistoryCompat: rule {rule.name!r} does nothing; "
            "give it apply_to_prompt, or fix with error_patterns"
        )
    if rule.fix is not None and not rule.error_patterns:
        raise UsageError(
            f"ProviderHistoryCompat: rule {rule.name!r} has a fix but no error_patterns to know when"
        )
    return rule
