"""Enforces limits: cooldowns, daily limits and quotas, counted in the store and so across restarts.

It knows the store and the door's Limits port; it must not know policies, models or the loop. When a call
takes a slot, and how long it holds it:

- The limits stage reserves a slot for every call of a limited tool, atomically: of concurrent calls, in
  tasks, threads or processes on one store, no more pass than there are slots.
- A call that a later stage ends before its body (policy, guard, gate, consent denied or pending, cancelled)
  releases its slot. While a person is being asked, the slot stays reserved.
- When the body begins, the call is counted, even if it fails, times out or is cancelled. Calls that do not
  reach the limits stage (unknown, invalid) and refused calls are not counted.
- A slot whose process died before releasing it stays reserved. Nobody can tell whether the body had begun, so
  it counts until its day, window or cooldown is over.
- A call that waited in its body and is resumed keeps its slot; it is one call.
- A call counts in the day or window in which its slot was reserved. A cooldown runs from the start of the
  body, or from the reservation while the body has not started.

A day is a calendar day in the configured time zone, 23 or 25 hours long when clocks change; a week, an hour,
a minute or a number of seconds is a sliding window that ends now. Uses are counted by the tool's name.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from quoth.tools.call.call import Call
from quoth.tools.call.ports import Refusal, Reservation
from quoth.tools.call.preview import RemainingQuota
from quoth.tools.errors import UsageError
from quoth.tools.lisp.forms import kebab
from quoth.tools.policy.quotas import SECONDS, By, Cooldown, Per, Quota, Rule
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.text import rounded_time

if TYPE_CHECKING:
    from quoth.tools.storage.database import Statement, Store


@dataclass(frozen=True)
class _Found:
    """The result of one limit: when a call is possible again (None: now; infinity: never), and a text."""

    room_at: float | None
    words: str


class StoreLimits:
    """The door's Limits, counted in a store. ``store`` is opened at the first call of a limited tool.

    ``rules`` apply in addition to the tools' own ``:cooldown`` and ``:daily-limit``. ``clock`` gives seconds
    since 1970; ``zone`` is the time zone of calendar days and of times in messages. Raises UsageError for an
    unknown zone.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        rules: Iterable[Rule] = (),
        *,
        clock: Callable[[], float] = time.time,
        zone: str = "UTC",
    ) -> None:
        self._store = store
        self._clock = clock
        self._zone = _zone_named(zone)
        self._rules: dict[str, list[Rule]] = {}
        for rule in rules:
            self._rules.setdefault(kebab(rule.tool), []).append(rule)

    def reserve(self, tool: CognitiveTool, call: Call) -> Reservation | Refusal:
        """Reserve a slot for the call, or say why there is none. Counting and reserving are one
        transaction."""
        rules = self._rules_for(tool)
        if not rules:
            return Reservation()
        store, key = self._store(), call.key or call.id
        with store.transaction() as run:
            if call.resumed and run("SELECT 1 FROM uses WHERE tool = ? AND call = ?", (tool.name, key)):
                return Reservation()  # the call that is carried on has its place
            now = self._clock()  # within the transaction: later places have later times
            found = [self._judge(run, rule, tool.name, call, now) for rule in rules]
            full = [one for one in found if one.room_at is not None]
            if full:
                last = max(full, key=lambda one: one.room_at or 0)
                return Refusal(last.words, None if last.room_at == math.inf else last.room_at)
            ((place,),) = run(
                "INSERT INTO uses (tool, user, session, call, at) VALUES (?, ?, ?, ?, ?) RETURNING id",
                (tool.name, call.user, call.session, key, now),
            )
        return _Place(store, self._clock, place, "; ".join(one.words for one in found))

    def left(self, tool: CognitiveTool, call: Call) -> list[RemainingQuota]:
        """What each limit leaves for calls like this one: the number left and a text, or a text alone for
        a cooldown. It reserves nothing."""
        rules = self._rules_for(tool)
        if not rules:
            return []
        with self._store().transaction() as run:
            now = self._clock()
            found: list[RemainingQuota] = []
            for rule in rules:
                if isinstance(rule, Cooldown):
                    words = self._cooled(run, rule, tool.name, call, now).words
                    found.append(RemainingQuota(None, words))
                    continue
                start, end, length = self._window(rule.per, now)
                used = len(_uses(run, rule.by, tool.name, call, start, end))
                words = f"of {rule.count} left {_span(rule, length)}"
                found.append(RemainingQuota(max(0, rule.count - used), words))
        return found

    def _rules_for(self, tool: CognitiveTool) -> list[Rule]:
        own: list[Rule] = []
        if tool.cooldown:
            own.append(Cooldown(tool.name, tool.cooldown))
        if tool.daily_limit:
            own.append(Quota(tool.name, math.floor(tool.daily_limit)))
        return own + self._rules.get(tool.name, [])

    def _judge(self, run: Statement, rule: Rule, tool: str, call: Call, now: float) -> _Found:
        if isinstance(rule, Cooldown):
            return self._cooled(run, rule, tool, call, now)
        start, end, length = self._window(rule.per, now)
        used = _uses(run, rule.by, tool, call, start, end)
        span = _span(rule, length)
        free = rule.count - len(used)
        if free > 0:
            return _Found(None, f"{free - 1} of {rule.count} left {span}")
        if not rule.count:
            return _Found(math.inf, f"its quota {span} is 0")
        # In a sliding window there is room when enough of the earliest uses have left it.
        room_at = end if rule.per == "day" else used[-rule.count] + length
        return _Found(room_at, f"{len(used)} of {rule.count} used {span}, {self._next(room_at, now)}")

    def _cooled(self, run: Statement, rule: Cooldown, tool: str, call: Call, now: float) -> _Found:
        # A use stamped further ahead than the cooldown is long comes from a clock that was wrong.
        used = _uses(run, rule.by, tool, call, now - rule.seconds, now + rule.seconds, "coalesce(begun, at)")
        if not used:
            return _Found(None, f"next after a cooldown of {rounded_time(rule.seconds)}{_BY[rule.by]}")
        room_at = used[-1] + rule.seconds
        words = f"its cooldown is {rounded_time(rule.seconds)}{_BY[rule.by]}, {self._next(room_at, now)}"
        return _Found(room_at, words)

    def _window(self, per: Per, now: float) -> tuple[float, float, float]:
        """The start and end of the window whose uses count, and its length in seconds."""
        if per != "day":
            length = SECONDS[per] if isinstance(per, str) else float(per)
            return now - length, now + length, length
        today = datetime.fromtimestamp(now, self._zone).date()
        start, end = (
            datetime(day.year, day.month, day.day, tzinfo=self._zone).timestamp()
            for day in (today, today + timedelta(days=1))
        )
        # Midnight itself is of the day it begins: the window is open at its start.
        return math.nextafter(start, -math.inf), end, end - start

    def _next(self, when: float, now: float) -> str:
        """``next at 14:05 UTC, in 12 minutes``: the model may not know what time it is."""
        at = datetime.fromtimestamp(math.ceil(when), self._zone)
        days = (at.date() - datetime.fromtimestamp(now, self._zone).date()).days
        day = {0: "", 1: " tomorrow"}.get(days, f" on {at.date()}")
        zone = at.tzname() or "UTC"
        zone = f"UTC{zone}" if zone[:1] in "+-" else zone
        clock = f"{at:%H:%M}" if at.second == 0 else f"{at:%H:%M:%S}"
        return f"next{day} at {clock} {zone}, in {rounded_time(max(1.0, math.ceil(when - now)))}"


class _Place(Reservation):
    """A reserved slot, a row of ``uses``. The row stays until it is released, even if this process dies."""

    def __init__(self, store: Store, clock: Callable[[], float], place: int, left: str) -> None:
        self._store = store
        self._clock = clock
        self._id = place
        self._settled = False
        self.left = left

    def commit(self) -> None:
        self._store.execute("UPDATE uses SET begun = ? WHERE id = ?", (self._clock(), self._id))
        self._settled = True

    def release(self) -> None:
        if not self._settled:
            self._store.execute("DELETE FROM uses WHERE id = ? AND begun IS NULL", (self._id,))
            self._settled = True


_PERIOD: dict[object, str] = {
    "week": "within a week",
    "day": "today",
    "hour": "within an hour",
    "minute": "within a minute",
}
_BY = {"user": "", "session": " in this session", "all": " by everybody"}
_SAME = {"user": " AND user = ?", "session": " AND session = ?", "all": ""}


def _span(rule: Quota, length: float) -> str:
    return f"{_PERIOD.get(rule.per, f'within {rounded_time(length)}')}{_BY[rule.by]}"


def _uses(
    run: Statement, by: By, tool: str, call: Call, after: float, before: float, at: str = "at"
) -> list[float]:
    """The times of the uses between two times, ascending."""
    who = {"user": (call.user,), "session": (call.session,), "all": ()}[by]
    sql = f"SELECT {at} AS t FROM uses WHERE tool = ?{_SAME[by]} AND t > ? AND t < ? ORDER BY t"  # noqa: S608
    return [float(found) for (found,) in run(sql, (tool, *who, after, before))]


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
