"""Files as they are on disk, and a keeper that receives a file's old content before a write, for undo.

The door sets the keeper for the call whose body is running. Outside of a call there is none, unless
``kept_by`` sets one.
"""

from __future__ import annotations

import contextlib
import contextvars
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from quoth.tools.errors import ToolError

NO_FILE = "no file"  # in place of a digest
MAX_FILE = 20_000_000  # bytes; the content of a larger file is not kept


class Held(NamedTuple):
    """The content of a file: its digest, its size, and its bytes if they are at most MAX_FILE."""

    digest: bytes
    size: int
    data: bytes | None


def held_bytes(data: bytes) -> Held:
    """This content, as a file has it."""
    return Held(hashlib.sha256(data).digest(), len(data), data if len(data) <= MAX_FILE else None)


class FileWrite(NamedTuple):
    """One file that is about to change. ``path`` is its canonical spelling below ``root``. ``before`` is None
    for a new file; ``after`` is the digest of the new content, None if the file is removed; ``mode`` is the
    mode of the old file, and ``folders`` counts the parent folders that were created for it. ``unsaved`` is
    whether ``before`` was in an editor, and not on the disk."""

    root: Path
    path: str
    before: Held | None
    after: bytes | None
    mode: int = 0
    folders: int = 0
    unsaved: bool = False


Keeper = Callable[[FileWrite], str]  # stores it on disk at once; returns a sentence if it cannot be undone

# The keeper of writes in this context.
KEEPER: contextvars.ContextVar[Keeper | None] = contextvars.ContextVar("quoth_keeper", default=None)


@contextlib.contextmanager
def kept_by(keeper: Keeper | None) -> Iterator[None]:
    """A context in which ``keeper`` receives the writes."""
    before = KEEPER.set(keeper)
    try:
        yield
    finally:
        KEEPER.reset(before)


# One file in an open folder: whether it may be replaced, its content, and the attributes that a new file
# inherits. The folder is a descriptor, and no link is followed.


def writable(path: str, name: str, parent: int) -> os.stat_result | None:
    """The status of the file to replace; None if there is no file. Raises ToolError for a read-only file:
    it could be replaced, but its mode forbids writing."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{path} is not a regular file.")
    if not found.st_mode & 0o222 or not os.access(name, os.W_OK, dir_fd=parent):
        mode = stat.filemode(found.st_mode)
        raise ToolError(f"{path} is read-only ({mode}) and was not changed; chmod u+w makes it writable.")
    return found


def kept(found: os.stat_result, descriptor: int) -> list[str]:
    """Give a new file the owner and mode of the old one; returns a phrase for each that was lost."""
    lost = []
    if found.st_nlink > 1:
        others = "another name" if found.st_nlink == 2 else f"{found.st_nlink - 1} other names"
        lost.append(f"had {others} (a hard link), which still has the old text")
    mode, mine = stat.S_IMODE(found.st_mode), os.fstat(descriptor)
    if (found.st_uid, found.st_gid) != (mine.st_uid, mine.st_gid):
        try:
            os.fchown(descriptor, found.st_uid, found.st_gid)
        except OSError:
            with contextlib.suppress(OSError):
                os.fchown(descriptor, -1, found.st_gid)
            mode &= 0o777  # a set-user-ID bit would now run it as another user
            lost.append(f"belonged to user {found.st_uid} and now belongs to you")
    os.fchmod(descriptor, mode)
    return lost


def beginning_of(path: Path, most: int) -> bytes | None:
    """The first ``most`` bytes of a regular file; None for anything else, such as a link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def held(name: str, parent: int, *, whole: bool) -> Held | None:
    """The present content of a file, with its bytes only if ``whole``; None if the file is gone."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if whole and size <= MAX_FILE:
            return held_bytes(file.read())
        return Held(hashlib.file_digest(file, "sha256").digest(), size, None)
