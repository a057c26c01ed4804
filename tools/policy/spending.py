"""What a user may spend on models in a day, counted in the store and so across processes and restarts.

It knows the store, users and numbers; it must not know models, prices or runs. A request is reserved with the
most that it can take before it is sent, in one transaction, so that of requests made at once no more pass
than there is room for; then it is settled with what it took. What a process that died had reserved stays
spent: nobody can tell whether its request was answered. A day is a calendar day of the time zone.
"""

from __future__ import annotations

import math
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Literal

from quoth.tools.errors import UsageError
from quoth.tools.text import money, rounded_time

if TYPE_CHECKING:
    from quoth.tools.storage.database import Statement, Store


# Quotas and cooldowns as data, the same for policy files, hosts and the counter, and the calendar days that
# they count in.
#
# It knows numbers, words and times; their syntax is in tools/policy/language.py, and tools/policy/limits.py
# enforces them.


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


QUARTER = 900  # seconds that are counted together; the days of all time zones begin with one
NOTHING = 1e-9  # US dollars; sums of costs are no more exact


@dataclass(frozen=True)
class DailyBudget:
    """What a user may spend on models in a calendar day: at most so many ``requests``, ``tokens`` (in and
    out) and so much ``cost`` (US dollars); None is no bound. It is that of each user for themselves, or only
    of ``user``."""

    user: str | None = None
    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.user, str | None):
            raise UsageError(f"The user of a daily budget is a name, not {self.user!r}.")
        for name, value in self.bounds.items():
            whole, kinds = name != "cost", (int,) if name != "cost" else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < math.inf:
                what = "a whole number from 0" if whole else "a number of US dollars from 0"
                verb = "are" if whole else "is"
                raise UsageError(f"The {name} of a daily budget {verb} {what}, not {value!r}.")

    @property
    def bounds(self) -> dict[str, Any]:
        """What is bounded."""
        found = {"requests": self.requests, "tokens": self.tokens, "cost": self.cost}
        return {name: value for name, value in found.items() if value is not None}


class NoRoomError(Exception):
    """What is left of a day is too little for a request; the text is a sentence."""


class Spending(Calendar):
    """What users have spent today, and what the ``budgets`` leave them. ``store`` is opened at the first
    request that they bound; ``clock`` gives seconds since 1970."""

    def __init__(
        self,
        store: Callable[[], Store],
        budgets: Iterable[DailyBudget] = (),
        *,
        zone: str = "UTC",
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(zone)
        self._store = store
        self._budgets = tuple(budgets)
        self._clock = clock

    def bounds(self, user: str) -> dict[str, float]:
        """What a user may spend in a day, by the name of the bound: the least of all budgets for them."""
        found: dict[str, float] = {}
        for budget in self._budgets:
            if budget.user is None or account_of(budget.user) == account_of(user):
                for name, value in budget.bounds.items():
                    found[name] = min(value, found.get(name, math.inf))
        return found

    def left(self, user: str) -> dict[str, float]:
        """What is left to a user today of all that is bounded."""
        bounds = self.bounds(user)
        if not bounds:
            return {}
        spent = self._spent(self._store().execute, user, self._clock())
        return {name: max(0, value - spent[name]) for name, value in bounds.items()}

    def reserve(self, user: str, tokens: int, cost: float) -> int:
        """Reserve a request that may take so much; where it is counted. Await ``on_disk`` before it is sent.
        Raises NoRoomError."""
        bounds = self.bounds(user)
        wanted = {"requests": 1, "tokens": tokens, "cost": cost}
        with self._store().transaction(synced=False) as run:
            now = self._clock()  # within the transaction: later requests have later times
            spent = self._spent(run, user, now)
            for name, most in bounds.items():
                if spent[name] + wanted[name] > most + NOTHING:
                    raise NoRoomError(self._no_room(user, name, spent[name], most, wanted[name], now))
            place = int(now // QUARTER * QUARTER)
            run(
                "INSERT INTO spending (user, at, requests, tokens, cost) VALUES (?, ?, 1, ?, ?)"
                " ON CONFLICT DO UPDATE SET requests = requests + 1, tokens = tokens + excluded.tokens,"
                " cost = cost + excluded.cost",
                (account_of(user), place, tokens, float(cost)),
            )
        return place

    def settle(self, user: str, place: int, tokens: int, cost: float, requests: int = 0) -> None:
        """A request that was reserved took so much more than that, or less; one that was not made at all,
        ``requests=-1``."""
        with self._store().transaction(synced=False) as run:
            run(
                "UPDATE spending SET requests = requests + ?, tokens = tokens + ?, cost = cost + ?"
                " WHERE user = ? AND at = ?",
                (requests, tokens, float(cost), account_of(user), place),
            )

    async def on_disk(self) -> None:
        """Wait until all that was reserved by now is on disk. Raises StoreError."""
        await self._store().on_disk()

    def _spent(self, run: Statement, user: str, now: float) -> Mapping[str, float]:
        start, end = self.day(now)
        sql = (
            "SELECT coalesce(sum(requests), 0), coalesce(sum(tokens), 0), coalesce(sum(cost), 0.0)"
            " FROM spending WHERE user = ? AND at >= ? AND at < ?"
        )
        (found,) = run(sql, (account_of(user), start, end))
        return dict(zip(("requests", "tokens", "cost"), found, strict=True))

    def _no_room(self, user: str, name: str, spent: float, most: float, wanted: float, now: float) -> str:
        whose = f"{user or 'This user'} has"
        if name == "requests":
            said = f"{whose} made {spent:,} of {most:,} requests to models today"
        elif name == "tokens":
            said = f"{whose} used {spent:,} of {most:,} tokens today, and the request may take {wanted:,}"
        else:
            said = (
                f"{whose} spent {money(spent)} of {money(most)} on models today, and the request may cost"
                f" {money(wanted)}"
            )
        return f"{said}; {self.next_at(self.day(now)[1], now)}."


NO_SPENDING = Spending(lambda: _no_store())


def _no_store() -> Store:
    raise AssertionError("without a budget nothing is counted")
