"""Writes TODO words, results and log lines into a plan's file during a flight; each write is atomic.

Changes by an editor during the flight are kept: edits are applied to the current text, and a step that
changed since it was flown is not edited. Edits are made in memory, and many may be written together later.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from quoth.agent.plan.markdown_reader import read_markdown
from quoth.agent.plan.model import TODO_LINE, Part, Plan
from quoth.agent.plan.org_reader import read_plan
from quoth.agent.session.past import Past
from quoth.agent.session.session import Session
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.history.event import Event
from quoth.tools.history.transcript import Transcript
from quoth.tools.org.sections import OrgParts
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.database import Store
from quoth.tools.storage.file_lock import hold

# The log of a flight in its session's transcript: the plan, and the status of each step. The transcript is
# the
# only record of a flight.
#
# A flight has a number in its session. The events of flight 1 have the key ``f1``, those of its steps
# ``f1/ID``. An attempt at a step is the run ``f1/ID/ATTEMPT``, so that its calls have keys of their own.


OVER = ("done", "failed", "denied", "skipped")  # the statuses of ended steps


@dataclass(frozen=True)
class StepStatus:
    """The status of a step, or of a group with an expectation, from one event. ``attempt`` counts all
    attempts of the flight, ``tries`` those since the last reset of the step; ``text`` is the reason."""

    id: str
    status: str
    digest: str
    attempt: int
    tries: int
    text: str = ""
    seconds: float = 0.0
    seq: int = 0
    at: str = ""

    @property
    def over(self) -> bool:
        return self.status in OVER


@dataclass
class FlightLog:
    """The log of one flight: the status events read so far, and methods that append new ones."""

    session: Session
    number: int
    begun: int  # number of its first event
    plan: str = ""
    ended: int = 0  # number of the event with its last end
    status: str = ""
    history: dict[str, list[StepStatus]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"f{self.number}"

    def run_of(self, step: str, attempt: int) -> str:
        """Return the name of the run for an attempt at a step."""
        return f"{self.key}/{step}/{attempt}"

    def past(self, step: str, attempt: int) -> Past:
        """Return the recorded calls and replies of an attempt."""
        return self.session.past(self.run_of(step, attempt))

    def is_there(self) -> bool:
        """Whether the session still has the first event of this flight."""
        return self.session.transcript.holds(self.session.id, self.begun, self.key)

    def latest(self, step: str) -> StepStatus | None:
        found = self.history.get(step)
        return found[-1] if found else None

    def failed_last(self, step: str, digest: str) -> StepStatus | None:
        """Return the last ended attempt at a step, if it failed and the step's digest is unchanged."""
        over = [one for one in self.history.get(step, ()) if one.over]
        return over[-1] if over and (over[-1].status, over[-1].digest) == ("failed", digest) else None

    def add(self, one: StepStatus, *, synced: bool = True) -> None:
        """Append the status of a step. Unless ``synced``, it reaches the disk with the next write."""
        data: dict[str, Any] = {"id": one.id, "status": one.status, "digest": one.digest}
        data |= {"attempt": one.attempt, "try": one.tries} | ({"text": one.text} if one.text else {})
        data |= {"seconds": round(one.seconds, 3)} if one.seconds else {}
        transcript, session = self.session.transcript, self.session.id
        run, key = self.run_of(one.id, one.attempt), f"{self.key}/{one.id}"
        with transcript.together(synced=synced):
            event = transcript.append(
                session, "step", data, run=run, parent=self.begun, key=key, status=one.status
            )
            text = event.said["text"] if one.text else ""  # without secrets
            if one.over:
                self.session.forget_secrets(run)
        self._note(replace(one, text=text, seconds=round(one.seconds, 3), seq=event.seq, at=event.at))

    def end(self, status: str) -> None:
        """Append the status of the end or the pause of this flight."""
        transcript = self.session.transcript
        data = {"status": status}
        self.ended = transcript.add(
            self.session.id, "flight", data, parent=self.begun, key=self.key, status=status
        )
        self.status = status
        self.session.forget_opening()

    def _read(self, event: Event) -> None:
        data = event.said
        status = StepStatus(
            data["id"],
            data["status"],
            data["digest"],
            data["attempt"],
            data["try"],
            data.get("text", ""),
            data.get("seconds", 0.0),
            event.seq,
            event.at,
        )
        self._note(status)

    def _note(self, status: StepStatus) -> None:
        self.history.setdefault(status.id, []).append(status)


def is_flown(run: str) -> bool:
    """Whether the name of a run is that of an attempt at a step of a flight."""
    return re.match(r"f\d+/", run) is not None


def begin_flight(session: Session, plan: str, title: str, digest: str) -> FlightLog:
    """Record a new flight in a session. ``plan`` is the path of its file."""
    transcript = session.transcript
    number = 1 + sum(not event.status for event in transcript.events(session.id, kind="flight"))
    data = {"plan": plan, "title": title, "digest": digest, "user": session.user}
    seq = transcript.add(session.id, "flight", data, key=f"f{number}")
    return FlightLog(session, number, seq, plan)


def read_flight(session: Session, begun: Event) -> FlightLog:
    """Read the log of the flight that began with the event ``begun``."""
    log = FlightLog(session, int(begun.key[1:]), begun.seq, str(begun.data["plan"]))
    for event in session.transcript.events(session.id, kind="flight", after=begun.seq):
        if event.key == begun.key:
            log.ended, log.status = event.seq, event.status
    for event in session.transcript.events(session.id, kind="step", after=begun.seq):
        if event.key.startswith(f"{begun.key}/"):
            log._read(event)
    return log


def flights(store: Store, transcript: Transcript, plan: str, user: str, session: str = "") -> Iterator[Event]:
    """Yield the first events of this user's flights of a plan, the latest first. Imported sessions are left
    out."""
    names = store.execute(
        "SELECT session FROM events WHERE kind = 'flight'"
        " AND session NOT IN (SELECT session FROM imported) GROUP BY session ORDER BY max(at) DESC, session"
    )
    for (name,) in names:
        if session in ("", name):
            for event in reversed(list(transcript.events(name, kind="flight"))):
                data = event.data
                if not event.status and (data["plan"], data["user"]) == (plan, user):
                    yield event


def flown_in(transcript: Transcript, session: str) -> str:
    """Return the path of the plan that a session flew last, or an empty text."""
    found = [e for e in transcript.events(session, kind="flight") if not e.status]
    return str(found[-1].data["plan"]) if found else ""


MARKDOWN = (".md", ".markdown")
_ATTEMPT = re.compile(r"(\w+) \[[^]]*\] (digest \w+, session .*?)(?:: |$)")
TRIES = 20  # attempts to write while another process writes too


class PlanChangedError(QuothError):
    """The step was changed or removed in the file since it was flown, so it was not edited."""


@dataclass(frozen=True)
class FileEdit:
    """An edit of a part: its TODO word, lines of its log (oldest first), and results by the index of their
    block. The key None means the model's answer; a result of None is deleted. The part must have the
    ``digest`` if it is given, and one of the TODO words ``over`` if there are any."""

    id: str
    word: str
    digest: str = ""
    log: Sequence[str] = ()
    results: Mapping[int | None, str | None] = field(default_factory=dict)
    over: Sequence[str] = ()


class PlanFile:
    """The file of a plan. ``shown`` is its path as the user gave it, ``plan`` the plan as last read. Raises
    UsageError for a file that cannot be read."""

    def __init__(self, path: str | Path) -> None:
        self.shown = str(path)
        try:
            self.path = Path(path).resolve()
        except (OSError, RuntimeError) as error:
            raise UsageError(f"{self.shown} cannot be found: {error}.") from None
        self.is_org = self.path.suffix.lower() not in MARKDOWN
        self._data = b""
        self._saved: OrgParts | None = None  # the parsed ``_data``
        self._org: OrgParts | None = None  # the same with the unwritten edits
        self._due: list[FileEdit] = []
        self._made: dict[str, FileEdit] = {}  # the last edit of each part in ``_org``
        self._lost: list[str] = []  # messages about edits whose part an editor removed or changed
        self.plan = self._taken(self._bytes())

    @property
    def data(self) -> bytes:
        """The text of the file as last read."""
        return self._data

    def _bytes(self) -> bytes:
        try:
            if not stat.S_ISREG(mode := self.path.stat().st_mode) and not stat.S_ISDIR(mode):
                raise UsageError(f"{self.shown} is not a file; a plan is a file.")
            return self.path.read_bytes()
        except FileNotFoundError:
            near = self.path.with_name(f"{self.path.name}.org")
            hint = f" Did you mean {near.name}?" if not self.path.suffix and near.is_file() else ""
            raise UsageError(f"There is no plan {self.shown}.{hint}") from None
        except IsADirectoryError:
            raise UsageError(f"{self.shown} is a folder; a plan is a file.") from None
        except OSError as error:
            raise UsageError(f"{self.shown} cannot be read: {error.strerror}.") from None

    def _taken(self, data: bytes) -> Plan:
        self._data, self._made = data, {}
        if not self.is_org:
            return read_markdown(data, self.shown)
        org, plan = read_plan(data, self.shown)
        self._saved = self._org = OrgParts(org)
        return plan

    def place(self, part: Part) -> str:
        """Return ``FILE:LINE`` of a part in the present file."""
        now = self.plan.by_id.get(part.id)
        if now is None or self._org is None:
            return str(part.place)
        return f"{self.shown}:{self._org.row(now.entry) + 1}"

    @property
    def notes(self) -> list[str]:
        """A sentence for the user if the file is write-protected."""
        if self.is_org and self._is_protected():
            return [f"{self.shown} is write-protected, so no results are written to it."]
        return []

    @property
    def advice(self) -> str:
        """A sentence about a plan that quoth can fly but whose TODO words Org does not know; empty
        otherwise."""
        if self._org is None or any(self._org.whole().keywords("TODO", "SEQ_TODO", "TYP_TODO")):
            return ""
        return (
            f"Org reads PLAN here as part of a title. For Emacs, begin {self.shown} with #+TODO: {TODO_LINE}"
        )

    def _is_protected(self) -> bool:
        """Whether the file's mode forbids writing, even for root. A read-only disk does not count: there a
        write fails with an error, because the user did not choose to leave out the results."""
        try:
            mode = self.path.stat().st_mode
            if mode & 0o222 and os.statvfs(self.path).f_flag & os.ST_RDONLY:
                return False
        except OSError:
            return False  # reading the file reports the error
        return not (mode & 0o222 and os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))

    def write(self, edits: Sequence[FileEdit]) -> list[str]:
        """Write edits into the file, and return a sentence for each one that cannot be written. A Markdown or
        write-protected plan is not changed."""
        return list(dict.fromkeys([*self.edit(edits), *self.save(), *self.lost()]))

    def edit(self, edits: Sequence[FileEdit]) -> list[str]:
        """Like ``write``, but only in memory, for ``save`` to write. ``lost`` reports earlier edits that
        failed meanwhile."""
        try:
            self.reload()
        except UsageError as error:
            return [str(error)]
        if self._is_protected():
            self._drop()
        return self._make(edits)

    def save(self) -> list[str]:
        """Write the pending edits. Return a sentence for each failure, and drop the failed edits."""
        for _ in range(TRIES):
            try:
                self.reload()
                if self._is_protected():
                    self._drop()
                if not self._due or self._org is None:
                    return []
                new = self._org.dump()
                if new == self._data or self._replace(new):
                    self._data, self._saved, self._due = new, self._org, []
                    return []
            except UsageError as error:
                self._drop()
                return [str(error)]
            except OSError as error:
                self._drop()
                return [f"{self.shown} cannot be written: {error.strerror}."]
        self._drop()
        return [f"Another program keeps writing {self.shown}, so quoth did not write to it."]

    def reload(self) -> Plan:
        """Return the current plan, after reading a changed file again. Raises UsageError."""
        data = self._bytes()
        if data != self._data:
            self.plan = self._taken(data)
            due, self._due = self._due, []
            self._lost += self._make(due)
        return self.plan

    def _make(self, edits: Sequence[FileEdit]) -> list[str]:
        """Make edits in memory; return a sentence for each failure."""
        org, faults = None if self._is_protected() else self._org, []
        for edit in edits:
            try:
                part = self._part(edit)
                if org is not None and self._made.get(edit.id) is not edit:
                    self._made[edit.id] = edit
                    org = self._org = _edited(org, part, edit)
                    self._due.append(edit)
            except QuothError as error:
                faults.append(str(error))
        return faults

    def _drop(self) -> None:
        """Drop the unwritten edits."""
        self._org, self._due, self._made = self._saved, [], {}

    def lost(self) -> list[str]:
        """Return, once, the sentences about edits whose part an editor removed or changed before the
        write."""
        lost, self._lost = self._lost, []
        return lost

    def _part(self, edit: FileEdit) -> Part:
        part = self.plan.by_id.get(edit.id)
        if part is None:
            raise PlanChangedError(
                f"{self.shown} was changed meanwhile and no longer has the step {edit.id}."
            )
        if edit.digest and self.plan.digest(part) != edit.digest:
            raise PlanChangedError(
                f"{part.place}: {self.shown} was changed meanwhile: {edit.id} differs from the flown step, so"
                f" {edit.word} is not written there."
            )
        return part

    def _replace(self, new: bytes) -> bool:
        """Replace the text of the file; return False if the file changed since it was read."""
        mode = stat.S_IMODE(self.path.stat().st_mode)
        with hold(f"writing of {self.path}"):  # a flight and a decision may write at the same time
            return replace_file(self.path, [new], mode, sure=lambda: self._bytes() == self._data)


def _edited(org: OrgParts, part: Part, edit: FileEdit) -> OrgParts:
    """The file with an edit applied. Raises QuothError."""
    index, new = part.entry, org.copy()
    todo = org.entry(index).todo
    if edit.over and todo not in edit.over:
        return org
    word = edit.word if edit.word in (*org.todo_words, "") else "RUNNING"  # the file has no WAITING
    if word and todo != word:
        new.set_todo(index, word)
    for block, text in edit.results.items():
        if block is not None:
            new.put_results(index, block, text)
        else:
            new.put_entry_results(index, part.id, text)
    for line in _missing(new.lines(index), edit.log):
        new.add_to_drawer(index, "LOGBOOK", line)
    return new


def _missing(lines: Sequence[str], log: Sequence[str]) -> list[str]:
    """Return the lines of ``log`` that are missing in ``lines``, compared without their times."""
    stripped = (line.strip() for line in lines)
    there = Counter(_without_time(line[2:]) for line in stripped if line.startswith("- "))
    found = []
    for line in log:
        there[_without_time(line)] -= 1
        if there[_without_time(line)] < 0:
            found.append(line)
    return found


def _without_time(line: str) -> str:
    """Return the identifying part of a line of the log: attempt and status. Time and reason are left out,
    because the time depends on the time zone."""
    found = _ATTEMPT.match(line)
    return f"{found[1]} {found[2]}" if found else line
