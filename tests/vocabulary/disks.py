"""Disks that fail: one that is full, and one that forgets at a power cut what was not synced.

Knows SQLite's file layer (apsw's VFS) and files; it must not know what is written.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import apsw
import pytest


class Disk(apsw.VFS):
    """A file layer over the usual one; ``file`` makes its files."""

    def __init__(self, name: str, file: Callable[[Any, Any], apsw.VFSFile]) -> None:
        super().__init__(name, "")
        self._file = file

    def xOpen(self, name: Any, flags: Any) -> apsw.VFSFile:
        return self._file(name, flags)


def path_of(name: Any) -> str:
    if name is None:
        return ""
    return name if isinstance(name, str) else str(name.filename())


class FullFile(apsw.VFSFile):
    """Takes as many writes as its disk has room for. What is there already may be written over."""

    def __init__(self, disk: FullDisk, name: Any, flags: Any) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        self._disk.take()
        super().xWrite(data, offset)


class FullDisk:
    """A disk with room for so many writes; None: for all. ``refused`` counts those it had no room for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.room: int | None = None
        self.written = self.refused = 0
        self.vfs = Disk(name, lambda file, flags: FullFile(self, file, flags))

    def fill(self) -> None:
        """From now on there is no room."""
        self.room = self.written

    def take(self) -> None:
        self.written += 1
        if self.room is not None and self.written > self.room:
            self.refused += 1
            raise apsw.FullError("database or disk is full")


class CountingFile(apsw.VFSFile):
    """Tells its disk of each sync."""

    def __init__(self, disk: CountingDisk, name: Any, flags: Any) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xSync(self, flags: int) -> None:
        self._disk.synced += 1
        super().xSync(flags)


class CountingDisk:
    """A disk that counts its syncs, by SQLite and beside it. With an ``error`` those beside it fail."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.synced = 0
        self.error: OSError | None = None
        self.vfs = Disk(name, lambda file, flags: CountingFile(self, file, flags))

    def sync(self, file: int) -> None:
        self.synced += 1
        if self.error is not None:
            raise self.error


Watched = TypeVar("Watched", "FullDisk", CountingDisk)


@contextlib.contextmanager
def every_store_on(disk: Watched, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Within it every store that is opened lies on this disk."""

    class Connection(apsw.Connection):
        def __init__(
            self, path: str, flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        ) -> None:
            super().__init__(path, flags=flags, vfs=disk.name)

        def close(self, force: bool = False) -> None:
            with contextlib.suppress(apsw.FullError):  # SQLite itself minds none at its tidying up
                super().close(force)

    monkeypatch.setattr(apsw, "Connection", Connection)
    yield disk
    disk.vfs.unregister()


@dataclass
class Image:
    """A file as it is on the platter, and what was written since and not synced."""

    synced: bytearray = field(default_factory=bytearray)
    since: list[tuple[int, bytes]] = field(default_factory=list)  # a cut to a length has no bytes: (n, b"")

    def settle(self, count: int | None = None) -> None:
        """The first so many changes, or all, are on the platter."""
        done = self.since[:count]
        for change in done:
            self.apply(change)
        del self.since[: len(done)]

    def apply(self, change: tuple[int, bytes]) -> None:
        offset, data = change
        if not data:
            del self.synced[offset:]
            return
        if len(self.synced) < offset:
            self.synced.extend(bytes(offset - len(self.synced)))
        self.synced[offset : offset + len(data)] = data


class ForgetfulFile(apsw.VFSFile):
    """Tells its disk what is written and when it is synced."""

    def __init__(self, disk: ForgetfulDisk, name: Any, flags: Any) -> None:
        self._disk, self._path = disk, path_of(name)
        super().__init__("", name, flags)
        if self._path and self._path not in disk.images:
            disk.images[self._path] = Image(bytearray(Path(self._path).read_bytes()))

    def xWrite(self, data: Any, offset: int) -> None:
        self._disk.on_write(self._path)
        super().xWrite(data, offset)
        if self._path:
            self._disk.images[self._path].since.append((offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        if self._path:
            self._disk.images[self._path].since.append((size, b""))

    def xSync(self, flags: int) -> None:
        self._disk.on_sync(self._path)
        super().xSync(flags)
        if self._path:
            self._disk.settle(self._path)


class _ForgetfulVfs(Disk):
    def __init__(self, disk: ForgetfulDisk, name: str) -> None:
        self._disk = disk
        super().__init__(name, lambda file, flags: ForgetfulFile(disk, file, flags))

    def xDelete(self, name: str, sync: bool) -> None:
        super().xDelete(name, sync)
        self._disk.images.pop(name, None)


class ForgetfulDisk:
    """A disk whose ``cut`` ends this process and leaves what was synced; of the rest any part, the last
    write torn. ``point`` is told of each write and sync before it is done."""

    def __init__(self, name: str, point: Callable[[str], None]) -> None:
        self.images: dict[str, Image] = {}
        self._turns = threading.RLock()  # who cuts keeps it: no other thread has anything synced after that
        self._point = point
        self.vfs = _ForgetfulVfs(self, name)

    def on_write(self, path: str) -> None:
        with self._turns:
            self._point(f"on the disk, before a write of {_kind(path)}")

    def sync(self, file: int) -> None:
        """A sync of what SQLite has written, by somebody else."""
        path = str(Path(f"/proc/self/fd/{file}").readlink())
        written = len(self.images[path].since)
        self.on_sync(path)
        os.fdatasync(file)
        self.settle(path, written)

    def settle(self, path: str, count: int | None = None) -> None:
        with self._turns:
            self.images[path].settle(count)

    def on_sync(self, path: str) -> None:
        with self._turns:
            self._point(f"on the disk, before a sync of {_kind(path)}")

    def cut(self, chance: random.Random) -> None:
        for path, image in self.images.items():
            kept = [change for change in image.since if chance.random() < 0.5]
            if kept and kept[-1][1]:
                offset, data = kept.pop()
                kept.append((offset, data[: chance.randrange(1, len(data) + 1)]))
            for change in kept:
                image.apply(change)
            Path(path).write_bytes(image.synced)
            Path(path + "-shm").unlink(missing_ok=True)
        os.kill(os.getpid(), signal.SIGKILL)


def _kind(path: str) -> str:
    return next((kind for kind in ("wal", "journal") if path.endswith(f"-{kind}")), "the store")
