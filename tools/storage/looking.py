"""A read-only connection to the SQLite file of a store that cannot be written.

It knows SQLite's files; it must not know what is in them.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

import apsw


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
