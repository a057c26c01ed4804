"""A control group for one program and all it starts: what bounds root, whom setrlimit does not.

It is there where this user may make one: as root, mostly. Knows no boundary.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

HERE = Path("/sys/fs/cgroup")
_count = itertools.count()
_ended: set[Path] = set()


class ControlGroup:
    """A group below our own. Where this user may make none, it has no folder, and bounds nothing."""

    def __init__(self, memory: int, processes: int) -> None:
        name = f"quoth-{os.getpid()}-{next(_count)}"
        limits = {"pids.max": processes, "memory.max": memory}
        made = (place / name for place in _places() if _made(place / name, limits))
        self.folder = next(made, None)

    def close(self) -> None:
        """Kill whoever is left and remove the group; and those left by a process that was killed."""
        if not self.folder:
            return
        for group in (self.folder, *_abandoned(self.folder.parent)):
            _kill(group)
            _ended.add(group)
        _remove()


def _kill(folder: Path) -> None:
    """Kill whoever is in a group, as a bwrap that waits for another that was killed."""
    with contextlib.suppress(OSError):
        if (folder / "cgroup.kill").exists():
            (folder / "cgroup.kill").write_text("1")
        for process in (folder / "cgroup.procs").read_text().split():
            os.kill(int(process), signal.SIGKILL)


@atexit.register
def _remove() -> None:
    """Remove the groups that have ended; one that the kernel is not done with stays for the next time."""
    for folder in tuple(_ended):
        with contextlib.suppress(OSError):
            folder.rmdir()
        if not folder.exists():
            _ended.discard(folder)


def _made(folder: Path, limits: dict[str, int]) -> bool:
    """Whether the group could be made, with the first of the limits at least."""
    try:
        folder.mkdir()
    except OSError:
        return False
    done = 0
    for file, value in limits.items():
        with contextlib.suppress(OSError):
            (folder / file).write_text(str(value))
            done += 1
    if not done:
        with contextlib.suppress(OSError):
            folder.rmdir()
    return bool(done)


def _places() -> Iterator[Path]:
    """Where a group may be made: version 1 has a tree for processes alone (to join another one, for memory,
    takes longer than all the rest); in version 2 beside ours, since a group with processes has none below."""
    for line in memberships():
        _, controllers, path = line.split(":", 2)
        ours = path.strip("/")
        if "pids" in controllers.split(","):
            yield HERE / "pids" / ours
        elif not controllers and (HERE / "cgroup.controllers").exists():
            yield from (HERE / ours, (HERE / ours).parent)


def memberships() -> list[str]:
    return Path("/proc/self/cgroup").read_text().splitlines()


def _abandoned(hierarchy: Path) -> Iterator[Path]:
    for folder in hierarchy.glob("quoth-*-*"):
        if not Path("/proc", folder.name.split("-")[1]).exists():
            yield folder
