"""What a hook's return means (spec R3.3, R3.4, R4): checked here, in one place for each form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interlock.core.errors import UsageError
from interlock.core.hooks import HOOKS
from interlock.core.message_list import MessageList, system_messages
from interlock.core.messages import Message
from interlock.core.shapes import is_sequence

if TYPE_CHECKING:
    from interlock.core.ledger import MessageSource
    from interlock.core.pipeline import HookCall
    from interlock.core.run import Run

_RETURNS = {hook.name: hook.returns for hook in HOOKS}


def wrong_return(call: HookCall, given: Any, why: str = "") -> UsageError:
    """The error for a return that means nothing."""
    text = f"processor {call.processor.id!r}: {call.hook} returned {_shown(given)}"
    return UsageError(
        f"{text}{why and f': {why}'}; it may return {_RETURNS.get(call.hook, 'StepChange')}, or None"
    )


def _shown(given: Any) -> str:
    if is_sequence(given) and given:
        return f"a {type(given).__name__} of {type(given[0]).__name__}"
    return f"a {type(given).__name__}"  # never the value: it may hold what a guard removes


def take_messages(
    run: Run,
    call: HookCall,
    returned: Any,
    shown: list[Message],
    source: MessageSource,
    *,
    empty_is_change: bool,
) -> bool:
    """Take a returned MessageList or list of messages.

    Args:
        shown: what the hook was shown.
        source: given to messages that are new.
        empty_is_change: an empty list removes all (input hooks), or changes nothing (output hooks).

    Returns:
        False if it is neither.

    Raises:
        UsageError: another MessageList, or a list of something else.
    """
    if isinstance(returned, MessageList):
        check_list(run, call, returned)
        return True
    if not is_sequence(returned):
        return False
    if not all(isinstance(item, Message) for item in returned):
        raise wrong_return(call, returned, "a list must hold messages")
    ids = [message.id for message in returned]
    if len(set(ids)) != len(ids):
        raise wrong_return(call, returned, "two messages have the same id")
    if returned or empty_is_change:
        run.ledger.reconcile(shown, _with_ids(run, returned), source)
    return True


def _with_ids(run: Run, messages: Any) -> list[Message]:
    return [message if message.id else message.replace(id=run.ledger.new_id()) for message in messages]


def check_list(run: Run, call: HookCall, returned: MessageList) -> None:
    """Raise unless the returned MessageList is the run's own (spec R3.4)."""
    if returned is not run.message_list:
        raise UsageError(
            f"processor {call.processor.id!r}: {call.hook} returned another MessageList; change ctx.message_list "
            "in place and return it, or return a list of messages"
        )


def replace_system(run: Run, call: HookCall, given: Any) -> None:
    """Put the returned system messages in the place of the untagged ones."""
    where = f"processor {call.processor.id!r}: {call.hook}"
    run.message_list.replace_system(system_messages(given, tag=None, where=where))
