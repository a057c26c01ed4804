"""A part of a session for one page: at most EVENTS events, without the content of large ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from quoth.agent.session.render import fault_of
from quoth.tools.history.event import Event
from quoth.tools.history.outline import MARKED
from quoth.tools.storage.database import Store

EVENTS: Final = 300
LARGE: Final = 300_000  # bytes of an event that is not read
MOST_OPEN: Final = 100  # calls whose result is looked for on later pages
MOST_BYTES: Final = 5_000_000  # of all events of a page
PAGE: Final = (
    "SELECT session, seq, at, run, kind, parent, key, digest, status, octet_length(coalesce(shown, form))"
    " FROM events WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq"
)
TEXTS: Final = (
    "SELECT seq, coalesce(shown, form) FROM events WHERE session = ?"
    " AND seq IN (SELECT value FROM json_each(?))"
)
LATER: Final = (
    f"SELECT max(seq) FROM {MARKED} WHERE session = ? AND run = ? AND seq > ?"  # noqa: S608
    " AND kind = 'receipt' AND key = ?"
)
BEFORE: Final = (
    f"SELECT run, count(*) FROM {MARKED} WHERE session = ? AND kind = 'reply' AND seq < ? GROUP BY run"  # noqa: S608
)
VERDICTS: Final = (
    "SELECT id, duration_ms, policy, rule, guard, gate, consent FROM audit"
    " WHERE session = ? AND event BETWEEN ? AND ?"
)
Row = tuple[Any, ...]


@dataclass(frozen=True)
class SessionPart:
    """The events with the numbers ``first`` to ``last`` of ``count``, and the results of their calls.
    ``large`` are the bytes of those whose content is left out, ``faults`` sentences about unreadable ones;
    ``before`` are the turns of each run before them, ``rows`` their verdicts by the id of their call."""

    events: list[Event]
    first: int
    last: int
    count: int
    large: Mapping[int, int]
    before: Mapping[str, int]
    rows: Mapping[str, Mapping[str, Any]]
    faults: list[str]


def window(store: Store, session: str, at: int | None = None) -> SessionPart:
    """The page with the event ``at``, or the last one."""
    ((count,),) = store.execute("SELECT coalesce(max(seq), 0) FROM events WHERE session = ?", (session,))
    within = min(max(at or count, 1), max(count, 1))
    first = (within - 1) // EVENTS * EVENTS + 1
    last = min(first + EVENTS - 1, count)
    found = _with_results(store, session, last, store.execute(PAGE, (session, first, last)))
    large = _too_large(found)
    texts = dict(
        store.execute(TEXTS, (session, json.dumps([row[1] for row in found if row[1] not in large])))
    )
    events, faults = list[Event](), list[str]()
    for name, seq, time, run, kind, parent, key, digest, status, _ in found:
        text = texts.get(seq, "")
        event = Event(name, seq, time, run, kind, parent, key, text, text, digest, status)
        if seq not in large and (fault := fault_of(event)):
            faults.append(fault)
            continue
        events.append(event)
    before = dict(store.execute(BEFORE, (session, first)))
    names = ("id", "duration_ms", "policy", "rule", "guard", "gate", "consent")
    top = max((event.seq for event in events), default=0)
    rows = {
        row[0]: dict(zip(names, row, strict=True)) for row in store.execute(VERDICTS, (session, first, top))
    }
    return SessionPart(events, first, last, count, large, before, rows, faults)


def _too_large(found: list[Row]) -> dict[int, int]:
    """The sizes of the events whose content is not read: of large ones, and of all after MOST_BYTES."""
    large, total = dict[int, int](), 0
    for row in found:
        seq, size = row[1], row[-1]
        total += size if size <= LARGE else 0
        if size > LARGE or total > MOST_BYTES:
            large[seq] = size
    return large


def _with_results(store: Store, session: str, last: int, found: list[Row]) -> list[Row]:
    """The rows of a page with the results of its calls, which may come later, and without those of earlier
    calls."""
    calls = {row[6]: row[3] for row in found if row[4] == "call"}
    found = [row for row in found if row[4] != "receipt" or not row[6] or row[6] in calls]
    ended = {row[6] for row in found if row[4] == "receipt"}
    for key in [key for key in calls if key not in ended][:MOST_OPEN]:
        ((seq,),) = store.execute(LATER, (session, calls[key], last, key))
        found += store.execute(PAGE, (session, seq, seq)) if seq else []
    return found
