"""Where quoth keeps its own files: state, configuration, stores, caches; and patterns of file names.

Knows only the environment and the platform's folders.
"""

from __future__ import annotations

import hashlib
import os
import re
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

from quoth.tools.errors import UsageError


class NoHomeError(UsageError):
    """HOME is not set, and the system knows no home of this user."""


class NoFolderError(UsageError, FileNotFoundError):
    """The current folder was removed, and a relative path was given."""


def real_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path that links lead to. Unlike ``Path.resolve`` before Python 3.13 it does not fail for a
    link that leads to itself: reading the file says what is wrong. Raises NoFolderError."""
    try:
        return Path(os.path.realpath(path))
    except FileNotFoundError:
        raise NoFolderError("The current folder was removed. Type: cd DIR, or give absolute paths.") from None


@lru_cache(maxsize=256)
def shared_path(path: str) -> Path:
    """This path, one object for all who keep it: hundreds of agents keep the same few."""
    return Path(path)


def state_dir() -> Path:
    """The folder for data that must not be lost: ``$QUOTH_STATE``, or the platform's user data folder."""
    return _folder("QUOTH_STATE", "user_data_dir")


def cache_dir() -> Path:
    """The folder for data that can be made again: ``$QUOTH_CACHE``, or the platform's cache folder."""
    return _folder("QUOTH_CACHE", "user_cache_dir")


def config_dir() -> Path:
    """The folder for what the user writes: ``$QUOTH_CONFIG``, or the platform's configuration folder."""
    return _folder("QUOTH_CONFIG", "user_config_dir")


def keys_path() -> Path:
    """The file of the keys of model servers, where there is no keyring."""
    return config_dir() / "keys"


def store_path(workspace: Path) -> Path:
    """The path of a workspace's store; each real path has its own."""
    key = hashlib.sha256(str(workspace.resolve()).encode()).hexdigest()[:16]
    name = f"{workspace.resolve().name or 'root'}-{key}.sqlite"
    return shared_path(str(state_dir() / "workspaces" / name))


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
# Knows texts only; it must not open a file. A pattern is compared with the name of a file, and with its path
# below the root.


def fits(path: str, pattern: str) -> bool:
    """Whether the file at a path fits a pattern. ``**/`` stands for any number of folders, also for none."""
    found = _expression(pattern).fullmatch
    return found(path.rpartition("/")[2]) is not None or found(path) is not None


@lru_cache(maxsize=64)
def _expression(pattern: str) -> re.Pattern[str]:
    pieces = re.split(r"(?<![^/])\*\*/", pattern)
    return re.compile("(?:.*/)?".join(map(_translated, pieces)), re.DOTALL)


def _translated(piece: str) -> str:
    """A piece of a pattern as a regular expression, without the mark of the end."""
    return translate(piece).removeprefix("(?s:")[: -len(r")\Z")]
