"""Files as they are on disk, and what one held before it is written, for whoever keeps it to put it back.

The door says who keeps the writes of the call whose body is running; outside of a call nobody does, unless
``kept_by`` says so. It must not know stores, tools or how files are written.
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
MAX_FILE = 20_000_000  # bytes of one file that are kept


class Held(NamedTuple):
    """What a file holds: the digest and size, and the bytes of one that is not larger than MAX_FILE."""

    digest: bytes
    size: int
    data: bytes | None


class FileWrite(NamedTuple):
    """One file that is about to change. ``path`` is its canonical spelling below ``root``. ``before`` is None
    where there is no file, ``after`` is the digest of what is to be there, None where it is removed; ``mode``
    is that of the old file, and ``folders`` how many of those around it were made for it."""

    root: Path
    path: str
    before: Held | None
    after: bytes | None
    mode: int = 0
    folders: int = 0


Keeper = Callable[[FileWrite], str]  # keeps it, on disk at once; a sentence where it cannot be put back later

# Who keeps the writes that are made in this context.
KEEPER: contextvars.ContextVar[Keeper | None] = contextvars.ContextVar("quoth_keeper", default=None)


@contextlib.contextmanager
def kept_by(keeper: Keeper | None) -> Iterator[None]:
    """Within this context ``keeper`` has the writes."""
    before = KEEPER.set(keeper)
    try:
        yield
    finally:
        KEEPER.reset(before)


# One file in an open folder: whether it may be replaced, what it holds, and what a new one takes from it.
#
# It must not know the workspace: the folder is a descriptor, and no link is followed.


def writable(path: str, name: str, parent: int) -> os.stat_result | None:
    """What is known of the file that is to be replaced; None where there is none. Raises ToolError for one
    that is not to be written: it could be replaced, but somebody has said that it is to stay."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{path} is no regular file.")
    if not found.st_mode & 0o222 or not os.access(name, os.W_OK, dir_fd=parent):
        mode = stat.filemode(found.st_mode)
        raise ToolError(f"{path} is read-only ({mode}) and was not changed; chmod u+w makes it writable.")
    return found


def kept(found: os.stat_result, descriptor: int) -> list[str]:
    """Give a new file the owner and mode of the one that was there; what could not be kept."""
    lost = []
    if found.st_nlink > 1:
        others = "another name" if found.st_nlink == 2 else f"{found.st_nlink - 1} other names"
        lost.append(f"had {others} (a hard link), with the old text in it still")
    mode, mine = stat.S_IMODE(found.st_mode), os.fstat(descriptor)
    if (found.st_uid, found.st_gid) != (mine.st_uid, mine.st_gid):
        try:
            os.fchown(descriptor, found.st_uid, found.st_gid)
        except OSError:
            with contextlib.suppress(OSError):
                os.fchown(descriptor, -1, found.st_gid)
            mode &= 0o777  # nobody is to run it as somebody that its owner was not
            lost.append(f"belonged to user {found.st_uid}, and is yours now")
    os.fchmod(descriptor, mode)
    return lost


def beginning_of(path: Path, most: int) -> bytes | None:
    """At most so many bytes of a regular file; None for anything else, such as a link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def held(name: str, parent: int, *, whole: bool) -> Held | None:
    """What a file holds now, the bytes only if the ``whole`` is wanted; None where there is none any more."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if whole and size <= MAX_FILE:
            data = file.read()
            return Held(hashlib.sha256(data).digest(), len(data), data)
        return Held(hashlib.file_digest(file, "sha256").digest(), size, None)
