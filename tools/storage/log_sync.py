"""Syncs the write-ahead log of a store outside the event loop, once for all waiters, and has the log moved
into the store when it is long.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from weakref import WeakKeyDictionary

from quoth.tools.storage.paths import Identity, SameFile

EACH = 0.001  # seconds that a sync waits for each active session,
LONGEST = 0.05  # and at most
IDLE = 0.5  # seconds after which its thread ends
LONG = 2000  # pages of a log after which it is shortened
AT_WORK = 1.0  # seconds after its last sync for which a session counts as active

_Waiter = tuple[asyncio.Future[None], str]


def sync_file(file: int) -> None:
    """Sync a file, so that its writes survive a power cut. Raises OSError."""
    getattr(os, "fdatasync", os.fsync)(file)


class LogSync:
    """Syncs one log for all connections of this process. A single active session is synced at once; with
    many, a sync comes a little later and serves several."""

    def __init__(self, log: Path, shorten: Callable[[], None], store: SameFile) -> None:
        self.users = 0
        self.pages = 0  # of the log, as of the last write
        self._tried = 0  # its pages when it was last shortened
        self._shorten = shorten
        self._log = log
        self._store = store
        self._asked: SimpleQueue[_Waiter | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self.failed: OSError | None = None  # permanent
        self._lock = threading.Lock()
        self._seen: dict[str, float] = {}  # when each session was last synced
        self._began = 0.0

    async def wait(self, session: str) -> None:
        """Wait until all writes of this process to the log so far are on disk. A cancellation is delayed
        until then. Raises OSError; after that, no part of this log is known to be on disk."""
        loop, cancelled = asyncio.get_running_loop(), False
        while True:
            done: asyncio.Future[None] = loop.create_future()
            self._ask((done, session))
            try:
                await done
                break
            except asyncio.CancelledError:
                cancelled = True
            except OSError:
                if not cancelled:
                    raise
                break
        if cancelled:  # raised here instead of requested again, so that a timeout notices it
            raise asyncio.CancelledError

    def _ask(self, waiter: _Waiter) -> None:
        with self._lock:
            self._asked.put(waiter)
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="quoth-sync", daemon=True)
                thread.start()
                self._thread = thread  # set now: if no thread can be started, a later waiter may try again

    def end(self) -> None:
        """End the thread after all requested syncs."""
        if (thread := self._thread) is not None:
            self._asked.put(None)
            thread.join()

    def _work(self) -> None:
        file = -1
        while True:
            try:
                first = self._asked.get(timeout=IDLE)
            except Empty:
                first = None
            if first is None:
                with self._lock:
                    if self._asked.empty():
                        self._thread = None
                        break
                continue
            group = [first, *self._others()]
            if (pause := self._began + self._pause(group) - time.monotonic()) > 0:
                time.sleep(pause)
                group += self._others()
            self._began = time.monotonic()
            file = self._sync(file)
            futures: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
            for future, _ in reversed(group):
                futures.setdefault(future.get_loop(), []).append(future)
            for loop, waiting in futures.items():
                with contextlib.suppress(RuntimeError):  # it was closed meanwhile
                    loop.call_soon_threadsafe(self._tell, waiting)
            if (self.pages if self.pages < self._tried else self.pages - self._tried) >= LONG:
                self._tried = self.pages
                self._shorten()
        if file >= 0:
            os.close(file)

    def _others(self) -> Iterator[_Waiter]:
        """The other waiters that have arrived meanwhile."""
        while not self._asked.empty():
            if (other := self._asked.get()) is not None:
                yield other

    def _pause(self, group: list[_Waiter]) -> float:
        """The minimum time between the last sync and this one, in seconds."""
        now = time.monotonic()
        self._seen |= dict.fromkeys((session for _, session in group), now)
        if len(self._seen) > 1:
            self._seen = {name: at for name, at in self._seen.items() if now - at < AT_WORK}
        return min(EACH * (len(self._seen) - 1), LONGEST)

    def _sync(self, file: int) -> int:
        """Sync the log; returns its file, opening it if necessary."""
        if self.failed is None:
            try:
                if file >= 0 and not os.fstat(file).st_nlink and self._log.exists():
                    os.close(file)  # one user closed and removed the store, and another opened it again
                    file = -1
                if file < 0:
                    if why := self._store.lost():  # the log there belongs to another store
                        raise OSError(errno.ESTALE, why)
                    file = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
                    _sync_folder(self._log.parent)  # the log may be new
                sync_file(file)
            except OSError as error:
                self.failed = error
        return file

    def _tell(self, waiting: list[asyncio.Future[None]]) -> None:
        """Notify the last waiter, and the others in later turns of its loop: if all were notified at once,
        new events would wait for all of them."""
        last = waiting.pop()
        if waiting:
            last.get_loop().call_soon(self._tell, waiting)
        if last.done():
            return
        if self.failed is None:
            last.set_result(None)
        else:
            last.set_exception(OSError(*self.failed.args))  # one per waiter: it refers to frames


def _sync_folder(folder: Path) -> None:
    place = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(place)
    finally:
        os.close(place)


_LOGS: dict[tuple[str, Identity | None], LogSync] = {}  # of this process, by path and store
os.register_at_fork(after_in_child=_LOGS.clear)  # a fork has only its own thread
# Reentrant: the collector of garbage may close a store, which releases its log, while this thread takes one.
_LOCK = threading.RLock()


def use_log(log: Path, shorten: Callable[[], None], store: SameFile) -> LogSync:
    """The LogSync that syncs and shortens this log of a store, until ``release_log``."""
    key, new = (str(log), store.identity), LogSync(log, shorten, store)
    with _LOCK:
        found = _LOGS.setdefault(key, new)
        found.users += 1
        return found


def release_log(sync: LogSync) -> None:
    """Release one use; the last one ends the thread."""
    with _LOCK:
        sync.users -= 1
        if sync.users:
            return
        for name, found in list(_LOGS.items()):
            if found is sync:
                del _LOGS[name]
    sync.end()


# Lets tasks of one event loop resume one after the other, each in its own turn of the loop: if hundreds
# resumed at once, new events would wait for all of them.


class _Turns:
    """FIFO queue of tasks waiting for their turn of the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False  # whether this turn is taken

    async def turn(self) -> None:
        if self._taken:
            mine = self._loop.create_future()
            self._waiting.append(mine)
            await mine
        else:
            self._taken = True
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        while self._waiting:
            first = self._waiting.popleft()
            if not first.done():  # otherwise it was cancelled
                first.set_result(None)
                self._loop.call_soon(self._next)
                return
        self._taken = False


_ALL: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = WeakKeyDictionary()


async def own_turn() -> None:
    """Wait for a turn of the event loop in which no other queued task resumes."""
    loop = asyncio.get_running_loop()
    if (turns := _ALL.get(loop)) is None:
        turns = _ALL[loop] = _Turns(loop)
    await turns.turn()
