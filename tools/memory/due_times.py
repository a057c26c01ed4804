"""Times of reminders and tasks: what a person or a model writes, what Org writes, and time zones.

Knows the calendar only; it must not know files or tools. A time is an instant (an aware datetime) or a whole
day (a date).
"""

from __future__ import annotations

import os
import re
from datetime import UTC, date, datetime, timedelta, tzinfo

from quoth.tools.errors import ToolError
from quoth.tools.text import excerpt

When = datetime | date
FORM = "2030-12-01 09:00, 2030-12-01T09:00+01:00, in 2 hours or tomorrow 9:00"
_CLOCK = r"(\d{1,2}):(\d\d)(?::(\d\d))?"
_AT = re.compile(
    rf"(\d{{4}}-\d\d-\d\d|yesterday|today|tomorrow)(?:(?:T| +at +| +){_CLOCK} *(Z|[+-]\d\d:?\d\d)?)?", re.I
)
_IN = re.compile(r"in (\d{1,5}) ?(minute|min|hour|h|day|d|week|w)s?", re.I)
_PASTED = re.compile(
    r"[<\[](\d{4}-\d\d-\d\d)(?: [^\s\d<>+.-]+\.?)?( \d{1,2}:\d\d)?((?: [.+-]+\d+[hdwmy]\S*?)*)[>\]]"
)
_POSIX_ZONE = re.compile(r"(?:[A-Za-z]{3,}|<[\w+-]{3,}>)[+-]?\d.*|/.+")  # or the path of a file
_UNITS = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_STAMP = re.compile(
    r"<(\d{4}-\d\d-\d\d)(?: [^\s\d<>+.-]+)?(?: (\d{1,2}):(\d\d)(?:-\d{1,2}:\d\d)?)?"
    r"((?: [.+-]+\d+[hdwmy]\S*)*)>"
)


def local_zone() -> tzinfo:
    """The time zone of this process: that of ``TZ``, else that of the machine. Raises ToolError for a zone in
    ``TZ`` that is unknown, which the clock would take for UTC."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if name and zone_named(name) is None and not _POSIX_ZONE.fullmatch(name):
        raise ToolError(
            f"There is no time zone {excerpt(name)!r}, which TZ names; "
            "zones are named as UTC or Europe/Berlin."
        )
    name = name or os.path.realpath("/etc/localtime").rpartition("/zoneinfo/")[2]
    return zone_named(name) or datetime.now().astimezone().tzinfo or UTC


def zone_named(name: str) -> tzinfo | None:
    """The zone of that name, such as Europe/Berlin, or None."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # no such zone, no such name, a folder of zones
        return None


def zone_name(zone: tzinfo) -> str:
    """The name of a zone that ``zone_named`` knows, or an empty text."""
    return str(getattr(zone, "key", ""))


def read_when(what: str, text: str, now: datetime, zone: tzinfo) -> tuple[When, str]:
    """The time that ``text`` says, and a remark where the clock is changed then, or nothing. A time without
    an offset is one of ``zone``. Raises ToolError, naming ``what``, for one that is unreadable or past."""
    words, here = _unstamped(what, text.strip()), now.astimezone(zone)
    try:
        when, remark = _counted(words, here) or _dated(words, here) or (None, "")
    except (ValueError, OverflowError):  # the 30th of February, 25 o'clock, the year 10000
        when, remark = None, ""
    if when is None:
        _check_day(what, words)
        raise ToolError(f"{what} is a time such as {FORM}, not {excerpt(text)!r}.")
    if (when < now) if isinstance(when, datetime) else (when < here.date()):
        raise ToolError(
            f"{what} {excerpt(text)!r} is past: it is {_spelt(here)} now; give a later time, such as {FORM}."
        )
    return when, remark


def _unstamped(what: str, words: str) -> str:
    """A stamp pasted from Org, as this module's words for its time. Raises ToolError for one that repeats."""
    found = _PASTED.fullmatch(words)
    if not found:
        return words
    if found[3]:
        raise ToolError(
            f"{what} {excerpt(words)!r} has {found[3].strip()}, but one time is set here: "
            f"give {found[1]}{found[2] or ''}, and add the rest in Emacs."
        )
    return found[1] + (found[2] or "")


def _check_day(what: str, words: str) -> None:
    """Raise ToolError for a day that its month does not have."""
    found = re.match(r"(\d{4})-(0[1-9]|1[0-2])-(29|30|31)(?!\d)", words)
    if found and found[1] != "0000":
        first = date(int(found[1]), int(found[2]), 1)
        if (first + timedelta(int(found[3]) - 1)).month != first.month:
            raise ToolError(f"There is no {found[3]} {first:%B %Y}, which {what} says.")


def _counted(words: str, here: datetime) -> tuple[When, str] | None:
    """``in 2 hours``: hours and minutes by the clock on the wall of no zone, days by that of this one."""
    found = _IN.fullmatch(words)
    if not found:
        return None
    unit = found[2].lower()
    step = timedelta(**{_UNITS.get(unit, f"{unit}s"): int(found[1])})
    if step.days and unit[0] in "dw":
        return _settled((here + step).replace(tzinfo=None), here.tzinfo)
    return (here.astimezone(UTC) + step).astimezone(here.tzinfo), ""


def _dated(words: str, here: datetime) -> tuple[When, str] | None:
    found = _AT.fullmatch(words)
    if not found:
        return None
    days = {"yesterday": -1, "today": 0, "tomorrow": 1}.get(found[1].lower())
    day = date.fromisoformat(found[1]) if days is None else here.date() + timedelta(days)
    if found[2] is None:
        return day, ""
    clock = datetime(day.year, day.month, day.day, int(found[2]), int(found[3]), int(found[4] or 0))
    if found[5]:
        exact = datetime.fromisoformat(f"{clock.isoformat()}{found[5].upper()}")
        return exact.astimezone(here.tzinfo), ""
    return _settled(clock, here.tzinfo)


def _settled(clock: datetime, zone: tzinfo | None) -> tuple[datetime, str]:
    """A time of the clock on the wall as an instant. One that is left out when the clocks change is as much
    later; of one that comes twice the first is meant."""
    first = clock.replace(tzinfo=zone)
    exact = first.astimezone(UTC).astimezone(zone)
    if exact.replace(tzinfo=None) != clock:
        return (
            exact,
            f"{clock:%H:%M} is left out on that day, when the clocks change; it is {exact:%H:%M} then.",
        )
    if first.utcoffset() != first.replace(fold=1).utcoffset():
        return exact, f"{clock:%H:%M} comes twice on that day; the first is meant, at {exact:%H:%M%z}."
    return exact, ""


# Org


def stamp(when: When, brackets: str = "<>") -> str:
    """A time as Org writes it, in the zone it is in."""
    form = "%Y-%m-%d %a %H:%M" if isinstance(when, datetime) else "%Y-%m-%d %a"
    return f"{brackets[0]}{when.strftime(form)}{brackets[1]}"


def read_stamp(text: str, exact: str, zone: tzinfo) -> tuple[When, bool] | None:
    """The time of an active time stamp, and whether it repeats; None for one that is none.

    ``exact`` is the time in RFC 3339 that was written beside the stamp. It counts where both show the same
    clock; where they differ somebody has moved the stamp, which then is a time of ``zone``."""
    found = _STAMP.match(text)
    if not found:
        return None
    repeats = "+" in found[4]
    try:
        day = date.fromisoformat(found[1])
        if found[2] is None:
            return day, repeats
        clock = datetime(day.year, day.month, day.day, int(found[2]), int(found[3]))
        known = _instant(exact)
        if known and known.replace(tzinfo=None, second=0, microsecond=0) == clock:
            return known, repeats
        return _settled(clock, zone)[0], repeats
    except (ValueError, OverflowError):
        return None


def _instant(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None


def exact_text(when: When) -> str:
    """A time in RFC 3339, with its offset; a day as its date."""
    return when.isoformat(timespec="seconds") if isinstance(when, datetime) else when.isoformat()


def instant_of(when: When, zone: tzinfo) -> datetime:
    """When it is due: a day from its beginning on."""
    if isinstance(when, datetime):
        return when
    return _settled(datetime(when.year, when.month, when.day), zone)[0]


def _spelt(when: datetime) -> str:
    name = zone_name(when.tzinfo) if when.tzinfo else ""
    return f"{when:%Y-%m-%d %H:%M} {name or when.strftime('%z')}"


def in_words(when: When, now: datetime, zone: tzinfo) -> str:
    """A time for a person: ``today 09:00``, ``tomorrow 09:00``, ``2026-12-01 Tue 09:00``."""
    local = when.astimezone(zone) if isinstance(when, datetime) else when
    day = local.date() if isinstance(local, datetime) else local
    days = (day - now.astimezone(zone).date()).days
    near = {-1: "yesterday", 0: "today", 1: "tomorrow"}.get(days, f"{day:%Y-%m-%d %a}")
    return f"{near} {local:%H:%M}" if isinstance(local, datetime) else near
