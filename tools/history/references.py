"""What an audit row does not repeat: the form of a call and what it was told stand in its two events.

It knows rows and the texts of events; it must not know doors, tools or terminals. When the events of a
session are removed, the rows are given their texts first; their digest, which is part of the audit's chain,
shows whether those are still the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from quoth.tools.call.redaction import kept_text
from quoth.tools.history.event import TranscriptError, content_of, read_form
from quoth.tools.storage.database import Statement

# The events with the result and the call of an audit row, without secrets; none if the row holds its texts.
EVENTS: Final = (
    "(SELECT coalesce(shown, events.form) FROM events WHERE audit.said != '' AND audit.form = ''"
    " AND events.session = audit.session AND events.seq = audit.event)",
    "(SELECT coalesce(called.shown, called.form) FROM events JOIN events AS called"
    " ON called.session = events.session AND called.seq = events.parent AND called.kind = 'call'"
    " WHERE audit.said != '' AND audit.form = ''"
    " AND events.session = audit.session AND events.seq = audit.event)",
)


def digest_of_texts(form: str, message: str) -> str:
    """The digest of the two texts that an audit row leaves to the events."""
    return hashlib.sha256(f"{form}\n{message}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def texts_of(result: str, call: str) -> tuple[str, str]:
    """The form and the message of an audit row from its two events. Raises TranscriptError."""
    form = kept_text(read_form(content_of(call)["form"]).canonical)
    return form, kept_text(str(content_of(result).get("message", "")))


def row_texts(result: str | None, call: str | None) -> tuple[str, str] | None:
    """The same for the columns EVENTS of a row; None where the events are missing or cannot be read."""
    if result is None or call is None:
        return None
    try:
        return texts_of(result, call)
    except (TranscriptError, KeyError, TypeError):
        return None


def keep_texts(execute: Statement, session: str) -> None:
    """Give the audit rows of a session their texts, before its events are removed."""
    sql = f"SELECT seq, {', '.join(EVENTS)} FROM audit WHERE session = ? AND said != '' AND form = ''"  # noqa: S608
    rows: Sequence[tuple[Any, ...]] = execute(sql, (session,))
    for seq, result, call in rows:
        if (texts := row_texts(result, call)) is not None:
            execute("UPDATE audit SET form = ?, message = ? WHERE seq = ?", (*texts, seq))
