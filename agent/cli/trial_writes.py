"""What ``quoth doctor`` tries with files: it opens them, writes, and removes what it wrote.

A permission bit says little: a disk may be full or read-only, a file immutable. Knows files and SQLite; it
must not know what a store holds.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw

from quoth.tools.storage.private import how_to_write

TRIAL = b"\0" * 65_536
BUSY_MS = 2_000  # how long another process may be writing


class TrialError(Exception):
    """Something cannot be written: the text says what and why; ``cure`` is what to do."""

    def __init__(self, sentence: str, cure: str) -> None:
        super().__init__(sentence)
        self.cure = cure


def try_folder(folder: Path, variable: str = "") -> None:
    """Write a file in a folder, or in the folder where it would be made, and remove it. ``variable`` is the
    one that puts it elsewhere. Raises TrialError."""
    there = next(one for one in (folder, *folder.absolute().parents) if os.path.lexists(one))
    if not there.is_dir():
        cure = how_to_write(folder, errno.ENOTDIR, variable)
        raise TrialError(f"{folder} cannot be written: {there} is not a folder.", cure)
    try:
        with tempfile.NamedTemporaryFile(dir=there, prefix=".quoth-doctor-") as file:
            file.write(TRIAL)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        cure = how_to_write(folder, error.errno, variable)
        raise TrialError(f"{folder} cannot be written: {error.strerror}.", cure) from None


def try_store(path: Path) -> None:
    """Open a store and the files beside it, and write a table into it that is removed in the same
    transaction. Raises TrialError."""
    for file in _files_of(path):
        try:
            os.close(os.open(file, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError as error:
            cure = how_to_write(file, error.errno, "QUOTH_STATE")
            raise TrialError(f"{file} cannot be written: {error.strerror}.", cure) from None
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as store:
            store.set_busy_timeout(BUSY_MS)
            store.execute(
                "BEGIN IMMEDIATE; CREATE TABLE quoth_doctor (trial); DROP TABLE quoth_doctor; COMMIT"
            )
    except apsw.BusyError:
        return  # another process writes in it
    except apsw.Error as error:
        cure = "see that its folder and the files beside it can be written"
        raise TrialError(f"{path} cannot be written: {error}.", cure) from None


def try_locks(folder: Path) -> None:
    """Raise TrialError where a folder, a pipe or the like is in the place of a lock."""
    for lock in sorted(folder.glob("*")):
        if not lock.is_file():
            raise TrialError(f"The lock {lock} is not a regular file.", f"remove {lock}")


def _files_of(store: Path) -> Iterator[Path]:
    for ending in ("", "-wal", "-shm"):
        file = store.with_name(store.name + ending)
        if os.path.lexists(file):
            yield file
