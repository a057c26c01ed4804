"""Paths: the folders of quoth's own files, patterns of file names, whether a file is missing or was replaced
after it was opened, and folders that only their user can read.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shlex
import stat
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

from quoth.tools.errors import StoreError, UsageError


class NoHomeError(UsageError):
    """HOME is not set, and the system has no home folder for this user."""


class NoFolderError(UsageError, FileNotFoundError):
    """The current folder was removed, and a relative path was given."""


def real_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path, with links resolved. Unlike ``Path.resolve`` before Python 3.13 it does not fail for
    a link that leads to itself: reading the file reports the error. Raises NoFolderError."""
    try:
        return Path(os.path.realpath(path))
    except FileNotFoundError:
        raise NoFolderError("The current folder was removed. Type: cd DIR, or give absolute paths.") from None


@lru_cache(maxsize=256)
def shared_path(path: str) -> Path:
    """This path as one shared object: hundreds of agents keep the same few paths."""
    return Path(path)


def state_dir() -> Path:
    """The folder for data that must not be lost: ``$QUOTH_STATE``, or the platform's user data folder."""
    return _folder("QUOTH_STATE", "user_data_dir")


def cache_dir() -> Path:
    """The folder for data that can be recreated: ``$QUOTH_CACHE``, or the platform's cache folder."""
    return _folder("QUOTH_CACHE", "user_cache_dir")


def config_dir() -> Path:
    """The folder for the user's settings: ``$QUOTH_CONFIG``, or the platform's configuration folder."""
    return _folder("QUOTH_CONFIG", "user_config_dir")


def agents_dir() -> Path:
    """The folder for the user's own agents, a file NAME.hy for each."""
    return config_dir() / "agents"


def keys_path() -> Path:
    """The file with the keys of model servers, for systems without a keyring."""
    return config_dir() / "keys"


CATALOG_KEY = "QUOTH_CATALOG_KEY"  # environment variable: path of the key file


def catalog_key_path(given: str | Path | None = None) -> Path:
    """The path of the key file of a catalog: ``given``, otherwise the one in QUOTH_CATALOG_KEY, otherwise
    ``catalog.key`` beside the stores."""
    return Path(given or os.environ.get(CATALOG_KEY) or state_dir() / "catalog.key").expanduser()


def user_servers() -> Path:
    """The file of the user's MCP servers."""
    return config_dir() / "mcp.json"


def store_path(workspace: Path) -> Path:
    """The path of a workspace's store; each real path has its own."""
    key = hashlib.sha256(str(workspace.resolve()).encode()).hexdigest()[:16]
    name = f"{workspace.resolve().name or 'root'}-{key}.sqlite"
    return shared_path(str(state_dir() / "workspaces" / name))


WORKTREES = "worktrees"
NAMES_OF_WORKTREES = re.compile(r"(?!.*\.\.)(?!.*\.lock$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}(?<!\.)")


def worktrees_dir(workspace: Path) -> Path:
    """The folder of the git worktrees of a project's sessions, each named after its session."""
    return state_dir() / WORKTREES / store_path(workspace).stem


def repository_top(folder: Path) -> Path | None:
    """The nearest folder upwards that has a ``.git``; None if there is none."""
    return next((one for one in (folder, *folder.parents) if not is_missing(one / ".git")), None)


def worktree_place(home: Path, session: str) -> Path | None:
    """The folder in which a session with a worktree works: that of the project ``home`` in the worktree; None
    if the session has no worktree."""
    if not NAMES_OF_WORKTREES.fullmatch(session):
        return None
    folder = worktrees_dir(home) / session
    if not folder.is_dir() or (top := repository_top(home)) is None:
        return None
    return folder / home.relative_to(top)


def _folder(variable: str, kind: str) -> Path:
    if named := os.environ.get(variable):
        return Path(named)
    import platformdirs

    try:
        return Path(getattr(platformdirs, kind)("quoth", appauthor=False))
    except RuntimeError:
        raise NoHomeError(
            "You have no home folder, so quoth has no place for its own files. Type: export HOME=DIR "
            "(a folder that you can write to)."
        ) from None


# File patterns such as ``*.py``, ``src/*.py`` and ``**/*.txt``, as tools and settings take them.
#
# A pattern is compared with the name of a file, and with its path below the root.


def fits(path: str, pattern: str) -> bool:
    """Whether the path of a file matches a pattern. ``**/`` matches any number of folders, including none."""
    found = _expression(pattern).fullmatch
    return found(path.rpartition("/")[2]) is not None or found(path) is not None


@lru_cache(maxsize=64)
def _expression(pattern: str) -> re.Pattern[str]:
    pieces = re.split(r"(?<![^/])\*\*/", pattern)
    return re.compile("(?:.*/)?".join(map(_translated, pieces)), re.DOTALL)


def _translated(piece: str) -> str:
    """A piece of a pattern as a regular expression, without the mark of the end."""
    return translate(piece).removeprefix("(?s:")[: -len(r")\Z")]


# Whether a path still names the file that was opened there, and not a moved, removed or replaced one.


GONE = "the file {} was moved or removed while it was open"
REPLACED = "another file took the place of {} while it was open"
IRREGULAR = "{} is not a regular file"

Identity = tuple[int, int]  # device and inode


class SameFile:
    """The file at a path, as it was when this object was created. Without stable inodes, changes are not
    seen."""

    __slots__ = ("identity", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.identity = _identity(path)

    def lost(self) -> str:
        """Why the path no longer names this file; empty if it does."""
        try:
            found = os.stat(self.path)  # noqa: PTH116  before each transaction: a Path takes twice as long
        except (FileNotFoundError, NotADirectoryError):
            return "" if self.identity is None else GONE.format(self.path)
        except OSError:  # it cannot be examined, so nothing is known
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
    """Raise StoreError unless the store and the files beside it are regular files, or missing: opening a fifo
    would wait for ever."""
    for path in paths:
        try:
            mode = path.stat().st_mode
        except OSError:  # opening it reports the error
            continue
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise StoreError("", IRREGULAR.format("it" if path == paths[0] else path))


# Whether a file is missing, as opposed to a file that this user cannot reach. ``os.path.lexists`` and, from
# Python 3.14 on, ``Path.exists`` return False for both: then rules in an unreadable folder would be ignored
# silently.


def is_missing(path: str | os.PathLike[str]) -> bool:
    """Whether nothing has this name: ENOENT or ENOTDIR, and not another error. A link counts as existing. If
    the result is False, reading the file reports why it cannot be read."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


# Files and folders of the state that only their user can read, and the command that makes one writable.


def private_folder(folder: Path) -> None:
    """Create a folder that only its user can read (0700). Folders of the state that an older version left
    readable for others are closed, with the files in them. Raises OSError."""
    if folder in _CLOSED and folder.is_dir():
        return
    state = state_dir()
    if folder != state and state not in folder.parents:  # a host's own folder, for its own store
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return
    for one in dict.fromkeys((state, folder)):
        try:
            one.mkdir(parents=True, exist_ok=True, mode=0o700)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(one)) from None
        if one not in _CLOSED:
            _CLOSED.add(one)
            if _is_open(one):
                for entry in one.iterdir():
                    if entry.is_file():
                        _close(entry, 0o600)
                _close(one, 0o700)  # last: a closed folder is not looked through again


def private_file(path: Path) -> None:
    """Create a file that only its user can read (0600), or change the mode of an existing one. Raises
    OSError.

    A usable file is not opened: closing it would end all locks that this process has on it, including the
    locks of another connection, whose write-ahead log another process may then delete."""
    if path.is_dir() or not os.access(path, os.W_OK):
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    _close(path, 0o600)


_CLOSED: set[Path] = set()  # folders that this process has checked


def _close(path: Path, mode: int) -> None:
    """Remove the rights of others on a file or folder of ours."""
    if _is_open(path):
        with contextlib.suppress(OSError):
            path.chmod(mode)


def _is_open(path: Path) -> bool:
    """Whether others have rights on a file or folder of ours. A shared folder such as /tmp, or the user's
    home, stays as it is."""
    with contextlib.suppress(OSError, RuntimeError):  # a user may have no home
        found = path.stat()
        shared = stat.S_ISDIR(found.st_mode) and (found.st_mode & stat.S_ISVTX or path == Path.home())
        return bool(found.st_uid == os.geteuid() and not shared and found.st_mode & 0o077)
    return False


# How to make a path writable, by the number of the error. Only the owner may change the mode.
_FIXES = {
    errno.EACCES: "chmod u+rwx {path}",
    errno.EPERM: "chattr -i {path}",
    errno.EROFS: "mount its disk so that it can be written",
    errno.ENOTDIR: "remove the file {path}",
    errno.ENOSPC: "make room on its disk",
    errno.EDQUOT: "make room on its disk",
}


def how_to_write(path: Path, number: int | None, variable: str = "") -> str:
    """What to do to make ``path`` writable, after the error ``number``, as a clause without a full stop.
    ``variable`` is the environment variable that moves quoth's folder, such as QUOTH_STATE."""
    there = next(one for one in (path, *path.absolute().parents) if os.path.lexists(one))
    fix = _FIXES.get(number or 0, "make {path} writable").format(path=shlex.quote(str(there)))
    owner, home = there.lstat().st_uid, Path(os.path.expanduser("~"))  # noqa: PTH111  # Path's raises
    if variable and home in (path, *path.parents) and not home.is_dir():
        fix = f"set HOME to a folder of yours ({home} does not exist)"
    elif number in (errno.EACCES, errno.EPERM) and owner != os.geteuid():
        fix = f"ask {owner_name(owner)}, who owns {there}, for the right to write"
    return f"{fix}, or: export {variable}=DIR (a folder that you can write to)" if variable else fix


def owner_name(number: int) -> str:
    """The name of a user, or ``user NUMBER`` if the system has no name."""
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
