"""Calendar days in a time zone, and how a time to come is told.

It knows times only, no limit and no store.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, tzinfo

from quoth.tools.errors import UsageError
from quoth.tools.text import rounded_time


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
