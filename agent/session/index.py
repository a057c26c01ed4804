"""The sessions of a workspace: lists them, finds the unfinished ones, and finds the one that a person
means."""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar

from quoth.agent.session.session import Session, alone, is_driven
from quoth.tools.errors import BusyError, UsageError, did_you_mean
from quoth.tools.history.event import Event, Kind, TranscriptError
from quoth.tools.history.outline import Outline, SessionRow
from quoth.tools.history.transcript import Transcript
from quoth.tools.registry.values import encodable
from quoth.tools.sandbox.snapshots import SnapshotError, StoreSnapshots
from quoth.tools.storage.database import Store
from quoth.tools.storage.file_lock import not_in_use
from quoth.tools.text import number_of

PLACE_DIGITS = 18
T = TypeVar("T")


class Summary(NamedTuple):
    """A session in one line. ``status`` is the status of its last run or flight, ``running`` or ``broken
    off`` if that has no end, or ``calls`` if there is none; ``first`` and ``last`` are times in UTC; ``task``
    is the first task."""

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
    waits: int  # the number of unfinished requests, calls and runs
    worktree: bool  # whether it has worked in a git worktree of its own

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "users": list(self.users)}


class Readable(Transcript):
    """Transcripts without their unreadable events. ``unread`` has a sentence for each unreadable event."""

    def __init__(self, store: Callable[[], Store]) -> None:
        super().__init__(store)
        self.unread: dict[str, None] = {}

    def events(
        self, session: str, *, run: str | None = None, kind: Kind | None = None, after: int = 0
    ) -> Iterator[Event]:
        for event in super().events(session, run=run, kind=kind, after=after):
            if self._is_read(event):
                yield event

    def at(self, session: str, seq: int) -> Event | None:
        event = super().at(session, seq)
        return event if event is not None and self._is_read(event) else None

    def _is_read(self, event: Event) -> bool:
        """Whether an event can be read; if not, its fault is noted."""
        from quoth.agent.session.render import fault_of  # here: an agent for one call shows no session
        from quoth.tools.history.transfer import NEEDED

        fault = fault_of(event, NEEDED.get(event.kind, ()))
        if fault:
            self.unread[fault] = None
        return not fault

    def last(self, session: str, kind: Kind, *, run: str | None = None) -> Event | None:
        return max(self.events(session, run=run, kind=kind), key=lambda event: event.seq, default=None)


def read_leniently(store: Store, look: Callable[[Transcript], T], faults: dict[str, None] | None = None) -> T:
    """The result of ``look`` for the transcripts of a store; if it fails at an unreadable event, its result
    without such events. ``faults`` gets a sentence for each of them."""
    try:
        return look(Transcript(lambda: store))
    except (TranscriptError, LookupError, TypeError, ValueError, AttributeError):
        readable = Readable(lambda: store)
        found = look(readable)
        if faults is not None:
            faults |= readable.unread
        return found


def summaries(
    store: Store, rows: Iterable[SessionRow], faults: dict[str, None] | None = None
) -> Iterator[Summary]:
    """The summary of each of these sessions; ``faults`` gets a sentence for each bad event."""
    path = Path(store.path)
    for row in rows:
        yield read_leniently(store, lambda found, row=row: summary(found, path, *row), faults)  # type: ignore[misc]


def summary(transcript: Transcript, store: Path, session: str, events: int, first: str, last: str) -> Summary:
    """The summary of one session, given its number of events and the times of the first and last."""
    openings = list(transcript.events(session, kind="session"))
    users = _users_in(openings)
    stimuli = [e for e in transcript.events(session, kind="stimulus") if "/" not in e.run]
    end = transcript.last(session, "end", run=stimuli[-1].run) if stimuli else None
    status = end.status if end is not None else "" if stimuli else "calls"
    given = stimuli[0].said if stimuli else {"text": ""}
    flights = list(transcript.events(session, kind="flight"))
    begun = [event for event in flights if not event.status]
    if begun and not stimuli:
        status = flights[-1].status
        given = {"text": f"flight of {Path(begun[0].said['plan']).name}"}
    status = status or ("running" if is_driven(store, session) else "broken off")
    runs, calls = len(stimuli) + len(begun), transcript.count(session, "call")
    task, model = " ".join(str(given["text"]).split()), str(given.get("model", ""))
    waits = waiting(transcript, session)
    worktree = any(one.data.get("worktree") is True for one in openings)
    return Summary(
        session, tuple(users), first, last, events, runs, calls, status, task, model, waits, worktree
    )


def waiting(transcript: Transcript, session: str) -> int:
    """The number of runs and calls of a session that wait or were broken off."""
    return len(_unfinished(transcript, session))


def users_of(transcript: Transcript, session: str) -> list[str]:
    """The users of a session, in the order of their first use."""
    return _users_in(transcript.events(session, kind="session"))


def _users_in(openings: Iterable[Event]) -> list[str]:
    return list(dict.fromkeys(str(one.data["user"]) for one in openings))


def find_session(store: Store | None, wanted: str) -> str:
    """The session with this id, or the only one with this prefix. Raises UsageError with the nearest name."""
    wanted = encodable(wanted)  # a command line may contain bytes that are not UTF-8
    if _is_there(store, wanted):
        return wanted
    names = _names(store)
    begins = [name for name in names if wanted and name.startswith(wanted)]
    if len(begins) == 1:
        return begins[0]
    if begins:
        raise UsageError(f"Several sessions begin with {wanted}: {', '.join(begins[:5])}.")
    latest = f" The latest are {', '.join(names[-5:])}." if names else ""
    hint = did_you_mean(wanted, names) or latest
    raise UsageError(f"There is no session {wanted} in this workspace.{hint}")


def _names(store: Store | None) -> list[str]:
    return [] if store is None else [row[0] for row in Transcript(lambda: store).sessions()]


def _is_there(store: Store | None, session: str) -> bool:
    return store is not None and Outline(lambda: store).is_there(session)


def find_event(store: Store | None, wanted: str) -> tuple[str, int | None]:
    """The session that ``wanted`` names, and for ``ID.N`` the number of the event. Raises UsageError."""
    wanted = encodable(wanted)
    session, dot, place = wanted.rpartition(".")
    if _is_there(store, wanted) or not (dot and session and place.isdecimal()):
        return find_session(store, wanted), None
    return find_session(store, session), place_in(place)


def place_in(digits: str) -> int:
    """The number in the digits. Of too many digits only the first are read: no event has such a number."""
    return int(digits.lstrip("0")[:PLACE_DIGITS] or 0)


# Fork and import


def fork_session(store: Store, session: str, at: int | None = None) -> tuple[str, int]:
    """Copy the first ``at`` events of a session, or all, to a new one. Returns its id and their number."""
    from quoth.tools.history.transfer import copy_session, copy_texts  # here: few agents copy a session

    transcript = Transcript(lambda: store)
    transcript.verify(session)
    events = list(transcript.events(session))
    count = len(events) if at is None else at
    if not 1 <= count <= len(events):
        raise UsageError(
            f"There is no event {session}.{count}; session {session} has {number_of(len(events), 'event')}."
        )
    new, events = new_session(), events[:count]
    opened = [event for event in events if event.kind == "session"]
    given = opened[-1].data if opened else {}
    foreign = min(transcript.imported(session), count)
    with store.transaction():
        copy_session(store, events, new)
        opening = transcript.add(new, "session", {**given, "from": {"session": session, "at": count}})
        if opened and opened[-1].seq <= foreign:
            foreign = opening  # it repeats settings from elsewhere
        if foreign:
            transcript.mark_imported(new, foreign)
        copy_texts(store, session, new)
    if at is None:  # the values at an earlier event are not recorded
        for user in users_of(transcript, session):
            _copy_values(StoreSnapshots(lambda: store), session, new, user)
    return new, count


def _copy_values(snapshots: StoreSnapshots, session: str, new: str, user: str) -> None:
    """Copy the values that the programs of a session keep for later programs."""
    with contextlib.suppress(SnapshotError):  # a program that needs them reports that they were changed
        if (kept := snapshots.values(session, user)) is not None:
            snapshots.keep_values(new, user, kept._replace(generation=""))()


def import_session(store: Store, session: str, events: Sequence[Event]) -> bool:
    """Store a session that was read from a file; false if it is already stored. Raises UsageError if another
    session has its id."""
    from quoth.tools.history.transfer import copy_session  # here: few agents copy a session

    transcript = Transcript(lambda: store)
    known = [event.digest for event in transcript.events(session)]
    if known and known == [event.digest for event in events]:
        return False
    if known:
        raise UsageError(f"Another session is named {session}; give this one an id: --as ID")
    with store.transaction():
        copy_session(store, events, session)
        transcript.mark_imported(session, len(events))
    return True


def new_session() -> str:
    """A new session id, short enough to type."""
    return f"s{secrets.token_hex(4)}"


def session_of_chat(chat: str) -> str:
    """The session of a chat."""
    return session_of("chat", chat)


def session_of(kind: str, name: str, most: int = 40) -> str:
    """The session of a chat or client: one word, different for each, with up to ``most`` characters of its
    name. The digest in it prevents deliberate collisions."""
    if len(name) <= most and re.fullmatch(r"\w+", name, re.ASCII):
        return f"{kind}-{name}"
    word = re.sub(r"\W+", "-", name, flags=re.ASCII)[:most].strip("-")
    return f"{kind}-{word}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:20]}"


def unfinished_sessions(store: Store) -> list[tuple[str, str]]:
    """The session and user of all work that waits or was broken off, each once, the latest session last."""
    found: list[tuple[str, str]] = []
    for name in Outline(lambda: store).waiting():
        found += read_leniently(store, lambda transcript, name=name: _unfinished(transcript, name))  # type: ignore[misc]
    return list(dict.fromkeys(found))


def _unfinished(transcript: Transcript, session: str) -> list[tuple[str, str]]:
    """The session and the user of each run and call that waits, or was broken off."""
    if not transcript.outline.unfinished(session):
        return []
    return [
        (session, user)
        for user in users_of(transcript, session)
        for one in Session(transcript, session, user, Path()).unfinished()
        if one.waits
    ]


# The default session of a command: the latest one of its user, except chats.
#
# Every command, the REPL, the Python API and Emacs (through the commands) ask here. A worker opens no
# session, so its rows in a store do not count as one.


Having = Literal["work", "run", "writes", "waits"]

WORDS: Final[dict[Having, str]] = {
    "work": "with a run, a flight, a form or a call",
    "run": "with a run",
    "writes": "that has written a file",
    "waits": "in which something waits",
}
# The contents that each command with a default session needs in it.
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
    """The listed sessions, the latest last; the total number; and for the default sessions of commands, the
    names of these commands."""

    rows: list[SessionRow]
    total: int
    taken_by: dict[str, list[str]]


def latest_session(store: Store | None, user: str, having: Having) -> str:
    """The id of the user's latest session that has ``having``. Raises UsageError if there is none."""
    if store is None or not Outline(lambda: store).sessions(1):
        raise UsageError("There is no session in this workspace.")
    if found := _latest(store, user, having):
        return found
    raise UsageError(
        f"{user} has no session {WORDS[having]} in this workspace. Name one; quoth sessions --all lists them."
    )


def taken(session: str, user: str, having: Having) -> str:
    """The sentence that names the chosen session."""
    return f"Session {session}: the latest of {user} {WORDS[having]}."


def waiting_sessions(store: Store, user: str) -> list[str]:
    """The user's sessions with work that waits or was broken off, the latest last."""
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
    """The sessions to list, at most ``last``. ``others`` adds the default sessions of commands."""
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
    """The id of the user's latest session that has ``having``; empty if there is none."""
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
    """The time of the user's last act in a session; LAST if the session has no other user, and empty if it is
    not the user's or belongs to a chat."""
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


# The old sessions of a store and their removal: the policy of ``quoth gc``.


POLICY: Final = (
    "Removes each session without an event since {}, unless work in it waits, was broken off or is in flight:"
    " its transcript, receipts, long texts, suspended programs and kept versions of files; also lock files of"
    " that age. The audit stays."
)
BATCH: Final = 200  # sessions in one transaction


def old_sessions(store: Store, before: str) -> list[SessionRow]:
    """The finished sessions whose last event is older than a time (UTC, ISO 8601), the latest last."""
    transcript = Transcript(lambda: store)
    kept = {name for name, _ in unfinished_sessions(store)} | transcript.outline.awaited()
    return [row for row in transcript.outline.sessions() if row.last < before and row.session not in kept]


def _is_old(store: Store, session: str, before: str) -> bool:
    """Whether a session has only old events, and nothing in it waits."""
    ((last,),) = store.execute("SELECT max(at) FROM events WHERE session = ?", (session,))
    return bool(last) and last < before and not read_leniently(store, partial(waiting, session=session))


def remove_sessions(store: Store, names: Sequence[str], before: str) -> list[str]:
    """Remove sessions, and remains of others. Returns the removed ones. A session that is in use, or was
    continued since, stays."""
    transcript = Transcript(lambda: store)
    gone: list[str] = []
    for start in range(0, len(names), BATCH):
        with ExitStack() as stack:
            mine: list[str] = []
            for name in names[start : start + BATCH]:
                try:
                    stack.enter_context(not_in_use(store.path, name, 0.0))
                    stack.enter_context(alone(Path(store.path), name))
                except BusyError:
                    continue
                mine.append(name)
            with store.transaction():
                kept = transcript.outline.awaited()
                mine = [one for one in mine if one not in kept and _is_old(store, one, before)]
                transcript.remove(*mine)
            gone += mine
    return gone
