"""The transcript: one append-only sequence of event forms for each session, and its storage.

A row is a form that a person can read, ``(receipt :seq 12 :at "…" :run "r1" … :status "ok" :value 42)``. Its
content never changes: each digest is SHA-256 over the form and the digest before it, which reveals a row that
was changed, removed or inserted. An event is on disk before its content is shown to a model.

Secrets, declared or recognised, stay in the true form while the run may need them to resume; ``shown`` is the
form without them, and the only one that remains afterwards. The digest is of ``shown``, so it does not
change.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from quoth.tools.call.redaction import (
    SECRET,
    map_texts,
    may_hold_secrets,
    redact,
    redact_url,
    sounds_secret,
)
from quoth.tools.errors import InvalidCallError, StoreError, UsageError
from quoth.tools.history.checkpoints import Checkpoints
from quoth.tools.history.event import (
    LIMITS,
    Event,
    Kind,
    TranscriptError,
    digest_of,
    event_form,
    is_marked,
    keep_texts,
    result_text,
    with_marks,
    written_data,
    written_form,
)
from quoth.tools.history.outline import MARKED, Outline
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.printer import Code
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.storage.database import Statement, Store

PAGE, FEW = 200, 8


# The store


COLUMNS = "session, seq, at, run, kind, parent, key, form, shown, digest, status"
ONE = f"SELECT {COLUMNS} FROM events WHERE session = ? AND"  # noqa: S608
WITH_SECRETS = "events INDEXED BY events_secret"  # SQLite would rather read the whole session
RUNS = "FROM events INDEXED BY events_begun WHERE session = ? AND kind = 'stimulus' AND instr(run, '/') = 0"
_KEYWORD = re.compile(r":([\w-]{4,40})")
SECRETS_KEPT = 1000  # of one session


# Called for each written event, with its original data: session, seq, kind, data, run, parent and key. The
# transaction may still be rolled back.
Observer = Callable[[str, int, Kind, Mapping[str, Any], str, int, str], None]


class Transcript:
    """The transcripts of a workspace's store. Many sessions may be written at once; each is one sequence."""

    def __init__(self, store: Callable[[], Store], clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._secrets: dict[str, list[str]] = {}  # texts to hide, by session, the longest first
        self.observer: Observer | None = None

    def hide(self, session: str, texts: Iterable[str]) -> None:
        """From now on hide these texts in all events of the session."""
        known = self._secrets.get(session, [])
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            latest = [*known, *new][-SECRETS_KEPT:]
            self._secrets[session] = sorted(latest, key=len, reverse=True)

    def add(
        self,
        session: str,
        kind: Kind,
        data: Mapping[str, Any],
        *,
        run: str = "",
        parent: int = 0,
        key: str = "",
        status: str = "",
    ) -> int:
        """Append an event and return its sequence number. It is on disk when this returns, or, inside an
        open transaction, when that commits."""
        return self.append(session, kind, data, run=run, parent=parent, key=key, status=status).seq

    def append(
        self,
        session: str,
        kind: Kind,
        data: Mapping[str, Any],
        *,
        run: str = "",
        parent: int = 0,
        key: str = "",
        status: str = "",
        at: str = "",
    ) -> Event:
        """The same, and return the event. ``at`` is a time that ``now`` returned, if any."""
        now = at or self.now()
        with self.together() as execute:
            known = self._store().known
            last, before = known.get(("event", session)) or last_event(execute, session)
            written = written_data(data)
            bare = self._bare(session, data, written)
            text = shown = with_marks(kind, last + 1, now, run, parent, key, written)
            if bare is not data:
                shown = event_form(kind, last + 1, now, run, parent, key, bare)
                known.pop(("bare", session), None)
            digest = digest_of(before, shown)
            event = Event(session, last + 1, now, run, kind, parent, key, text, shown, digest, status)
            _insert(execute, session, event)
            known["event", session] = last + 1, digest
        if self.observer is not None:
            self.observer(session, last + 1, kind, data, run, parent, key)
        return event

    def _bare(self, session: str, data: Mapping[str, Any], written: str) -> Mapping[str, Any]:
        """Content of an event without secrets; the same object if it contains none."""
        secrets = self._secrets.get(session)
        if not (secrets or "base-url" in written or may_hold_secrets(written)):
            return data
        bare: Mapping[str, Any] = without_secrets(data, lambda said: self.hidden(session, said))
        if "value" in data and secrets:
            value = map_texts(bare["value"], lambda said: self.hidden(session, said))
            bare = bare if value == bare["value"] else {**bare, "value": value}
        return bare

    def now(self) -> str:
        """The present time in the format of events."""
        return datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")

    def together(self, *, synced: bool = True) -> contextlib.AbstractContextManager[Statement]:
        """A context in which all events are written in one transaction. With ``synced`` it is on disk at its
        end, otherwise with the next synced one, or after ``on_disk``. Raises StoreError."""
        return self._store().transaction(synced=synced, what="The transcript could not be written")

    async def on_disk(self, session: str) -> None:
        """Wait until all events so far are on disk. Raises StoreError."""
        try:
            await self._store().on_disk(session)
        except StoreError as error:
            raise StoreError("The transcript could not be written", error.why) from None

    def checkpoints(self, session: str, run: str) -> Checkpoints:
        """The checkpoints of a run."""
        return Checkpoints(self._store, session, run)

    @property
    def outline(self) -> Outline:
        """Facts from the columns of all events."""
        return Outline(self._store)

    @property
    def undone(self) -> int:
        """How many transactions were rolled back; an event written in one of them may be missing."""
        return self._store().undone

    def holds(self, session: str, seq: int, key: str) -> bool:
        """Whether the event with that sequence number belongs to the call with that key."""
        sql = "SELECT 1 FROM events WHERE session = ? AND seq = ? AND key = ?"
        return bool(self._store().execute(sql, (session, seq, key)))

    def hidden(self, session: str, text: str) -> str:
        """The text without the session's secrets, and without texts that look like secrets."""
        for secret in self._secrets.get(session, ()):
            text = text.replace(secret, SECRET)
        return redact(text)

    def secrets_of(self, session: str) -> tuple[str, ...]:
        """The texts that are hidden in the session's events so far."""
        return tuple(self._secrets.get(session, ()))

    def at(self, session: str, seq: int) -> Event | None:
        """The event with that sequence number."""
        found = self._store().execute(f"{ONE} seq = ?", (session, seq))
        return _event(found[0]) if found else None

    def events(
        self, session: str, *, run: str | None = None, kind: Kind | None = None, after: int = 0
    ) -> Iterator[Event]:
        """The events of a session, optionally of one run or kind, in their order, read in batches."""
        where, values = "", []
        for name, wanted in (("run", run), ("kind", kind)):
            if wanted is not None:
                where += f" AND {name} = ?"
                values.append(wanted)
        table, few = _indexed(kind, run)
        sql = (
            f"SELECT {COLUMNS} FROM {table} WHERE session = ? AND seq > ?{where}{few}"  # noqa: S608
            f" ORDER BY seq LIMIT {PAGE}"
        )
        page = self._store().execute(sql, (session, after, *values))
        yield from map(_event, page)
        while len(page) == PAGE:
            page = self._store().execute(sql, (session, page[-1][1], *values))
            yield from map(_event, page)

    def forget_secrets(self, session: str, *, run: str = "", key: str = "", asked: bool = False) -> None:
        """Remove the secrets from the events of a run, or of a call without a run, that has ended, inner
        calls included. ``asked`` says that a person was asked about the call."""
        with self._store().transaction() as execute:
            if self.has_secrets(session):
                self._forget_events(execute, session, run, key)
            else:  # as after almost every call
                self._store().known["bare", session] = True
            if run or asked:
                self._forget_requests(execute, session)
            if run:
                self._forget_texts(execute, session, run)
                execute("DELETE FROM checkpoints WHERE session = ? AND run = ?", (session, run))

    def _forget_events(self, execute: Statement, session: str, run: str, key: str) -> None:
        """Remove the secrets from the events of a run or call, from its receipts, and from checkpoints."""
        own = "run = ?" if run else "(run = '' AND (key = ? OR key LIKE ? || '/%'))"
        name = run or key
        which = f"session = ? AND shown IS NOT NULL AND ({own} OR run LIKE ? || '/%')"
        values = (session, name, *(() if run else (name,)), name)
        secret = execute(f"SELECT {COLUMNS} FROM {WITH_SECRETS} WHERE {which} ORDER BY seq", values)  # noqa: S608
        for event in map(_event, secret):
            if event.kind == "receipt":
                self._forget_receipt(execute, session, event)
        if secret:
            execute("DELETE FROM checkpoints WHERE session = ?", (session,))  # others may have them
            execute(f"UPDATE {WITH_SECRETS} SET form = shown, shown = NULL WHERE {which}", values)  # noqa: S608

    def _forget_receipt(self, execute: Statement, session: str, event: Event) -> None:
        """Remove the secrets from a receipt's result, unless the event has it. If its call only reads, the
        receipt no longer answers repetitions, so the call runs again."""
        said = event.said
        result = result_text({"value": said.get("value"), "message": said.get("message", "")})
        execute(
            "UPDATE receipts SET result = CASE result WHEN '' THEN '' ELSE ? END,"
            " repeats = repeats AND changed WHERE session = ? AND key IN (?, ?) AND (result != '' OR event)",
            (result, session, event.key, f"{session}/{event.key}"),
        )

    def _forget_requests(self, execute: Statement, session: str) -> None:
        """Hide the session's secrets in its decided requests."""
        columns = ("shown", "reason", "message", "why", "touches", "origins")
        decided = execute(
            f"SELECT {', '.join(columns)}, seq FROM requests WHERE session = ? AND state != 'pending'",  # noqa: S608
            (session,),
        )
        for *said, seq in decided:
            bare = [self.hidden(session, text) for text in said]
            for place, text in enumerate(said[-2:], len(said) - 2):
                with contextlib.suppress(ValueError):
                    bare[place] = json.dumps(map_texts(json.loads(text), partial(self.hidden, session)))
            if bare != said:
                marks = ", ".join(f"{name} = ?" for name in columns)
                execute(f"UPDATE requests SET {marks} WHERE seq = ?", (*bare, seq))  # noqa: S608

    def _forget_texts(self, execute: Statement, session: str, run: str) -> None:
        """Hide the session's secrets in the long texts that were stored during a run."""
        begun = self.last(session, "stimulus", run=run)
        since = datetime.fromisoformat(begun.at).timestamp() - 1 if begun else 0.0
        kept = execute("SELECT user, id, text FROM texts WHERE session = ? AND at >= ?", (session, since))
        for user, id, text in kept:
            if (bare := self.hidden(session, text)) != text:
                execute(
                    "UPDATE texts SET text = ? WHERE session = ? AND user = ? AND id = ?",
                    (bare, session, user, id),
                )

    def has_secrets(self, session: str) -> bool:
        """Whether an event of a session still contains secrets that must be removed; outside a transaction,
        as of the last one."""
        if ("bare", session) in self._store().known:
            return False
        sql = f"SELECT 1 FROM {WITH_SECRETS} WHERE session = ? AND shown IS NOT NULL LIMIT 1"  # noqa: S608
        return bool(self._store().execute(sql, (session,)))

    def secret_openings(self, session: str) -> list[Event]:
        """The session events that still contain secrets: a server's address may hold some."""
        table = WITH_SECRETS
        sql = f"SELECT {COLUMNS} FROM {table} WHERE session = ? AND shown IS NOT NULL AND kind = 'session'"  # noqa: S608
        return [_event(row) for row in self._store().execute(sql, (session,))]

    def forget_secrets_in(self, event: Event) -> None:
        """Remove the secrets from this event."""
        self._store().execute(
            "UPDATE events SET form = shown, shown = NULL"
            " WHERE session = ? AND seq = ? AND shown IS NOT NULL",
            (event.session, event.seq),
        )

    def count(self, session: str, kind: Kind) -> int:
        """The number of events of that kind in a session; a call that was resumed counts once."""
        sql = (
            f"SELECT count(DISTINCT CASE key WHEN '' THEN seq ELSE key END) FROM {MARKED}"  # noqa: S608
            " WHERE session = ? AND kind = ?"
        )
        ((count,),) = self._store().execute(sql, (session, kind))
        return int(count)

    def last(self, session: str, kind: Kind, *, run: str | None = None) -> Event | None:
        """The latest event of that kind, or None."""
        where, values = ("", []) if run is None else (" AND run = ?", [run])
        table, few = _indexed(kind, run)
        sql = (
            f"SELECT {COLUMNS} FROM {table} WHERE session = ? AND kind = ?{where}{few}"  # noqa: S608
            " ORDER BY seq DESC LIMIT 1"
        )
        found = self._store().execute(sql, (session, kind, *values))
        return _event(found[0]) if found else None

    def backwards(self, session: str, kind: Kind) -> Iterator[Event]:
        """The events of that kind, the latest first, read in batches."""
        _, few = _indexed(kind, None)
        sql = (
            f"SELECT {COLUMNS} FROM events WHERE session = ? AND kind = ? AND seq < ?{few}"  # noqa: S608
            f" ORDER BY seq DESC LIMIT {FEW}"
        )
        before = 1 << 62
        while page := self._store().execute(sql, (session, kind, before)):
            yield from (_event(row) for row in page)
            before = page[-1][1]

    def runs(self, session: str) -> int:
        """The number of runs that were begun in a session, without sub-agents."""
        ((count,),) = self._store().execute(f"SELECT count(*) {RUNS}", (session,))
        return int(count)

    def run_of(self, session: str, key: str) -> str:
        """The run in a session that was begun with this key; empty if there is none."""
        found = self._store().execute(f"SELECT run {RUNS} AND key = ? LIMIT 1", (session, key))
        return str(found[0][0]) if found else ""

    def sessions(self) -> list[tuple[str, int, str, str]]:
        """Each session with its number of events and the times of its first and last one, ordered by the
        last time."""
        return [*self.outline.sessions()]

    def verify(self, session: str) -> None:
        """Raise TranscriptError at the first event that was altered."""
        for fault in self.faults(session):
            raise TranscriptError(fault)

    def faults(self, session: str) -> Iterator[str]:
        """A sentence for each event that was altered or is missing. The chain has no key, and the last event
        is not recorded outside it, so a transcript truncated at its end is not detected."""
        before, place = "", 0
        for event in self.events(session):
            if event.seq != place + 1:
                yield f"Event {place + 1} of session {session} is missing."
            elif event.digest != digest_of(before, event.shown) or not is_marked(event):
                yield f"Event {event.id} was changed after it was written."
            before, place = event.digest, event.seq

    def copy(self, events: Iterator[Event], session: str) -> int:
        """Copy events unchanged into a new session; returns their number. Raises UsageError if the session
        has events, TranscriptError if an event was altered."""
        count = 0
        with self._store().transaction() as execute:
            last, before = last_event(execute, session)
            if last:
                raise UsageError(f"There is a session {session} already.")
            for event in events:
                count += 1
                if event.digest != (before := digest_of(before, event.shown)):
                    raise TranscriptError(f"Event {event.id} was changed after it was written.")
                _insert(execute, session, event)
            self._store().known.clear()
        return count

    def mark_imported(self, session: str, count: int) -> None:
        """Record that the first ``count`` events of a session were written elsewhere: their files, rules
        and servers were not chosen by this machine's user."""
        sql = "INSERT OR REPLACE INTO imported (session, events) VALUES (?, ?)"
        self._store().execute(sql, (session, count))

    def imported(self, session: str) -> int:
        """How many events of a session were written elsewhere."""
        found = self._store().execute("SELECT events FROM imported WHERE session = ?", (session,))
        return int(found[0][0]) if found else 0

    def remove(self, *sessions: str) -> None:
        """Delete sessions with their pending requests and suspended programs. The audit keeps their calls."""
        with self._store().transaction() as execute:
            searched = False
            for session in sessions:
                searched |= bool(execute("SELECT 1 FROM indexed_sessions WHERE session = ?", (session,)))
                execute(
                    "DELETE FROM plans WHERE request IN (SELECT id FROM requests WHERE session = ?)",
                    (session,),
                )
                keep_texts(execute, session)
                for table in (
                    "events",
                    "receipts",
                    "snapshots",
                    "grants",
                    "texts",
                    "imported",
                    "indexed_sessions",
                    "writes",
                    "requests",
                    "checkpoints",
                ):
                    execute(f"DELETE FROM {table} WHERE session = ?", (session,))  # noqa: S608
            self._store().known.clear()
            execute("DELETE FROM contents WHERE sha256 NOT IN (SELECT before FROM writes WHERE before > '')")
            if searched:  # their words would stay in the index of the search until they are merged away
                execute("INSERT INTO passage_words (passage_words) VALUES ('optimize')")


# The content of an event with its secrets hidden.
_PLAIN = frozenset(
    {
        "role",
        "status",
        "stage",
        "id",
        "call_id",
        "kind",
        "finish",
        "raised",
        "dialect",
        "route",
        "schema",
        "outer",
    }
)


_NO_TEXT = frozenset({int, float, bool, type(None)})


def without_secrets(value: Any, hide: Callable[[str], str]) -> Any:
    """Content of an event with ``hide`` applied to every text; the same object if nothing changes."""
    if type(value) in _NO_TEXT:
        return value
    if isinstance(value, Code):
        return _bare_call(value, hide)
    if isinstance(value, str):
        bare = hide(value)
        return value if bare == value else bare
    if isinstance(value, Mapping):
        items = {key: _bare_item(str(key), item, hide) for key, item in value.items()}
        return value if all(items[key] is item for key, item in value.items()) else items
    if isinstance(value, (list, tuple)):
        found = [without_secrets(item, hide) for item in value]
        return value if all(a is b for a, b in zip(found, value, strict=True)) else found
    return value


def _bare_item(name: str, value: Any, hide: Callable[[str], str]) -> Any:
    if name in _PLAIN or type(value) in _NO_TEXT:
        return value
    if isinstance(value, str) and name == "base-url":
        bare = redact_url(value)
        return value if bare == value else bare
    if isinstance(value, str) and value and sounds_secret(name):
        return SECRET
    return without_secrets(value, hide)


def _bare_call(code: Code, hide: Callable[[str], str]) -> Any:
    """A call form, redacted argument by argument; a program in it stays parseable, or is hidden entirely."""
    if hide(code) == code and not any(map(sounds_secret, _KEYWORD.findall(code))):
        return code
    try:
        form = from_model(read_one(code, LIMITS))
    except (ReadError, InvalidCallError):
        return SECRET
    args = {
        name: SECRET if sounds_secret(name) and isinstance(value, str) else _bare_argument(value, hide)
        for name, value in form.args.items()
    }
    places = tuple(_bare_argument(value, hide) for value in form.positional)
    bare = CallForm(form.tool, args, places)
    return code if bare == form else written_form(bare)


def _bare_argument(value: Any, hide: Callable[[str], str]) -> Any:
    if not isinstance(value, Code):
        return map_texts(without_secrets(value, hide), hide)
    bare = hide(value)
    if bare == value:
        return value
    try:
        read_one(bare, LIMITS)
    except ReadError:
        return SECRET
    return Code(bare)


def _indexed(kind: Kind | None, run: str | None) -> tuple[str, str]:
    """The table with the index of runs; or a condition that lets SQLite use the partial index of the few
    events that begin and end something. Otherwise SQLite would read the whole session."""
    if run is not None:
        return "events INDEXED BY events_run", ""
    begins = " AND kind IN ('session', 'stimulus', 'end')" if kind in ("session", "stimulus", "end") else ""
    return "events", begins


def last_event(execute: Statement, session: str) -> tuple[int, str]:
    """The sequence number and digest of the last event of a session; 0 and an empty text for a new one."""
    sql = "SELECT seq, digest FROM events WHERE session = ? ORDER BY seq DESC LIMIT 1"
    for seq, digest in execute(sql, (session,)):
        return int(seq), str(digest)
    return 0, ""


def _insert(execute: Statement, session: str, event: Event) -> None:
    """Insert an event unchanged; ``_event`` is the inverse."""
    execute(
        f"INSERT INTO events ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (
            session,
            event.seq,
            event.at,
            event.run,
            event.kind,
            event.parent,
            event.key,
            event.text,
            None if event.shown == event.text else event.shown,
            event.digest,
            event.status,
        ),
    )


def _event(row: Sequence[Any]) -> Event:
    session, seq, at, run, kind, parent, key, text, shown, digest, status = row
    return Event(
        session, seq, at, run, kind, parent, key, text, text if shown is None else shown, digest, status
    )
