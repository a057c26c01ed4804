"""What the records of a workspace still hold of a block that was forgotten.

Knows the tables of events and of the audit; it must not know stores of memory, nor who asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from quoth.tools.history.references import EVENTS, row_texts
from quoth.tools.lisp.printer import print_string
from quoth.tools.storage.database import Store


@dataclass(frozen=True)
class Traces:
    """How many calls of the audit name a label, and the sessions whose transcripts do."""

    calls: int
    sessions: tuple[str, ...]


def names(text: str, label: str) -> bool:
    """Whether a label stands in a text as a word of its own, as it is or as Lisp writes it in a string."""
    written = print_string(label)[1:-1]
    word = rf"(?<![\w-])(?:{re.escape(label)}|{re.escape(written)})(?![\w-])"
    return re.search(word, text) is not None


def _texts_in_events(store: Store, *words: str) -> Iterator[tuple[str, str]]:
    """The texts of the audit's rows that stand in events with one of the words: of the sessions with such
    events alone, as of a million rows all but a few have none."""
    sql = (
        f"SELECT * FROM (SELECT {EVENTS[0]} AS result, {EVENTS[1]} AS called FROM audit"  # noqa: S608
        " WHERE said != '' AND session IN (SELECT session FROM events WHERE kind IN ('call', 'receipt')"
        " AND (instr(coalesce(shown, form), ?1) OR instr(coalesce(shown, form), ?2))))"
        " WHERE instr(result || called, ?1) OR instr(result || called, ?2)"
    )
    for told in store.execute(sql, words):
        if (texts := row_texts(*told)) is not None:
            yield texts


def traces(store: Store, label: str) -> Traces:
    """Where a label still stands as a word of its own, as it is or as Lisp writes it in a string."""
    written = print_string(label)[1:-1]
    audit = store.execute(
        "SELECT form || ' ' || message FROM audit"
        " WHERE instr(form || message, ?) OR instr(form || message, ?)",
        (label, written),
    )
    audit += [(f"{form} {message}",) for form, message in _texts_in_events(store, label, written)]
    # Requests say again what other events hold, and the examples of the tools.
    events = store.execute(
        "SELECT session, coalesce(shown, form) FROM events WHERE kind != 'request'"
        " AND (instr(coalesce(shown, form), ?) OR instr(coalesce(shown, form), ?)) ORDER BY at",
        (label, written),
    )
    calls = sum(1 for (text,) in audit if names(text, label))
    return Traces(calls, tuple(dict.fromkeys(session for session, text in events if names(text, label))))
