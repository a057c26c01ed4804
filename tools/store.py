"""The one SQLite file of a workspace: where it lies, its schema, its migrations, its connection.

Knows nothing of tools or calls. The file lies in the user's data folder and never inside the workspace, so no
file tool can reach it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import apsw

from tools.errors import StoreError, UsageError

# Each entry brings the schema from version n to n + 1; entries are never edited once released.
MIGRATIONS = (
    """
    CREATE TABLE audit (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        ts TEXT NOT NULL,
        session TEXT NOT NULL,
        user TEXT NOT NULL,
        route TEXT NOT NULL,
        parent TEXT,
        depth INTEGER NOT NULL,
        round INTEGER NOT NULL,
        place INTEGER NOT NULL,
        tool TEXT NOT NULL,
        digest TEXT NOT NULL,
        status TEXT NOT NULL,
        stage TEXT NOT NULL,
        duration_ms INTEGER NOT NULL,
        side_effects TEXT NOT NULL
    ) STRICT;
    CREATE INDEX audit_session ON audit (session, seq);
    """,
    """
    CREATE TABLE uses (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        tool TEXT NOT NULL,
        user TEXT NOT NULL,
        session TEXT NOT NULL,
        call TEXT NOT NULL,
        at REAL NOT NULL,
        begun REAL
    ) STRICT;
    CREATE INDEX uses_at ON uses (tool, at);
    CREATE INDEX uses_begun ON uses (tool, coalesce(begun, at));
    """,
    """
    ALTER TABLE audit ADD COLUMN policy TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN rule TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN guard TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN gate TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN consent TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN message TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN form TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN schema_hash TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN prev TEXT NOT NULL DEFAULT '';
    ALTER TABLE audit ADD COLUMN hash TEXT NOT NULL DEFAULT '';
    CREATE TABLE audit_head (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        seq INTEGER NOT NULL,
        hash TEXT NOT NULL
    ) STRICT;
    INSERT INTO audit_head VALUES (1, 0, '');
    """,
    """
    CREATE TABLE requests (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        digest TEXT NOT NULL,
        tool TEXT NOT NULL,
        version TEXT NOT NULL,
        form TEXT NOT NULL,
        shown TEXT NOT NULL,
        reason TEXT NOT NULL,
        touches TEXT NOT NULL,
        user TEXT NOT NULL,
        session TEXT NOT NULL,
        route TEXT NOT NULL,
        call TEXT NOT NULL,
        parent TEXT,
        message TEXT NOT NULL,
        rule TEXT NOT NULL,
        asked REAL NOT NULL,
        expires REAL NOT NULL,
        state TEXT NOT NULL,
        decision TEXT NOT NULL DEFAULT '',
        decided REAL,
        decider TEXT NOT NULL DEFAULT '',
        why TEXT NOT NULL DEFAULT '',
        edited TEXT NOT NULL DEFAULT '',
        used REAL,
        used_by TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE INDEX requests_digest ON requests (digest, state);
    CREATE INDEX requests_rule ON requests (tool, rule);
    CREATE TABLE grants (
        seq INTEGER PRIMARY KEY,
        request TEXT NOT NULL,
        digest TEXT NOT NULL,
        tool TEXT NOT NULL,
        rule TEXT NOT NULL,
        user TEXT NOT NULL,
        session TEXT NOT NULL,
        granter TEXT NOT NULL,
        granted REAL NOT NULL,
        expires REAL NOT NULL
    ) STRICT;
    CREATE INDEX grants_session ON grants (session, tool);
    CREATE TABLE receipts (
        seq INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        session TEXT NOT NULL,
        message TEXT NOT NULL,
        digest TEXT NOT NULL,
        version TEXT NOT NULL,
        call TEXT NOT NULL,
        at REAL NOT NULL,
        repeats INTEGER NOT NULL,
        changed INTEGER NOT NULL,
        status TEXT NOT NULL,
        result TEXT NOT NULL
    ) STRICT;
    CREATE INDEX receipts_key ON receipts (key);
    CREATE INDEX receipts_session ON receipts (session, digest);
    CREATE TABLE suspended (
        session TEXT NOT NULL,
        user TEXT NOT NULL,
        at REAL NOT NULL,
        state TEXT NOT NULL,
        PRIMARY KEY (session, user)
    ) STRICT;
    ALTER TABLE audit ADD COLUMN repairs TEXT NOT NULL DEFAULT '';
    """,
    """
    CREATE TABLE snapshots (
        name TEXT PRIMARY KEY,
        session TEXT NOT NULL,
        at REAL NOT NULL,
        state BLOB NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE sub_agents (
        key TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        at REAL NOT NULL,
        state TEXT NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE plans (
        request TEXT PRIMARY KEY,
        program TEXT NOT NULL,
        shapes TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX plans_program ON plans (program);
    CREATE INDEX requests_used_by ON requests (used_by);
    """,
    """
    CREATE TABLE events (
        session TEXT NOT NULL,
        seq INTEGER NOT NULL,
        at TEXT NOT NULL,
        run TEXT NOT NULL,
        kind TEXT NOT NULL,
        parent INTEGER NOT NULL,
        key TEXT NOT NULL,
        form TEXT NOT NULL,
        shown TEXT,
        digest TEXT NOT NULL,
        status TEXT NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX events_begin ON events (session, kind) WHERE kind IN ('session', 'stimulus', 'end');
    CREATE INDEX events_secret ON events (session) WHERE shown IS NOT NULL;
    DROP TABLE suspended;
    DROP TABLE sub_agents;
    """,
    """
    CREATE TABLE texts (
        session TEXT NOT NULL,
        user TEXT NOT NULL,
        id TEXT NOT NULL,
        at REAL NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (session, user, id)
    ) STRICT;
    """,
    """
    CREATE TABLE imported (
        session TEXT PRIMARY KEY,
        events INTEGER NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE plan_steps (
        seq INTEGER PRIMARY KEY,
        plan TEXT NOT NULL,
        step TEXT NOT NULL,
        digest TEXT NOT NULL,
        tools TEXT NOT NULL,
        decision TEXT NOT NULL,
        user TEXT NOT NULL,
        at REAL NOT NULL,
        why TEXT NOT NULL
    ) STRICT;
    CREATE INDEX plan_steps_plan ON plan_steps (plan, step);
    CREATE INDEX events_flight ON events (session) WHERE kind = 'flight';
    """,
    """
    ALTER TABLE plan_steps ADD COLUMN body TEXT NOT NULL DEFAULT '';
    """,
    """
    ALTER TABLE plan_steps ADD COLUMN seen TEXT NOT NULL DEFAULT '[]';
    """,
)


class Statement(Protocol):
    """Runs one statement of a transaction and returns its rows."""

    def __call__(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]: ...


def state_dir() -> Path:
    """Where quoth keeps what must not be lost: ``$QUOTH_STATE``, or the platform's user data folder."""
    if named := os.environ.get("QUOTH_STATE"):
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_data_dir("quoth", appauthor=False))


def store_path(workspace: Path) -> Path:
    """The store of a workspace: one file for each real path."""
    key = hashlib.sha256(str(workspace.resolve()).encode()).hexdigest()[:16]
    return state_dir() / "workspaces" / f"{workspace.resolve().name or 'root'}-{key}.sqlite"


@contextlib.contextmanager
def existing_store(workspace: Path) -> Iterator[Store | None]:
    """The store of a workspace, open; None where nothing was ever kept, for looking makes none. Raises
    UsageError for what is no folder."""
    if not workspace.is_dir():
        raise UsageError(f"The workspace {workspace} is not a folder.")
    path = store_path(workspace)
    if not path.exists():
        yield None
        return
    store = Store(path)
    try:
        yield store
    finally:
        store.close()


# What is no mistake of ours, and how it is told.
TROUBLE: dict[type[apsw.Error], str] = {
    apsw.FullError: "the disk is full; make room, then go on with quoth resume, or quoth fly",
    apsw.BusyError: "another process keeps it locked",
    apsw.LockedError: "another process keeps it locked",
    apsw.ReadOnlyError: "it may only be read",
    apsw.CantOpenError: "a file of it cannot be opened",
    apsw.CorruptError: "it is damaged",
    apsw.NotADBError: "it is damaged",
    apsw.IOError: "the disk has failed",
}
BUSY_MS = 10_000  # how long one process waits for another
BROKEN = "A part of this transaction has failed, so all of it is undone."


class Store:
    """An open store. Every write is one transaction, synced before it returns; threads take turns. A
    transaction that is begun within another of the same thread joins it."""

    def __init__(self, path: Path | str) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._depth = 0  # how many transactions of the thread that holds the lock are open
        self._broken = False  # one of them has failed, so that none may be committed
        self.undone = 0  # how many have been
        try:
            if path != ":memory:":
                Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = apsw.Connection(str(path))
            self._db.set_busy_timeout(BUSY_MS)
            self._write_ahead()
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA secure_delete = ON")  # the true forms of calls that were decided
            self._migrate()
        except (apsw.Error, OSError) as error:
            raise UsageError(f"The store {path} cannot be opened: {error}.") from None

    def _write_ahead(self) -> None:
        """Switch to the write-ahead log. SQLite does not wait by itself here: of two processes that open a
        new store at once, one is told that it is locked. So the waiting is done here."""
        end = time.monotonic() + BUSY_MS / 1000
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return
            except apsw.BusyError:
                if time.monotonic() >= end:
                    raise
                time.sleep(0.01)

    def _migrate(self) -> None:
        with self.transaction() as run:
            ((version,),) = run("PRAGMA user_version")
            if version > len(MIGRATIONS):
                raise UsageError(f"The store {self.path} was made by a newer quoth; this one cannot read it.")
            for step in MIGRATIONS[version:]:
                run(step)
            run(f"PRAGMA user_version = {len(MIGRATIONS)}")

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Statement]:
        """Statements that happen together or not at all, and that no other writer, of this process or
        another, can come between: what they read is still so when they write.

        One that is begun within another is a part of it: there is one commit, and one sync, at the end of the
        outermost. Where a part has failed the whole is undone, also when somebody caught what it raised."""
        with self._lock, self._told():
            if not self._depth:
                self._db.execute("BEGIN IMMEDIATE")
                self._broken = False
            self._depth += 1
            try:
                yield self._statement
                if self._broken:
                    raise RuntimeError(BROKEN)
                if self._depth == 1:
                    self._db.execute("COMMIT")
            except BaseException:
                self._broken = True
                if self._depth == 1:
                    self.undone += 1
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                raise
            finally:
                self._depth -= 1

    def _statement(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """One statement of the open transaction; none once a part of it has failed, for SQLite may have
        undone it already and would keep this one alone."""
        if self._broken:
            raise RuntimeError(BROKEN)
        return list(self._db.execute(sql, tuple(values)))

    def execute(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement in a transaction of its own, or in the one this thread has open, and return its
        rows."""
        with self._lock:
            if self._depth:
                return self._statement(sql, values)
            with self._told():
                return list(self._db.execute(sql, tuple(values)))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Trouble with the disk is told in a sentence."""
        try:
            yield
        except apsw.Error as error:
            why = TROUBLE.get(type(error))
            if why is None:
                raise
            raise StoreError(f"The store {self.path} could not be used", why) from None

    def close(self) -> None:
        with self._lock:
            self._db.close()
