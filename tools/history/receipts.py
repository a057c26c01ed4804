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
from collections.abc import Callable, Sequence
from typing import Any

from quoth.tools.call.call import Call, ToolResult
from quoth.tools.call.ports import Receipt
from quoth.tools.call.values import encodable
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import HARMLESS, CognitiveTool
from quoth.tools.storage.database import Store

WINDOW_SECONDS = 300.0
KEPT_SECONDS = 30 * 86400.0  # a suspended call may be carried on so long
PRUNED_EVERY = 200
BEGUN = "begun"  # the status of a row that is no receipt yet
CHANGING = frozenset({"writes", "runs", "memory", "deletes"})


_Row = tuple[CognitiveTool, Call, str, str, bool, bool]  # with status, result, repeats, changed


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
                "SELECT call, status, result FROM receipts"
                " WHERE key = ? AND digest = ? AND status NOT IN ('', 'begun')"
                " ORDER BY seq DESC LIMIT 1",
                (call.key, _whose(call)),
            )
        if not found and self._window > 0 and _is_repeatable(tool, call):
            found = self._store().execute(
                "SELECT call, status, result FROM receipts AS earlier"
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
        ((made, status, result),) = found
        data = json.loads(result)
        return Receipt(made, status, data["value"], data["message"], data.get("follow-up"))

    def begins(self, tool: CognitiveTool, call: Call) -> None:
        """Record that the body starts. A call without a key is never resumed, so it is not recorded."""
        if call.key and not HARMLESS.issuperset(tool.effects):
            self._write([(tool, call, BEGUN, "", False, False)])

    def begun(self, tool: CognitiveTool, call: Call) -> bool:
        if not call.key:
            return False
        found = self._store().execute(
            "SELECT status FROM receipts WHERE key = ? AND digest = ? ORDER BY seq DESC LIMIT 1",
            (call.key, _whose(call)),
        )
        return found == [(BEGUN,)]

    def keep(
        self, tool: CognitiveTool, call: Call, result: ToolResult, *, decided: bool, asked: bool = False
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
        if stands and self.begun(tool, call):  # where it stands is known; a question before it tells nothing
            self._write([(tool, call, "", "", False, False)])
        if call.parent is not None and ended and not answers and not changed:
            self._reads.setdefault(call.parent, []).append(
                (tool, call, result.status, _told(result), False, changed)
            )
            return
        if not answers and not changed:
            return
        data = _told(result) if answers else ""
        unknown = result.status == "cancelled" and self.begun(tool, call)  # it may have done anything
        status = result.status if answers else BEGUN if unknown else ""
        self._write([(tool, call, status, data, repeats, changed)])

    def _write(self, rows: Sequence[_Row]) -> None:
        with self._store().transaction() as run:
            now = self._clock()
            for tool, call, status, data, repeats, changed in rows:
                ((seq,),) = run(
                    "INSERT INTO receipts (key, session, message, digest, version, call, at, repeats,"
                    " changed, status, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq",
                    (
                        call.key or call.id,
                        call.session,
                        _wish(call),
                        _whose(call),
                        tool.version,
                        call.id,
                        now,
                        repeats,
                        changed,
                        status,
                        data,
                    ),
                )
                if seq % PRUNED_EVERY == 0:
                    run("DELETE FROM receipts WHERE at < ?", (now - KEPT_SECONDS,))


def _told(result: ToolResult) -> str:
    said = {"value": result.value, "message": result.message}
    return json.dumps(said | ({"follow-up": result.follow_up} if result.follow_up else {}))


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
