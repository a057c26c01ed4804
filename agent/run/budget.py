"""What a run may still spend, and how a share of it is lent to a sub-agent and comes back.

Knows numbers only. A share is taken before the sub-agent begins, so that several at once can never spend more
than there is; one that finds too little left waits for what the others give back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

# Steps with which a sub-agent can do something; for fewer it waits while others may give some back.
ENOUGH = 4


class SpentError(Exception):
    """Nothing is left to lend, and nothing will come back."""


@dataclass
class Budget:
    """Steps and calls, and how many of them are taken: by the run itself, or by its sub-agents.

    ``kept`` are the steps that are never lent: a run needs one to answer with."""

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
        """Within it ``share`` has so many steps and calls more, of those that are left: half of them if no
        number is named. What it does not take comes back. Raises SpentError."""
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
