"""When plans are due: the stamp on a plan's headline, and the record of each time it was flown.

The first headline of a file with ``SCHEDULED:`` or ``DEADLINE:`` gives the plan's time. Each time that is
reached is an occurrence, a row of the table ``occurrences``, so that it is flown once, also with two
watchers, and if they are killed. The row is written before the flight, and names its session, in which the
flight continues. Whether it is over is read from its transcript. Only then is the stamp moved, and the row
ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import partial
from pathlib import Path

from quoth.agent.plan.model import TODO_WORDS
from quoth.tools.errors import BusyError, ToolError, UsageError
from quoth.tools.history.transcript import Transcript
from quoth.tools.memory.org_tasks import zone_of
from quoth.tools.org.document import load
from quoth.tools.org.planning import WORDS, PlanningError, Stamp, moved_line, read_planning
from quoth.tools.org.sections import OrgParts
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.database import Store
from quoth.tools.storage.file_lock import hold

OPEN = ("begun", "waits")  # states of an occurrence; the others are done, failed, missed and blocked
OVER = ("done", "failed")
TRIES = 20
ENDED = ("DONE", "FAILED", "DENIED", "SKIPPED")
AGAIN = timedelta(seconds=30)  # between two tries of a flight that is not over
BUSY = timedelta(
    seconds=2
)  # until another process may have let the plan go, such as what a killed one started
MOST_BLOCKED = 1000  # occurrences that pass while one waits, noted at once


@dataclass(frozen=True)
class Schedule:
    """The time of a plan: ``at`` is when it is flown, ``until`` its deadline if it has one beside. ``entry``
    is the index of the headline, ``others`` the lines of further headlines with times, from 1."""

    path: Path
    entry: int
    line: int
    stamps: dict[str, Stamp]
    zone: tzinfo
    word: str
    others: tuple[int, ...] = ()

    @property
    def at(self) -> Stamp:
        return self.stamps.get("SCHEDULED") or self.stamps["DEADLINE"]

    @property
    def until(self) -> Stamp | None:
        return self.stamps.get("DEADLINE") if "SCHEDULED" in self.stamps else None

    @property
    def due(self) -> datetime:
        return self.at.instant(self.zone)

    @property
    def is_closed(self) -> bool:
        """Whether a person, or a flight, has ended a headline that does not repeat."""
        return self.word in ENDED and not self.at.repeater

    def notes(self) -> Iterator[str]:
        """Sentences for a person: when it is due, and which times are not used."""
        repeats = f", again by {self.at.repeater}{self.at.number}{self.at.unit}" if self.at.repeater else ""
        closed = f"; its headline is {self.word}, so it is not flown" if self.is_closed else ""
        local = self.due.astimezone(self.zone)
        yield f"{self.path.name}: due {local:%Y-%m-%d %a %H:%M}{repeats}{closed}"
        for line in self.others:
            yield f"{self.path}:{line}: not read: the time of a plan is its first one, in line {self.line}."

    def is_late(self, now: datetime) -> bool:
        """Whether its deadline is past. A deadline without a time is the end of its day."""
        end = self.until
        if end is None:
            return False
        if not end.has_clock:
            end = replace(end, when=datetime.combine(end.when, time.max))
        return end.instant(self.zone) < now


def schedule_of(path: Path, data: bytes) -> Schedule | None:
    """The time of the plan in a file; None if it has none. Raises UsageError, which names file and line."""
    if not any(word.encode() in data for word in WORDS):
        return None
    org = load(data, TODO_WORDS)
    found: list[tuple[int, dict[str, Stamp]]] = []
    for index, entry in enumerate(org.entries):
        if index and entry.planning and not org.is_dead(index):
            try:
                if stamps := read_planning(org.lines[entry.row + 1]):
                    found.append((index, stamps))
            except PlanningError as error:
                raise UsageError(f"{path}:{entry.row + 2}: {error}") from None
    if not found:
        return None
    try:
        zone = zone_of(org, str(path))
    except ToolError as error:
        raise UsageError(str(error)) from None
    (index, stamps), *others = found
    lines = tuple(org.entries[one].row + 2 for one, _ in others)
    return Schedule(path, index, org.entries[index].row + 2, stamps, zone, org.entries[index].todo, lines)


@dataclass(frozen=True)
class Occurrence:
    """A time of a plan that was reached: ``at`` as in its stamp, the session of its flight, and its state."""

    plan: str
    at: str
    session: str
    state: str


class Timetable:
    """The occurrences of plans in a store. ``fly`` flies a plan in a session; ``asks`` returns whether
    a session still has open requests; ``say`` gets what a person should know."""

    def __init__(
        self,
        store: Store,
        fly: Callable[[Path, str], None],
        say: Callable[[str], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        asks: Callable[[str], bool] | None = None,
    ) -> None:
        self._store, self._fly, self._say, self._now = store, fly, say, now
        self._asks = asks or self._has_requests
        self._tried: dict[str, datetime] = {}  # when each open flight was continued last, by its session

    def turn(self, path: Path) -> datetime | None:
        """Do what is due for a plan: continue the occurrence that is open, or fly the next. Returns when to
        look again; None for never. Raises UsageError for a plan that cannot be read or
        flown."""
        with suppress(BusyError), hold(f"occurrences of {path}", "Another process flies it."):
            return self._turn(path)
        return self._now() + BUSY

    def _turn(self, path: Path) -> datetime | None:
        one = self._open(path)
        if one is not None and not self._continue(one, path):
            self._blocked(one, path)
            return self._now()
        while (schedule := _read(path)) is not None and not schedule.is_closed:
            state = self._state(path, schedule.at)
            if state:  # its occurrence is over, as when it was killed before the stamp was moved
                if not self._move(schedule, state, ""):
                    return None
            elif schedule.due > self._now():
                return schedule.due
            elif schedule.is_late(self._now()):
                self._add(Occurrence(str(path), schedule.at.key, "", "missed"))
                self._say(
                    f"{path}: {schedule.at.text} was missed: its deadline {_text(schedule.until)} is past."
                )
            elif not self._continue(self._claim(schedule), path):
                return self._now()
        return None

    # One occurrence

    def _continue(self, one: Occurrence, path: Path) -> bool:
        """Fly an occurrence until it is over; return False if it waits or was interrupted."""
        status = self._flown(one)
        if status not in OVER:
            if not self._may_try(one, status):
                return False
            self._tried[one.session] = self._now()
            try:
                self._fly(path, one.session)
            except BusyError:
                self._tried.pop(one.session)
                raise
            finally:
                status = self._flown(one)
                if status is None:  # a plan with faults, or one that is flown by hand now: nothing was begun
                    self._remove(one)
        if status not in OVER:
            self._set(one, "waits")
            return False
        schedule = _read(path)
        if schedule is not None and schedule.at.key == one.at:
            self._move(schedule, str(status), one.session)
        self._set(one, str(status))
        return True

    def _may_try(self, one: Occurrence, status: str | None) -> bool:
        """Whether a flight that is not over may continue: its requests are decided, and it was not tried
        just now."""
        if status == "pending" and self._asks(one.session):
            self._tried.pop(one.session, None)
            return False
        last = self._tried.get(one.session)
        return last is None or self._now() - last >= AGAIN

    def _flown(self, one: Occurrence) -> str | None:
        """How its flight ended or paused: empty if it did not yet, None if it never began."""
        found = None
        for event in Transcript(lambda: self._store).events(one.session, kind="flight"):
            found = event.status
        return found

    def _blocked(self, one: Occurrence, path: Path) -> None:
        """Note and tell the occurrences that come while one is open."""
        schedule = _read(path)
        if schedule is None or schedule.at.key != one.at:
            return
        stamp = schedule.at.following(schedule.zone)
        for _ in range(MOST_BLOCKED):
            if stamp is None or stamp.instant(schedule.zone) > self._now():
                return
            if not self._state(path, stamp):
                self._add(Occurrence(str(path), stamp.key, one.session, "blocked"))
                self._say(f"{path}: {stamp.text} is not flown, because the flight of {one.at} is not over.")
            stamp = stamp.following(schedule.zone)

    # Rows

    def _claim(self, schedule: Schedule) -> Occurrence:
        name = hashlib.sha256(f"{schedule.path}\n{schedule.at.key}".encode()).hexdigest()[:12]
        one = Occurrence(str(schedule.path), schedule.at.key, f"s{name}", "begun")
        self._add(one)
        return one

    def _add(self, one: Occurrence) -> None:
        with self._store.transaction() as run:
            run(
                "INSERT INTO occurrences (plan, at, session, state) VALUES (?, ?, ?, ?)",
                (one.plan, one.at, one.session, one.state),
            )

    def _set(self, one: Occurrence, state: str) -> None:
        with self._store.transaction() as run:
            run("UPDATE occurrences SET state = ? WHERE plan = ? AND at = ?", (state, one.plan, one.at))

    def _remove(self, one: Occurrence) -> None:
        with self._store.transaction() as run:
            run("DELETE FROM occurrences WHERE plan = ? AND at = ?", (one.plan, one.at))

    def _state(self, path: Path, stamp: Stamp) -> str:
        """The state of an occurrence; empty if it was not reached yet."""
        rows = self._store.execute(
            "SELECT state FROM occurrences WHERE plan = ? AND at = ?", (str(path), stamp.key)
        )
        return next((str(state) for (state,) in rows), "")

    def _open(self, path: Path) -> Occurrence | None:
        rows = self._store.execute(
            "SELECT plan, at, session, state FROM occurrences WHERE plan = ? AND state IN (?, ?)",
            (str(path), *OPEN),
        )
        return next((Occurrence(*row) for row in rows), None)

    def _has_requests(self, session: str) -> bool:
        return bool(
            self._store.execute(
                "SELECT 1 FROM requests WHERE session = ? AND state = 'pending' AND expires > ? LIMIT 1",
                (session, self._now().timestamp()),
            )
        )

    # The file

    def _move(self, schedule: Schedule, state: str, session: str) -> bool:
        """Move the stamps of a plan after an occurrence, with a line in its log. Returns False if it does
        not repeat, or if the file cannot be written."""
        moved = {word: stamp for word, one in schedule.stamps.items() if (stamp := self._next(schedule, one))}
        log = f"{'Flown' if session else 'Not flown'} for {schedule.at.text}: {state}"
        log += f"; session {session}" if session else ""
        again = bool(schedule.at.repeater)
        if not session and not again:
            return False
        try:
            _rewrite(schedule, moved, log, "PLAN" if again else "")
        except (OSError, UsageError) as error:
            self._say(
                f"{schedule.path} keeps its time {schedule.at.text}, because it cannot be written: {error}"
            )
            return False
        return again

    def _next(self, schedule: Schedule, stamp: Stamp) -> Stamp | None:
        try:
            return stamp.next(self._now(), schedule.zone)
        except PlanningError as error:
            raise UsageError(f"{schedule.path}:{schedule.line}: {error}") from None


def _text(stamp: Stamp | None) -> str:
    return "" if stamp is None else stamp.text


def _read(path: Path) -> Schedule | None:
    try:
        return schedule_of(path, path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None


def _rewrite(schedule: Schedule, moved: dict[str, Stamp], log: str, word: str) -> None:
    """Put moved stamps, a line of the log and a TODO word into the file, unless its time was changed
    meanwhile. Raises OSError, UsageError."""
    path = schedule.path
    for _ in range(TRIES):
        data = path.read_bytes()
        now = schedule_of(path, data)
        if now is None or now.stamps != schedule.stamps:
            return
        parts = OrgParts(load(data, TODO_WORDS))
        line = parts.lines(now.entry)[1]
        parts.set_planning(now.entry, moved_line(line, moved))
        if not any(log in one for one in parts.lines(now.entry)):
            parts.add_to_drawer(now.entry, "LOGBOOK", log)
        if word and parts.entry(now.entry).todo in ENDED:
            parts.set_todo(now.entry, word)
        new = parts.dump()
        with hold(f"writing of {path}"):
            mode = path.stat().st_mode & 0o7777
            if new == data or replace_file(path, [new], mode, sure=partial(_is_still, path, data)):
                return
    raise UsageError("another program keeps writing it.")


def _is_still(path: Path, data: bytes) -> bool:
    return path.read_bytes() == data


def plans_in(folder: Path) -> Iterable[Path]:
    """The Org files of a folder, or the one file. Raises UsageError."""
    if folder.is_file():
        return [folder.resolve()]
    if not folder.is_dir():
        raise UsageError(f"{folder} is neither a plan nor a folder of plans.")
    return sorted(
        one.resolve() for one in folder.glob("*.org") if one.is_file() and not one.name.startswith(".")
    )
