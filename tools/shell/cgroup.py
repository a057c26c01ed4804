"""A control group for one program and all it starts: what bounds root, whom setrlimit does not.

It is there where this user may make one: as root, mostly. Knows no boundary.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

HERE = Path("/sys/fs/cgroup")
JOIN = (
    "/bin/sh",
    "-c",
    'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done; shift; exec "$@"',
    "join",
)
LIMITS = {
    "pids": ("pids.max", "pids.max"),
    "memory": ("memory.max", "memory.limit_in_bytes"),
}  # versions 2, 1
_count = itertools.count()
_ended: set[Path] = set()


class ControlGroup:
    """The folders of a group below our own; where this user may make none, there are none and no bound."""

    def __init__(self, memory: int, processes: int) -> None:
        name = f"quoth-{os.getpid()}-{next(_count)}"
        self.folders: list[Path] = []
        for controller, value in (("pids", processes), ("memory", memory)):
            for hierarchy, file in _hierarchies(controller):
                folder = hierarchy / name
                if _bounded(folder, file, value):
                    self.folders += [folder] if folder not in self.folders else []
                    break

    def join(self) -> tuple[str, ...]:
        """The words before a command that start it inside."""
        return (*JOIN, *map(str, self.folders), "--") if self.folders else ()

    def close(self) -> None:
        """Kill whoever is left and remove the group; and those left by a process that was killed."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                (folder / "cgroup.kill").write_text("1")
        _ended.update(self.folders)
        for folder in {*_ended, *(left for ours in self.folders for left in _abandoned(ours.parent))}:
            with contextlib.suppress(
                OSError
            ):  # the kernel is not done with it: the next group to end removes it
                folder.rmdir()
            if not folder.exists():
                _ended.discard(folder)


def _bounded(folder: Path, file: str, value: int) -> bool:
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return False
    try:
        (folder / file).write_text(str(value))
    except OSError:
        with contextlib.suppress(OSError):  # a limit set before keeps it
            folder.rmdir()
        return False
    return True


def _hierarchies(controller: str) -> Iterator[tuple[Path, str]]:
    """Where a group may be made, with the file of its limit: in ours, or beside it if it holds processes."""
    two, one = LIMITS[controller]
    for line in memberships():
        _, controllers, path = line.split(":", 2)
        ours = path.strip("/")
        if controller in controllers.split(","):
            yield HERE / controller / ours, one
        elif not controllers and (HERE / "cgroup.controllers").exists():
            yield from ((HERE / ours, two), (HERE / ours / "..", two))


def memberships() -> list[str]:
    return Path("/proc/self/cgroup").read_text().splitlines()


def _abandoned(hierarchy: Path) -> Iterator[Path]:
    for folder in hierarchy.glob("quoth-*-*"):
        if not Path("/proc", folder.name.split("-")[1]).exists():
            yield folder
