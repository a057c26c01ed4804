"""Circuit breakers: a server that keeps failing is left alone for a while, by all who ask it in this process.

Knows addresses and times only; it sends nothing.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from quoth.neuro.backends.base import ModelError

FAILURES = 5  # requests, each with all its tries, that open a breaker
WITHIN = 60.0  # seconds, if no request was answered between them
REST = 30.0  # seconds, after which one request tries again
BROKEN = ("down", "slow", "failed")  # a server that limits requests or refuses a key is at work


@dataclass
class Breaker:
    """The breaker of one server. ``why`` is the last failure, in its own words."""

    server: str
    clock: Callable[[], float] = time.monotonic
    why: str = ""
    _failed: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))
    _until: float | None = None  # when it is open
    _trying: bool = False  # whether one request tries the server again

    @property
    def left(self) -> float | None:
        """The seconds until the server is tried again; None while it is asked as ever."""
        return None if self._until is None else max(0.0, self._until - self.clock())

    @contextmanager
    def asking(self) -> Iterator[None]:
        """A request is made within. Raises ModelError, and lets none be made, while the server rests."""
        tries = self._tries()
        try:
            yield
        except ModelError as error:
            self.told(str(error) if error.why in BROKEN else "")
            raise
        else:
            self.told("")
        finally:
            if tries:
                self._trying = False

    def _tries(self) -> bool:
        """Whether the request that is about to be made is the one that tries a resting server again."""
        if (left := self.left) is None:
            return False
        if left > 0 or self._trying:
            when = f"in {math.ceil(left)} s" if left > 0 else "just now, by another request"
            raise ModelError(
                f"{self.server} is not asked: it has failed {FAILURES} times in a row, and is tried again"
                f" {when}.",
                "down",
            )
        self._trying = True
        return True

    def told(self, failure: str) -> None:
        """Count a failed request; with no words, one that was answered."""
        now = self.clock()
        if not failure:
            self._failed.clear()
            self._until = None
            return
        self.why = failure
        self._failed.append(now)
        often = len(self._failed) == FAILURES and now - self._failed[0] <= WITHIN
        if often or self._trying:
            self._until = now + REST


_breakers: dict[str, Breaker] = {}


def breaker_of(server: str) -> Breaker:
    """The breaker of a server by its address, without any user or password."""
    return _breakers.setdefault(server, Breaker(server))


def resting() -> list[Breaker]:
    """The breakers that are open now."""
    return [one for one in _breakers.values() if one.left is not None]


def forget_failures() -> None:
    """Ask every server as if it had never failed."""
    for breaker in list(_breakers.values()):
        breaker.told("")
