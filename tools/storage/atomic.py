"""Atomic, durable replacement of files.

Must not know what the files hold.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path


def replace_file(
    path: Path, pieces: Iterable[bytes], mode: int | None = None, sure: Callable[[], bool] = lambda: True
) -> bool:
    """Atomically replace the file at ``path`` by ``pieces``, with ``mode`` or else 0o666 less the umask.
    ``sure`` is called once the new file is synced; when it returns False the old file stays, and the result
    is False. Raises OSError and what ``pieces`` or ``sure`` raises; the old file stays then, too."""

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
    scratch = f".{os.urandom(8).hex()}.quoth"
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(scratch, flags, mode, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(pieces)
            file.flush()
            finish(descriptor)
            os.fsync(descriptor)
        if not sure():
            return False
        os.replace(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with contextlib.suppress(OSError):  # it is gone when it took the place
            os.unlink(scratch, dir_fd=folder)
    os.fsync(folder)
    return True
