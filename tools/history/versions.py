"""The contents of files before calls wrote them, in the store, so that ``quoth undo`` can restore them.

A write is recorded before the bytes on disk change. Each content is stored once, by its SHA-256, compressed;
a store keeps KEPT_BYTES of them in total, and drops the least recently used first. agent/session/undo.py
restores them.
"""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from quoth.tools.call.call import Call
from quoth.tools.call.keeping import MAX_FILE, FileWrite
from quoth.tools.history.receipts import key_in
from quoth.tools.storage.database import Statement, Store
from quoth.tools.storage.paths import worktree_place

KEPT_BYTES = 200_000_000  # compressed, of one store
UNSAVED: Final = 1 << 30  # a bit in the column ``mode``, above those of modes: FileWrite.unsaved
LEVEL: Final = 1  # of zlib: a call waits for it
COLUMNS: Final = "seq, event, key, tool, path, before, after, mode, folders, act, back"


class Written(NamedTuple):
    """One recorded write. ``event`` is the last event of its session then, ``key`` that of its call.
    ``before`` and ``after`` are digests, None for no file. With an ``act`` it was not a call's write: it
    restored the content of ``path`` before the write ``back``."""

    seq: int
    event: int
    key: str
    tool: str
    path: str
    before: str | None
    after: str | None
    mode: int
    folders: int
    act: str
    back: int

    @property
    def unsaved(self) -> bool:
        """Whether the content ``before`` was in an editor, and not on the disk."""
        return bool(self.mode & UNSAVED)


class StoreVersions:
    """Keeps the writes of calls in the workspace ``root``, whose store it is, and in the git worktrees of its
    sessions."""

    def __init__(self, store: Callable[[], Store], root: Path, *, most: int | None = None) -> None:
        self._store = store
        self._root = root
        self._most = KEPT_BYTES if most is None else most
        self._added = self._most  # bytes added since the last pruning

    def keep(self, call: Call, write: FileWrite) -> str:
        """Record a write before it happens, on disk before this returns. Returns a sentence if it cannot be
        undone later. Raises StoreError; then the file must not be written."""
        if not call.session:
            return ""
        if write.root not in (self._root, worktree_place(self._root, call.session)):
            return ""
        self._record(write, call.session, key_in(call) or call.id, call.tool, call.user)
        if write.before is not None and write.before.data is None:
            return f"{write.path} was larger than {MAX_FILE:,} bytes, too large for quoth undo to restore."
        return ""

    def keep_act(self, session: str, user: str, act: str, back: int) -> Callable[[FileWrite], str]:
        """The keeper for the writes of an act that restores a file to its content before the write
        ``back``."""

        def keep(write: FileWrite) -> str:
            self._record(write, session, act, "", user, act, back)
            return ""

        return keep

    def _record(
        self, write: FileWrite, session: str, key: str, tool: str, user: str, act: str = "", back: int = 0
    ) -> None:
        old, store = write.before, self._store()
        digest = None if old is None else old.digest.hex()
        after = None if write.after is None else write.after.hex()
        packed = b""
        if (
            old is not None
            and old.data is not None
            and digest != after
            and not self._holds(store, old.digest)
        ):
            packed = zlib.compress(old.data, LEVEL)
        row = (session, key, tool, user, time.time(), write.path)
        mode = write.mode | UNSAVED if write.unsaved else write.mode
        with store.transaction() as run:
            ((seq,),) = run(
                "INSERT INTO writes (session, event, key, tool, user, at, path, before, after, mode, folders,"
                " act, back) SELECT ?, coalesce(max(seq), 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM events"
                " WHERE session = ? RETURNING seq",
                (*row, digest, after, mode, write.folders, act, back, session),
            )
            if packed and old is not None:
                run(
                    "INSERT OR REPLACE INTO contents VALUES (?, ?, ?, ?, ?)",
                    (digest, old.size, seq, len(packed), packed),
                )
            elif digest is not None:
                run("UPDATE contents SET used = ? WHERE sha256 = ?", (seq, digest))
            self._prune(run, len(packed))

    def _holds(self, store: Store, digest: bytes) -> bool:
        return bool(store.execute("SELECT 1 FROM contents WHERE sha256 = ?", (digest.hex(),)))

    def _prune(self, run: Statement, added: int) -> None:
        """Drop the least recently used contents if they exceed the limit."""
        self._added += added
        if self._added < self._most // 100:
            return
        self._added = 0
        ((total,),) = run("SELECT coalesce(sum(stored), 0) FROM contents")
        if total > self._most:
            for used, stored in run("SELECT used, stored FROM contents ORDER BY used"):
                run("DELETE FROM contents WHERE used = ?", (used,))
                total -= stored
                if total <= self._most * 9 // 10:
                    break

    def of(self, session: str, key: str | None = None) -> list[Written]:
        """All writes of a session, or of its call with this key, the oldest first."""
        sql = f"SELECT {COLUMNS} FROM writes WHERE session = ? AND key = ifnull(?, key) ORDER BY seq"  # noqa: S608
        return [Written(*row) for row in self._store().execute(sql, (session, key))]

    def content(self, digest: str) -> bytes | None:
        """A stored content; None if it was not stored or was dropped."""
        found = self._store().execute("SELECT data FROM contents WHERE sha256 = ?", (digest,))
        if not found:
            return None
        try:
            data = zlib.decompressobj().decompress(found[0][0], MAX_FILE)
        except zlib.error:
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None

    def others(self, session: str, path: str, after: str | None, since: int) -> str:
        """Another session that wrote the present content of a file; empty if none did."""
        sql = (
            "SELECT session FROM writes WHERE path = ? AND after IS ? AND session != ? AND seq > ?"
            " ORDER BY seq DESC LIMIT 1"
        )
        found = self._store().execute(sql, (path, after, session, since))
        return str(found[0][0]) if found else ""
