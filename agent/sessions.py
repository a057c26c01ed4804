"""The sessions of a workspace: which there are, which are unfinished, and the one that a person means.

Knows transcripts; it must not know agents, doors or models.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.session import Session
from tools.errors import UsageError, did_you_mean
from tools.store import Store
from tools.transcript import Transcript


@dataclass(frozen=True)
class Summary:
    """A session in one line. ``status`` is that of its last run: ``done failed pending interrupted``, or
    ``unfinished`` for what was broken off; ``calls`` for a session without a run. ``first`` and ``last`` are
    times, UTC; ``task`` is what was asked first; ``users`` all who have used it."""

    id: str
    users: tuple[str, ...]
    first: str
    last: str
    events: int
    runs: int
    calls: int
    status: str
    task: str
    model: str
    waits: int  # requests, calls and runs that are unfinished

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "users": list(self.users)}


def summaries(store: Store) -> list[Summary]:
    """Every session of the store, the one that something happened in last at the end."""
    transcript = Transcript(lambda: store)
    return [summary(transcript, *row) for row in transcript.sessions()]


def summary(transcript: Transcript, session: str, events: int, first: str, last: str) -> Summary:
    """One session in one line."""
    users = users_of(transcript, session)
    stimuli = [e for e in transcript.events(session, kind="stimulus") if "/" not in e.run]
    ends = {e.run: e.status for e in transcript.events(session, kind="end")}
    waits = sum(
        1 for user in users for one in Session(transcript, session, user, Path()).unfinished() if one.waits
    )
    status = (ends.get(stimuli[-1].run) or "unfinished") if stimuli else "calls"
    given = stimuli[0].said if stimuli else {}
    return Summary(
        session,
        tuple(users),
        first,
        last,
        events,
        len(stimuli),
        transcript.count(session, "call"),
        status,
        " ".join(str(given.get("text", "")).split()),
        str(given.get("model", "")),
        waits,
    )


def users_of(transcript: Transcript, session: str) -> list[str]:
    """Who has used a session, in the order of their first use."""
    return list(dict.fromkeys(str(e.data["user"]) for e in transcript.events(session, kind="session")))


def find_session(store: Store | None, wanted: str) -> str:
    """The session of that id, or the only one whose id begins so. Raises UsageError with the nearest."""
    names = [] if store is None else [row[0] for row in Transcript(lambda: store).sessions()]
    if wanted in names:
        return wanted
    begins = [name for name in names if wanted and name.startswith(wanted)]
    if len(begins) == 1:
        return begins[0]
    if begins:
        raise UsageError(f"Several sessions begin with {wanted}: {', '.join(begins[:5])}.")
    latest = f" The latest are {', '.join(names[-5:])}." if names else ""
    raise UsageError(
        f"There is no session {wanted} in this workspace.{did_you_mean(wanted, names) or latest}"
    )


def last_session(store: Store | None) -> str:
    """The session with a run in which something happened last. Raises UsageError when there is none."""
    found = [] if store is None else [s for s in summaries(store) if s.runs]
    if not found:
        raise UsageError("There is no session in this workspace.")
    return found[-1].id


def unfinished_sessions(store: Store) -> list[tuple[str, str]]:
    """The sessions in which something waits or was broken off, and their users, the latest at the end."""
    transcript = Transcript(lambda: store)
    return [
        (name, user)
        for name, *_ in transcript.sessions()
        for user in users_of(transcript, name)
        if any(one.waits for one in Session(transcript, name, user, Path()).unfinished())
    ]
