"""Whether a path still names the file that was opened there: not one that was moved, removed or replaced.

It knows paths and inodes; it must not know what the files contain.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from quoth.tools.errors import StoreError

GONE = "the file {} was moved or removed while it was open"
REPLACED = "another file took the place of {} while it was open"
IRREGULAR = "{} is not a regular file"

Identity = tuple[int, int]  # device and inode


class SameFile:
    """The file at a path, as it was when this was made. A file system without stable inodes gives no sign."""

    __slots__ = ("identity", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.identity = _identity(path)

    def lost(self) -> str:
        """Why the path does not name this file any more; empty if it does."""
        try:
            found = os.stat(self.path)  # noqa: PTH116  before each transaction: a Path takes twice as long
        except (FileNotFoundError, NotADirectoryError):
            return "" if self.identity is None else GONE.format(self.path)
        except OSError:  # it cannot be looked at, so nothing is known
            return ""
        now = found.st_dev, found.st_ino
        if now == self.identity and found.st_nlink:
            return ""
        if self.identity is None or not found.st_ino or _identity(self.path) != now:
            return ""  # its inodes are not stable
        return GONE.format(self.path) if now == self.identity else REPLACED.format(self.path)


def _identity(path: str) -> Identity | None:
    """Device and inode of a file; None if there is none, or if its file system has no inodes."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found.st_ino else None


def require_regular(*paths: Path) -> None:
    """Raise StoreError unless the store and the files beside it are regular files, or missing: to open a fifo
    would wait for ever."""
    for path in paths:
        try:
            mode = path.stat().st_mode
        except OSError:  # whoever opens it says what is wrong
            continue
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise StoreError("", IRREGULAR.format("it" if path == paths[0] else path))


# Whether a file is missing, which is another thing than a file that this user cannot reach.
#
# It knows files only. ``os.path.lexists`` and, from Python 3.14 on, ``Path.exists`` answer "no" for both:
# then rules in a folder that cannot be searched would be left out in silence.


def is_missing(path: str | os.PathLike[str]) -> bool:
    """Whether nothing has this name: ENOENT or ENOTDIR, and no other error. A link is something, wherever it
    leads. Where the answer is no, reading the file says why it cannot be read."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
