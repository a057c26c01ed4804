"""What is made at its first use and then kept.

It knows nothing of what it makes. ``functools.cache`` does the same with seven objects more, which count
where there are hundreds of agents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """Calls ``make`` at the first call, and answers each with what that gave."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: tuple[T] | None = None

    def __call__(self) -> T:
        if self._made is None:
            self._made = (self._make(),)
        return self._made[0]
