"""The budget of a run: steps, calls, tokens, US dollars and seconds, a share of which can be lent to a
sub-agent and returned.

Knows only numbers. A share is taken before the sub-agent begins, and what a request may take before it is
sent, so that several at once never spend more than there is; who finds too little waits while others may give
some back.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

from quoth.tools.call.deadline import PausableClock

# Steps with which a sub-agent can do something; for fewer it waits while others may give some back.
ENOUGH = 4
BOUNDS = ("tokens", "cost", "seconds")  # what a run may be bounded by, beside steps and calls


class SpentError(Exception):
    """Nothing is left to lend, and no sub-agent can still return anything."""


@dataclass
class Budget:
    """What a run may take, and how much of it the run and its sub-agents have taken: steps, calls, tokens (in
    and out), cost (US dollars) and seconds, without those in which a person is asked. None is no bound.

    ``kept`` steps are never lent: a run needs one to answer with."""

    steps: int
    calls: int
    kept: int = 0
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    steps_taken: int = 0
    calls_taken: int = 0
    tokens_taken: int = 0
    cost_taken: float = 0.0

    def __post_init__(self) -> None:
        self.clock = PausableClock()  # stands still while a person is asked
        self.earlier = 0.0  # seconds taken in a process before this one
        self._begun = time.monotonic()
        self._borrowers = 0
        self._reserved = 0  # requests that are on their way
        self._returned = asyncio.Event()

    @classmethod
    def of(cls, limits: Any, kept: int = 0) -> Self:
        """The budget of a run with these RunLimits."""
        return cls(limits.steps, limits.calls, kept, limits.tokens, limits.cost, limits.seconds)

    @property
    def steps_left(self) -> int:
        return self.steps - self.steps_taken

    @property
    def calls_left(self) -> int:
        return self.calls - self.calls_taken

    @property
    def tokens_left(self) -> float:
        return math.inf if self.tokens is None else self.tokens - self.tokens_taken

    @property
    def cost_left(self) -> float:
        return math.inf if self.cost is None else self.cost - self.cost_taken

    @property
    def seconds_taken(self) -> float:
        return self.earlier + time.monotonic() - self._begun - self.clock.held

    @property
    def seconds_left(self) -> float:
        return math.inf if self.seconds is None else self.seconds - self.seconds_taken

    @property
    def bounded(self) -> tuple[str, ...]:
        """Which of BOUNDS there is a bound for."""
        return tuple(name for name in BOUNDS if getattr(self, name) is not None)

    @property
    def bounds(self) -> dict[str, float | None]:
        """What it may take, by the names of RunLimits."""
        return {name: getattr(self, name) for name in ("steps", "calls", *BOUNDS)}

    def left(self) -> Mapping[str, float]:
        """What is left of all that is bounded."""
        names = ("steps", "calls", *self.bounded)
        return {name: max(0, round(getattr(self, f"{name}_left"), 9)) for name in names}

    # Requests

    def reserve(self, tokens: int, cost: float) -> None:
        """Count what a request may take as taken, until ``settle`` tells what it took."""
        self._reserved += 1
        self.take(tokens, cost)

    def settle(self, tokens: int, cost: float) -> None:
        """A request that was reserved took so much more than that, or less."""
        self._reserved -= 1
        self.take(tokens, cost)
        self._returned.set()

    def take(self, tokens: int, cost: float, earlier: float = 0.0) -> None:
        """Count what was taken; of what an ``earlier`` process took, also its seconds."""
        self.tokens_taken += tokens
        self.cost_taken += cost
        self.earlier += earlier

    async def returned(self) -> bool:
        """Wait until a request on its way is settled; false if there is none."""
        if not self._reserved:
            return False
        self._returned.clear()
        await self._returned.wait()
        return True

    # Sub-agents

    @property
    def _lendable(self) -> int:
        return self.steps_left - self.kept

    @property
    def _spent(self) -> bool:
        return self._lendable <= 0 or self.tokens_left <= 0 or self.cost_left <= 0

    @asynccontextmanager
    async def lend(
        self, share: Budget, steps: int | None = None, calls: int | None = None
    ) -> AsyncIterator[None]:
        """Add so many of the remaining steps and calls to ``share`` for the time of the context, half of them
        if no number is given, and half of the tokens and US dollars; what is not used is returned. The time
        that is left is that of both. Raises SpentError."""
        enough = ENOUGH if steps is None else min(ENOUGH, steps)
        while (self._lendable < enough or self._spent) and self._borrowers:
            self._returned.clear()
            await self._returned.wait()
        if self._spent:
            raise SpentError
        lent_steps = min(self._lendable, max(enough, _half(self._lendable)) if steps is None else steps)
        lent_calls = min(self.calls_left, _half(self.calls_left) if calls is None else max(0, calls))
        self.steps_taken += lent_steps
        self.calls_taken += lent_calls
        self._borrowers += 1
        share.steps = share.steps_taken + lent_steps
        share.calls = share.calls_taken + lent_calls
        lent_tokens, lent_cost = 0, 0.0
        if self.tokens is not None:
            lent_tokens = _half(self.tokens - self.tokens_taken)
            share.tokens = lent_tokens
        if self.cost is not None:
            lent_cost = self.cost_left / 2
            share.cost = lent_cost
        self.take(lent_tokens, lent_cost)
        share.seconds, share.earlier = self.seconds, self.earlier
        share.clock, share._begun = self.clock, self._begun
        try:
            yield
        finally:
            self.steps_taken -= max(0, share.steps_left)
            self.calls_taken -= max(0, share.calls_left)
            self.take(share.tokens_taken - lent_tokens, share.cost_taken - lent_cost)
            self._borrowers -= 1
            self._returned.set()


def _half(number: int) -> int:
    return (number + 1) // 2
