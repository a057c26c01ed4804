"""The log of a flight in its session's transcript: which plan it flies, and the status of each step.

Knows the transcript only, which is the only record of a flight. Must not know plans' files, doors or models.

A flight has a number in its session. The events of flight 1 have the key ``f1``, those of its steps
``f1/ID``. An attempt at a step is the run ``f1/ID/ATTEMPT``, so that its calls have keys of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from quoth.agent.session.past import Past
from quoth.agent.session.session import Session
from quoth.tools.history.event import Event
from quoth.tools.history.transcript import Transcript
from quoth.tools.storage.database import Store

OVER = ("done", "failed", "denied", "skipped")  # a step that is so has ended


@dataclass(frozen=True)
class StepStatus:
    """The status of a step, or of a group with an expectation, as one event records it. ``attempt`` counts
    all attempts of the flight, ``tries`` those since the step was last reset; ``text`` is the reason."""

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
    begun: int  # the place of its first event
    plan: str = ""
    ended: int = 0  # the place of the event that says how it ended last
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
        """Whether the session still has the event with which this flight began."""
        return self.session.transcript.holds(self.session.id, self.begun, self.key)

    def latest(self, step: str) -> StepStatus | None:
        found = self.history.get(step)
        return found[-1] if found else None

    def failed_last(self, step: str, digest: str) -> StepStatus | None:
        """Return the last ended try of a step, if it failed and the step has the same digest now."""
        over = [one for one in self.history.get(step, ()) if one.over]
        return over[-1] if over and (over[-1].status, over[-1].digest) == ("failed", digest) else None

    def add(self, one: StepStatus, *, synced: bool = True) -> None:
        """Append the status of a step. Unless it is ``synced``, it is on disk with what is written next."""
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
        """Append the status with which this flight ends or pauses."""
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
    """Whether a run, by its name, is an attempt at a step of a flight."""
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
    """Yield the events with which this user's flights of a plan began, the latest first. Imported sessions
    are left out."""
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
