"""Quotas and cooldowns as data, the same for policy files, hosts and the counter.

It knows numbers and words; their syntax is in tools/policy/language.py, and tools/policy/limits.py enforces
them.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

from quoth.tools.errors import UsageError

By = Literal["user", "session", "all"]
Per = Literal["week", "day", "hour", "minute"] | float
BYS: tuple[By, ...] = ("user", "session", "all")
SECONDS = {"week": 604800.0, "hour": 3600.0, "minute": 60.0}
LONGEST = 100 * 366 * 86400.0  # a time beyond it cannot be told as a date


@dataclass(frozen=True)
class Quota:
    """At most ``count`` calls of ``tool`` per calendar day, or within any week, hour, minute or number of
    seconds; for each user, for each session, or in total."""

    tool: str
    count: int
    per: Per = "day"
    by: By = "user"

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 0:
            raise UsageError(f"The quota of {self.tool} is a whole number from 0, not {self.count!r}.")
        if not (self.per in ("day", *SECONDS) or _seconds(self.per)):
            raise UsageError(
                f"The quota of {self.tool} is per week, day, hour, minute or a number of seconds, "
                f"not {self.per!r}."
            )
        _check_by(f"The quota of {self.tool}", self.by)


@dataclass(frozen=True)
class Cooldown:
    """At least ``seconds`` between one call of ``tool`` and the next."""

    tool: str
    seconds: float
    by: By = "user"

    def __post_init__(self) -> None:
        if not _seconds(self.seconds):
            raise UsageError(
                f"The cooldown of {self.tool} is a number of seconds above 0, not {self.seconds!r}."
            )
        _check_by(f"The cooldown of {self.tool}", self.by)


def account_of(user: str) -> str:
    """The one spelling of a user's name under which uses are counted and rules name it: "Ann" and "ann " are
    one user."""
    letters = (char for char in unicodedata.normalize("NFKC", user) if unicodedata.category(char) != "Cf")
    return " ".join("".join(letters).casefold().split())


def _seconds(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 < value <= LONGEST  # type: ignore[operator]


def _check_by(what: str, by: object) -> None:
    if by not in BYS:
        raise UsageError(f"{what} is by user, session or all, not {by!r}.")


Rule = Quota | Cooldown
