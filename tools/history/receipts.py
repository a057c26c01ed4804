"""Receipts: the stored results of calls, so that a call need not run twice.

It knows the store and results; it must not know policies, models or the loop. A receipt answers a call
instead of its body in two cases only:

- A model repeats itself: the same call (form and version of the tool) by the same user and session, in answer
  to the same message, within ``window`` seconds, with no change in between. A call that a person makes twice
  runs twice, and so does each call of a program; ``:allow-repeat`` tools are never answered so.
- A call is resumed after an interruption: what had ended under the same key, well or not, does not run again.
  Inner calls that only read, and are not expensive, run again, unless the outer call was pending: then their
  receipts answer them, too.

A person's denial is stored like a result, so that a model that repeats the call does not ask the person
again. A body that ran counts as a change if it recorded a side effect, or if its tool declares one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from quoth.tools.call.call import Call, ToolResult
from quoth.tools.call.ports import Logged, Receipt
from quoth.tools.history.call_log import key_in
from quoth.tools.history.event import content_of, read_form, read_result, result_text, value_in
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import HARMLESS, CognitiveTool
from quoth.tools.registry.values import encodable
from quoth.tools.storage.database import Store

WINDOW_SECONDS = 300.0
KEPT_SECONDS = 30 * 86400.0  # a suspended call may be carried on so long
PRUNED_EVERY = 200
BEGUN = "begun"  # the status of a row that is no receipt yet
CHANGING = frozenset({"writes", "runs", "memory", "deletes"})


# With status, result, the event that holds the result, repeats, changed
_Row = tuple[CognitiveTool, Call, str, str, int, bool, bool]


class StoreReceipts:
    """Receipts in the store. ``window`` is in seconds; with 0 no repeated call is answered by a receipt."""

    def __init__(
        self,
        store: Callable[[], Store],
        *,
        window: float = WINDOW_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._window = window
        self._clock = clock
        self._reads: dict[str, list[_Row]] = {}  # what was read inside of calls that have not ended, by call

    def find(self, tool: CognitiveTool, call: Call) -> Receipt | None:
        found: list[tuple[Any, ...]] = []
        if call.resumed:
            found = self._store().execute(
                "SELECT call, status, result, event FROM receipts"
                " WHERE key = ? AND digest = ? AND status NOT IN ('', 'begun')"
                " ORDER BY seq DESC LIMIT 1",
                (call.key, _whose(call)),
            )
        if not found and self._window > 0 and _is_repeatable(tool, call):
            found = self._store().execute(
                "SELECT call, status, result, event FROM receipts AS earlier"
                " WHERE session = ? AND digest = ? AND version = ? AND message = ? AND at > ? AND repeats"
                " AND NOT EXISTS (SELECT 1 FROM receipts AS later WHERE later.session = earlier.session"
                "  AND later.seq > earlier.seq AND later.changed)"
                " ORDER BY seq DESC LIMIT 1",
                (
                    call.session,
                    _whose(call),
                    tool.version,
                    _wish(call),
                    self._clock() - self._window,
                ),
            )
        if not found:
            return None
        ((made, status, result, event),) = found
        data = read_result(result) if result else self._in_event(call.session, event, made)
        if data is None:  # the event was never written
            return None
        return Receipt(made, status, data.get("value"), data.get("message", ""), data.get("follow-up"))

    def _in_event(self, session: str, seq: int, made: str) -> Mapping[str, Any] | None:
        """The result of the call ``made``, as JSON would hold it, from its event."""
        sql = "SELECT form FROM events WHERE session = ? AND seq = ? AND kind = 'receipt'"
        for (text,) in self._store().execute(sql, (session, seq)):
            content = content_of(text)
            said = json.loads(json.dumps({**content, "value": None}))
            return said | {"value": value_in(content)} if said["id"] == made else None
        return None

    def begins(self, tool: CognitiveTool, call: Call, *, logged: bool = False) -> None:
        """Record that the body starts, unless the event of the call does so. A call without a key is never
        resumed, so it is not recorded."""
        if call.key and not logged and not HARMLESS.issuperset(tool.effects):
            self._write([(tool, call, BEGUN, "", 0, False, False)])

    def begun(self, tool: CognitiveTool, call: Call) -> bool:
        if not call.key or HARMLESS.issuperset(tool.effects):
            return False
        return self._row_begun(call) or self._begun_in_events(call)

    def _begun_in_events(self, call: Call) -> bool:
        """Whether the event of this call stands without a receipt, or with one that says that the body was
        cancelled. How a call ended before its body tells nothing."""
        found = self._store().execute(
            "SELECT seq, kind, parent, status, form FROM events INDEXED BY events_run"
            " WHERE session = ? AND key = ? AND kind IN ('call', 'receipt') ORDER BY seq",
            (call.session, key_in(call)),
        )
        ends = {parent: (status, text) for _, kind, parent, status, text in found if kind == "receipt"}
        begun = False
        for seq, kind, _, _, text in found:
            if kind != "call" or read_form(content_of(text)["form"]).digest != call.form.digest:
                continue
            status, end = ends.get(seq, ("", ""))
            if not end:
                begun = True
            elif "stage" not in content_of(end):  # it ended in the body
                begun = status == "cancelled"
        return begun

    def _row_begun(self, call: Call) -> bool:
        found = self._store().execute(
            "SELECT status FROM receipts WHERE key = ? AND digest = ? ORDER BY seq DESC LIMIT 1",
            (call.key, _whose(call)),
        )
        return found == [(BEGUN,)]

    def keep(
        self,
        tool: CognitiveTool,
        call: Call,
        result: ToolResult,
        *,
        decided: bool,
        asked: bool = False,
        again: bool = False,
        logged: Logged | None = None,
    ) -> None:
        ran = result.audit["stage"] == "body" and result.status in ("ok", "error", "timeout", "cancelled")
        ended = result.ok or decided or (ran and result.status != "cancelled")
        repeats = (result.ok or decided) and _is_repeatable(tool, call)
        answers = repeats or (
            ended and _is_carried(tool, call, decided or asked or bool(result.side_effects))
        )
        changed = bool(result.side_effects) or (ran and not CHANGING.isdisjoint(tool.effects))
        reads = self._reads.pop(call.id, [])
        if result.status == "pending" and reads:
            self._write(reads)
        stands = result.status == "pending" and result.audit["stage"] == "body"
        if (
            stands and not again and self._row_begun(call)
        ):  # where it stands is known; a question before it tells nothing
            self._write([(tool, call, "", "", 0, False, False)])
        event, told = (logged.event, "") if logged and _holds(result) else (0, _told(result) if ended else "")
        if call.parent is not None and ended and not answers and not changed:
            self._reads.setdefault(call.parent, []).append(
                (tool, call, result.status, told, event, False, changed)
            )
            return
        if not answers and not changed and not again:
            return
        unknown = again or (
            result.status == "cancelled" and self._row_begun(call)
        )  # it may have done anything
        status = result.status if answers else BEGUN if unknown else ""
        told, event = (told, event) if answers else ("", 0)
        self._write([(tool, call, status, told, event, repeats, changed)])

    def _write(self, rows: Sequence[_Row]) -> None:
        with self._store().transaction() as run:
            now = self._clock()
            for tool, call, status, data, event, repeats, changed in rows:
                ((seq,),) = run(
                    "INSERT INTO receipts (key, session, message, digest, version, call, at, repeats,"
                    " changed, status, result, event)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq",
                    (
                        call.key or call.id,
                        call.session,
                        _wish(call) if repeats else "",
                        _whose(call),
                        tool.version if repeats else "",
                        call.id,
                        now,
                        repeats,
                        changed,
                        status,
                        data,
                        event,
                    ),
                )
                if seq % PRUNED_EVERY == 0:
                    run("DELETE FROM receipts WHERE at < ?", (now - KEPT_SECONDS,))


def _holds(result: ToolResult) -> bool:
    """Whether the event of a result holds all of it."""
    return result.ok or (result.value is None and not result.follow_up)


def _told(result: ToolResult) -> str:
    said = {"value": result.value, "message": result.message, "follow-up": result.follow_up}
    return result_text(said)


def _is_repeatable(tool: CognitiveTool, call: Call) -> bool:
    """Whether a repetition of this call would be answered by its receipt."""
    return call.route in ("reply", "chat", "agent") and not tool.allow_repeat


def _is_carried(tool: CognitiveTool, call: Call, told: bool) -> bool:
    """Whether this call must not run again once it is resumed: a resumed call of its own, or an inner call
    that does more than read, is expensive, or is ``told`` to have asked a person or had side effects."""
    if call.parent is None:
        return call.resumed
    return told or tool.cost == "expensive" or any(effect != "reads" for effect in tool.effects)


def _wish(call: Call) -> str:
    """A digest of the user message that a call serves, for comparison."""
    return hashlib.sha256(encodable(f"{call.message}\n{call.turn}").encode()).hexdigest()


def _whose(call: Call) -> str:
    return bound_to(call.form, call.user)


def bound_to(form: CallForm, user: str) -> str:
    """The digest of what a receipt is bound to: the form, and the user, whose rules the call passed."""
    return hashlib.sha256(f"{form.digest} {user}".encode("utf-8", "replace")).hexdigest()
