"""Locks between processes: small files in the user's state folder, locked with flock.

A lock ends with its process, so none is ever stale: a file that is left behind locks nothing, and ``sweep``
deletes old ones. Knows locks by name; it must not know what they protect.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from quoth.tools.errors import BusyError, UsageError
from quoth.tools.storage.paths import state_dir
from quoth.tools.storage.private import private_folder

LOOK_SECONDS = 0.1  # somebody who only looks holds a lock for a moment
WAIT_SECONDS = 10.0
PAUSE_SECONDS = 0.005


@contextlib.contextmanager
def hold(name: str, refusal: str = "", seconds: float | None = None) -> Iterator[None]:
    """Hold the exclusive lock ``name``. Raises BusyError with the text ``refusal`` when another process
    still holds it after ``seconds``: by default LOOK_SECONDS with a refusal, WAIT_SECONDS without."""
    path = lock_path(name)
    lock = -1
    try:
        try:
            private_folder(path.parent)
            if seconds is None:
                seconds = LOOK_SECONDS if refusal else WAIT_SECONDS
            while True:
                lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
                taken = taken_within(seconds, partial(_taken, lock, fcntl.LOCK_EX))
                if not taken or is_at(lock, path):
                    break
                os.close(lock)  # the file was swept away before we had it, and locks nothing any more
                lock = -1
        except OSError as error:
            raise UsageError(f"The lock {path} cannot be taken: {error.strerror}.") from None
        if not taken:
            raise BusyError(refusal or f"The lock {path} is held by another process.")
        yield
    finally:
        if lock >= 0:
            os.close(lock)


def is_held(name: str) -> bool:
    """Whether any process holds the lock now. Creates no file."""
    try:
        lock = os.open(lock_path(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a fifo would wait
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        return not _taken(lock, fcntl.LOCK_SH)  # shared, so that who looks does not stop others who look
    finally:
        os.close(lock)


def sweep(before: float, *, dry: bool = False) -> int:
    """Delete the lock files that were made before a time, in seconds, and that nobody holds; their number."""
    count = 0
    for path in (state_dir() / "locks").glob("*.lock"):
        with contextlib.suppress(OSError):
            lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                old = os.fstat(lock).st_mtime < before
                if old and _taken(lock, fcntl.LOCK_EX) and is_at(lock, path):  # not another's by now
                    count += 1
                    if not dry:
                        path.unlink()
            finally:
                os.close(lock)
    return count


def is_at(lock: int, path: Path) -> bool:
    """Whether the open file is the one that is at this path now."""
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # it was released meanwhile, or the path cannot be looked at: nothing is known
        return True


def taken_within(seconds: float, take: Callable[[], bool]) -> bool:
    """Whether ``take`` takes a lock within some seconds; it is tried again and again."""
    end = time.monotonic() + seconds
    while not take():
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


def _taken(lock: int, how: int) -> bool:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_path(name: str, suffix: str = "lock") -> Path:
    """The file of a lock."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return state_dir() / "locks" / f"{digest[:32]}.{suffix}"
