"""The budget of a run: steps and calls, a share of which can be lent to a sub-agent and returned.

Knows only numbers. A share is taken before the sub-agent begins, so that several at once never spend more
than there is; a sub-agent for which too little is left waits until others return theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

# Steps with which a sub-agent can do something; for fewer it waits while others may give some back.
ENOUGH = 4


class SpentError(Exception):
    """Nothing is left to lend, and no sub-agent can still return anything."""


@dataclass
class Budget:
    """The steps and calls of a run, and how many of them it and its sub-agents have taken.

    ``kept`` steps are never lent: a run needs one to answer with."""

    steps: int
    calls: int
    kept: int = 0
    steps_taken: int = 0
    calls_taken: int = 0

    def __post_init__(self) -> None:
        self._borrowers = 0
        self._returned = asyncio.Event()

    @property
    def steps_left(self) -> int:
        return self.steps - self.steps_taken

    @property
    def calls_left(self) -> int:
        return self.calls - self.calls_taken

    @property
    def _lendable(self) -> int:
        return self.steps_left - self.kept

    @asynccontextmanager
    async def lend(
        self, share: Budget, steps: int | None = None, calls: int | None = None
    ) -> AsyncIterator[None]:
        """Add so many of the remaining steps and calls to ``share`` for the time of the context, half of them
        if no number is given; what is not used is returned. Raises SpentError."""
        enough = ENOUGH if steps is None else min(ENOUGH, steps)
        while self._lendable < enough and self._borrowers:
            self._returned.clear()
            await self._returned.wait()
        if self._lendable <= 0:
            raise SpentError
        lent_steps = min(self._lendable, max(enough, _half(self._lendable)) if steps is None else steps)
        lent_calls = min(self.calls_left, _half(self.calls_left) if calls is None else max(0, calls))
        self.steps_taken += lent_steps
        self.calls_taken += lent_calls
        self._borrowers += 1
        share.steps = share.steps_taken + lent_steps
        share.calls = share.calls_taken + lent_calls
        try:
            yield
        finally:
            self.steps_taken -= max(0, share.steps_left)
            self.calls_taken -= max(0, share.calls_left)
            self._borrowers -= 1
            self._returned.set()


def _half(number: int) -> int:
    return (number + 1) // 2
