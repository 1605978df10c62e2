"""Release policies: when a chunk goes to the client (spec R7.5, R0).

``live``: at once. ``step``: a step's chunks when process_output_step has accepted it. ``run``: after
process_output_result. Held chunks leave as the messages then have them: a part edited meanwhile goes out as one
delta of its final text, an added one as a block of its own, a removed one not at all. On a tripwire, an error or a
cancellation what is held never leaves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from interlock.core.chunks import Chunk, Start, StepFinish, StepStart, TextDelta
from interlock.core.ledger import Ledger
from interlock.core.messages import Mark
from interlock.core.rewriting import Held, as_they_stand

Sink: TypeAlias = Callable[[Chunk], Awaitable[object] | None]
"""Takes a chunk for the client at once; what it returns is awaited before the next one: room in the buffer."""
ReleasePolicy: TypeAlias = Literal["live", "step", "run"]


class Delivery:
    """The way to the client.

    Args:
        sink: takes a chunk for the client; None when nobody reads.
        policy: when chunks go out.
        ledger: the messages, to release held chunks as they then stand.
        renewed: gives a held step-finish with its steps as they then stand.

    Attributes:
        released: pieces of text that have left, of the whole run, rejected attempts included.
        sent: marks of parts the client has, where that is not all of them (custom data goes past what is held).
        step_start_sent: whether the attempt's step-start has left.
    """

    __slots__ = (
        "_closed",
        "_held",
        "_ledger",
        "_sink",
        "_step_from",
        "policy",
        "released",
        "renewed",
        "sent",
        "started",
        "step_start_sent",
    )  # fmt: skip

    def __init__(
        self,
        sink: Sink | None,
        policy: ReleasePolicy,
        ledger: Ledger,
        renewed: Callable[[StepFinish], StepFinish],
    ) -> None:
        self.policy: ReleasePolicy = policy
        self.released: list[str] = []
        self._step_from = 0
        self._closed = False
        self.sent: set[Mark] = set()
        self.step_start_sent = False
        self.started = False
        self._sink = sink
        self._ledger = ledger
        self.renewed = renewed
        self._held: list[Held] | None = None

    async def start(self) -> None:
        """Send the run's start, once."""
        if not self.started:
            self.started = True
            await self._out(Start())

    def send(self, chunk: Chunk, mark: Mark | None = None) -> Awaitable[object] | None:
        """Send a chunk, or hold it as the policy says.

        Returns:
            What has to be awaited before the next chunk, if anything.
        """
        if type(chunk) is StepFinish and chunk.finish_reason == "retry" and not self.step_start_sent:
            return None  # the client has not seen the attempt that it withdraws
        if self._held is not None:
            return self._hold(chunk, mark)
        if type(chunk) is TextDelta:
            self.released.append(chunk.text)
        elif type(chunk) is StepStart:
            self.step_start_sent = True
        return None if self._sink is None else self._sink(chunk)

    def _hold(self, chunk: Chunk, mark: Mark | None) -> None:
        assert self._held is not None
        self._held.append((chunk, mark, self._ledger.step))

    async def send_now(self, chunk: Chunk) -> None:
        """Send a chunk past what is held."""
        await self.start()
        await self._out(chunk)

    async def send_last(self, chunk: Chunk) -> None:
        """Send the run's last chunk."""
        await self._out(chunk)

    async def _out(self, chunk: Chunk) -> None:
        held, self._held = self._held, None
        pending = self.send(chunk)
        self._held = held
        if pending is not None:
            await pending

    @property
    def holding(self) -> bool:
        """Whether chunks are being held."""
        return self._held is not None

    @property
    def step_released(self) -> str:
        """The text of the attempt under way that has left; that of accepted steps is in the message list."""
        return "" if self._closed else "".join(self.released[self._step_from :])

    def note_sent(self, mark: Mark | None) -> None:
        """A part the client has without having been held (custom data)."""
        if mark is not None and self.policy != "live":
            self.sent.add(mark)

    # ------------------------------------------------------------------------------------------------------- holding

    def open_step(self) -> None:
        """A new attempt at a step begins."""
        self._closed = False
        self._step_from = len(self.released)
        self.step_start_sent = False
        if self.policy != "live" and self._held is None:
            self._held = []

    def close_step(self) -> None:
        """The step is over: what is released from here on is none of its text."""
        self._closed = True

    async def accept_step(self) -> None:
        """process_output_step has accepted the step."""
        if self.policy == "step":
            await self._release()

    async def accept_run(self) -> None:
        """process_output_result has accepted the answer."""
        if self.policy == "run":
            await self._release()

    def drop_held(self) -> None:
        """Nothing that is held will ever leave."""
        if self._held is not None:
            self._held = None

    def drop_step(self, step: int) -> None:
        """Drop what is held of a step, and whatever was held after it began."""
        self._step_from = len(self.released)
        if self._held is None:
            return
        self._held = [held for held in self._held if held[2] < step]

    # ------------------------------------------------------------------------------------------------------ releasing

    async def _release(self) -> None:
        held, self._held = self._held or [], None
        self._ledger.sync()
        for chunk in as_they_stand(held, self._ledger.response_parts(), self.sent):
            await self._out(self.renewed(chunk) if isinstance(chunk, StepFinish) else chunk)
        self.sent.update(part.mark for part in self._ledger.response_parts() if part.mark is not None)
