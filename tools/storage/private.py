"""Files and folders of the state that only their user can read, and what to type where one cannot be written.

It knows modes and owners; it must not know what the files hold.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import stat
from pathlib import Path

from quoth.tools.storage.paths import state_dir


def private_folder(folder: Path) -> None:
    """Create a folder that only its user can read (0700). Folders of the state that an older version left
    open to others are closed, with the files in them. Raises OSError."""
    state = state_dir()
    if folder != state and state not in folder.parents:  # somebody else's, for a store of theirs
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return
    for one in dict.fromkeys((state, folder)):
        try:
            one.mkdir(parents=True, exist_ok=True, mode=0o700)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(one)) from None
        if one not in _CLOSED:
            _CLOSED.add(one)
            if _close(one, 0o700):
                for entry in one.iterdir():
                    if entry.is_file():
                        _close(entry, 0o600)


def private_file(path: Path) -> None:
    """Create a file that only its user can read (0600), or make an existing one so. Raises OSError.

    One that can be used is not opened: closing it would end all locks that this process has on it, also those
    of another connection, whose write-ahead log another process may then delete."""
    if path.is_dir() or not os.access(path, os.W_OK):
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    _close(path, 0o600)


_CLOSED: set[Path] = set()  # the folders this process has looked at


def _close(path: Path, mode: int) -> bool:
    """Remove the rights of others on a file or folder of ours. A shared folder such as /tmp, or the user's
    home, stays as it is."""
    with contextlib.suppress(OSError, RuntimeError):  # there may be no home
        found = path.stat()
        shared = stat.S_ISDIR(found.st_mode) and (found.st_mode & stat.S_ISVTX or path == Path.home())
        if found.st_uid != os.geteuid() or shared:
            return False
        if found.st_mode & 0o077:
            path.chmod(mode)
        return True
    return False


# What to do where a path cannot be written, by the number of the error. The owner alone may change the bits.
_FIXES = {
    errno.EACCES: "chmod u+rwx {path}",
    errno.EPERM: "chattr -i {path}",
    errno.EROFS: "mount its disk so that it can be written",
    errno.ENOTDIR: "remove the file {path}",
    errno.ENOSPC: "make room on its disk",
    errno.EDQUOT: "make room on its disk",
}


def how_to_write(path: Path, number: int | None, variable: str = "") -> str:
    """What to type so that ``path`` can be written, after the error ``number``, as a clause without a full
    stop. ``variable`` is the one that moves quoth's own folder elsewhere, such as QUOTH_STATE."""
    there = next(one for one in (path, *path.absolute().parents) if os.path.lexists(one))
    fix = _FIXES.get(number or 0, "make {path} writable").format(path=shlex.quote(str(there)))
    owner, home = there.lstat().st_uid, Path(os.path.expanduser("~"))  # noqa: PTH111  # Path's raises
    if variable and home in (path, *path.parents) and not home.is_dir():
        fix = f"set HOME to a folder of yours ({home} does not exist)"
    elif number in (errno.EACCES, errno.EPERM) and owner != os.geteuid():
        fix = f"ask {owner_name(owner)}, who owns {there}, for the right to write"
    return f"{fix}, or: export {variable}=DIR (a folder that you can write to)" if variable else fix


def owner_name(number: int) -> str:
    """The name of a user, or ``user NUMBER`` where the system knows none."""
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
