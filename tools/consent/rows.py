"""The rows of requests, the operations that the broker needs of whatever keeps them, and SQLite behind these.

Each row holds a request, the decision on it, the grant that came of it, and the plan that it is about. It
must not know what is decided, or who is asked. The twin in Redis is tools/shared/requests.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeVar

from quoth.tools.consent.requests import Request
from quoth.tools.errors import ANSWER
from quoth.tools.storage.database import Statement, Store

KEPT_SECONDS = 180 * 86400.0  # requests that are over are remembered so long, for offers and for people
UNBELIEVED = (
    "is not signed with the key that is used here, or was put back to an earlier state; it counts as"
    " undecided"
)
T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """A request with all that belongs to it. ``form`` is the true form, only while it is open; ``shown`` is
    without declared secrets. ``granted`` is the rule of a grant (empty: of this very call; None: no grant).
    ``origins`` are those of the arguments, as JSON; ``files`` what was shown of the files that it would
    change (shown.py), of a plan those that its calls have left. ``program``, ``shapes`` and ``plan`` are the
    digest, the call patterns and the text of a plan."""

    id: str
    digest: str
    tool: str
    version: str
    form: str
    shown: str
    reason: str
    touches: str
    user: str
    session: str
    route: Any
    call: str
    parent: str | None
    message: str
    rule: str
    asked: float
    expires: float
    state: Any = "pending"
    decision: str = ""
    decided: float | None = None
    decider: str = ""
    why: str = ""
    edited: str = ""
    used: float | None = None
    used_by: str = ""
    channel: str = ""
    origins: str = ""
    files: str = ""
    granted: str | None = None
    program: str = ""
    shapes: str = ""
    plan: str = ""

    @property
    def request(self) -> Request:
        """The request as people see it."""
        try:
            touches = tuple(json.loads(self.touches))
        except ValueError:  # one that was tampered with is shown nevertheless
            touches = (self.touches,)
        more = {one.name: getattr(self, one.name) for one in fields(Request) if one.name != "question"}
        form, question = self.shown, None
        if ANSWER in form:
            from quoth.tools.call.question import question_in  # here: few requests ask one

            form, question = question_in(form) or (form, None)
        more |= {"form": form, "touches": touches, "question": question, "origins": ()}
        if self.origins:
            from quoth.tools.call.call import of_text  # here: most commands show no request

            more["origins"] = of_text(self.origins)
        return Request(**more)


class Rows(Protocol):
    """The rows of one user in one session, read at the time ``now``. What was written to them counts when
    all of it can."""

    now: float
    altered: list[str]  # ids of rows that somebody wrote who may not; they count as if they were not there

    def where(self, **equal: Any) -> list[Row]:
        """The rows whose fields have these values, in the order in which they were asked."""
        ...

    def add(self, row: Row) -> None: ...

    def put(self, row: Row) -> None:
        """Write a row anew."""
        ...

    def prune(self) -> None:
        """Forget what is long over, and the true forms of what is over."""
        ...


class RequestRows(Protocol):
    """Keeps the rows of requests."""

    altered: list[str]  # of those that were listed last, the ids of rows that are left out: UNBELIEVED

    def now(self) -> float:
        """The time by which requests are over."""
        ...

    def find(self, id: str) -> Row | None:
        """One row. Raises UsageError for one that somebody altered."""
        ...

    def every(self, *, waiting: bool) -> list[Row]:
        """All rows, or those that wait, the oldest first."""
        ...

    def approvals(self, tool: str, rule: str, user: str) -> int:
        """How often a user's call, to which a rule would apply, was approved once."""
        ...

    def look(self, session: str, user: str) -> Rows:
        """The rows of a user in a session, to be read only."""
        ...

    def change(self, session: str, user: str, act: Callable[[Rows], T]) -> T:
        """Let ``act`` read and write the rows of a user in a session, all or nothing, while nobody else does;
        its result. It may be called again, where somebody was quicker."""
        ...


_OWN = tuple(one.name for one in fields(Row))[:-4]  # the columns of requests
_ALL = ", ".join([*(f"requests.{name}" for name in _OWN), "grants.rule, program, shapes, text"])
_SELECT = (
    f"SELECT {_ALL} FROM requests LEFT JOIN grants ON grants.request = requests.id"  # noqa: S608
    " LEFT JOIN plans ON plans.request = requests.id"
)
_FEW = ("id", "digest", "used_by", "program")  # each with an index, and few rows for a value
_PLACES = {"granted": "grants.rule", "plan": "text", "program": "program", "shapes": "shapes"}


def _rows(found: list[tuple[Any, ...]]) -> list[Row]:
    return [Row(*one[:-3], *(text or "" for text in one[-3:])) for one in found]


class StoreRequests:
    """The rows in a workspace's store. ``clock`` gives seconds since 1970."""

    def __init__(self, store: Callable[[], Store], clock: Callable[[], float]) -> None:
        self.altered: list[str] = []
        self._store = store
        self._clock = clock

    def now(self) -> float:
        return self._clock()

    def find(self, id: str) -> Row | None:
        found = _rows(self._store().execute(f"{_SELECT} WHERE requests.id = ?", (id,)))
        return found[0] if found else None

    def every(self, *, waiting: bool) -> list[Row]:
        where = " WHERE state = 'pending' AND requests.expires > ?" if waiting else ""
        values = [self._clock()] if waiting else []
        return _rows(self._store().execute(f"{_SELECT}{where} ORDER BY requests.seq", values))

    def approvals(self, tool: str, rule: str, user: str) -> int:
        ((count,),) = self._store().execute(
            "SELECT count(*) FROM requests WHERE tool = ? AND rule = ? AND user = ? AND decision = 'once'",
            (tool, rule, user),
        )
        return int(count)

    def look(self, session: str, user: str) -> Rows:
        return _StoredRows(self._store().execute, self._clock(), session, user)

    def change(self, session: str, user: str, act: Callable[[Rows], T]) -> T:
        with self._store().transaction() as run:
            return act(_StoredRows(run, self._clock(), session, user))


class _StoredRows:
    def __init__(self, run: Statement, now: float, session: str, user: str) -> None:
        self._run = run
        self.now = now
        self.altered: list[str] = []
        self._of = {"session": session, "user": user}

    def where(self, **equal: Any) -> list[Row]:
        wanted = self._of | equal
        # With a + SQLite does not search by it: a session may have thousands of requests.
        not_by = self._of if any(name in equal for name in _FEW) else ()
        marks = " AND ".join(
            f"{'+' * (name in not_by)}{_PLACES.get(name) or f'requests.{name}'} = ?" for name in wanted
        )
        return _rows(self._run(f"{_SELECT} WHERE {marks} ORDER BY requests.seq", list(wanted.values())))

    def add(self, row: Row) -> None:
        marks = ", ".join("?" * len(_OWN))
        sql = f"INSERT INTO requests ({', '.join(_OWN)}) VALUES ({marks})"  # noqa: S608
        self._run(sql, [getattr(row, name) for name in _OWN])
        self._beside(row)

    def put(self, row: Row) -> None:
        marks = ", ".join(f"{name} = ?" for name in _OWN)
        sql = f"UPDATE requests SET {marks} WHERE id = ?"  # noqa: S608
        self._run(sql, [*(getattr(row, name) for name in _OWN), row.id])
        self._beside(row)

    def _beside(self, row: Row) -> None:
        if row.granted is not None and not self._run("SELECT 1 FROM grants WHERE request = ?", (row.id,)):
            of = (row.id, row.digest, row.tool, row.granted, row.user, row.session, row.decider)
            self._run(
                "INSERT INTO grants (request, digest, tool, rule, user, session, granter, granted, expires)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*of, row.decided, row.expires),
            )
        if row.program:
            self._run(
                "INSERT OR REPLACE INTO plans (request, program, shapes, text) VALUES (?, ?, ?, ?)",
                (row.id, row.program, row.shapes, row.plan),
            )

    def prune(self) -> None:
        self._run("DELETE FROM requests WHERE expires < ?", (self.now - KEPT_SECONDS,))
        self._run("DELETE FROM grants WHERE expires < ?", (self.now,))
        self._run("DELETE FROM plans WHERE request NOT IN (SELECT id FROM requests)")
        self._run(
            "UPDATE requests SET form = '', edited = '' WHERE (form != '' OR edited != '') AND expires <= ?",
            (self.now,),
        )
