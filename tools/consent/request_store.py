"""The requests of a workspace, in its store: created, listed and shown without secrets.

It knows the store, forms and scopes; it must not know what is decided on a request, or who is asked.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from quoth.tools.call.call import Call
from quoth.tools.call.canonical import arguments, guessed_targets, touched
from quoth.tools.call.ports import Audit, asks_fact
from quoth.tools.call.redaction import Redactor
from quoth.tools.call.values import encodable
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.requests import Request, _clock_time, request_digest
from quoth.tools.consent.rows import RequestRows, Row, Rows, StoreRequests
from quoth.tools.errors import ANSWER, PERMISSION, InvalidCallError, UsageError, did_you_mean
from quoth.tools.history.audit import StoreAudit
from quoth.tools.lisp.forms import CallForm, canonical
from quoth.tools.policy.effects import by_effects, with_maker
from quoth.tools.policy.scope import suggested
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.storage.database import Store

if TYPE_CHECKING:
    from quoth.tools.call.call import ArgumentOrigin

PENDING_SECONDS = 7 * 86400.0
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # none that is taken for another


class RequestStore:
    """Requests of one workspace, kept in its ``store``, or in ``rows``. ``clock`` gives seconds since
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
        self._workspace = workspace
        self._audit = audit

    @property
    def table(self) -> ToolTable:
        """The tools that exist now."""
        return self._table

    def use(self, table: ToolTable) -> None:
        """Take these tools for those that there are."""
        self._table = table

    def requests(self, *, session: str | None = None, every: bool = False) -> list[Request]:
        """The open requests, oldest first; with ``every``, the decided and used ones too."""
        found = self._rows.every(waiting=not every)
        return [row.request for row in found if session in (None, row.session)]

    @property
    def altered(self) -> list[str]:
        """The ids of those that were left out of the last list, since they cannot be believed."""
        return self._rows.altered

    def find(self, request: str) -> Request:
        """One request, open or not. Raises UsageError with the nearest id."""
        return self._find(request).request

    def _find(self, request: str) -> Row:
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
        """Insert a request and return its id. ``files`` is what a person is shown of the files that it would
        change; ``more`` are the columns of one already decided."""
        hide = Redactor(call.form, tool.params, by_looks=False)
        digest = self._digest(tool, call)
        history = "" if more else self._history(rows, tool, call, digest, str(hide.form), asks_fact(reason))
        # Only a question that comes of the tool's effects alone could be answered by a rule.
        by_rule = reason == by_effects(tool).reason and PERMISSION not in call.form.args
        name = "".join(secrets.choice(_LETTERS) for _ in range(5))
        values = {
            "id": name,
            "digest": digest,
            "tool": tool.name,
            "version": tool.version,
            "form": canonical(call.form),
            "shown": str(hide.form),
            "reason": encodable(hide.text("; ".join([with_maker(tool, reason), *call.written]))) + history,
            "touches": json.dumps([hide.text(path) for path in self._touches(tool, call.form)]),
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
            from quoth.tools.call.call import to_text  # here: of most calls nobody is asked

            values["origins"] = to_text(origins)
        rows.add(Row(**values | more))
        return name

    def _history(
        self, rows: Rows, tool: CognitiveTool, call: Call, digest: str, shown: str, fact: bool
    ) -> str:
        """What a person should know of earlier approvals before giving another. ``fact``: the request itself
        says that the call was begun."""
        notes = ""
        if ANSWER in call.form.args:  # an answer does nothing
            return notes
        before = rows.where(tool=tool.name, shown=shown, state="decided")
        if any(row.version != tool.version and row.decision not in ("edit", "deny") for row in before):
            notes += "; the tool has changed since it was approved"
        if isinstance(self._audit, StoreAudit):  # else the end of a call is recorded where we cannot look
            used = [row for row in rows.where(digest=digest, state="used") if row.decision != "deny"]
            ended = self._audit.known(call.session, [row.used_by for row in used])
            lost = [row.used or 0.0 for row in used if row.used_by not in ended]
            if lost:
                notes += f"; approved and begun at {_clock_time(max(lost))}"
                notes += "" if fact else ", and how that ended is not known"
        if rows.altered:
            notes += (
                f"; request {', '.join(rows.altered)} was altered by somebody without the key and counts"
                " for nothing"
            )
        return notes

    def _digest(self, tool: CognitiveTool, call: Call) -> str:
        return request_digest(call.form, tool.version, call.session, self._leads(tool, call))

    def _leads(self, tool: CognitiveTool, call: Call) -> dict[str, str]:
        return guessed_targets(tool, self._arguments(tool, call.form), self._workspace)

    def _arguments(self, tool: CognitiveTool, form: CallForm) -> dict[str, Any]:
        own = {name: value for name, value in form.args.items() if name not in (ANSWER, PERMISSION)}
        try:
            return arguments(tool, replace(form, args=own), self._workspace)
        except InvalidCallError:  # nothing that came through the door
            return {}

    def _touches(self, tool: CognitiveTool, form: CallForm) -> list[str]:
        open_names = {param.name for param in tool.params if not param.secret}
        args = self._arguments(tool, form)
        return touched(tool, {name: args[name] for name in args if name in open_names}, self._workspace)
