"""Planning lines of Org: the stamps of SCHEDULED and DEADLINE, and how a repeater moves them.

A stamp is moved as Org's own ``org-todo`` moves it when a headline with a repeater is done (Org manual,
"Repeated tasks"): ``+1m`` by one interval, ``++1m`` by intervals until it is in the future, ``.+1m`` by one
from today. Stamps are times of the clock on the wall of a zone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo

from quoth.tools.errors import QuothError
from quoth.tools.text import excerpt

WORDS = ("SCHEDULED", "DEADLINE")
WANTED = "<2030-12-01 Sun 09:00 +1w>"
UNITS = {"h": "hour", "d": "day", "w": "week", "m": "month", "y": "year"}
_PLANNED = re.compile(rf"({'|'.join(WORDS)}):[ \t]*(<[^>\n]*>|\S*)")
_STAMP = re.compile(
    r"<(?P<day>\d{4}-\d\d-\d\d)(?P<name> [^\s\d<>+.-]+)?"
    r"(?: (?P<clock>\d{1,2}:\d\d)(?:-(?P<end>\d{1,2}:\d\d))?)?"
    r"(?P<cookies>(?: [.+-]+\d{1,6}[hdwmy](?:/\d{1,6}[hdwmy])?)*)>"
)
_REPEATER = re.compile(r" (\.\+|\+\+|\+)(\d+)([hdwmy])")


class PlanningError(QuothError):
    """A stamp that cannot be read or moved; the message ends with what would be right."""


@dataclass(frozen=True)
class Stamp:
    """An active time stamp: its local time, and its repeater, such as ``++`` 2 ``w``. ``has_clock`` is False
    for a day without a time, whose time is its beginning."""

    text: str = field(compare=False)
    when: datetime
    has_clock: bool
    repeater: str = ""
    number: int = 0
    unit: str = ""

    @property
    def key(self) -> str:
        """The occurrence as text: ``2030-12-01 09:00``, or the day alone."""
        return f"{self.when:%Y-%m-%d %H:%M}" if self.has_clock else f"{self.when:%Y-%m-%d}"

    def instant(self, zone: tzinfo) -> datetime:
        """When it is due. A time that the clocks skip is later by as much; of one that occurs twice, the
        first counts."""
        return _instant(self.when, zone)

    def next(self, now: datetime, zone: tzinfo) -> Stamp | None:
        """The stamp after one that was done at ``now`` (aware); None without a repeater. Raises
        PlanningError."""
        if not self.repeater:
            return None
        here = now.astimezone(zone).replace(tzinfo=None, second=0, microsecond=0)
        when, before = self.when, self.instant(zone)
        try:
            if self.repeater == ".+":
                when = here if self.unit == "h" else datetime.combine(here.date(), when.time())
                return self._at(self._shifted(when))
            if self.repeater == "++" and self.unit in "hdw":  # pass over what is long past at once
                step = self._shifted(when) - when
                when += step * max((here - when) // step - 2, 0)
            while True:
                when = self._shifted(when)
                at = when.replace(tzinfo=zone).astimezone(UTC)
                if at > before and (self.repeater == "+" or at > now):
                    return self._at(when)
        except (ValueError, OverflowError):
            raise PlanningError(
                f"{self.text} cannot be moved: the calendar ends with the year 9999."
            ) from None

    def following(self, zone: tzinfo) -> Stamp | None:
        """The occurrence that the repeater gives after this one, at any time; None if it depends on
        when this one is done. Raises PlanningError."""
        return None if self.repeater in ("", ".+") else self._plain().next(self.instant(zone), zone)

    def _plain(self) -> Stamp:
        return Stamp(self.text, self.when, self.has_clock, "+", self.number, self.unit)

    def _shifted(self, when: datetime) -> datetime:
        """One interval later. A day that a month has not runs over into the next one, as in Org."""
        if self.unit in "my":
            months = when.year * 12 + when.month - 1 + self.number * (12 if self.unit == "y" else 1)
            first = when.replace(year=months // 12, month=months % 12 + 1, day=1)
            return first + timedelta(when.day - 1)
        return when + timedelta(**{f"{UNITS[self.unit]}s": self.number})

    def _at(self, when: datetime) -> Stamp:
        """The same stamp at another time; its other parts are kept as they are written."""
        found = _STAMP.fullmatch(self.text)
        assert found is not None
        clock = f" {when:%H:%M}" if self.has_clock else ""
        if found["end"]:
            clock += f"-{_on(when, found['end'], when - self.when):%H:%M}"
        text = f"<{when:%Y-%m-%d %a}{clock}{found['cookies']}>"
        return Stamp(text, when, self.has_clock, self.repeater, self.number, self.unit)


def _instant(when: datetime, zone: tzinfo) -> datetime:
    """The instant of a local time; the first or the last one for a time at the end of the calendar."""
    try:
        return when.replace(tzinfo=zone).astimezone(UTC)
    except OverflowError:
        return (datetime.min if when.year == 1 else datetime.max).replace(tzinfo=UTC)


def _on(day: datetime, clock: str, moved: timedelta) -> datetime:
    """The end of a range of times, moved like its beginning."""
    hour, minute = map(int, clock.split(":"))
    return day.replace(hour=hour, minute=minute) + timedelta(seconds=moved.seconds)


def read_stamp(word: str, text: str) -> Stamp:
    """An active stamp of a planning line. Raises PlanningError."""
    found = _STAMP.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        day = date.fromisoformat(found["day"])
        hour, minute = map(int, (found["clock"] or "0:0").split(":"))
        _on(datetime(1, 1, 1), found["end"] or "0:0", timedelta())
        when = datetime(day.year, day.month, day.day, hour, minute)
    except ValueError:
        raise PlanningError(f"{excerpt(text)} is not a time, such as {word}: {WANTED}.") from None
    repeats = _REPEATER.search(found["cookies"])
    if repeats is None:
        return Stamp(text, when, bool(found["clock"]))
    stamp = Stamp(text, when, bool(found["clock"]), repeats[1], int(repeats[2]), repeats[3])
    if not stamp.number:
        raise PlanningError(f"{excerpt(text)} never moves: a repeater is at least 1, as in {WANTED}.")
    if stamp.unit == "h" and not stamp.has_clock:
        raise PlanningError(f"{excerpt(text)} repeats by hours but has no hour; write one, as in {WANTED}.")
    return stamp


def read_planning(line: str) -> dict[str, Stamp]:
    """The stamps of a planning line by their words, SCHEDULED and DEADLINE. Raises PlanningError."""
    return {found[1]: read_stamp(found[1], found[2]) for found in _PLANNED.finditer(line)}


def moved_line(line: str, moved: dict[str, Stamp]) -> str:
    """The planning line with other stamps."""

    def put(found: re.Match[str]) -> str:
        stamp = moved.get(found[1])
        return found[0] if stamp is None else found[0].replace(found[2], stamp.text)

    return _PLANNED.sub(put, line)
