"""Which processes run a program of a tool just now: each holds a lock with its process id meanwhile.

So quoth knows that such a program has started it, directly or indirectly, whatever became of the environment.
It knows processes and locks; it must not know tools.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from quoth.tools.errors import BusyError, UsageError
from quoth.tools.storage.file_lock import hold, is_held, lock_path


class AtWork:
    """The lock of this process, held while at least one program runs."""

    def __init__(self) -> None:
        self._programs = 0
        self._lock = contextlib.ExitStack()
        self._turn = threading.Lock()

    @contextlib.contextmanager
    def program(self) -> Iterator[None]:
        """Hold the lock while a program is started and runs. Raises UsageError where it cannot be taken."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    def _begin(self) -> None:
        with self._turn:
            if not self._programs:
                with contextlib.suppress(BusyError):  # then it is held, which is all that is asked of it
                    self._lock.enter_context(hold(_name(os.getpid())))
            self._programs += 1

    def _end(self) -> None:
        with self._turn:
            self._programs -= 1
            if not self._programs:
                with contextlib.suppress(OSError):  # a file that is left behind locks nothing
                    lock_path(_name(os.getpid())).unlink()
                self._lock.close()


AT_WORK = AtWork()


def is_started_by_program() -> bool:
    """Whether an ancestor of this process runs a program of a tool. Raises UsageError where no lock can be
    read, since then nobody can tell."""
    try:
        return any(is_held(_name(pid)) for pid in _ancestors())
    except OSError as error:
        why = f"so quoth cannot tell whether a tool started it: {error.strerror}"
        raise UsageError(f"{error.filename} cannot be read, {why}.") from None


def _name(pid: int) -> str:
    """The lock of a process. Process ids are those of a namespace; others may share the state folder."""
    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  a link to no file
    except OSError:
        space = ""
    return f"programs of {space} {pid}"


def _ancestors() -> Iterator[int]:
    """The process ids of the parent, its parent and so on, as many as can be known."""
    parents = _parents() if sys.platform != "linux" else None
    pid, seen = os.getppid(), set[int]()
    while pid > 0 and pid not in seen:  # in a container, quoth may be process 1
        yield pid
        seen.add(pid)
        pid = _parent(pid) if parents is None else parents.get(pid, 0)


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return int(file.read().rpartition(b")")[2].split()[1])  # its name may hold blanks and brackets
    except (OSError, ValueError, IndexError):
        return 0


def _parents() -> dict[int, int]:
    """The parent of each process, where there is no /proc (macOS: not tried)."""
    import subprocess

    try:
        listed = subprocess.run(
            ["/bin/ps", "-axo", "pid=,ppid="], capture_output=True, text=True, timeout=10, check=True
        )
        return {int(pid): int(parent) for pid, parent in map(str.split, listed.stdout.splitlines())}
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}
