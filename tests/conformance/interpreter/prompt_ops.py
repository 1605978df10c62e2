"""Ops on the prompt of process_llm_request, and on cached responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from interlock import CachedResponse
from interlock.prompt import PromptMessage, PromptText
from interlock.wire import from_wire

if TYPE_CHECKING:
    from interpreter.ops import HookRun


def _prompt(run: HookRun) -> list[PromptMessage]:
    request = run.subject if run.request is None or isinstance(run.request, CachedResponse) else run.request
    return list(request.prompt)


def _return(run: HookRun, prompt: list[PromptMessage]) -> None:
    run.request = run.subject.replace(prompt=tuple(prompt))


def replace_prompt_text(run: HookRun, find: str, replace: str, mode: str | None = None) -> None:
    """Replace in the prompt's texts; in place that meets the frozen prompt."""
    if mode == "mutate":
        _mutate(run, find, replace)
    else:
        _return(run, [_replaced(message, find, replace) for message in _prompt(run)])


def _replaced(message: PromptMessage, find: str, replace: str) -> PromptMessage:
    if isinstance(message.content, str):
        return message.replace(content=message.content.replace(find, replace))
    return message.replace(
        content=tuple(
            part.replace(text=part.text.replace(find, replace)) if isinstance(part, PromptText) else part
            for part in message.content
        )
    )


def _mutate(run: HookRun, find: str, replace: str) -> None:
    for message in run.subject.prompt:
        if isinstance(message.content, str):
            if find in message.content:
                message.content = message.content.replace(find, replace)
            continue
        for part in message.content:
            if isinstance(part, PromptText) and find in part.text:
                part.text = part.text.replace(find, replace)  # type: ignore[misc]


def add_prompt_message(run: HookRun, role: Any, text: str, position: str = "end") -> None:
    """A new message at an end of the prompt."""
    message = PromptMessage(role=role, content=text if role == "system" else (PromptText(text=text),))
    prompt = _prompt(run)
    _return(run, [message, *prompt] if position == "start" else [*prompt, message])


def remove_prompt_message(run: HookRun, index: int) -> None:
    """The prompt without a message."""
    prompt = _prompt(run)
    if -len(prompt) <= index < len(prompt):
        del prompt[index]
    _return(run, prompt)


def cache_store(run: HookRun, key: str) -> None:
    """Keep the response, as a response cache does."""
    run.world.cache[key] = [chunk.replace() for chunk in run.subject.raw_chunks]


def respond_from_cache(run: HookRun, key: str) -> None:
    """Answer with what was kept, if it was."""
    if key in run.world.cache:
        run.request = CachedResponse(run.world.cache[key])


def respond_chunks(run: HookRun, chunks: list[Any]) -> None:
    """Answer with these chunks."""
    run.request = CachedResponse([from_wire(chunk) for chunk in chunks])


OPS: dict[str, Callable[..., None]] = {
    each.__name__: each
    for each in (
        replace_prompt_text,
        add_prompt_message,
        remove_prompt_message,
        cache_store,
        respond_from_cache,
        respond_chunks,
    )
}
