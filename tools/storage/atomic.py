"""Files that are replaced whole or not at all, and are on the disk when that is said.

Knows nothing of what stands in them. A tool's writes have rules of their own: see ``tools.call.workspace``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path


def replace_file(
    path: Path, pieces: Iterable[bytes], mode: int | None = None, sure: Callable[[], bool] = lambda: True
) -> bool:
    """Put ``pieces`` in the place of what ``path`` holds, with ``mode``, or what the umask leaves of 0o666.
    ``sure`` is asked last, when all of them are on the disk; False: it was not, and nothing is changed.
    Raises OSError, and whatever ``pieces`` or ``sure`` raises; then nothing is changed, either."""
    scratch = path.with_name(f".{path.name}.{os.urandom(4).hex()}.quoth")
    descriptor = os.open(
        scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666 if mode is None else mode
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            file.writelines(pieces)
            file.flush()
            os.fsync(descriptor)
        if not sure():
            return False
        scratch.replace(path)
    finally:
        with contextlib.suppress(OSError):  # it is gone when it took the place
            scratch.unlink()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True
