"""Facts from the columns of events, without their forms: the sessions, and unfinished runs and calls.

It uses only the table of events, its indexes and the table of their ends, so that ten thousand sessions need
one query, and a run of 5,000 steps a few index lookups.
"""

# ruff: noqa: S608  all parts of the statements are from this file

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from quoth.tools.history.event import GOING_ON
from quoth.tools.lisp.printer import print_value
from quoth.tools.storage.database import Store

MARKED: Final = "events INDEXED BY events_run"  # contains all columns that are read here
_BEGUN: Final = "events AS b INDEXED BY events_begun"


def _marked(name: str) -> str:
    return f"events AS {name} INDEXED BY events_run"


_KINDS: Final = ", ".join(f"'{kind}'" for kind in ("end", *GOING_ON))
# The status of a run ``b``: empty while it has no end, or after it was resumed.
_STATE: Final = (
    f"(SELECT CASE kind WHEN 'end' THEN status ELSE '' END FROM {MARKED} WHERE session = b.session"
    f" AND run = b.run AND kind IN ({_KINDS}) ORDER BY seq DESC LIMIT 1)"
)
_OWN_RUN: Final = "b.kind = 'stimulus' AND instr(b.run, '/') = 0"
_OWN_CALL: Final = "run = '' AND kind IN ('call', 'receipt') AND instr(key, '/') = 0"
# Whether the session of ``e`` has a person's call without a result.
_CALL_WAITS: Final = (
    f"EXISTS (SELECT 1 FROM {_marked('c')} WHERE c.session = e.session AND c.run = '' AND c.kind = 'call'"
    f" AND instr(c.key, '/') = 0 AND NOT EXISTS (SELECT 1 FROM {_marked('r')} WHERE r.session = c.session"
    " AND r.run = '' AND r.seq > c.seq AND r.kind = 'receipt' AND r.key = c.key AND r.status != 'pending'))"
)
_HAS_RUN: Final = f"EXISTS (SELECT 1 FROM {_BEGUN} WHERE b.session = e.session AND {_OWN_RUN})"
_HAS_FLIGHT: Final = (
    "EXISTS (SELECT 1 FROM events INDEXED BY events_flight WHERE session = e.session AND kind = 'flight')"
)
_SESSIONS: Final = "WITH e AS (SELECT session, at AS last FROM session_ends)"
_LATEST: Final = "last DESC, session DESC"
# Conditions on the session of ``e`` and a user. Only a write has its user in a column.
_HAVING: Final = {
    "work": f"EXISTS (SELECT 1 FROM {_marked('w')} WHERE w.session = e.session"
    " AND w.kind IN ('stimulus', 'flight', 'call')) AND ?1 = ?1",
    "run": f"{_HAS_RUN} AND ?1 = ?1",
    "flight": f"{_HAS_FLIGHT} AND ?1 = ?1",
    "writes": "EXISTS (SELECT 1 FROM writes AS w INDEXED BY writes_session WHERE w.session = e.session"
    " AND w.act = '' AND w.user = ?1)",
}

_BEGINS: Final = "o.kind IN ('session', 'stimulus', 'end') AND o.kind = 'session'"  # for the partial index
_OPENING: Final = (
    f"SELECT 1 FROM events AS o INDEXED BY events_begin WHERE o.session = e.session AND {_BEGINS}"
)
_SOME: Final = 50  # sessions looked at together
Place = tuple[str, str]  # the time of a session's last event, and its id
END: Final = ("~", "")  # after every time


class SessionRow(NamedTuple):
    """A session, its number of events, and the times of its first and last one."""

    session: str
    events: int
    first: str
    last: str


class Begun(NamedTuple):
    """A run or a person's call that is unfinished: its last ``status``, and the event with which it began."""

    name: str
    seq: int
    status: str


def opened_by(users: Collection[str]) -> tuple[str, list[str]]:
    """The condition that only these users have opened the session of ``e``, and its values."""
    named = [f":user {print_value(user)}" for user in users]
    theirs = " OR ".join(["instr(coalesce(o.shown, o.form), ?)"] * len(named))
    return f"EXISTS ({_OPENING}) AND NOT EXISTS ({_OPENING} AND NOT ({theirs}))", named


class Outline:
    """The outline of all transcripts in a store."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    def sessions(self, last: int | None = None, *, every: bool = True) -> list[SessionRow]:
        """The sessions, or the ``last`` of them, ordered by the time of their last event. Without ``every``:
        only sessions with a run, a flight or a waiting call of a person."""
        return self.latest(last, every=every)[0]

    def latest(self, last: int | None = None, *, every: bool = True) -> tuple[list[SessionRow], int]:
        """The same, and the total number of sessions."""
        which = "" if every else f" WHERE {_HAS_RUN} OR {_HAS_FLIGHT} OR {_CALL_WAITS}"
        sql = (
            f"{_SESSIONS} SELECT session, (SELECT count(*) FROM {_marked('c')} WHERE c.session = f.session),"
            " (SELECT at FROM events WHERE session = f.session ORDER BY seq LIMIT 1), last, every"
            f" FROM (SELECT session, last, count(*) OVER () AS every FROM e{which} ORDER BY {_LATEST}"
            f" LIMIT ?) AS f ORDER BY {_LATEST}"
        )
        found = self._store().execute(sql, (-1 if last is None else last,))
        return [SessionRow(*row[:4]) for row in reversed(found)], found[0][4] if found else 0

    def of_users(
        self, users: Collection[str], *, every: bool, below: Place = END, begins: str = ""
    ) -> Iterator[Place]:
        """The sessions that only these users have opened, the latest first; after the one ``below``, and with
        ids that begin so. They are looked at as they are taken."""
        own, named = opened_by(users)
        which = "" if every else f" AND ({_HAS_RUN} OR {_HAS_FLIGHT} OR {_CALL_WAITS})"
        sql = (
            "WITH e(session) AS MATERIALIZED (SELECT value FROM json_each(?))"
            f" SELECT session FROM e WHERE {own}{which}"
        )
        page = (
            f"{_SESSIONS} SELECT last, session FROM e WHERE (last, session) < (?1, ?2)"
            f" AND substr(session, 1, length(?3)) = ?3 ORDER BY {_LATEST} LIMIT {_SOME}"
        )
        while some := self._store().execute(page, (*below, begins)):
            below = some[-1]
            found = self._store().execute(sql, (json.dumps([name for _, name in some]), *named))
            kept = {name for (name,) in found}
            yield from ((last, name) for last, name in some if name in kept)

    def count(self) -> int:
        """The number of sessions."""
        return int(self._store().execute(f"{_SESSIONS} SELECT count(*) FROM e")[0][0])

    def rows(self, names: Collection[str]) -> list[SessionRow]:
        """The rows of these sessions."""
        sql = f"SELECT session, count(*), min(at), max(at) FROM {MARKED} WHERE session = ? GROUP BY session"
        return [SessionRow(*row) for name in names for row in self._store().execute(sql, (name,))]

    def having(self, what: Literal["work", "run", "flight", "writes"], user: str) -> list[tuple[str, str]]:
        """The sessions with work (a run, a flight or a call), a run or a flight, or in which calls of the
        user have written a file: each with the time of its last event, the latest first."""
        sql = f"{_SESSIONS} SELECT session, last FROM e WHERE {_HAVING[what]} ORDER BY {_LATEST}"
        return [(str(name), str(last)) for name, last in self._store().execute(sql, (user,))]

    def waiting(self) -> list[str]:
        """The sessions in which a run or call is unfinished, and perhaps others, the latest last."""
        sql = (
            f"{_SESSIONS} SELECT session FROM e WHERE {_CALL_WAITS}"
            f" OR EXISTS (SELECT 1 FROM {_BEGUN} WHERE b.session = e.session AND {_OWN_RUN}"
            f" AND {_STATE} IS NOT 'done') ORDER BY last, session"
        )
        return [str(name) for (name,) in self._store().execute(sql)]

    def awaited(self) -> set[str]:
        """The sessions with a flight that is not done, or with a question that a person has not decided."""
        sql = (
            "SELECT session FROM events INDEXED BY events_flight WHERE kind = 'flight' GROUP BY session, key"
            " HAVING sum(status = 'done') = 0"
            " UNION SELECT session FROM requests WHERE state = 'pending'"
        )
        return {str(name) for (name,) in self._store().execute(sql)}

    @property
    def store_path(self) -> Path:
        """The file of the store; opens it if necessary. Raises UsageError."""
        return Path(self._store().path)

    def is_there(self, session: str) -> bool:
        """Whether a session has an event."""
        return bool(self._store().execute("SELECT 1 FROM events WHERE session = ? LIMIT 1", (session,)))

    def holds(self, session: str, seq: int, digest: str) -> bool:
        """Whether the event with that number has that digest."""
        sql = "SELECT 1 FROM events WHERE session = ? AND seq = ? AND digest = ?"
        return bool(self._store().execute(sql, (session, seq, digest)))

    def unfinished(self, session: str) -> list[Begun]:
        """The runs that have not ended as done, in the order in which they began, and among them a person's
        calls without a result."""
        found = self._calls(session)
        sql = (
            f"SELECT b.run, b.seq, {_STATE} FROM {_BEGUN} WHERE b.session = ? AND {_OWN_RUN}"
            f" AND {_STATE} IS NOT 'done' AND NOT EXISTS (SELECT 1 FROM {MARKED} WHERE session = b.session"
            " AND run = b.run AND kind = 'end' AND status = 'done')"
        )
        runs = [Begun(run, seq, status or "") for run, seq, status in self._store().execute(sql, (session,))]
        return sorted([*runs, *found], key=lambda one: one.seq)

    def has_pending(self, session: str, run: str) -> bool:
        """Whether a call of the run has waited for a person; it may have its result already."""
        sql = (
            f"SELECT 1 FROM {MARKED} WHERE session = ? AND run = ?"
            " AND kind = 'receipt' AND status = 'pending' LIMIT 1"
        )
        return bool(self._store().execute(sql, (session, run)))

    def _calls(self, session: str) -> list[Begun]:
        sql = f"SELECT key, seq, kind, status FROM {MARKED} WHERE session = ? AND {_OWN_CALL} ORDER BY seq"
        begun: dict[str, Begun] = {}
        found: dict[str, Begun] = {}
        for key, seq, kind, status in self._store().execute(sql, (session,)):
            if kind == "call":
                begun[key] = found[key] = Begun(key, seq, "")
            elif status != "pending":
                found.pop(key, None)
            elif key in begun:
                found[key] = begun[key]._replace(status="pending")
        return list(found.values())
