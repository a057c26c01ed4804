"""An audit row and the two events of its call, which tell all of it: ``row_of`` makes the row from them.

It knows rows and the texts of events; it must not know doors, tools or terminals. The event of the result has
a word for each column that is not as usual; the form of the call and what it was told stand in the events
alone. When the events of a session are removed, the rows are given these texts first; their digest, which is
part of the audit's chain, shows whether they are still the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from quoth.tools.call.redaction import SECRET, kept_text
from quoth.tools.call.values import encodable
from quoth.tools.history.event import TranscriptError, content_of, read_form
from quoth.tools.lisp.forms import CallForm
from quoth.tools.storage.database import Statement

# Columns that the event of the result tells by a word where they are not as usual, and what is usual.
USUAL: Final[Mapping[str, Any]] = {
    "side_effects": [],
    "stage": "body",
    "user": "",
    "route": "reply",
    "parent": None,
    "depth": 0,
    "round": 0,
    "place": 0,
    "tool": "",  # or that of the call
    "policy": "",  # or allow, where the body was reached
    "rule": "",
    "guard": "",
    "gate": "",
    "consent": "",
    "repairs": "",
    "confidence": None,
    "schema_hash": "",
    "form": "",  # or that of the call
    "message": "",  # or what was told
}
OTHER: Final = {
    "side_effects": "effects",
    "parent": "outer",
    "schema_hash": "schema",
    "form": "shown",
    "message": "note",
}
WORDS: Final = {name: OTHER.get(name, name) for name in USUAL}
SAID: Final = ("route", "user")  # by the event of a call that no run has made
# Columns that may hold something that is hidden in the events, or less of it than they.
HIDES: Final = frozenset(
    ("side_effects", "digest", "user", "tool", "policy", "rule", "guard", "gate", "consent", "repairs")
)
_MS: Final = timedelta(milliseconds=1)
# What reading an event raises that somebody has changed: it may say anything.
UNREADABLE: Final = (TranscriptError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
# The events with the result and the call of an audit row, without secrets;
TOLD: Final = (
    "(SELECT coalesce(shown, form) FROM events WHERE events.session = audit.session AND seq = audit.event)",
    "(SELECT coalesce(called.shown, called.form) FROM events JOIN events AS called"
    " ON called.session = events.session AND called.seq = events.parent AND called.kind = 'call'"
    " WHERE events.session = audit.session AND events.seq = audit.event)",
)
# the same, but none if the row holds its texts.
EVENTS: Final = tuple(f"CASE WHEN audit.said != '' AND audit.form = '' THEN {told} END" for told in TOLD)

_content = lru_cache(maxsize=4)(content_of)  # a row is compared with its events twice


def usual_row(form: CallForm, message: str, stage: str) -> dict[str, Any]:
    """The columns that have a word, as they are where the events of a call have none of these words."""
    return {
        **USUAL,
        "tool": encodable(form.tool)[:200],
        "policy": "allow" if stage == "body" else "",
        "form": kept_text(form.canonical),
        "message": kept_text(message),
    }


def words_of(row: Mapping[str, Any], at: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    """What an event that is written ``at`` this time says of a row, beside what is as usual."""
    words = {"ms": row["duration_ms"]}
    began = (datetime.fromisoformat(at) - datetime.fromisoformat(row["ts"])) // _MS
    if began != words["ms"]:  # the two are measured by different clocks
        words["began"] = began
    return words | {word: row[name] for name, word in WORDS.items() if row[name] != usual[name]}


def row_of(session: str, result: str, call: str | None) -> dict[str, Any] | None:
    """The audit row that the two events of a call tell of; one that could not be read has no ``call``. None
    where they were written before they told all of it. Raises TranscriptError."""
    said, called = _content(result), _content(call) if call else {}
    if "ms" not in said:
        return None
    form = read_form(called["form"]) if called else CallForm("")
    usual = usual_row(form, str(said.get("message", "")), said.get("stage", "body"))
    usual |= {name: called[name] for name in SAID if name in called}
    row = {name: said.get(word, usual[name]) for name, word in WORDS.items()}
    began = datetime.fromisoformat(said["at"]) - said.get("began", said["ms"]) * _MS
    return row | {
        "id": said["id"],
        "ts": began.isoformat(timespec="milliseconds"),
        "session": session,
        "digest": form.digest,
        "status": said["status"],
        "side_effects": [kept_text(effect) for effect in row["side_effects"]],
        "duration_ms": said["ms"],
    }


def differences(row: Mapping[str, Any], result: str, call: str | None) -> list[str]:
    """The columns of a row that are not what its events say; texts that its digest ``said`` covers aside."""
    hidden = any(SECRET in text for text in (result, call or "", row["form"], row["message"]))
    try:
        made = row_of(row["session"], result, call)
    except UNREADABLE:
        return [] if hidden else ["form"]  # all of the form may be hidden
    if made is None:
        return []
    left = {"form", "message"} | (HIDES if hidden else set())
    return [name for name, value in made.items() if name not in left and row[name] != value]


def digest_of_texts(form: str, message: str) -> str:
    """The digest of the two texts that an audit row leaves to the events."""
    return hashlib.sha256(f"{form}\n{message}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def texts_of(result: str, call: str) -> tuple[str, str]:
    """The form and the message of an audit row from its two events. Raises TranscriptError."""
    said = _content(result)
    form = said["shown"] if "shown" in said else kept_text(read_form(_content(call)["form"]).canonical)
    return str(form), str(said["note"]) if "note" in said else kept_text(str(said.get("message", "")))


def row_texts(result: str | None, call: str | None) -> tuple[str, str] | None:
    """The same for the columns EVENTS of a row; None where the events are missing or cannot be read."""
    if result is None or call is None:
        return None
    try:
        return texts_of(result, call)
    except UNREADABLE:
        return None


def keep_texts(execute: Statement, session: str) -> None:
    """Give the audit rows of a session their texts, before its events are removed."""
    sql = (
        f"SELECT seq, {', '.join(EVENTS)} FROM audit"  # noqa: S608
        " WHERE session = ? AND said != '' AND form = ''"
    )
    rows: Sequence[tuple[Any, ...]] = execute(sql, (session,))
    for seq, *told in rows:
        if (texts := row_texts(*told)) is not None:
            execute("UPDATE audit SET form = ?, message = ? WHERE seq = ?", (*texts, seq))
