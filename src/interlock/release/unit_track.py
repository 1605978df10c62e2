"""Units of a text, what a judge says of them, and a text on its way through a judge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from interlock.core.record import FrozenRecord
from interlock.release.channels import Channel
from interlock.release.scanner import HeldTooLong
from interlock.release.track import Decided
from interlock.release.units import UnitCutter


class Unit(FrozenRecord, frozen=True, kw_only=True):
    """A piece of a text to be judged.

    Attributes:
        text: the unit, with the white space behind it.
        channel: where its text belongs.
        index: its number in that text, from 0.
        offset: characters of that text in front of it.
    """

    text: str
    channel: Channel
    index: int
    offset: int


class Verdict(Struct, frozen=True, kw_only=True):
    """What a judge says of a unit. Made by ``Verdict.allow``, ``Verdict.replace`` and ``Verdict.block``.

    The last two object to the unit; what that leads to is the guard's strategy.

    Attributes:
        kind: ``allow``, ``replace`` or ``block``.
        text: what is to stand for the unit, white space included.
        reason: in words. It reaches the client: it must not hold the unit's text.
        scores: numbers for reports, by name.
    """

    kind: Literal["allow", "replace", "block"]
    text: str | None = None
    reason: str | None = None
    scores: dict[str, float] | None = None

    @classmethod
    def allow(cls, *, scores: dict[str, float] | None = None) -> Verdict:
        """Nothing to object to."""
        return cls(kind="allow", scores=scores)

    @classmethod
    def replace(
        cls, text: str, *, reason: str | None = None, scores: dict[str, float] | None = None
    ) -> Verdict:
        """Objects; under ``redact`` the text stands for the unit."""
        return cls(kind="replace", text=text, reason=reason, scores=scores)

    @classmethod
    def block(cls, reason: str | None = None, *, scores: dict[str, float] | None = None) -> Verdict:
        """Objects."""
        return cls(kind="block", reason=reason, scores=scores)


Decide: TypeAlias = Callable[[Unit], Awaitable[str | None]]
"""Judges a unit: gives what stands for it, None where it stays."""


class Failed(Protocol):
    """Told that a check could not be made, why, and whether that stops everything; it raises to stop."""

    def __call__(self, problem: object, *, closed: bool | None = None, cause: str | None = None) -> object:
        """``closed``: None for what the guard's ``error_strategy`` says. ``cause``: the exception's class."""
        ...


class UnitTrack(Decided):
    """A text on its way through a judge, each unit judged once, in order.

    Args:
        cutter: cuts it.
        channel: where it belongs.
        cap: characters that may wait.
        decide: judges a unit.
        failed: told when more waits than may. It raises to stop; if it returns, that unit goes on unjudged.
    """

    __slots__ = ("_cap", "_channel", "_cutter", "_decide", "_failed", "_index", "_offset", "_unjudged")

    def __init__(
        self,
        cutter: UnitCutter,
        channel: Channel,
        cap: int,
        decide: Decide,
        failed: Callable[[HeldTooLong], object],
    ) -> None:
        super().__init__()
        self._cutter = cutter
        self._channel: Channel = channel
        self._cap = cap
        self._decide = decide
        self._failed = failed
        self._index = 0
        self._offset = 0
        self._unjudged = False

    async def judge(self, text: str, *, final: bool = False) -> None:
        """More of the text: judge the units that are complete now."""
        for unit in self._cutter.feed(text, final=final):
            if not self._too_long(len(unit)):
                await self._judge_unit(unit)
            else:
                self._keep(unit, None)
            self._unjudged = False
            self._index += 1
        if self._too_long(self._cutter.held):
            self._keep(self._cutter.take_held(), None)
        if final:
            self._unjudged = False

    def _too_long(self, length: int) -> bool:
        """Whether the unit under way goes on unjudged, as more of it waits than may."""
        if not self._unjudged and length > self._cap:
            self._failed(HeldTooLong([f"the {self._cutter.unit} under way"], length, self._cap))
            self._unjudged = True
        return self._unjudged

    async def _judge_unit(self, text: str) -> None:
        unit = Unit(text=text, channel=self._channel, index=self._index, offset=self._offset)
        self._keep(text, await self._decide(unit))

    def _keep(self, text: str, stands: str | None) -> None:
        self._offset += len(text)
        self.add(len(text), text if stands is None else stands, replaced=stands is not None)
