"""A user's daily budget for models, counted in the store and so across processes and restarts.

Before a request is sent, its maximum is reserved in one transaction, so that concurrent requests together
stay within the budget; then it is settled with the actual amount. The reservation of a process that died
stays spent: it is not known whether its request was answered. A day is a calendar day of the time zone.
"""

from __future__ import annotations

import math
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Literal

from quoth.tools.errors import UsageError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.text import money, rounded_time

if TYPE_CHECKING:
    from quoth.tools.storage.database import Statement, Store


# Quotas and cooldowns as data, for policy files, hosts and the counter, and the calendar days in which they
# count. tools/policy/language.py has their syntax; tools/policy/limits.py enforces them.


By = Literal["user", "session", "all"]
Per = Literal["week", "day", "hour", "minute"] | float
BYS: tuple[By, ...] = ("user", "session", "all")
SECONDS = {"week": 604800.0, "hour": 3600.0, "minute": 60.0}
LONGEST = 100 * 366 * 86400.0  # seconds; a later time may not be a valid date


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
            raise UsageError(f"The quota of {self.tool} must be a whole number from 0, not {self.count!r}.")
        if not (self.per in ("day", *SECONDS) or _seconds(self.per)):
            raise UsageError(
                f"The quota of {self.tool} must be per week, day, hour, minute or a number of seconds, "
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
                f"The cooldown of {self.tool} must be a number of seconds above 0, not {self.seconds!r}."
            )
        _check_by(f"The cooldown of {self.tool}", self.by)


def account_of(user: str) -> str:
    """The normal spelling of a user's name, for counts and for rules: "Ann" and "ann " are one user."""
    letters = (char for char in unicodedata.normalize("NFKC", user) if unicodedata.category(char) != "Cf")
    return " ".join("".join(letters).casefold().split())


def _seconds(value: object) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 < value <= LONGEST  # type: ignore[operator]


def _check_by(what: str, by: object) -> None:
    if by not in BYS:
        raise UsageError(f"{what} must be by user, session or all, not {by!r}.")


Rule = Quota | Cooldown


class Calendar:
    """The days of a time zone. Raises UsageError for an unknown zone."""

    def __init__(self, zone: str = "UTC") -> None:
        self._zone = _zone_named(zone)

    def day(self, now: float) -> tuple[float, float]:
        """The calendar day of a time: its beginning and its end, in seconds since 1970."""
        today = datetime.fromtimestamp(now, self._zone).date()
        start, end = (
            datetime(day.year, day.month, day.day, tzinfo=self._zone).timestamp()
            for day in (today, today + timedelta(days=1))
        )
        return start, end

    def next_at(self, when: float, now: float) -> str:
        """``next at 14:05 UTC, in 12 minutes``: the model may not know the time."""
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
    except (KeyError, ValueError, OSError):  # an unknown zone, an invalid name, a folder of zones
        raise UsageError(f"Unknown time zone {name!r}; examples are UTC and Europe/Berlin.") from None


QUARTER = 900  # seconds that are counted together; days begin at a multiple in all time zones
NOTHING = 1e-9  # US dollars; the precision of sums of costs


@dataclass(frozen=True)
class DailyBudget:
    """A user's budget for models in a calendar day: maximum ``requests``, ``tokens`` (in and out) and
    ``cost`` (US dollars); None means unlimited. It applies to each user separately, or only to ``user``."""

    user: str | None = None
    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.user, str | None):
            raise UsageError(f"The user of a daily budget must be a name, not {self.user!r}.")
        for name, value in self.bounds.items():
            whole, kinds = name != "cost", (int,) if name != "cost" else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value < math.inf:
                what = "a whole number from 0" if whole else "a number of US dollars from 0"
                verb = "are" if whole else "is"
                raise UsageError(f"The {name} of a daily budget {verb} {what}, not {value!r}.")

    @property
    def bounds(self) -> dict[str, Any]:
        """The limits that are set, by name."""
        found = {"requests": self.requests, "tokens": self.tokens, "cost": self.cost}
        return {name: value for name, value in found.items() if value is not None}


class NoRoomError(Exception):
    """The rest of a day's budget is too small for a request; the text is a sentence."""


class Spending(Calendar):
    """What each user has spent today, and the rest of their ``budgets``. ``store`` is opened at the first
    limited request; ``clock`` returns seconds since 1970."""

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
        """A user's daily limits, by name: the smallest of all budgets for the user."""
        found: dict[str, float] = {}
        for budget in self._budgets:
            if budget.user is None or account_of(budget.user) == account_of(user):
                for name, value in budget.bounds.items():
                    found[name] = min(value, found.get(name, math.inf))
        return found

    def left(self, user: str) -> dict[str, float]:
        """The rest of a user's limits today, by name."""
        bounds = self.bounds(user)
        if not bounds:
            return {}
        spent = self._spent(self._store().execute, user, self._clock())
        return {name: max(0, value - spent[name]) for name, value in bounds.items()}

    def reserve(self, user: str, tokens: int, cost: float) -> int:
        """Reserve at most ``tokens`` and ``cost`` for a request; returns its place for ``settle``. Await
        ``on_disk`` before sending it. Raises NoRoomError."""
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
        """Add the difference between a request's actual and reserved amounts; ``requests=-1`` if it was not
        sent at all."""
        with self._store().transaction(synced=False) as run:
            run(
                "UPDATE spending SET requests = requests + ?, tokens = tokens + ?, cost = cost + ?"
                " WHERE user = ? AND at = ?",
                (requests, tokens, float(cost), account_of(user), place),
            )

    async def on_disk(self) -> None:
        """Wait until all reservations so far are on disk. Raises StoreError."""
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
