"""A choice of the completion: its texts and calls, from its first delta to its finish reason."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.guarding import Guard, open_tracks
from interlock.release.channels import Channel
from interlock.sse.arguments import guarded_arguments
from interlock.sse.calls import Call, Calls, Slot
from interlock.sse.shapes import Unreadable
from interlock.sse.texts import Found, Passage, Path, guarded_whole


class Choice:
    """One choice through the guards.

    Attributes:
        index: its number.
        calls: its tool calls.
    """

    __slots__ = ("_finished", "_guards", "_texts", "calls", "index")

    def __init__(self, index: int, guards: Sequence[Guard]) -> None:
        self.index = index
        self.calls = Calls()
        self._guards = guards
        self._texts: dict[Path, Passage] = {}
        self._finished = False

    def guards_of(self, channel: Channel) -> list[Guard]:
        """The guards that look at a channel."""
        return [guard for guard in self._guards if channel in guard.channels]

    async def push(self, found: Found) -> None:
        """The next piece of one of its texts.

        Raises:
            Unreadable: the choice is finished: it cannot be judged together with what left.
            TripWireError: a guard blocks.
        """
        channel, path, piece = found
        guards = self.guards_of(channel)
        if self._finished and piece.text and guards:
            raise Unreadable("text came behind the finish reason")
        if channel == "text" and piece.text:
            await self._finish_units_of_reasoning()
        if path not in self._texts:
            self._texts[path] = Passage(channel, open_tracks(guards, [], channel))
        await self._texts[path].push(piece)

    async def _finish_units_of_reasoning(self) -> None:
        for text in self._texts.values():
            if text.channel == "reasoning":
                await text.finish_units()

    def keep_arguments(self, slot: Slot) -> bool:
        """Take a call's arguments out of a delta. Returns whether there are some.

        Raises:
            Unreadable: the choice is finished.
        """
        if not slot.filled:
            return False
        if self._finished:
            raise Unreadable("arguments came behind the finish reason")
        slot.take()
        return True

    async def finish(self) -> None:
        """Its texts are complete.

        Raises:
            TripWireError: a guard blocks.
        """
        if not self._finished:
            self._finished = True
            for text in self._texts.values():
                await text.finish()

    async def take_arguments(self) -> list[tuple[Call, str]]:
        """Its calls with what stands for the arguments that were kept.

        Raises:
            TripWireError: a guard blocks.
        """
        guards = self.guards_of("tool-arguments")
        found: list[tuple[Call, str]] = []
        for call in self.calls:
            if text := call.take():
                if call.custom:
                    found.append((call, await guarded_whole(text, guards, "tool-arguments")))
                else:
                    found.append((call, await guarded_arguments(text, guards)))
        return found
