"""What waits for the disk, and how many wait for one sync of it."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from sentences import COULD_NOT_BE_USED
from words import Spy, complaint

from quoth.tools.errors import StoreError
from quoth.tools.storage import log_sync
from quoth.tools.storage.database import FULL, Store
from quoth.tools.storage.paths import SameFile


class Disk:
    """Counts the syncs beside the event loop; while it is ``held`` they do not end."""

    def __init__(self) -> None:
        self.syncs = 0
        self.error: OSError | None = None
        self.begun, self.free = threading.Event(), threading.Event()
        self.free.set()

    def sync(self, file: int) -> None:
        self.syncs += 1
        self.begun.set()
        self.free.wait(10)
        if self.error:
            raise self.error


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(log_sync, "sync_file", disk.sync)
    return disk


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "s.sqlite")
    store.execute("CREATE TABLE lines (text TEXT)")
    yield store
    store.close()


def write(store: Store, *, synced: bool = False) -> None:
    with store.transaction(synced=synced) as run:
        run("INSERT INTO lines VALUES ('x')")


def count(store: Store) -> int:
    ((lines,),) = store.execute("SELECT count(*) FROM lines")
    return int(lines)


def test_all_who_wait_during_a_sync_share_the_next(store: Store, disk: Disk) -> None:
    told: list[str] = []

    async def one(name: str) -> None:
        write(store)
        await store.on_disk(name)
        told.append(name)

    async def story() -> None:
        disk.free.clear()
        first = asyncio.create_task(one("first"))
        await asyncio.to_thread(disk.begun.wait, 10)
        rest = [asyncio.create_task(one(f"s{number}")) for number in range(9)]
        await asyncio.sleep(0)
        assert (count(store), told) == (10, [])  # written, and nobody is told
        disk.free.set()
        await asyncio.gather(first, *rest)

    asyncio.run(story())
    assert (told[0], len(told), disk.syncs) == ("first", 10, 2)


@pytest.mark.parametrize(("rows", "syncs"), [(1, 0), (0, 1)])
def test_what_is_on_disk_is_not_waited_for(store: Store, disk: Disk, rows: int, syncs: int) -> None:
    """A transaction that is synced takes all before it along; one that writes nothing takes nothing."""
    write(store)
    with store.transaction() as run:
        for _ in range(rows):
            run("INSERT INTO lines VALUES ('y')")
    for _ in range(2):
        asyncio.run(store.on_disk())
    assert disk.syncs == syncs


def test_a_cancellation_waits_for_the_disk(store: Store, disk: Disk) -> None:
    told: list[str] = []

    async def one() -> None:
        write(store)
        try:
            await store.on_disk()
        finally:
            told.append("on disk" if disk.free.is_set() else "too early")

    async def story() -> None:
        disk.free.clear()
        task = asyncio.create_task(one())
        await asyncio.to_thread(disk.begun.wait, 10)
        task.cancel()
        await asyncio.sleep(0)
        disk.free.set()
        await asyncio.wait({task})
        assert task.cancelled()

    asyncio.run(story())
    assert told == ["on disk"]


@pytest.mark.parametrize("error", [None, OSError(errno.EIO, "broken")])
def test_who_gives_it_a_time_hears_that_it_is_over_and_is_cancelled_no_more(
    store: Store, disk: Disk, error: OSError | None
) -> None:
    disk.error = error

    async def story() -> None:
        write(store)
        disk.free.clear()
        asyncio.get_running_loop().call_later(0.1, disk.free.set)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await store.on_disk()
        await asyncio.sleep(0)

    asyncio.run(story())


def test_after_a_sync_that_failed_nothing_is_said_to_be_on_disk(store: Store, disk: Disk) -> None:
    disk.error = OSError(errno.ENOSPC, "no space")
    for _ in range(2):
        write(store)
        said = complaint(StoreError, lambda: asyncio.run(store.on_disk()))
        assert said == f"The store {store.path} {COULD_NOT_BE_USED}: {FULL}."
        disk.error = None
    write(store, synced=True)  # behind what may be missing
    complaint(StoreError, lambda: asyncio.run(store.on_disk()))


def test_a_failure_holds_nothing_of_those_who_were_told(store: Store, disk: Disk) -> None:
    disk.error = OSError(errno.EIO, "broken")
    write(store)
    complaint(StoreError, lambda: asyncio.run(store.on_disk()))
    assert store._log is not None
    assert store._log.failed is not None
    frames = len(traceback.extract_tb(store._log.failed.__traceback__))
    for _ in range(3):
        complaint(StoreError, lambda: asyncio.run(store.on_disk()))
    assert len(traceback.extract_tb(store._log.failed.__traceback__)) == frames


def test_where_no_thread_can_be_started_the_next_who_waits_is_told(
    store: Store, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for ever, for the thread that was not there."""
    with monkeypatch.context() as no_thread:
        no_thread.setattr(threading.Thread, "start", Spy(RuntimeError("can't start new thread")))
        write(store)
        said = complaint(StoreError, lambda: asyncio.run(store.on_disk()))
        assert said == f"The store {store.path} {COULD_NOT_BE_USED}: can't start new thread."
    asyncio.run(asyncio.wait_for(store.on_disk(), 10))
    assert disk.syncs == 1


def test_a_store_that_is_made_anew_syncs_its_own_log(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of the one before is gone, and still open."""
    synced: list[int] = []
    monkeypatch.setattr(log_sync, "sync_file", lambda file: synced.append(os.fstat(file).st_ino))
    write(store)
    asyncio.run(store.on_disk())
    for file in Path(store.path).parent.iterdir():
        file.unlink()
    new = Store(store.path)
    new.execute("CREATE TABLE lines (text TEXT)")
    write(new)
    asyncio.run(new.on_disk())
    assert synced[-1] == Path(f"{store.path}-wal").stat().st_ino
    new.close()


def test_two_connections_of_a_process_share_one_thread(store: Store, disk: Disk) -> None:
    other = Store(store.path)
    write(store)
    write(other)
    before = threading.active_count()
    asyncio.run(store.on_disk())
    asyncio.run(other.on_disk())
    assert threading.active_count() == before + 1
    other.close()
    assert threading.active_count() == before + 1
    store.close()
    assert threading.active_count() == before


def test_many_at_work_wait_a_little_for_each_other() -> None:
    """A lone session is synced at once, and so are two that take turns slowly."""
    sync = log_sync.LogSync(Path("unused"), lambda: None, SameFile("unused"))
    asked = [(asyncio.Future(loop=asyncio.new_event_loop()), f"s{number}") for number in range(200)]
    assert sync._pause(asked[:1]) == 0.0
    assert sync._pause(asked[:3]) == pytest.approx(2 * log_sync.EACH)
    assert sync._pause(asked) == log_sync.LONGEST
    for future, _ in asked:
        future.get_loop().close()


FORK = """
import asyncio, os, sys
from pathlib import Path
from quoth.tools.storage.database import Store

async def one(store):
    with store.transaction(synced=False) as run:
        run("CREATE TABLE IF NOT EXISTS lines (text TEXT)")
        run("INSERT INTO lines VALUES ('x')")
    async with asyncio.timeout(20):
        await store.on_disk("s")

path = Path(sys.argv[1])
store = Store(path)
asyncio.run(one(store))
if not os.fork():
    asyncio.run(one(Store(path)))
    os._exit(7)
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_fork_of_a_process_that_syncs_has_a_thread_of_its_own(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FORK, str(tmp_path / "s.sqlite")]
    assert subprocess.run(words, timeout=60, check=False).returncode == 7


def test_a_log_is_released_while_another_is_taken(tmp_path: Path) -> None:
    """The collector of garbage closes a store that nobody holds, at any allocation."""
    taken = log_sync.use_log(tmp_path / "a", lambda: None, SameFile(str(tmp_path / "store.db")))

    def collect() -> None:
        with log_sync._LOCK:
            log_sync.release_log(taken)

    worker = threading.Thread(target=collect, daemon=True)
    worker.start()
    worker.join(20)
    assert not worker.is_alive()
