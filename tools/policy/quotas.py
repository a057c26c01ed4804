"""Quotas and cooldowns as data, the same for policy files, hosts and the counter, and the calendar days that
they count in.

It knows numbers, words and times; their syntax is in tools/policy/language.py, and tools/policy/limits.py
enforces them.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

from quoth.tools.errors import UsageError
from quoth.tools.text import rounded_time

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


class Calendar:
    """The days of a time zone. Raises UsageError for an unknown one."""

    def __init__(self, zone: str = "UTC") -> None:
        self._zone = _zone_named(zone)

    def day(self, now: float) -> tuple[float, float]:
        """The calendar day of a time: its beginning, and that of the next one."""
        today = datetime.fromtimestamp(now, self._zone).date()
        start, end = (
            datetime(day.year, day.month, day.day, tzinfo=self._zone).timestamp()
            for day in (today, today + timedelta(days=1))
        )
        return start, end

    def next_at(self, when: float, now: float) -> str:
        """``next at 14:05 UTC, in 12 minutes``: the model may not know what time it is."""
        at = datetime.fromtimestamp(math.ceil(when), self._zone)
        days = (at.date() - datetime.fromtimestamp(now, self._zone).date()).days
        day = {0: "", 1: " tomorrow"}.get(days, f" on {at.date()}")
        zone = at.tzname() or "UTC"
        zone = f"UTC{zone}" if zone[:1] in "+-" else zone
        clock = f"{at:%H:%M}" if at.second == 0 else f"{at:%H:%M:%S}"
        return f"next{day} at {clock} {zone}, in {rounded_time(max(1.0, math.ceil(when - now)))}"


def _zone_named(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # no such zone, no such name, a folder of zones
        raise UsageError(
            f"There is no time zone {name!r} here; zones are named as UTC or Europe/Berlin."
        ) from None
