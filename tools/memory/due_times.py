"""Times of reminders and tasks, as people, models and Org write them, and time zones.

A time is an instant (an aware datetime) or a whole day (a date).
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
_POSIX_ZONE = re.compile(r"(?:[A-Za-z]{3,}|<[\w+-]{3,}>)[+-]?\d.*|/.+")  # or a file path
_UNITS = {"min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_STAMP = re.compile(
    r"<(\d{4}-\d\d-\d\d)(?: [^\s\d<>+.-]+)?(?: (\d{1,2}):(\d\d)(?:-\d{1,2}:\d\d)?)?"
    r"((?: [.+-]+\d+[hdwmy]\S*)*)>"
)


def local_zone() -> tzinfo:
    """The time zone of this process: the one in ``TZ``, otherwise the machine's. Raises ToolError if the zone
    in ``TZ`` is unknown (the C library would silently use UTC)."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if name and zone_named(name) is None and not _POSIX_ZONE.fullmatch(name):
        raise ToolError(
            f"Unknown time zone {excerpt(name)!r} in the environment variable TZ. "
            "Write a zone as UTC or Europe/Berlin."
        )
    name = name or os.path.realpath("/etc/localtime").rpartition("/zoneinfo/")[2]
    return zone_named(name) or datetime.now().astimezone().tzinfo or UTC


def zone_named(name: str) -> tzinfo | None:
    """The zone of that name, such as Europe/Berlin, or None."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # an unknown zone, an invalid name, a folder of zones
        return None


def zone_name(zone: tzinfo) -> str:
    """The name of a zone that ``zone_named`` knows, or an empty text."""
    return str(getattr(zone, "key", ""))


def read_when(what: str, text: str, now: datetime, zone: tzinfo) -> tuple[When, str]:
    """The time in ``text``, and a remark if the clocks change then, otherwise an empty text. A time without
    an offset is in ``zone``. Raises ToolError, naming ``what``, if the text cannot be read or the time is
    past."""
    words, here = _unstamped(what, text.strip()), now.astimezone(zone)
    try:
        when, remark = _counted(words, here) or _dated(words, here) or (None, "")
    except (ValueError, OverflowError):  # the 30th of February, 25 o'clock, the year 10000
        when, remark = None, ""
    if when is None:
        _check_day(what, words)
        raise ToolError(f"{what} must be a time such as {FORM}, not {excerpt(text)!r}.")
    if (when < now) if isinstance(when, datetime) else (when < here.date()):
        raise ToolError(
            f"{what} {excerpt(text)!r} is past: it is {_spelt(here)} now. Give a later time, such as {FORM}."
        )
    return when, remark


def _unstamped(what: str, words: str) -> str:
    """The time of a pasted Org stamp, in the form that ``read_when`` reads. Raises ToolError if it
    repeats."""
    found = _PASTED.fullmatch(words)
    if not found:
        return words
    if found[3]:
        raise ToolError(
            f"{what} {excerpt(words)!r} has {found[3].strip()}, but only a single time can be set here. "
            f"Give {found[1]}{found[2] or ''}, and add the rest in Emacs."
        )
    return found[1] + (found[2] or "")


def _check_day(what: str, words: str) -> None:
    """Raise ToolError if the month does not have that day."""
    found = re.match(r"(\d{4})-(0[1-9]|1[0-2])-(29|30|31)(?!\d)", words)
    if found and found[1] != "0000":
        first = date(int(found[1]), int(found[2]), 1)
        if (first + timedelta(int(found[3]) - 1)).month != first.month:
            raise ToolError(f"{what} is not a valid date: there is no {found[3]} {first:%B %Y}.")


def _counted(words: str, here: datetime) -> tuple[When, str] | None:
    """``in 2 hours``: hours and minutes are elapsed time, days and weeks are calendar days of this zone."""
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
    """A local time as an instant. A time skipped when the clocks change is moved later by the change; of a
    time that occurs twice, the first is taken."""
    first = clock.replace(tzinfo=zone)
    exact = first.astimezone(UTC).astimezone(zone)
    if exact.replace(tzinfo=None) != clock:
        return (
            exact,
            f"{clock:%H:%M} does not exist on that day, because the clocks change; {exact:%H:%M} is used.",
        )
    if first.utcoffset() != first.replace(fold=1).utcoffset():
        return exact, f"{clock:%H:%M} occurs twice on that day; the first is used, at {exact:%H:%M%z}."
    return exact, ""


# Org


def stamp(when: When, brackets: str = "<>") -> str:
    """A time as an Org stamp, in its own zone."""
    form = "%Y-%m-%d %a %H:%M" if isinstance(when, datetime) else "%Y-%m-%d %a"
    return f"{brackets[0]}{when.strftime(form)}{brackets[1]}"


def read_stamp(text: str, exact: str, zone: tzinfo) -> tuple[When, bool] | None:
    """The time of an active time stamp, and whether it repeats; None if ``text`` is not an active stamp.

    ``exact`` is the RFC 3339 time stored beside the stamp. It is used if both show the same local time. If
    they differ, a person has changed the stamp; the stamp is then read as a time in ``zone``."""
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
    """The instant when it is due; for a day, its beginning."""
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
