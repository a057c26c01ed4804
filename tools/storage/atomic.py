"""Atomic, durable replacement of files."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO


def replace_file(
    path: Path, pieces: Iterable[bytes], mode: int | None = None, sure: Callable[[], bool] = lambda: True
) -> bool:
    """Atomically replace the file at ``path`` with ``pieces``, with ``mode`` (default: 0o666 less the umask).
    ``sure`` is called once the new file is synced; if it returns False, the old file stays, and the result is
    False. Raises OSError, and exceptions of ``pieces`` and ``sure``; then the old file stays, too."""

    def set_mode(descriptor: int) -> None:
        if mode is not None:
            os.fchmod(descriptor, mode)

    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return replace_in(folder, path.name, pieces, 0o666 if mode is None else mode, set_mode, sure)
    finally:
        os.close(folder)


def replace_in(
    folder: int,
    name: str,
    pieces: Iterable[bytes],
    mode: int,
    finish: Callable[[int], object],
    sure: Callable[[], bool],
) -> bool:
    """As replace_file, in an open folder. ``finish`` gets the new file's descriptor before it is synced."""
    with _scratch(folder, mode) as (scratch, file):
        _fill(file, pieces, finish)
        if not sure():
            return False
        os.replace(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)
    return True


def new_file(path: Path, pieces: Iterable[bytes], mode: int = 0o666) -> None:
    """Write a new file, completely or not at all, with ``mode`` less the umask. Raises FileExistsError if
    ``path`` exists, and OSError."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with _scratch(folder, mode) as (scratch, file):
            _fill(file, pieces, lambda descriptor: None)
            try:
                os.link(scratch, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except FileExistsError:
                raise
            except OSError:  # a disk without hard links: the name is reserved first
                os.close(os.open(path.name, os.O_CREAT | os.O_EXCL, mode, dir_fd=folder))
                os.replace(scratch, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        os.close(folder)


def _fill(file: BinaryIO, pieces: Iterable[bytes], finish: Callable[[int], object]) -> None:
    file.writelines(pieces)
    file.flush()
    finish(file.fileno())
    os.fsync(file.fileno())


# * Scratch files

_NAME = re.compile(r"\.[0-9a-f]{16}\.quoth")


def is_scratch(name: str) -> bool:
    """Whether a file of this name is being written, or was left by a killed process."""
    return name.endswith(".quoth") and _NAME.fullmatch(name) is not None


@contextlib.contextmanager
def _scratch(folder: int, mode: int) -> Iterator[tuple[str, BinaryIO]]:
    """A scratch file in an open folder, and its name; removed at the end. It is locked while it is written: a
    scratch file without a lock was left by a killed process, and the next writer removes it."""
    _remove_left(folder)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        scratch = f".{os.urandom(8).hex()}.quoth"
        descriptor = os.open(scratch, flags, mode, dir_fd=folder)
        with os.fdopen(descriptor, "wb") as file:
            with contextlib.suppress(OSError):  # without locks, scratch files are never removed
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not os.fstat(descriptor).st_nlink:  # another writer was quicker than our lock
                continue
            try:
                yield scratch, file
                return
            finally:
                with contextlib.suppress(OSError):  # it is gone after it replaced the file
                    os.unlink(scratch, dir_fd=folder)


def _remove_left(folder: int) -> None:
    """Remove the scratch files in a folder that no process has locked."""
    for name in filter(is_scratch, os.listdir(folder)):
        with contextlib.suppress(OSError):  # another user's file, or just removed
            if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                continue
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            left = os.open(name, flags, dir_fd=folder)
            try:
                fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name, dir_fd=folder)
            finally:
                os.close(left)
