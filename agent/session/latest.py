"""The session that a command takes where none is named: the latest one of its user, and not a chat's.

Every command, the REPL, the Python API and Emacs (through the commands) ask here. A worker opens no session,
so nothing that it leaves in a store counts as one. Knows transcripts; it must not know commands.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from quoth.agent.session.index import read_leniently, unfinished_sessions
from quoth.tools.errors import UsageError
from quoth.tools.history.outline import Outline, Row
from quoth.tools.history.transcript import Transcript
from quoth.tools.storage.database import Store

Having = Literal["work", "run", "writes", "waits"]

WORDS: Final[dict[Having, str]] = {
    "work": "with a run, a flight, a form or a call",
    "run": "with a run",
    "writes": "that has written a file",
    "waits": "in which something waits",
}
# What each command that takes a session by default needs of it.
NEEDS: Final[dict[str, Having]] = {
    "log": "work",
    "replay": "work",
    "lift": "work",
    "undo": "writes",
    "diff": "writes",
    "resume": "waits",
}

LAST: Final = "~"  # after every time


class Listing(NamedTuple):
    """The listed sessions, the latest last; the number of all that would be listed; and for those that a
    command would take, the names of these commands."""

    rows: list[Row]
    total: int
    taken_by: dict[str, list[str]]


def latest_session(store: Store | None, user: str, having: Having) -> str:
    """The id of the user's latest session with this. Raises UsageError when there is none."""
    if store is None or not Outline(lambda: store).sessions(1):
        raise UsageError("There is no session in this workspace.")
    if found := _latest(store, user, having):
        return found
    raise UsageError(
        f"{user} has no session {WORDS[having]} in this workspace. Name one; quoth sessions --all lists them."
    )


def taken(session: str, user: str, having: Having) -> str:
    """The sentence that reports which session was taken."""
    return f"Session {session}: the latest of {user} {WORDS[having]}."


def waiting_sessions(store: Store, user: str) -> list[str]:
    """The user's sessions in which something waits or was broken off, the latest last."""
    found = [session for session, whose in unfinished_sessions(store) if whose == user]
    return [session for session in found if _owned(store, session, user)]


def waiting_flight(store: Store, user: str) -> str:
    """The plan of the user's latest flight that waits or was broken off; empty if there is none."""
    for session, _ in Outline(lambda: store).having("flight", user):
        if not _owned(store, session, user):
            continue
        events = read_leniently(store, lambda found, of=session: [*found.events(of, kind="flight")])  # type: ignore[misc]
        if events and events[-1].status not in ("done", "failed"):
            begun = next(e for e in reversed(events) if not e.status)
            return str(begun.said["plan"])
    return ""


def listed(store: Store | None, user: str, last: int | None, *, every: bool, others: bool) -> Listing:
    """The sessions to list, at most ``last``. With ``others`` also those that a command would take."""
    if store is None:
        return Listing([], 0, {})
    outline = Outline(lambda: store)
    rows, count = outline.latest(last, every=every)
    taken_by: dict[str, list[str]] = {}
    found = {having: _latest(store, user, having) for having in dict.fromkeys(NEEDS.values())}
    for command, having in NEEDS.items():
        if session := found[having]:
            taken_by.setdefault(session, []).append(command)
    more = outline.rows(taken_by.keys() - {row.session for row in rows}) if others else []
    return Listing(sorted([*rows, *more], key=lambda row: (row.last, row.session)), count, taken_by)


def _latest(store: Store, user: str, having: Having) -> str:
    """The id of the user's latest session with this; empty if there is none."""
    if having == "waits":
        return next(reversed(waiting_sessions(store, user)), "")
    best = ("", "")
    for session, last in Outline(lambda: store).having(having, user):
        if last <= best[0]:
            break
        if at := _owned(store, session, user):
            best = max(best, (min(at, last), session))
    return best[1]


def _owned(store: Store, session: str, user: str) -> str:
    """The time of the user's last act in a session; LAST if they are its only user, and empty if the session
    is not theirs or is a chat's."""
    return read_leniently(store, lambda transcript: _last_act(transcript, session, user))


def _last_act(transcript: Transcript, session: str, user: str) -> str:
    foreign = transcript.imported(session)  # a user of the same name elsewhere is another person
    openings = [e for e in transcript.events(session, kind="session") if e.seq > foreign]
    users = {str(event.data.get("user")) for event in openings}
    first = next(iter(transcript.events(session, kind="stimulus")), None)
    of_chat = any(e.data.get("chat") for e in (*openings, *(() if first is None else (first,))))
    if user not in users or of_chat:
        return ""
    if len(users) == 1:
        return LAST
    acts = (
        next((e.at for e in transcript.backwards(session, kind) if e.data.get("user") == user), "")
        for kind in ("session", "stimulus", "call", "flight")
    )
    return max(acts)
