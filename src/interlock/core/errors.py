"""What can go wrong, sorted by whose fault it is.

::

    InterlockError
    ├── UsageError      you: a bad argument, a processor in the wrong list, a hook's wrong return
    ├── ModelError      the provider: status, code, retryable, retry_after, body
    └── StorageError    the database
    TripWire            not an error: a processor stopped the run (``ctx.abort``)

An exception raised by *your* hook or tool is never wrapped; it gets a note (PEP 678) naming processor and hook.
"""

from __future__ import annotations

from typing import Any


class InterlockError(Exception):
    """Base class of every error this library raises itself."""


class UsageError(InterlockError, ValueError):
    """The library was used in a way it cannot work; the text says what was given and what to write instead."""


class StorageError(InterlockError):
    """The database failed. The answer that was already produced is on ``result``, when there is one."""

    result: Any = None


class ModelError(InterlockError):
    """The provider refused, failed or answered something unreadable (spec R4.5, R5.4).

    Args:
        message: what the provider said.
        status: HTTP status, where there was one.
        code: the provider's own error code or type.
        retryable: whether the same request may succeed later.
        retry_after: seconds the provider asks to wait.
        body: the response body as it came.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        body: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.retryable = retryable
        self.retry_after = retry_after
        self.body = body

    def __str__(self) -> str:
        labels = [str(label) for label in (self.status, self.code) if label is not None]
        return f"{self.message} ({', '.join(labels)})" if labels else self.message


class TripWire(BaseException):
    """A processor stopped the run. Raised by ``ctx.abort`` and caught in one place, the loop (spec R5.1).

    It is a BaseException because stopping is not an error: a guard's broad ``except Exception`` must not swallow it.

    Attributes:
        reason: in words.
        processor_id: the processor that aborted.
        retry: whether the processor asked for another try of the step.
        metadata: whatever the processor attached.
    """

    def __init__(self, reason: str, *, processor_id: str, retry: bool = False, metadata: Any = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.processor_id = processor_id
        self.retry = retry
        self.metadata = metadata

    def __reduce__(self) -> tuple[Any, ...]:
        return (_trip_wire, (self.reason, self.processor_id, self.retry, self.metadata))


def _trip_wire(reason: str, processor_id: str, retry: bool, metadata: Any) -> TripWire:
    return TripWire(reason, processor_id=processor_id, retry=retry, metadata=metadata)


class SavedAnyway(BaseException):  # no error: a recorder's word to the runtime
    """A cancellation that came while a turn was being saved, and so too late: the turn is saved (spec R8.2).

    Args:
        cancellation: what whoever waits for the run has to get.
    """

    def __init__(self, cancellation: BaseException) -> None:
        super().__init__("cancelled while the turn was being saved")
        self.cancellation = cancellation


class TripWireError(InterlockError):
    """What ``result.raise_for_tripwire()`` raises: a blocked result as an ordinary exception (spec R5.2)."""

    def __init__(self, reason: str, *, processor_id: str, metadata: Any = None) -> None:
        super().__init__(f"blocked by processor {processor_id!r}: {reason}")
        self.reason = reason
        self.processor_id = processor_id
        self.metadata = metadata

    def __reduce__(self) -> tuple[Any, ...]:
        return (_trip_wire_error, (self.reason, self.processor_id, self.metadata))


def _trip_wire_error(reason: str, processor_id: str, metadata: Any) -> TripWireError:
    return TripWireError(reason, processor_id=processor_id, metadata=metadata)
