"""Records each call: receipt, call log and audit row. Only this file writes them.

Acknowledged writes are synced to disk; others are not:

- The body of a call that does more than read begins after the call is on disk, with the request and the reply
  that led to it.
- A result is returned after its receipt is on disk, with the audit row. The result of a call that only reads,
  inside a program, is on disk with the receipt of the program.
- A request is sent to a model after all earlier events in it are on disk. The request itself is not waited
  for, nor is a reply before its calls run: they are on disk with the next event. A process that is killed
  loses none of them. A power cut may lose one request to a model with a reply that led only to reads; then
  the model is asked again. The request was reserved in the user's daily budget before it was sent, and stays
  reserved; a budget of only the run does not include it.
- The Reply of a run is returned after its end is on disk.
- A question to a person and a decision are on disk before they are shown or reported.

All but the last are synced outside the event loop, in groups (tools/storage/log_sync.py).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any

from quoth.tools.call.call import ToolResult, Verdict, verdict_columns
from quoth.tools.call.ports import Logged
from quoth.tools.call.redaction import Redactor, redact
from quoth.tools.door.execution import brief
from quoth.tools.door.state import CallState, Outcome, Parts
from quoth.tools.errors import Status, StoreError
from quoth.tools.history.event import digest_of_texts
from quoth.tools.policy.limits import only_reads
from quoth.tools.registry.values import encodable


async def record_begin(door: Parts, state: CallState) -> None:
    """Record that the body is about to start; on disk before it starts if the tool does more than read."""
    tool, call = state.known_tool, state.call
    consent = state.verdicts.get("consent")
    if only_reads(tool):
        door.receipts.begins(tool, call, logged=door.log.begins(tool, call, consent))
        return
    with door.together():
        door.receipts.begins(tool, call, logged=door.log.begins(tool, call, consent))
    await door.on_disk(call.session)


async def acknowledged(door: Parts, state: CallState, result: ToolResult) -> ToolResult:
    """The result, once its record is on disk."""
    if result.audit.get("written") is False:
        return result
    if state.call.route == "program" and state.tool is not None and only_reads(state.tool):
        return result
    try:
        await door.on_disk(state.call.session)
    except Exception as error:
        return _unrecorded(result.audit, state, result.status, "receipt", error, result.side_effects)
    return result


def record_end(door: Parts, state: CallState, stage: str, outcome: Outcome, unread: str = "") -> ToolResult:
    """Create the result of a call and record it on disk before it is returned or shown. ``stage`` is the last
    stage of the call; ``unread`` is the text of a call that could not be parsed."""
    call = state.call
    row = _row(state, stage, outcome.status)
    if outcome.status == "pending" and (stage == "body" or state.permitted):
        with contextlib.suppress(Exception):  # then the approval stays used
            door.consent.waits(call)
    effects = tuple(state.context.side_effects)
    if state.broken:  # no receipt, as after a kill: a later process finds the call begun
        return _unwritten(row, state, state.broken, effects)
    name = str(row["tool"])
    record, consent = "audit row", state.verdicts.get("consent")
    try:
        with door.together():
            state.notes += [said for write in state.context.written if (said := write())]
            message = outcome.message or "\n".join((*state.said, *state.notes))
            told = "\n".join(state.said) if outcome.status == "ok" else message
            details = {**state.context.audit.recorded(), **_asked(state)}
            told_of = details | row | ({"room_at": outcome.room_at} if outcome.room_at else {})
            told_of |= {"request": state.request} if state.request and outcome.status == "pending" else {}
            result = ToolResult(
                call.id, name, outcome.status, outcome.value, message, effects, told_of, told or None
            )
            evidence = _evidence(door, state, outcome.note or message, effects, details)
            row_told = row | evidence | ({"form": redact(encodable(unread[:2000]))} if unread else {})
            record = "receipt"
            logged = door.log.ends(state.tool, call, result, consent, row_told)
            if state.tool is not None and stage != "receipt":
                asked = isinstance(consent, Verdict) and consent.kind == "allow"
                waits = outcome.status == "pending" and stage == "body"
                again = waits and state.must_not_begin_again(outcome.message)
                ways = {"decided": state.refused, "asked": asked, "again": again}
                door.receipts.keep(state.tool, call, result, **ways, logged=logged)
            door.log.settled(call, result, consent)
            record = "audit row"
            door.audit.write(row_told | (_reference(logged, row_told) if logged else {}))
    except Exception as error:
        return _unrecorded(row, state, outcome.status, record, error, effects)
    return result


def _reference(logged: Logged, row: Mapping[str, Any]) -> dict[str, Any]:
    """The reference from an audit row to the event with the result, the digest of the row's texts, and
    whether the two events of the call contain them, too."""
    said = digest_of_texts(str(row["form"]), str(row["message"]))
    there = {"event": logged.event, "event_digest": logged.digest, "said": said}
    return there | {"told_there": logged.plain}


def _unrecorded(
    row: Mapping[str, Any],
    state: CallState,
    status: Status,
    record: str,
    error: Exception,
    effects: tuple[str, ...],
) -> ToolResult:
    """The result of a call that cannot be recorded: it is not acknowledged."""
    said, why = "The call was done, but its" if status == "ok" else "The", brief(error)
    if isinstance(error, StoreError):  # all records of the call are written at once
        record, why = "receipt", error.why or why
    message = f"{said} {record} could not be written: {why.rstrip('.')}."
    return _unwritten(row, state, message, effects)


def _unwritten(
    row: Mapping[str, Any], state: CallState, message: str, effects: tuple[str, ...]
) -> ToolResult:
    told_of = {**row, "status": "error", "written": False}
    return ToolResult(state.call.id, str(row["tool"]), "error", None, message, effects, told_of, message)


def _row(state: CallState, stage: str, status: Status) -> dict[str, Any]:
    call = state.call
    return {
        "tool": state.tool.name if state.tool else encodable(call.tool)[:200],
        "digest": call.form.digest,
        "status": status,
        "stage": stage,
        "duration_ms": int((time.monotonic() - state.started - state.clock.held) * 1000),
        "ts": state.now.isoformat(timespec="milliseconds"),
        "route": call.route,
    }


ASKED_FROM = 1.0  # seconds; a shorter time was spent on the record of the request


def _asked(state: CallState) -> dict[str, int]:
    """The milliseconds for which a person was asked, left out of the duration; none if no person was."""
    held = state.clock.held
    return {"asked_ms": int(held * 1000)} if held >= ASKED_FROM else {}


def _evidence(
    door: Parts, state: CallState, message: str, effects: tuple[str, ...], details: Mapping[str, Any]
) -> dict[str, Any]:
    """The rest of an audit row, without secrets: the caller, the verdicts, and the outcome."""
    call, table = state.call, door.table
    tool = state.tool or table.find(call.tool)
    hide = Redactor(call.form, tool.params if tool else (), table.secrets)
    try:
        schema_hash = table.schema_hash
    except Exception:  # a tool with a broken schema must not stop the others
        schema_hash = ""
    return {name: hide.text(said) for name, said in verdict_columns(state.verdicts).items()} | {
        "id": call.id,
        "session": call.session,
        "user": call.user,
        "parent": call.parent,
        "depth": call.depth,
        "round": call.round,
        "place": call.order,
        "side_effects": tuple(hide.text(effect) for effect in effects),
        "message": hide.text(message),
        "form": hide.form_text(),
        "schema_hash": schema_hash,
        "repairs": hide.text("; ".join((*call.repairs, *call.written))),
        "confidence": call.confidence,
        "details": hide.data(details),
    }
