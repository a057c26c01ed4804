"""The audit trail: one row for every call that reached the door, with any result, in a hash chain.

The rows that it receives no longer contain secrets.

The row of a session's call is an index over its transcript: it names the event with the result, and its
digest; the texts are read from there. The whole row can be computed from the call's two events, and must be
equal (tools/history/event.py). Each row contains the hash of the row before it and its own, SHA-256 over its
other columns; the head, stored beside the rows, identifies the last row. So ``verify`` finds a row that was
changed, removed, moved or inserted, and a truncated trail, and the same for a transcript. The chain has no
key: a user who can write the file can replace it with a new consistent trail. Only a head that was noted
elsewhere (``verify(head=…)``) reveals that, and nothing protects against the loss of the whole file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii
from typing import Any

from quoth.tools.history.event import EVENTS, TOLD, differences, digest_of_texts, row_texts
from quoth.tools.history.outline import Outline
from quoth.tools.history.transcript import Transcript
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.storage.database import Statement, Store

COLUMNS = (
    "id",
    "ts",
    "session",
    "user",
    "route",
    "parent",
    "depth",
    "round",
    "place",
    "tool",
    "digest",
    "status",
    "stage",
    "duration_ms",
    "side_effects",
    "policy",
    "rule",
    "guard",
    "gate",
    "consent",
    "message",
    "form",
    "schema_hash",
    "repairs",
    "confidence",
    "details",
)
NO_CALL: dict[str, Any] = {"side_effects": (), "confidence": None, "details": {}}
NO_CALL |= dict.fromkeys(("depth", "round", "place", "duration_ms"), 0)
ALL = ("seq", *COLUMNS, "prev", "hash")
REFERENCE = {"event": None, "event_digest": "", "said": ""}  # the columns of a row without an event
STORED = (*ALL, *REFERENCE)
INSERT = f"INSERT INTO audit ({', '.join(STORED)}) VALUES ({', '.join('?' * len(STORED))})"  # noqa: S608
FILTERS = {
    "tool": "tool = ?",
    "status": "status = ?",
    "session": "session = ?",
    "user": "user = ?",
    "since": "ts >= ?",
    "effect": "instr(side_effects, ?)",  # a part of their JSON text
}
SINCE = "SELECT min(seq) FROM audit INDEXED BY audit_day WHERE substr(ts, 1, 10) >= substr(?, 1, 10)"
HEAD = ("audit", "head")
PAGE = 200  # each with the texts of two events
FIRST = -(2**63)
MISSING = "which is missing"
REMOVED = "was not changed, but the events of its call were removed with session {}"
DIGEST = "(SELECT digest FROM events WHERE events.session = audit.session AND events.seq = audit.event)"


def row_of_host(stage: str, message: str, **marks: Any) -> dict[str, Any]:
    """A row that belongs to no call; by default about a refused message of another machine."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS, "") | NO_CALL
    row |= {"id": secrets.token_hex(5), "ts": datetime.now(UTC).isoformat(timespec="milliseconds")}
    return row | {"route": "remote", "status": "denied", "stage": stage, "message": message} | marks


@dataclass(frozen=True)
class AuditFault:
    """One fault of the trail, and its row (``id`` is empty for a missing row)."""

    seq: int
    id: str
    what: str

    def __str__(self) -> str:
        return f"Row {self.seq} (call {self.id}) {self.what}." if self.id else f"{self.what}."


@dataclass(frozen=True)
class Verification:
    """The result of ``verify``."""

    rows: int
    head: str
    faults: list[AuditFault] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.faults


class StoreAudit:
    """The audit in the store, which is opened at the first row, so that a command without calls does not
    open it."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    def prepare(self) -> None:
        store = self._store()
        if HEAD not in store.known and not store.execute("SELECT seq FROM audit_head"):
            raise RuntimeError("the head of the audit trail is missing")

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a row to the chain in one transaction, so that two writers never follow the same row."""
        values = {name: row[name] for name in COLUMNS} | {
            name: row.get(name, none) for name, none in REFERENCE.items()
        }
        values["side_effects"] = json.dumps(list(row["side_effects"]))
        values["details"] = json.dumps(row["details"]) if row["details"] else ""
        if row.get("told_there"):  # the store has the events, too
            values |= {"form": "", "message": ""}
        with self._store().transaction() as run:
            known = self._store().known
            seq, prev = known.get(HEAD) or _head(run)
            values |= {"seq": seq + 1, "prev": prev}
            values["hash"] = _hash(values)
            run(INSERT, [values[name] for name in STORED])
            run("UPDATE audit_head SET seq = ?, hash = ?", (values["seq"], values["hash"]))
            known[HEAD] = values["seq"], values["hash"]

    def known(self, session: str, calls: Iterable[str]) -> set[str]:
        """The subset of these calls of a session that have a row."""
        if not (wanted := list(calls)):
            return set()
        sql = f"SELECT id FROM audit WHERE session = ? AND id IN ({', '.join('?' * len(wanted))})"  # noqa: S608
        return {str(name) for (name,) in self._store().execute(sql, [session, *wanted])}

    def rows(self) -> list[dict[str, Any]]:
        return [{name: row[name] for name in COLUMNS} for row in self.select()]

    def select(self, *, last: int | None = None, **filters: str) -> Iterator[dict[str, Any]]:
        """The rows that match ``filters``, or the ``last`` of them, oldest first, with seq, prev and hash.

        The filter ``since`` is a time in the format of ``ts``. Rows are read in batches.
        """
        where = "".join(f" AND {FILTERS[name]}" for name in filters)
        values = list(filters.values())
        start = 0
        if "since" in filters:  # the row of a long call may follow later ones, so this is a day's first row
            ((first,),) = self._store().execute(SINCE, (filters["since"],))
            if first is None:
                return
            start = first
        if last is not None:
            sql = f"SELECT seq FROM audit WHERE seq >= ?{where} ORDER BY seq DESC LIMIT 1 OFFSET ?"  # noqa: S608
            found = self._store().execute(sql, [max(start, 1), *values, last - 1])
            start = found[0][0] if found else start
        for *stored, result, call in self._pages((*ALL, *EVENTS), where, values, start):
            row = dict(zip(ALL, stored, strict=True))
            if (texts := row_texts(result, call)) is not None:
                row["form"], row["message"] = texts
            yield _with_data(row)

    def _pages(
        self, columns: Sequence[str], where: str = "", values: Sequence[Any] = (), start: int = 0
    ) -> Iterator[tuple[Any, ...]]:
        sql = f"SELECT {', '.join(columns)} FROM audit WHERE seq >= ?{where} ORDER BY seq LIMIT {PAGE}"  # noqa: S608
        while page := self._store().execute(sql, [start, *values]):
            yield from page
            start = page[-1][0] + 1

    def verify(self, *, head: str = "") -> Verification:
        """Check the whole trail and return every fault.

        ``head`` is the beginning of a hash that was noted earlier; the trail must contain a row with it.
        """
        ((top, last_seq, last_hash),) = self._store().execute(
            "SELECT (SELECT max(seq) FROM audit), max(seq), max(hash) FROM audit_head"
        )
        faults: list[AuditFault] = []
        count, before, link, noted = 0, 0, "", not head
        for *stored, there, result, call in self._pages((*STORED, DIGEST, *TOLD), start=FIRST):
            row = dict(zip(STORED, stored, strict=True))
            if row["seq"] > (top or 0):  # written while we read
                break
            seq, count = row["seq"], count + 1
            if seq > before + 1:
                faults.append(_missing(before + 1, seq - 1))
            if not row["hash"]:
                faults.append(AuditFault(seq, row["id"], "was not written by the audit"))
            else:
                if row["hash"] != _hash(row):
                    faults.append(AuditFault(seq, row["id"], "was changed after it was written"))
                elif row["prev"] != link and seq <= before + 1:
                    faults.append(AuditFault(seq, row["id"], f"does not continue row {before}"))
                elif last_seq is not None and seq > last_seq:
                    faults.append(AuditFault(seq, row["id"], "was inserted after the audit's last row"))
                elif row["event"] is not None and (wrong := _wrong_event(row, there, result, call)):
                    gone = wrong.endswith(MISSING) and not Outline(self._store).is_there(row["session"])
                    faults.append(
                        AuditFault(seq, row["id"], REMOVED.format(row["session"]) if gone else wrong)
                    )
                link = row["hash"]
                noted = noted or link.startswith(head)
            before = seq
        if last_seq is None:
            faults.append(AuditFault(0, "", "The head of the trail is missing"))
        elif last_seq > before:
            faults.append(_missing(before + 1, last_seq, " at the end"))
        elif last_seq == before and last_hash != link:
            faults.append(AuditFault(0, "", f"The head of the trail is not that of row {before}"))
        if not noted:
            faults.append(lost_head(head))
        faults += self._event_faults()
        return Verification(count, last_hash or "", faults)

    def _event_faults(self) -> Iterator[AuditFault]:
        """The faults in the transcripts whose events the rows name."""
        transcript = Transcript(self._store)
        named = self._store().execute("SELECT DISTINCT session FROM audit WHERE event IS NOT NULL")
        for (session,) in named:
            for fault in transcript.faults(session):
                yield AuditFault(0, "", fault.rstrip("."))


def _wrong_event(row: Mapping[str, Any], there: str | None, result: str | None, call: str | None) -> str:
    """The fault of the event of a row; ``there`` is its present digest, ``result`` its text, ``call`` the
    text of the call's event. A row that contains its texts needs no event: its session may have been removed,
    and another may have its name."""
    if row["said"] and (row["form"] or row["message"]):
        if digest_of_texts(row["form"], row["message"]) != row["said"]:
            return "was changed after it was written"
        if there != row["event_digest"]:
            return ""
    if there is None:
        return f"refers to event {row['session']}.{row['event']}, {MISSING}"
    if there != row["event_digest"]:
        return f"refers to event {row['session']}.{row['event']}, which was changed after it was written"
    begun_is_gone = (result or "").startswith("(receipt ") and not call
    if row["said"] and not row["form"]:
        if begun_is_gone:
            return REMOVED.format(row["session"])
        if digest_of_texts(*(row_texts(result, call) or ("", ""))) != row["said"]:
            return "was changed after it was written"
    if result and (others := differences(_with_data({**row}), result, call)):
        return f"differs from event {row['session']}.{row['event']}: {', '.join(others)}"
    return ""


def lost_head(head: str) -> AuditFault:
    """The fault that no row has the noted hash."""
    return AuditFault(0, "", f"No row has the hash {head}, which was noted from this trail")


def _head(run: Statement) -> tuple[int, str]:
    """The number and hash of the last row."""
    found = run("SELECT seq, hash, (SELECT max(seq) FROM audit) FROM audit_head")
    if not found:
        raise RuntimeError("the head of the audit trail is missing")
    seq, link, top = found[0]
    # ``verify`` finds a row that another program inserted; such a row must not stop the audit.
    return max(seq, top or 0), link


def _hash(row: Mapping[str, Any]) -> str:
    """SHA-256 over the columns of a row except its hash. Empty columns are skipped, so that a new column does
    not change the hashes of older rows. Texts in events are included by the event's digest."""
    left = ("hash", "form", "message") if row.get("said") else ("hash",)
    said = [  # as JSON; json.dumps takes twice as long, and this is done for every row of a verification
        f'"{name}":{encode_basestring_ascii(value) if isinstance(value, str) else value}'
        for name in sorted(row)
        if (value := row.get(name)) not in ("", None) and name not in left
    ]
    return hashlib.sha256(f"{{{','.join(said)}}}".encode()).hexdigest()


def _missing(first: int, last: int, where: str = "") -> AuditFault:
    rows = f"Row {first} is" if first == last else f"Rows {first} to {last} are"
    return AuditFault(first, "", f"{rows} missing{where}")


def _with_data(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its side effects and details as data; a row that was tampered with is also shown."""
    for name in ("side_effects", "details"):
        with contextlib.suppress(ValueError):
            row[name] = json.loads(row[name] or "{}")
    if not isinstance(row["side_effects"], list):
        row["side_effects"] = [row["side_effects"]]
    return row
