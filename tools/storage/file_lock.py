"""Locks between processes: small files in the user's state folder, locked with flock.

A lock ends with its process, so none is ever stale: a leftover file locks nothing, and ``sweep`` deletes old
ones.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, Literal

from quoth.tools.errors import BusyError, UsageError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.storage.paths import private_folder, state_dir

LOOK_SECONDS = 0.1  # a process that only checks a lock takes it for a moment
LOCK_WAIT_SECONDS = 10.0
PAUSE_SECONDS = 0.005


@contextlib.contextmanager
def hold(name: str, refusal: str = "", seconds: float | None = None) -> Iterator[None]:
    """A context with the exclusive lock ``name``. Raises BusyError with the text ``refusal`` if another
    process still has it after ``seconds`` (default: LOOK_SECONDS with a refusal, LOCK_WAIT_SECONDS
    without)."""
    path = lock_path(name)
    lock = -1
    try:
        try:
            private_folder(path.parent)
            if seconds is None:
                seconds = LOOK_SECONDS if refusal else LOCK_WAIT_SECONDS
            while True:
                lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
                taken = taken_within(seconds, partial(_tried, lock, fcntl.LOCK_EX))
                if not taken or is_at(lock, path):
                    break
                os.close(lock)  # the file was swept before we locked it, and no longer locks anything
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
    """Whether any process has the lock now. Creates no file."""
    try:
        lock = os.open(lock_path(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a fifo would wait
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        return not _tried(lock, fcntl.LOCK_SH)  # shared, so that checks do not block each other
    finally:
        os.close(lock)


def sweep(before: float, *, dry: bool = False) -> int:
    """Delete unlocked lock files created before a time (seconds since 1970); returns their number."""
    count = 0
    for path in (state_dir() / "locks").glob("*.lock"):
        with contextlib.suppress(OSError):
            lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                old = os.fstat(lock).st_mtime < before
                if old and _tried(lock, fcntl.LOCK_EX) and is_at(lock, path):  # not a newer file
                    count += 1
                    if not dry:
                        path.unlink()
            finally:
                os.close(lock)
    return count


def is_at(lock: int, path: Path) -> bool:
    """Whether the open file is now the one at this path."""
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # it was released meanwhile, or the path cannot be looked at: nothing is known
        return True


def taken_within(seconds: float, take: Callable[[], bool]) -> bool:
    """Whether ``take`` gets a lock within ``seconds``; it is tried repeatedly."""
    end = time.monotonic() + seconds
    while not take():
        if time.monotonic() > end:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


def _tried(lock: int, how: int) -> bool:
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_path(name: str, suffix: str = "lock") -> Path:
    """The file of a lock."""
    return _lock_in(str(state_dir()), name, suffix)


@lru_cache(maxsize=64)  # each call of a person takes the lock of its session
def _lock_in(state: str, name: str, suffix: str) -> Path:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return Path(state, "locks", f"{digest[:32]}.{suffix}")


# The lock of a session in use: shared by all processes that write its events, exclusive for a process that
# removes or rewrites it.
#
# Each store has one lock file. Its bytes are locked (fcntl) and never written: each session has a few, one
# for each kind of work. So the kernel can name the process that has a lock, and its kind, and releases the
# lock when that process ends.


Use = Literal["call", "run", "flight", "chat message"]
USES: Final[tuple[Use, ...]] = ("call", "run", "flight", "chat message")
BYTES = 16  # of a session in the lock file, one for each kind
WAIT_SECONDS = 1.0
_LINUX, _BSD = (
    "hhqqi0q",
    "qqihh",
)  # struct flock: type, whence, start, length, process; on BSD the type is last


@dataclass
class _LockFile:
    """The open lock file of a store, and the locks of this process in it. There is only one per process:
    closing a second one would release the locks of the first."""

    number: int
    path: Path
    store: str
    shared: Counter[int] = field(default_factory=Counter)  # users, by byte
    alone: set[tuple[int, int]] = field(default_factory=set)  # ranges, each a first byte and a length

    @property
    def idle(self) -> bool:
        return not self.shared and not self.alone

    def take_shared(self, byte: int) -> bool:
        if any(_overlap(one, (byte, 1)) for one in self.alone):
            return False
        if not self.shared[byte] and not self._locked(fcntl.LOCK_SH, byte, 1):
            return False
        self.shared[byte] += 1
        return True

    def take_alone(self, place: tuple[int, int]) -> bool:
        if any(_overlap((byte, 1), place) for byte in self.shared):
            return False
        if any(_overlap(one, place) for one in self.alone) or not self._locked(fcntl.LOCK_EX, *place):
            return False
        self.alone.add(place)
        return True

    def release_shared(self, byte: int) -> None:
        self.shared[byte] -= 1
        if not self.shared[byte]:
            del self.shared[byte]
            fcntl.lockf(self.number, fcntl.LOCK_UN, 1, byte)

    def release_alone(self, place: tuple[int, int]) -> None:
        self.alone.discard(place)
        fcntl.lockf(self.number, fcntl.LOCK_UN, place[1], place[0])

    def _locked(self, how: int, first: int, length: int) -> bool:
        try:
            fcntl.lockf(self.number, how | fcntl.LOCK_NB, length, first)
        except (BlockingIOError, PermissionError):  # EAGAIN, or on some systems EACCES
            return False
        return True

    def holder(self, place: tuple[int, int]) -> tuple[int, Use | None]:
        """A process that has a lock there (0: unknown), and its kind of work; None for an exclusive lock."""
        for byte in self.shared:
            if _overlap((byte, 1), place):
                return os.getpid(), USES[byte % BYTES]
        if any(_overlap(one, place) for one in self.alone):
            return os.getpid(), None
        first, length = place
        if sys.platform == "linux":
            asked = struct.pack(_LINUX, fcntl.F_WRLCK, os.SEEK_SET, first, length, 0)
            how, _, start, _, process = struct.unpack(_LINUX, fcntl.fcntl(self.number, fcntl.F_GETLK, asked))
        else:
            asked = struct.pack(_BSD, first, length, 0, fcntl.F_WRLCK, os.SEEK_SET)
            start, _, process, how, _ = struct.unpack(_BSD, fcntl.fcntl(self.number, fcntl.F_GETLK, asked))
        return max(process, 0), USES[start % BYTES] if how == fcntl.F_RDLCK else None


_FILES: dict[Path, _LockFile] = {}
_TURNS = threading.Lock()
_OF_STORES: dict[str, _LockFile] = {}  # the same by the path of the store
for _known in (_FILES, _OF_STORES):
    os.register_at_fork(after_in_child=_known.clear)  # a fork inherits no such lock


@contextlib.contextmanager
def in_use(store: Path | str, session: str, kind: Use = "call") -> Iterator[None]:
    """A context with the shared lock: other processes can work in the session, but not remove or rewrite it.
    Raises BusyError if another process still removes or rewrites it after WAIT_SECONDS."""
    byte = _first_byte(session) + USES.index(kind)
    path = _taken(Path(store), session, (byte, 1), WAIT_SECONDS, alone=False)
    try:
        yield
    finally:
        _release(path, (byte, 1), alone=False)


@contextlib.contextmanager
def not_in_use(store: Path | str, session: str = "", seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """A context with the exclusive lock of the session, or of all sessions of the store: nothing is written
    there. Raises BusyError, which names the other process, if it still works there after ``seconds``."""
    place = (_first_byte(session), BYTES) if session else (0, 0)  # 0 bytes: all
    path = _taken(Path(store), session, place, seconds, alone=True)
    try:
        yield
    finally:
        _release(path, place, alone=True)


@contextlib.contextmanager
def forgotten(store: Path | str) -> Iterator[None]:
    """A context after which the lock file of a throwaway store is removed."""
    try:
        yield
    finally:
        _lock_of(store).unlink(missing_ok=True)


def _lock_of(store: Path | str) -> Path:
    return lock_path(f"in use {store}", "use")


def lost_lock(store: Path | str) -> Path | None:
    """The lock file of a store, if this process has a lock in it and the file was removed or replaced, so
    that another process could remove sessions that are in use here."""
    file = _OF_STORES.get(str(store))
    return None if file is None or is_at(file.number, file.path) or file.idle else file.path


def _taken(store: Path, session: str, place: tuple[int, int], seconds: float, *, alone: bool) -> Path:
    path = _lock_of(store)
    holder: tuple[int, Use | None] = 0, None

    def take() -> bool:
        nonlocal holder
        with _TURNS:
            file = _opened(path, store)
            try:
                if file.take_alone(place) if alone else file.take_shared(place[0]):
                    return True
                holder = file.holder(place)
                return False
            except OSError as error:
                raise UsageError(f"The lock {path} cannot be taken: {error.strerror}.") from None
            finally:
                _close_if_idle(file)

    if not taken_within(seconds, take):
        raise BusyError(_refusal(session, *holder))
    return path


def _release(path: Path, place: tuple[int, int], *, alone: bool) -> None:
    with _TURNS:
        if (file := _FILES.get(path)) is not None:
            file.release_alone(place) if alone else file.release_shared(place[0])
            _close_if_idle(file)


def _opened(path: Path, store: Path) -> _LockFile:
    """The lock file of this process. Raises UsageError."""
    if (file := _FILES.get(path)) is not None:
        return file
    try:
        while True:
            private_folder(path.parent)
            number = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            if is_at(number, path):
                break
            os.close(number)
    except OSError as error:
        raise UsageError(f"The lock {path} cannot be taken: {error.strerror}.") from None
    _FILES[path] = _OF_STORES[str(store)] = _LockFile(number, path, str(store))
    return _FILES[path]


def _close_if_idle(file: _LockFile) -> None:
    if file.idle and _FILES.pop(file.path, None) is not None:
        _OF_STORES.pop(file.store, None)
        os.close(file.number)


def _refusal(session: str, process: int, kind: Use | None) -> str:
    what = f"Session {session}" if session else "This workspace"
    who = f"process {process}" if process else "another process"
    if kind is None:
        return f"{what} is being removed or rewritten by {who}. Try again when that has ended."
    return f"{what} is in use by {who} (a {kind}). Try again when that has ended."


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    (first, length), (start, size) = one, other
    return (not size or first < start + size) and (not length or start < first + length)


def _first_byte(session: str) -> int:
    digest = hashlib.sha256(session.encode("utf-8", "surrogatepass")).digest()
    return (1 + int.from_bytes(digest[:6], "big")) * BYTES
