"""The keys of the clients of ``quoth serve``, in a file that only its owner may read: a line
``NAME TOKEN RIGHTS`` for each. The name is the user for whom the client asks; with ``ask`` it may ask, with
``decide`` also decide what waits."""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from quoth.tools.errors import UsageError, no_such
from quoth.tools.storage.atomic import new_file

RIGHTS = ("ask", "decide")
TOKEN_BYTES = 24
SHORTEST = 16  # characters of a token
LARGEST = 100_000  # bytes of a file
NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,39}")
HEAD = "# NAME TOKEN RIGHTS (ask, or ask,decide): one line for each client of quoth serve.\n"


@dataclass(frozen=True)
class AccessKey:
    """The key of a client. The token is never shown."""

    name: str
    token: str = field(repr=False)
    rights: frozenset[str]

    @property
    def decides(self) -> bool:
        return "decide" in self.rights


@dataclass(frozen=True)
class Keys:
    """The keys of a file."""

    keys: tuple[AccessKey, ...]

    def find(self, token: str) -> AccessKey | None:
        """The key with this token; compares with all of them, in constant time."""
        said = token.encode("utf-8", "replace")
        fits = [one for one in self.keys if hmac.compare_digest(one.token.encode(), said)]
        return fits[0] if fits else None

    def has(self, key: AccessKey) -> bool:
        """Whether a key is here, with the same token and rights."""
        return key in self.keys

    def named(self, name: str) -> AccessKey:
        """The key of this name. Raises UsageError."""
        known = {one.name: one for one in self.keys}
        if name not in known:
            raise UsageError(no_such("key", name, known))
        return known[name]


class KeyFile:
    """The keys of a file as it is now: it is read again after each change, so that a removed key ends without
    a restart. While it cannot be read, no key is known; ``complain`` hears why once for each change. Raises
    UsageError for a file that cannot be read at first."""

    def __init__(self, path: Path, complain: Callable[[str], object]) -> None:
        self._path, self._complain = path, complain
        self._mark = _mark(path)  # before it is read: a later change is never missed
        self._known = read_keys(path)

    @property
    def keys(self) -> tuple[AccessKey, ...]:
        return self._current().keys

    def find(self, token: str) -> AccessKey | None:
        return self._current().find(token)

    def has(self, key: AccessKey) -> bool:
        return self._current().has(key)

    def _current(self) -> Keys:
        if (mark := _mark(self._path)) != self._mark:
            self._mark = mark
            try:
                self._known = read_keys(self._path)
            except UsageError as error:
                self._known = Keys(())
                self._complain(f"No key is accepted until the file is right. {error}")
        return self._known


KeySource = Keys | KeyFile


def _mark(path: Path) -> tuple[int, ...]:
    """What changes with a file."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def make_keys(path: Path) -> bool:
    """Write a file with the keys ``me`` and ``chat`` if there is none. Returns whether it was written. Raises
    UsageError."""
    lines = [HEAD, _line("me", "ask,decide"), _line("chat", "ask")]
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new_file(path, [line.encode() for line in lines], 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        raise UsageError(f"The keys cannot be written to {path}: {error.strerror}.") from None
    return True


def _line(name: str, rights: str) -> str:
    return f"{name} {secrets.token_urlsafe(TOKEN_BYTES)} {rights}\n"


def read_keys(path: Path) -> Keys:
    """The keys of a file. Raises UsageError with the line of a mistake, or if others may read the file."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            data = file.read(LARGEST)
    except OSError as error:
        raise UsageError(f"The keys {path} cannot be read: {error.strerror}.") from None
    if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077:
        raise UsageError(f"Other users may read or write the keys {path}. Run: chmod 600 {path}")
    keys = tuple(_read(data.decode("utf-8", "replace"), path))
    for what, values in (("name", [one.name for one in keys]), ("token", [one.token for one in keys])):
        if len({*values}) < len(values):
            raise UsageError(f"Two keys in {path} have the same {what}.")
    if not keys:
        raise UsageError(f"There is no key in {path}. {HEAD[2:].strip()}")
    return Keys(keys)


def _read(text: str, path: Path) -> Iterator[AccessKey]:
    for number, line in enumerate(text.splitlines(), 1):
        if not (words := line.split()) or line.startswith("#"):
            continue
        place = f"{path}, line {number}"
        if len(words) != 3:
            raise UsageError(f"{place}: a line is NAME TOKEN RIGHTS, such as: me TOKEN ask,decide")
        name, token, said = words
        if not NAME.fullmatch(name):
            raise UsageError(f"{place}: a name is a word of letters, digits, . _ and - (up to 40).")
        if len(token) < SHORTEST or not token.isascii():
            raise UsageError(f"{place}: the token of {name} must have {SHORTEST} ASCII characters or more.")
        rights = frozenset(said.split(","))
        if "ask" not in rights or not rights <= {*RIGHTS}:
            raise UsageError(f"{place}: the rights of {name} are ask, or ask,decide.")
        yield AccessKey(name, token, rights)
