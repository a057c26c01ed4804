"""Lets those who have something to do in one event loop go on one after the other, each in a turn of the loop
of its own: where hundreds could go on at once, what came in meanwhile would wait for all of them.

It knows an event loop; it must not know who goes on, nor with what.
"""

from __future__ import annotations

import asyncio
from collections import deque
from weakref import WeakKeyDictionary


class _Turns:
    """Those who wait for a turn of one event loop, who was first being first."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False  # this turn

    async def turn(self) -> None:
        if self._taken:
            mine = self._loop.create_future()
            self._waiting.append(mine)
            await mine
        else:
            self._taken = True
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        while self._waiting:
            first = self._waiting.popleft()
            if not first.done():  # else it was cancelled
                first.set_result(None)
                self._loop.call_soon(self._next)
                return
        self._taken = False


_ALL: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = WeakKeyDictionary()


async def own_turn() -> None:
    """Wait until nobody else goes on in this turn of the event loop."""
    loop = asyncio.get_running_loop()
    if (turns := _ALL.get(loop)) is None:
        turns = _ALL[loop] = _Turns(loop)
    await turns.turn()
