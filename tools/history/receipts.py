"""Receipts: the stored results of calls, so that a call need not run twice; and the log of calls, below.

A receipt answers a call instead of its body only in two cases:

- A model repeats itself: the same call (form and version of the tool) by the same user and session, in answer
  to the same message, within ``window`` seconds, without a change in between. A call that a person repeats
  runs twice, and so does each call of a program; tools with ``:allow-repeat`` always run.
- A call is resumed after an interruption: a call that had ended under the same key, successful or not, does
  not run again. Inner calls that only read, and are not expensive, run again, unless the outer call was
  pending: then their receipts answer them, too.

A person's denial is stored like a result, so that a model that repeats the call does not ask the person
again. A body that ran counts as a change if it recorded a side effect, or if its tool declares one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from quoth.tools.call.call import PROGRAMS, Call, Decided, EditedCall, ToolResult, verdict_text
from quoth.tools.call.ports import Logged, Receipt
from quoth.tools.call.redaction import Redactor
from quoth.tools.history.event import (
    content_of,
    read_form,
    read_result,
    result_text,
    usual_row,
    value_in,
    words_of,
    written_form,
)
from quoth.tools.history.transcript import Transcript
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.tool import HARMLESS, CognitiveTool
from quoth.tools.registry.values import encodable
from quoth.tools.storage.database import Store

WINDOW_SECONDS = 300.0
KEPT_SECONDS = 30 * 86400.0  # a suspended call can be resumed within this time
PRUNED_EVERY = 200
BEGUN = "begun"  # the status of a row before its receipt
CHANGING = frozenset({"writes", "runs", "memory", "deletes"})


# With status, result, the event with the result, repeats, changed
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
        self._reads: dict[str, list[_Row]] = {}  # receipts of reads inside calls that have not ended, by call

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
        """The result of the call ``made``, as JSON data, from its event."""
        sql = "SELECT form FROM events WHERE session = ? AND seq = ? AND kind = 'receipt'"
        for (text,) in self._store().execute(sql, (session, seq)):
            content = content_of(text)
            said = json.loads(json.dumps({**content, "value": None}))
            return said | {"value": value_in(content)} if said["id"] == made else None
        return None

    def begins(self, tool: CognitiveTool, call: Call, *, logged: bool = False) -> None:
        """Record that the body starts, unless the event of the call records it. A call without a key is never
        resumed, so it is not recorded."""
        if call.key and not logged and not HARMLESS.issuperset(tool.effects):
            self._write([(tool, call, BEGUN, "", 0, False, False)])

    def begun(self, tool: CognitiveTool, call: Call) -> bool:
        if not call.key or HARMLESS.issuperset(tool.effects):
            return False
        return self._row_begun(call) or self._begun_in_events(call)

    def _begun_in_events(self, call: Call) -> bool:
        """Whether the event of this call has no receipt, or a receipt of a cancelled body. The end of a call
        before its body does not count."""
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
        ):  # its state is known; an earlier question does not count
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
    """Whether the event of a result contains all of it."""
    return result.ok or (result.value is None and not result.follow_up)


def _told(result: ToolResult) -> str:
    said = {"value": result.value, "message": result.message, "follow-up": result.follow_up}
    return result_text(said)


def _is_repeatable(tool: CognitiveTool, call: Call) -> bool:
    """Whether a repetition of this call would be answered by its receipt."""
    return call.route in ("reply", "chat", "agent") and not tool.allow_repeat


def _is_carried(tool: CognitiveTool, call: Call, told: bool) -> bool:
    """Whether this call must not run again once it is resumed: a resumed top-level call, or an inner call
    that does more than read, is expensive, or (``told``) has asked a person or had side effects."""
    if call.parent is None:
        return call.resumed
    return told or tool.cost == "expensive" or any(effect != "reads" for effect in tool.effects)


def _wish(call: Call) -> str:
    """A digest of the user message that a call serves, for comparison."""
    return hashlib.sha256(encodable(f"{call.message}\n{call.turn}").encode()).hexdigest()


def _whose(call: Call) -> str:
    return bound_to(call.form, call.user)


def bound_to(form: CallForm, user: str) -> str:
    """The digest to which a receipt is bound: of the form, and of the user, whose rules the call passed."""
    return hashlib.sha256(f"{form.digest} {user}".encode("utf-8", "replace")).hexdigest()


# The call log: writes each call and its result into the transcript.


@dataclass
class _Open:
    """A call whose body has begun; ``seq`` is the sequence number of its event, once that is written."""

    tool: CognitiveTool
    call: Call
    consent: Decided | None
    seq: int = 0
    plain: bool = True  # nothing was hidden in it
    undone: int = 0  # the number of rolled back transactions when it was written


class StoreCallLog:
    """Logs calls in the transcript of their session. The event of a call that only reads is written
    together with its receipt: if the process dies before that, the call simply runs again. ``secrets`` are
    all parameters that tools have declared secret."""

    def __init__(self, transcript: Transcript, secrets: Collection[str] = ()) -> None:
        self._transcript = transcript
        self._secrets = frozenset(secrets)
        self._open: dict[str, _Open] = {}

    def also_hide(self, secrets: Collection[str]) -> None:
        """From now on also hide these parameters, of tools that were added later."""
        self._secrets |= frozenset(secrets)

    def begins(self, tool: CognitiveTool, call: Call, consent: Decided | None) -> bool:
        if not call.session:
            return False
        self._open[call.id] = _Open(tool, call, consent)
        if HARMLESS.issuperset(tool.effects) and (call.run or tool.name != PROGRAMS):
            return False  # in a run, its reply is already recorded
        with self._transcript.together(synced=False):  # on disk before an inner call does more than read
            self.place(call.id)
        return True

    def running(self, call: str) -> Call | None:
        """The call with this id, while its body runs."""
        found = self._open.get(call)
        return None if found is None else found.call

    def place(self, call: str | None) -> int:
        """The sequence number of the event of a running call, which is written now if necessary; 0 for an
        unknown call."""
        found = self._open.get(call or "")
        if found is None:
            return 0
        if found.seq and found.undone != self._transcript.undone:
            found.undone = self._transcript.undone
            if not self._transcript.holds(found.call.session, found.seq, key_in(found.call)):
                found.seq = 0
        if not found.seq:
            found.undone = self._transcript.undone
            found.seq, found.plain = self._called(found.tool, found.call, found.consent)
        return found.seq

    def ends(
        self,
        tool: CognitiveTool | None,
        call: Call,
        result: ToolResult,
        consent: Decided | None,
        row: Mapping[str, Any],
    ) -> Logged | None:
        if not call.session:
            return None
        begun = self._open.get(call.id)
        if begun is not None and begun.seq:
            seq, plain = self.place(call.id), begun.plain
        else:
            seq, plain = self._called(tool, call, consent)
        self._open.pop(call.id, None)
        stage, at = str(row["stage"]), self._transcript.now()
        data: dict[str, Any] = {"id": call.id, "status": result.status}
        if result.ok:
            data["value"] = result.value
        if result.message:
            data["message"] = result.message
        if result.ok and result.follow_up:
            data["follow-up"] = result.follow_up
        if result.request:
            data["request"] = result.request
        own = {"user": call.user, "route": call.route} if call.tool and not call.run else {}
        usual = usual_row(call.form, result.message, stage) | own
        data |= words_of({**row, "side_effects": list(result.side_effects)}, at, usual)
        written = self._transcript.append(
            call.session,
            "fault" if stage == "reader" else "receipt",
            data,
            run=call.run,
            parent=seq,
            key=key_in(call),
            status=result.status,
            at=at,
        )
        return Logged(written.seq, written.digest, plain and written.shown is written.text)

    def settled(self, call: Call, result: ToolResult, consent: Decided | None) -> None:
        if call.session and not call.run and call.parent is None and result.status != "pending":
            self._transcript.forget_secrets(call.session, key=key_in(call), asked=consent is not None)

    def _called(self, tool: CognitiveTool | None, call: Call, consent: Decided | None) -> tuple[int, bool]:
        """Write the event of a call: its sequence number, and whether nothing was hidden in it."""
        if not call.tool:  # it could not be read
            return call.event, False
        self.hide(tool, call)
        data: dict[str, Any] = {"id": call.id, "form": written_form(call.form)}
        if not call.run:
            data |= {"route": call.route, "user": call.user}
        if call.edited:
            data["edited"] = True
        if tool is not None:
            data["version"] = tool.version[:16]
            if not HARMLESS.issuperset(tool.effects):
                data["does"] = list(tool.effects)
        parent = call.event or self.place(call.parent)
        marks = {"run": call.run, "key": key_in(call)}
        written = self._transcript.append(call.session, "call", data, parent=parent, **marks)
        seq = written.seq
        if call.repairs:
            what = {"what": list(call.repairs)}
            self._transcript.add(call.session, "repair", what, parent=seq, **marks)
        if isinstance(consent, EditedCall) or (consent is not None and consent.kind != "ask"):
            said = {"said": verdict_text("consent", consent)}
            self._transcript.add(call.session, "approval", said, parent=seq, **marks)
        return seq, written.shown is written.text

    def hide(self, tool: CognitiveTool | None, call: Call) -> None:
        """From now on hide the secrets of a call in all events."""
        self._transcript.hide(call.session, secrets_in(call.form, tool, self._secrets))


def secrets_in(form: CallForm, tool: CognitiveTool | None, names: Collection[str]) -> list[str]:
    """The values of declared secrets in a call. ``names`` are the secret parameters of all tools."""
    params = tool.params if tool is not None else ()
    if not names and not any(param.secret for param in params):
        return []
    return Redactor(form, params, names, by_looks=False).found


def key_in(call: Call) -> str:
    """The call's key without the session's prefix: its name within the session."""
    return call.key.removeprefix(f"{call.session}/")
