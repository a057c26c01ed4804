"""The SQLite file of a workspace: opened, migrated, and shared by several threads and processes.

It is in the user's data folder, out of reach of file tools.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import apsw

from quoth.tools.errors import StoreError, UsageError
from quoth.tools.storage.damaged import readable_rows, why_undecodable
from quoth.tools.storage.file_lock import lost_lock
from quoth.tools.storage.log_sync import LONG, LogSync, release_log, use_log
from quoth.tools.storage.paths import (
    GONE,
    SameFile,
    how_to_write,
    private_file,
    private_folder,
    require_regular,
    store_path,
)
from quoth.tools.storage.schema import FIRST, SCHEMA
from quoth.tools.storage.schema import MIGRATIONS as MIGRATIONS

# A read-only connection to the SQLite file of a store that cannot be written.


def opened_to_look(path: Path, busy_ms: int) -> apsw.Connection:
    """A read-only connection; it does not write even the shared index of a write-ahead log."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    log = path.with_name(f"{path.name}-wal")
    for how in ("readonly_shm=1", "immutable=1"):
        if how == "immutable=1" and log.exists() and log.stat().st_size:  # it would not be read
            return _opened_copy(path, log)
        with contextlib.suppress(apsw.Error):
            found = apsw.Connection(f"{path.absolute().as_uri()}?{how}", flags=flags)
            found.set_busy_timeout(busy_ms)
            found.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            return found
    raise apsw.CantOpenError("unable to open database file")


def _opened_copy(path: Path, log: Path) -> apsw.Connection:
    """A connection to a temporary copy of the store and its log, where SQLite can build its index."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy.sqlite")
        shutil.copyfile(path, copy)
        shutil.copyfile(log, copy.with_name("copy.sqlite-wal"))
        found = apsw.Connection(str(copy))
        found.execute("PRAGMA query_only = ON")
        found.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        return found


class Statement(Protocol):
    """Runs one statement of a transaction and returns its rows."""

    def __call__(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]: ...


@contextlib.contextmanager
def existing_store(workspace: Path) -> Iterator[Store | None]:
    """The open store of a workspace; None if it has none yet. A store that cannot be written is opened
    read-only. Raises UsageError if the workspace is not a folder or the store cannot be opened."""
    if not workspace.is_dir():
        raise UsageError(f"The workspace {workspace} is not a folder.")
    path = store_path(workspace)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        yield None
        return
    except OSError as error:
        raise UsageError(CANNOT_OPEN.format(path, error.strerror) + _advice(path, error)) from None
    try:
        store = Store(path)
    except (UsageError, StoreError) as error:
        said = str(error)
        try:
            store = Store(path, looking=said.removeprefix(CANNOT_OPEN.format(path, "")[:-1]).rstrip("."))
        except (UsageError, StoreError) as other:
            raise (other if OLDER in str(other) else error) from None
    try:
        yield store
    finally:
        store.close()


# Errors that are not bugs of ours, and their messages.
FULL = "the disk is full"
FAILED = "the disk has failed"
ROOM = 65_536  # bytes; with less, SQLite cannot create its files, and reports a failed disk
TROUBLE: dict[type[apsw.Error], str] = {
    apsw.FullError: FULL,
    apsw.BusyError: "another process keeps it locked",
    apsw.LockedError: "another process keeps it locked",
    apsw.ReadOnlyError: "it is read-only",
    apsw.CantOpenError: "one of its files cannot be opened",
    apsw.CorruptError: "it is damaged",
    apsw.NotADBError: "it is damaged",
    apsw.IOError: FAILED,
}
BESIDE = ("-wal", "-shm")  # SQLite's files beside a store
BUSY_MS = 10_000  # how long one process waits for another
CANNOT_OPEN = "The store {} cannot be opened: {}."
OLDER = "was written by an older quoth and must be upgraded"
UPGRADER = "commit 55d1289a"  # the last commit with the migrations up to FIRST
BROKEN = "A part of this transaction has failed, so all of it is rolled back."


def _advice(path: Path, error: Exception) -> str:
    """The command that makes a store writable, as a sentence with a leading space; otherwise empty."""
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        failed, number = Path(error.filename or path), error.errno
    elif isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError):  # SQLite creates files beside the store
        failed, number = path.parent, errno.EACCES
    else:
        return ""
    return f" To continue: {how_to_write(failed, number, 'QUOTH_STATE')}."


def newest() -> int:
    """The number of the newest schema."""
    return FIRST + len(MIGRATIONS)


def _wait(tries: int) -> bool:
    """Wait a little for another process that writes; returns whether to try again. SQLite's own waiting
    begins with a millisecond, which is longer than a transaction of ours, and soon takes a hundred."""
    time.sleep(min(tries + 1, 50) / 10_000)
    return tries < BUSY_MS / 5


class Store:
    """An open store. Each write is one transaction; threads take turns. A text ``looking`` opens it
    read-only: it is the reason, for error messages, why it cannot be written.

    A transaction is on disk when it returns, with all earlier ones. Without ``synced`` it survives the end of
    this process, but perhaps not a power cut: it is on disk with the next synced one, or once ``on_disk``
    returns, which waits outside the event loop and shares one sync among all waiters."""

    def __init__(self, path: Path | str, *, looking: str = "") -> None:
        self.path = path
        self._looking = looking
        self._lock = threading.RLock()
        self._depth = 0  # open transactions of the thread that has the lock
        self._broken = False  # one of them has failed, so none may be committed
        self.undone = 0  # rolled back transactions
        self._log: LogSync | None = None
        self._files: tuple[SameFile, ...] = ()  # the store, and SQLite's files beside it
        self._made = self._safe = 0  # transactions without a sync, and how many of them are on disk
        self._syncs = True  # whether the connection now syncs commits
        self._changes = 0  # rows that the connection had changed before the open transaction
        # Cached facts about the rows, to be changed only in transactions: emptied after another connection
        # has written, or a transaction is rolled back. Outside a transaction they are those of the last one.
        self.known: dict[tuple[str, str], Any] = {}
        self._version_seen = -1
        # Whether ``execute`` reads damaged texts, with a mark for each bad byte, and the ones it found.
        self.lenient, self.damaged = False, dict[str, None]()
        try:
            if path != ":memory:":
                require_regular(*(Path(f"{path}{end}") for end in ("", *BESIDE)))
            self._db = opened_to_look(Path(path), BUSY_MS) if looking else self._opened()
            self._migrate()
            if not looking:
                beside = [f"{path}{end}" for end in BESIDE if Path(f"{path}{end}").exists()]
                self._files = (*self._files, *map(SameFile, beside))
        except (StoreError, apsw.Error, OSError) as error:
            self._let_go()
            why = self._why_closed(error)
            kind = StoreError if why in (FULL, FAILED) else UsageError  # a failed disk is not a usage error
            raise kind(CANNOT_OPEN.format(path, why) + _advice(Path(path), error)) from None

    def _why_closed(self, error: StoreError | apsw.Error | OSError) -> str:
        """Why the store could not be opened."""
        if isinstance(error, StoreError):
            return error.why
        if isinstance(error, OSError):
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                return FULL
            where = "" if error.filename in (None, str(self.path)) else f"{error.filename}: "
            return f"{where}{error.strerror or error}"
        return self._why_disk(error) or str(error)

    def _why_disk(self, error: apsw.Error) -> str:
        """FULL or FAILED if the disk is the cause, otherwise empty."""
        if isinstance(error, apsw.IOError):
            with contextlib.suppress(OSError):
                if shutil.disk_usage(Path(self.path).parent).free < ROOM:
                    return FULL
        return TROUBLE[type(error)] if isinstance(error, (apsw.IOError, apsw.FullError)) else ""

    def _let_go(self) -> None:
        """Close a failed connection, so that a read-only one does not share its state."""
        with contextlib.suppress(AttributeError, apsw.Error):
            self._db.close()
        if self._log is not None:
            release_log(self._log)
            self._log = None

    def _opened(self) -> apsw.Connection:
        path = self.path
        if path != ":memory:":
            private_folder(Path(path).parent)
            private_file(Path(path))
            for beside in (Path(f"{path}{end}") for end in BESIDE):  # SQLite gives them the mode of the first
                if beside.exists():
                    private_file(beside)
        self._db = apsw.Connection(str(path))
        if path != ":memory:":
            self._files = (SameFile(str(path)),)
        self._db.set_busy_handler(_wait)
        self._write_ahead()
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA secure_delete = ON")  # for the true forms of decided calls
        return self._db

    def _write_ahead(self) -> None:
        """Switch to the write-ahead log. SQLite does not wait here itself: of two processes that open a new
        store at once, one gets BusyError. So we wait."""
        end = time.monotonic() + BUSY_MS / 1000
        while True:
            try:
                ((mode,),) = self._db.execute("PRAGMA journal_mode = WAL")
                if mode == "wal":  # not in memory, nor where files cannot be shared
                    (file,) = self._files
                    self._log = use_log(Path(f"{self.path}-wal"), partial(_shorten_log, file), file)
                    self._db.set_wal_hook(self._log_has_grown)
                return
            except apsw.BusyError:
                if time.monotonic() >= end:
                    raise
                time.sleep(0.01)

    def _log_has_grown(self, db: apsw.Connection, name: str, pages: int) -> int:
        """Note the length of the log. Normally it is shortened outside the event loop, after a sync; but it
        cannot restart while a process writes continuously."""
        if self._log is not None:
            self._log.pages = pages
            if pages >= 4 * LONG:
                with contextlib.suppress(
                    apsw.Error
                ):  # committed transactions stay so, even if another process shortens the log
                    db.wal_checkpoint(name)
        return apsw.SQLITE_OK

    def _migrate(self) -> None:
        if self._version() == newest():
            return
        if self._looking:
            raise UsageError(
                f"The store {self.path} {OLDER} before it can be read, but it cannot be written:"
                f" {self._looking}."
            )
        with self.transaction() as run:
            version = self._version()  # another process may have been quicker
            if not version:
                run(SCHEMA)
            for step in MIGRATIONS[max(version - FIRST, 0) :]:
                run(step)
            run(f"PRAGMA user_version = {newest()}")

    def _version(self) -> int:
        """The number of the schema; 0 for a new store."""
        ((version,),) = self.execute("PRAGMA user_version")
        if version > newest():
            raise UsageError(f"A newer quoth wrote the store {self.path}; this one cannot read it.")
        if 0 < version < FIRST:
            raise UsageError(
                f"The store {self.path} was written before quoth 0.1.0: its schema is {version}, and the "
                f"oldest readable one is {FIRST}. Open it once with quoth at {UPGRADER}, which upgrades "
                "it, or move it away."
            )
        return int(version)

    def transaction(
        self, *, synced: bool = True, what: str = ""
    ) -> contextlib.AbstractContextManager[Statement]:
        """A transaction that excludes other writers. Raises StoreError that begins with ``what``. A nested
        transaction of the same thread joins the outer one, which commits at its end. A failure inside rolls
        everything back, even if caught."""
        return _Transaction(self, synced, what)

    def _begin(self, synced: bool) -> Statement:
        self._lock.acquire()
        try:
            if not self._depth:
                self._require(self._files[:1])
                self._sync_with_commits(synced)
                self._db.execute("BEGIN" if self._looking else "BEGIN IMMEDIATE")
                self._broken, self._changes = False, self._db.total_changes()
                ((version,),) = self._db.execute("PRAGMA data_version")
                if version != self._version_seen:
                    self._version_seen = version
                    self.known.clear()
            self._depth += 1
        except BaseException as error:
            if not self._depth and self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self._lock.release()
            self._tell(error)
            raise
        return self._statement

    def _end(self, error: BaseException | None) -> None:
        try:
            if error is None:
                self._commit()
            else:
                self._undo()
        except BaseException as failed:
            self._undo()
            self._tell(failed)
            raise
        finally:
            self._depth -= 1
            self._lock.release()
        self._tell(error)

    def _commit(self) -> None:
        if self._broken:
            raise RuntimeError(BROKEN)
        if self._depth == 1:
            self._db.execute("COMMIT")
            if self._db.total_changes() != self._changes:  # otherwise nothing was written or synced
                self._made += 1
                if self._syncs:
                    self._require_all()
                    if self._log is None or self._log.failed is None:
                        self._safe = self._made

    def _undo(self) -> None:
        self._broken = True
        if self._depth == 1 and self._changes >= 0:
            self._changes = -1
            self.undone += 1
            self.known.clear()
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _statement(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement of the open transaction; raises RuntimeError once part of it has failed."""
        if self._broken:
            raise RuntimeError(BROKEN)
        return self._rows(sql, tuple(values))

    def _rows(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        try:
            return list(self._db.execute(sql, values))
        except UnicodeDecodeError:
            if not self.lenient or self._depth or not sql.lstrip().startswith(("SELECT", "WITH")):
                why = why_undecodable(sql)
                raise StoreError(f"The store {self.path} could not be used", why) from None
        rows, damaged = readable_rows(self._db, sql, values)
        self.damaged |= dict.fromkeys(damaged)
        return rows

    def execute(self, sql: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of one statement, in this thread's open transaction or its own. Raises StoreError."""
        with self._lock:
            if self._depth:
                return self._statement(sql, values)
            try:
                if not sql.lstrip().startswith("SELECT"):
                    self._require(self._files[:1])
                    self.known.clear()
                    self._sync_with_commits(True)
                return self._rows(sql, tuple(values))
            except apsw.Error as error:
                self._tell(error)
                raise

    def _sync_with_commits(self, wanted: bool) -> None:
        """Switch syncing of commits on or off. Without a log they are always synced."""
        if self._syncs != wanted and (wanted or self._log is not None):
            self._db.execute(f"PRAGMA synchronous = {'FULL' if wanted else 'NORMAL'}")
            self._syncs = wanted

    async def on_disk(self, session: str = "") -> None:
        """Wait until all transactions so far are on disk, for this session. A cancellation is delayed until
        then. Raises StoreError."""
        made = self._made
        if self._log is None or made == self._safe:
            return
        self._require(self._files[:1])
        try:
            await self._log.wait(session)
            self._require_all()
        except (OSError, RuntimeError) as error:
            self._require_all()  # a file that is gone cannot be synced, either
            why = str(error) if isinstance(error, RuntimeError) else FAILED  # no thread can be started
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                why = FULL
            raise StoreError(f"The store {self.path} could not be used", why) from None
        self._safe = max(self._safe, made)

    def _require(self, files: Iterable[SameFile]) -> None:
        """Raise StoreError if one of these files was moved, removed or replaced: writes to it would be
        lost."""
        for file in files:
            if why := file.lost():
                raise StoreError(f"The store {self.path} could not be used", why)

    def _require_all(self) -> None:
        """The same for all files of the store, and for the lock of the sessions at work in this process."""
        self._require(self._files)
        if (lock := lost_lock(self.path)) is not None:
            raise StoreError(f"The store {self.path} could not be used", GONE.format(f"of the lock {lock}"))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Turns SQLite's errors into StoreError."""
        try:
            yield
        except apsw.Error as error:
            self._tell(error)
            raise

    def _tell(self, error: BaseException | None) -> None:
        """Raise StoreError for an error of SQLite's."""
        if isinstance(error, apsw.Error):
            why = self._why_disk(error) or TROUBLE.get(type(error)) or f"SQLite reports: {error}"
            if self._looking and isinstance(error, apsw.ReadOnlyError):
                why = self._looking
            raise StoreError(f"The store {self.path} could not be used", why) from None

    @property
    def mark(self) -> str:
        """A text that is another one after each commit of this connection or any other."""
        ((others,),) = self.execute("PRAGMA data_version")
        return f"{others} {self._db.total_changes()}"

    @property
    def read_only(self) -> bool:
        """Whether the store was opened read-only."""
        return bool(self._looking)

    def load_extension(self, path: str) -> None:
        """Load a SQLite extension into this connection. Raises StoreError."""
        with self._lock, self._told():
            self._db.enable_load_extension(True)
            try:
                self._db.load_extension(path)
            except apsw.ExtensionLoadingError as error:
                raise StoreError(f"SQLite cannot load {path}", str(error)) from None
            finally:
                self._db.enable_load_extension(False)

    def tokenizer(self, name: str, args: list[str]) -> Callable[[str], list[str]]:
        """The function that splits a text into words for FTS5 in this store."""
        with self._lock:
            split = self._db.fts5_tokenizer(name, args)

        def words(text: str) -> list[str]:
            raw, why = text.encode(errors="replace"), apsw.FTS5_TOKENIZE_DOCUMENT
            return [str(one) for one in split(raw, why, None, include_offsets=False, include_colocated=False)]

        return words

    def compact(self) -> None:
        """Rewrite the file without deleted data, which SQLite only marks as free, and empty the log. Raises
        StoreError, for example while another process uses the store."""
        with self._lock, self._told():
            if not self._depth:
                self._db.execute("VACUUM")
                ((busy, _, _),) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                if busy:
                    raise apsw.BusyError

    def close(self) -> None:
        with self._lock:
            try:
                self._db.close()
            finally:
                self._let_go()


def _shorten_log(store: SameFile) -> None:
    """Move pages of the write-ahead log into the store, except pages that other connections still use."""
    if store.lost():
        return
    with contextlib.suppress(apsw.Error), contextlib.closing(apsw.Connection(store.path)) as db:
        db.execute("PRAGMA user_version").fetchall()  # a connection without a read does not see the log
        db.wal_checkpoint()


class _Transaction:
    """One ``with`` around statements; a class, because it is used often."""

    __slots__ = ("_store", "_synced", "_what")

    def __init__(self, store: Store, synced: bool, what: str) -> None:
        self._store = store
        self._synced = synced
        self._what = what

    def __enter__(self) -> Statement:
        try:
            return self._store._begin(self._synced)
        except StoreError as failed:
            raise self._told(failed) from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._store._end(error)
        except StoreError as failed:
            raise self._told(failed) from None
        if self._what and isinstance(error, StoreError):
            raise self._told(error) from None

    def _told(self, error: StoreError) -> StoreError:
        return StoreError(self._what, error.why) if self._what else error
