"""The calls of one reply that are begun before their turn, because they only read: as many at once as the run
allows, in the order of the reply, up to the first that may do more.

Knows doors and calls; it must not know how calls are found in a reply, or make one: the loop does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from quoth.tools.call.call import Call
from quoth.tools.call.context import ToolContext
from quoth.tools.door.early import EarlyBody


class EarlyDoor(Protocol):
    """The part of a door that begins calls before their turn."""

    def may_begin(self, call: Call) -> bool: ...

    def begin(self, call: Call, context: ToolContext, after: EarlyBody | None = None) -> EarlyBody: ...

    async def abandon(self, early: EarlyBody) -> None: ...


class EarlyCall(NamedTuple):
    """A call that was begun before its turn."""

    call: Call
    body: EarlyBody


class EarlyCalls:
    """Those of one reply, by their place in it. At most ``most`` bodies run at once."""

    def __init__(self, door: EarlyDoor, most: int) -> None:
        self._door, self._most = door, most
        self._begun: dict[int, EarlyCall] = {}

    def begin(self, place: int, call: Call, context: ToolContext) -> bool:
        """Begin the call at a place of the reply, if it only reads and there is room; whether it was."""
        running = sum(one.body.running for one in self._begun.values())
        if place in self._begun or running >= self._most or not self._door.may_begin(call):
            return False
        before = self._begun.get(place - 1)
        try:
            body = self._door.begin(call, context, before.body if before is not None else None)
        except RuntimeError:  # a model of a caller's own streams from another thread
            return False
        self._begun[place] = EarlyCall(call, body)
        return True

    def begin_from(self, place: int, end: int, call_at: Callable[[int], Call], context: ToolContext) -> None:
        """Begin the calls from a place on, up to the first that has to wait for its turn. A call that would
        run alone is not begun: its turn has come."""
        for at in [at for at, one in self._begun.items() if one.body.refused]:
            del self._begun[at]
        if self._most < 2 or place + 1 >= end:
            return
        alone = not (self._door.may_begin(call_at(place)) and self._door.may_begin(call_at(place + 1)))
        if alone and place not in self._begun:
            return
        while place < end and (place in self._begun or self.begin(place, call_at(place), context)):
            place += 1

    def take(self, place: int) -> EarlyCall | None:
        """The call at a place, if it was begun. It is the taker's from now on."""
        return self._begun.pop(place, None)

    async def abandon(self) -> None:
        """Stop those that nobody has taken."""
        while self._begun:
            _, one = self._begun.popitem()
            await self._door.abandon(one.body)
