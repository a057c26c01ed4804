"""A clock for deadlines that stops while a person is asked.

It knows seconds only.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any


class PausableClock:
    """Measures how long something waited for a person's answers. Pauses may overlap."""

    def __init__(self) -> None:
        self._asking = 0
        self._since = 0.0
        self._held = 0.0

    def pause(self) -> None:
        if not self._asking:
            self._since = time.monotonic()
        self._asking += 1

    def go_on(self) -> None:
        self._asking -= 1
        if not self._asking:
            self._held += time.monotonic() - self._since

    @property
    def held(self) -> float:
        """Seconds paused so far."""
        return self._held + (time.monotonic() - self._since if self._asking else 0.0)


async def within(future: asyncio.Future[Any], seconds: float, clock: PausableClock | None = None) -> bool:
    """Wait for ``future`` up to ``seconds``, not counting pauses of ``clock``; whether it is done."""
    end = time.monotonic() + seconds
    while True:
        left = end + (clock.held if clock else 0.0) - time.monotonic()
        done, _ = await asyncio.wait({future}, timeout=max(0.0, left))
        if done or left <= 0:
            return bool(done)
