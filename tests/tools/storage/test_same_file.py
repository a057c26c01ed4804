"""The store under our feet: what is moved, removed or replaced while it is open takes nothing more."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sentences import CANNOT_BE_OPENED, COULD_NOT_BE_USED, IS_NOT_A_REGULAR_FILE
from words import complaint

from quoth.tools.catalog.payload import read_key
from quoth.tools.errors import StoreError, UsageError
from quoth.tools.storage import log_sync
from quoth.tools.storage.database import Store
from quoth.tools.storage.file_lock import hold, in_use, is_held
from quoth.tools.storage.paths import SameFile

CANNOT = f"The store {{}} {COULD_NOT_BE_USED}: "


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    (tmp_path / "state").mkdir()
    opened = Store(tmp_path / "state" / "s.sqlite")
    opened.execute("CREATE TABLE lines (text TEXT)")
    yield opened
    opened.close()


def write(store: Store, *, synced: bool = False, text: str = "x") -> None:
    with store.transaction(synced=synced) as run:
        run("INSERT INTO lines VALUES (?)", (text,))


def lines(path: Path) -> list[Any]:
    store = Store(path)
    try:
        return [text for (text,) in store.execute("SELECT text FROM lines")]
    finally:
        store.close()


def remove(path: Path) -> None:
    path.unlink()


def move(path: Path) -> None:
    path.rename(path.with_name("moved"))


def replace(path: Path) -> None:
    shutil.copyfile(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def write_again(path: Path) -> None:
    """As a backup that is played back: another file with the same name."""
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)


GONE, REPLACED = "the file {} was moved or removed while it was open.", "another file took the place of {}"
LOST: dict[Callable[[Path], None], str] = {
    remove: GONE, move: GONE, remove_folder: GONE, replace: REPLACED, write_again: REPLACED,
}  # fmt: skip


@pytest.mark.parametrize("how", LOST, ids=lambda how: how.__name__)
@pytest.mark.parametrize("synced", [True, False], ids=["synced before", "never synced"])
@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
async def test_a_store_whose_files_are_not_there_any_more_takes_nothing_more(
    store: Store, how: Callable[[Path], None], end: str, synced: bool
) -> None:
    path = Path(f"{store.path}{end}")
    if synced:
        write(store)
        await store.on_disk("s")
    write(store)
    how(path)
    said = CANNOT.format(store.path) + LOST[how].format(store.path if how is remove_folder else path)
    with pytest.raises(StoreError) as failed:
        await store.on_disk("s")
    assert str(failed.value).startswith(said)
    assert complaint(StoreError, lambda: write(store, synced=True)).startswith(said)
    if not end:
        assert complaint(StoreError, lambda: write(store)).startswith(said)
        assert complaint(StoreError, lambda: store.execute("DELETE FROM lines")).startswith(said)


async def test_the_log_of_another_store_is_never_synced_nor_closed_with_ours(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(log_sync, "sync_file", lambda file: synced.append(os.fstat(file).st_ino))
    path, log = Path(store.path), Path(f"{store.path}-wal")
    write(store)
    await store.on_disk("s")
    own = log.stat().st_ino
    write(store)
    for file in path.parent.iterdir():
        file.rename(path.parent.parent / file.name)
    other = Store(path)
    other.execute("CREATE TABLE lines (text TEXT)")
    write(other, text="of another")
    with pytest.raises(StoreError):
        await store.on_disk("s")
    assert set(synced) == {own}
    await other.on_disk("s")
    assert synced[-1] == log.stat().st_ino
    store.close()
    write(other, text="after that")
    other.close()
    assert lines(path) == ["of another", "after that"]
    assert lines(path.parent.parent / path.name) == ["x", "x"]


async def test_a_lock_that_is_held_and_was_removed_ends_what_it_was_held_for(
    store: Store, state: Path
) -> None:
    with in_use(store.path, "s"):
        write(store)
        await store.on_disk("s")
        write(store)
        shutil.rmtree(state / "locks")
        with pytest.raises(StoreError, match=r"the file of the lock /.* was moved or removed"):
            await store.on_disk("s")
    write(store)
    await store.on_disk("s")


def test_a_file_system_without_stable_inodes_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, numbers = os.stat, iter(range(1, 1000))

    def changing(path: Any, **more: Any) -> Any:
        found = [*real(path, **more)]
        return os.stat_result([found[0], next(numbers), *found[2:]])

    (tmp_path / "a").write_text("")
    monkeypatch.setattr(os, "stat", changing)
    assert SameFile(str(tmp_path / "a")).lost() == ""
    numbers = iter([0] * 10)
    monkeypatch.setattr(os, "stat", changing)
    assert SameFile(str(tmp_path / "a")).lost() == ""
    monkeypatch.setattr(os, "stat", real)
    assert SameFile(str(tmp_path / "a")).lost() == ""


@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
def test_what_is_not_a_regular_file_is_not_opened(tmp_path: Path, end: str) -> None:
    """To open a fifo would wait for ever."""
    path = tmp_path / "s.sqlite"
    os.mkfifo(f"{path}{end}")
    what = f"{path}{end}" if end else "it"
    said = f"The store {path} {CANNOT_BE_OPENED}: {what} {IS_NOT_A_REGULAR_FILE}."
    assert complaint(UsageError, lambda: Store(path)) == said
    assert complaint(UsageError, lambda: Store(path, looking="it is read-only")) == said


def test_a_key_and_a_lock_that_are_a_fifo_are_not_waited_for(tmp_path: Path, state: Path) -> None:
    os.mkfifo(tmp_path / "key", 0o600)
    said = complaint(UsageError, lambda: read_key(tmp_path / "key"))
    assert said == f"The key {tmp_path / 'key'} {IS_NOT_A_REGULAR_FILE}."
    with hold("a"):
        (lock,) = (state / "locks").iterdir()
    lock.unlink()
    os.mkfifo(lock)
    assert not is_held("a")
