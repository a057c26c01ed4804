"""The rows of requests, the storage operations that the broker needs, and their SQLite implementation.

Each row contains a request, its decision, the resulting grant, and the plan that it is about. The Redis
implementation is tools/shared/requests.py.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, Protocol, TypeVar

from quoth.tools.call.call import ArgumentOrigin, Call, of_text, to_text
from quoth.tools.call.canonical import arguments, guessed_targets, touched
from quoth.tools.call.ports import Audit, asks_fact
from quoth.tools.call.redaction import Redactor
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.requests import Request, _clock_time, request_digest
from quoth.tools.errors import ANSWER, PERMISSION, InvalidCallError, UsageError, did_you_mean
from quoth.tools.history.audit import StoreAudit
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm, canonical
from quoth.tools.policy.limits import by_effects, with_maker
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.values import encodable
from quoth.tools.storage.database import Statement, Store

KEPT_SECONDS = 180 * 86400.0  # ended requests are kept for this time, for offers and for people
UNBELIEVED = (
    "is not signed with the key that is used here, or was put back to an earlier state; it counts as"
    " undecided"
)
T = TypeVar("T")


@dataclass(frozen=True, eq=False, repr=False)  # each generated method slows the start of every command
class RequestRow:
    """A request with all its data. ``form`` is the true form, only while it is open; ``shown`` is
    without declared secrets. ``granted`` is the rule of a grant (empty: of this very call; None: no grant).
    ``origins`` are the origins of the arguments, as JSON; ``files`` the shown contents of the files that it
    would change (shown.py), or for a plan the contents that its calls have left. ``program``, ``shapes`` and
    ``plan`` are the digest, the call patterns and the text of a plan."""

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

    def lasts(self, now: float) -> bool:
        """Whether its decision is a grant, or a rule that denies, that has not ended."""
        return self.granted is not None and self.expires > now

    @property
    def rule_line(self) -> str:
        """What its decision grants or denies, with its id, its session and its end."""
        rule = self.granted or self.shown
        if self.decision == "deny":
            from quoth.tools.policy.scope import denying  # here: few requests have a scope

            rule = denying(rule)
        return f"{self.id}  {rule}  (in session {self.session}, until {_clock_time(self.expires)})"

    @property
    def request(self) -> Request:
        """The request as people see it."""
        try:
            touches = tuple(json.loads(self.touches))
        except ValueError:  # a row that was tampered with is also shown
            touches = (self.touches,)
        more = {one.name: getattr(self, one.name) for one in fields(Request) if one.name != "question"}
        form, question = self.shown, None
        if ANSWER in form:
            from quoth.tools.call.question import question_in  # here: few requests ask one

            form, question = question_in(form) or (form, None)
        more |= {"form": form, "touches": touches, "question": question, "origins": ()}
        if self.origins:
            more["origins"] = of_text(self.origins)
        return Request(**more)


class Rows(Protocol):
    """The rows of one user in one session, read at the time ``now``. Writes to them succeed together or not
    at all."""

    now: float
    altered: list[str]  # ids of rows with an invalid signature; they count as missing

    def where(self, **equal: Any) -> list[RequestRow]:
        """The rows whose fields have these values, in the order of their requests."""
        ...

    def add(self, row: RequestRow) -> None: ...

    def put(self, row: RequestRow) -> None:
        """Insert or replace a row."""
        ...

    def prune(self) -> None:
        """Delete requests that ended long ago, and the true forms of all ended ones."""
        ...


class RequestRows(Protocol):
    """Keeps the rows of requests."""

    altered: list[str]  # ids of rows that the last list omitted: UNBELIEVED

    def now(self) -> float:
        """The present time, by which requests expire."""
        ...

    def find(self, id: str) -> RequestRow | None:
        """One row. Raises UsageError for an altered row."""
        ...

    def every(self, *, waiting: bool) -> list[RequestRow]:
        """All rows, or only the ``waiting`` ones, the oldest first."""
        ...

    def approvals(self, tool: str, rule: str, user: str) -> int:
        """How often a user's call, to which a rule would apply, was approved once."""
        ...

    def look(self, session: str, user: str) -> Rows:
        """The rows of a user in a session, read-only."""
        ...

    def change(self, session: str, user: str, act: Callable[[Rows], T]) -> T:
        """Let ``act`` read and write the rows of a user in a session, exclusively, all or nothing; returns
        its result. It is called again after a conflict."""
        ...


_OWN = tuple(one.name for one in fields(RequestRow))[:-4]  # the columns of requests
_ALL = ", ".join([*(f"requests.{name}" for name in _OWN), "grants.rule, program, shapes, text"])
_SELECT = (
    f"SELECT {_ALL} FROM requests LEFT JOIN grants ON grants.request = requests.id"  # noqa: S608
    " LEFT JOIN plans ON plans.request = requests.id"
)
_FEW = ("id", "digest", "used_by", "program")  # each with an index, and few rows for a value
_PLACES = {"granted": "grants.rule", "plan": "text", "program": "program", "shapes": "shapes"}


def _rows(found: list[tuple[Any, ...]]) -> list[RequestRow]:
    return [RequestRow(*one[:-3], *(text or "" for text in one[-3:])) for one in found]


class StoreRequests:
    """The rows in a workspace's store. ``clock`` returns seconds since 1970."""

    def __init__(self, store: Callable[[], Store], clock: Callable[[], float]) -> None:
        self.altered: list[str] = []
        self._store = store
        self._clock = clock

    def now(self) -> float:
        return self._clock()

    def find(self, id: str) -> RequestRow | None:
        found = _rows(self._store().execute(f"{_SELECT} WHERE requests.id = ?", (id,)))
        return found[0] if found else None

    def every(self, *, waiting: bool) -> list[RequestRow]:
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

    def where(self, **equal: Any) -> list[RequestRow]:
        wanted = self._of | equal
        # With a + SQLite does not search by it: a session may have thousands of requests.
        not_by = self._of if any(name in equal for name in _FEW) else ()
        marks = " AND ".join(
            f"{'+' * (name in not_by)}{_PLACES.get(name) or f'requests.{name}'} = ?" for name in wanted
        )
        return _rows(self._run(f"{_SELECT} WHERE {marks} ORDER BY requests.seq", list(wanted.values())))

    def add(self, row: RequestRow) -> None:
        marks = ", ".join("?" * len(_OWN))
        sql = f"INSERT INTO requests ({', '.join(_OWN)}) VALUES ({marks})"  # noqa: S608
        self._run(sql, [getattr(row, name) for name in _OWN])
        self._beside(row)

    def put(self, row: RequestRow) -> None:
        marks = ", ".join(f"{name} = ?" for name in _OWN)
        sql = f"UPDATE requests SET {marks} WHERE id = ?"  # noqa: S608
        self._run(sql, [*(getattr(row, name) for name in _OWN), row.id])
        self._beside(row)

    def _beside(self, row: RequestRow) -> None:
        if row.granted is not None and not self._run("SELECT 1 FROM grants WHERE request = ?", (row.id,)):
            of = (row.id, row.digest, row.tool, row.granted, row.user, row.session, row.decider)
            self._run(
                "INSERT INTO grants (request, digest, tool, rule, user, session, granter, granted, expires)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*of, row.decided, row.expires),
            )
        elif row.granted is not None:
            self._run("UPDATE grants SET expires = ? WHERE request = ?", (row.expires, row.id))
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


# The requests of a workspace, in its store: created, listed and shown without secrets.


PENDING_SECONDS = 7 * 86400.0
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # without letters that look alike


class RequestStore:
    """Requests of one workspace, kept in its ``store``, or in ``rows``. ``clock`` returns seconds since
    1970."""

    def __init__(
        self,
        store: Callable[[], Store],
        table: ToolTable,
        workspace: Workspace,
        *,
        audit: Audit | None = None,
        clock: Callable[[], float] = time.time,
        channel: str = "",
        rows: RequestRows | None = None,
    ) -> None:
        self.channel = channel  # of the users whose calls ask here
        self._rows = rows or StoreRequests(store, clock)
        self._store = store
        self._table = table
        self._tables: dict[str, ToolTable] = {}  # by session, where one has its own
        self._workspace = workspace
        self._audit = audit

    @property
    def table(self) -> ToolTable:
        """The tools that exist now."""
        return self._table

    def use(self, table: ToolTable) -> None:
        """Use these tools from now on."""
        self._table = table

    def use_in(self, session: str, table: ToolTable | None) -> None:
        """Look the tools of this session's requests up in ``table`` from now on; None forgets the session."""
        if table is None:
            self._tables.pop(session, None)
        else:
            self._tables[session] = table

    def _tools(self, session: str) -> ToolTable:
        """The tools of a session."""
        return self._tables.get(session, self._table)

    def requests(self, *, session: str | None = None, every: bool = False) -> list[Request]:
        """The open requests, oldest first; with ``every``, the decided and used ones too."""
        found = self._rows.every(waiting=not every)
        return [row.request for row in found if session in (None, row.session)]

    @property
    def altered(self) -> list[str]:
        """The ids of requests that the last list omitted, because their signature is invalid."""
        return self._rows.altered

    def find(self, request: str) -> Request:
        """One request, open or not. Raises UsageError with the nearest id."""
        return self._find(request).request

    def _find(self, request: str) -> RequestRow:
        if (row := self._rows.find(request)) is not None:
            return row
        open_ids = [one.id for one in self.requests()]
        hint = did_you_mean(request, open_ids) or " quoth pending lists what is open."
        raise UsageError(f"There is no request {request}.{hint}")

    def _insert(
        self,
        rows: Rows,
        tool: CognitiveTool,
        call: Call,
        reason: str,
        seconds: float,
        origins: Sequence[ArgumentOrigin] = (),
        files: str = "",
        **more: Any,
    ) -> str:
        """Insert a request and return its id. ``files`` are the shown contents of the files that it would
        change; ``more`` are the columns of a request that is already decided."""
        hide = Redactor(call.form, tool.params, by_looks=False)
        digest = self._digest(tool, call)
        history = "" if more else self._history(rows, tool, call, digest, str(hide.form), asks_fact(reason))
        # Only a question because of the tool's effects alone could be answered by a rule.
        by_rule = reason == by_effects(tool).reason and PERMISSION not in call.form.args
        name = "".join(secrets.choice(_LETTERS) for _ in range(5))
        from quoth.tools.policy.scope import suggested

        values = {
            "id": name,
            "digest": digest,
            "tool": tool.name,
            "version": tool.version,
            "form": canonical(call.form),
            "shown": str(hide.form),
            "reason": encodable(hide.text("; ".join([with_maker(tool, reason), *call.written]))) + history,
            "touches": json.dumps([hide.text(path) for path in self._touches(tool, call)]),
            "user": call.user,
            "session": call.session,
            "route": call.route,
            "call": call.id,
            "parent": call.parent,
            "message": encodable(hide.text(call.message))[:2000],
            "rule": suggested(tool, call.form) if by_rule else "",
            "asked": rows.now,
            "expires": rows.now + seconds,
            "channel": self.channel,
            "files": files,
        }
        if origins:
            values["origins"] = to_text(origins)
        rows.add(RequestRow(**values | more))
        return name

    def _history(
        self, rows: Rows, tool: CognitiveTool, call: Call, digest: str, shown: str, fact: bool
    ) -> str:
        """A note about earlier approvals for the person who is asked. ``fact``: the request itself says that
        the call was begun."""
        notes = ""
        if ANSWER in call.form.args:  # an answer does nothing
            return notes
        before = rows.where(tool=tool.name, shown=shown, state="decided")
        if any(row.version != tool.version and row.decision not in ("edit", "deny") for row in before):
            notes += "; the tool has changed since it was approved"
        if isinstance(self._audit, StoreAudit):  # otherwise the end of a call is recorded elsewhere
            used = [row for row in rows.where(digest=digest, state="used") if row.decision != "deny"]
            ended = self._audit.known(call.session, [row.used_by for row in used])
            lost = [row.used or 0.0 for row in used if row.used_by not in ended]
            if lost:
                notes += f"; approved and begun at {_clock_time(max(lost))}"
                notes += "" if fact else ", and how that ended is not known"
        if rows.altered:
            notes += f"; request {', '.join(rows.altered)} was altered without the key and does not count"
        return notes

    def _digest(self, tool: CognitiveTool, call: Call) -> str:
        return request_digest(call.form, tool.version, call.session, self._leads(tool, call))

    def _place(self, session: str) -> Workspace:
        """The workspace of a session, which may have a git worktree of its own."""
        return self._workspace.of_session(session)

    def _leads(self, tool: CognitiveTool, call: Call) -> dict[str, str]:
        args = self._arguments(tool, call.form, call.session)
        return guessed_targets(tool, args, self._place(call.session))

    def _arguments(self, tool: CognitiveTool, form: CallForm, session: str) -> dict[str, Any]:
        own = {name: value for name, value in form.args.items() if name not in (ANSWER, PERMISSION)}
        try:
            return arguments(tool, replace(form, args=own), self._place(session))
        except InvalidCallError:  # not from a call that came through the door
            return {}

    def _touches(self, tool: CognitiveTool, call: Call) -> list[str]:
        open_names = {param.name for param in tool.params if not param.secret}
        args = self._arguments(tool, call.form, call.session)
        shown = {name: args[name] for name in args if name in open_names}
        return touched(tool, shown, self._place(call.session))
