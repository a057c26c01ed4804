"""The files, variables and resources that a confined program may use, for every kind of boundary. The limits
of setrlimit are set by a shell just before the program starts, because a shell starts in a millisecond.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from quoth.tools.errors import ToolError
from quoth.tools.storage.paths import cache_dir, config_dir, state_dir

INSIDE = "QUOTH_INSIDE"  # set for programs that tools run: quoth takes no decisions from them
GIB = 1 << 30


@dataclass(frozen=True)
class Boundary:
    """The permissions of one program. Paths need not exist; the files named here are the real ones."""

    root: Path  # the workspace, writable
    cwd: Path
    network: bool = False
    readable: tuple[Path, ...] = ()  # parts of home, or of another covered folder, that are shown
    writable: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()  # seen but not written, also where the workspace is writable
    hidden: tuple[Path, ...] = ()  # not seen, also where the workspace is readable
    covered: tuple[Path, ...] = ()  # not seen, except what is readable in them
    variables: tuple[str, ...] = ()  # names of environment variables that are passed besides the usual ones
    memory: int = 2 * GIB
    processes: int = 256
    open_files: int = 1024
    file_size: int = GIB
    seconds: int = 3600  # of processor time, for each process
    scratch: int = GIB  # bytes of /tmp, of home and of /dev/shm


@dataclass(frozen=True)
class Launch:
    """How to start a confined program. Call ``close`` once, when it has ended or could not be started."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    pass_fds: tuple[int, ...] = ()
    let_go: Callable[[], object] = lambda: None  # called before a kill: nothing starts after it
    close: Callable[[], object] = lambda: None
    finish: Callable[[], list[str]] = list  # after its end, before close: messages for a person
    git_read_only: str = ""  # why it cannot write git's folder, if it cannot
    ends_all: bool = False  # whether its descendants end with it, and it ends with its parent


class Access(IntEnum):
    """The access to a place inside. Of two rules for one place the greater wins, of nested ones the inner."""

    COVERED = 1  # empty, and written to a scratch file system
    READ = 2
    WRITE = 3
    PROTECTED = 4
    HIDDEN = 5


# Covered: home folders, temporary files and sockets of other programs, and other disks; also of macOS.
HOMES = ("/home", "/root", "/Users", "/var/root")
SCRATCH = ("/tmp", "/var/tmp")  # noqa: S108
COVERED = (*SCRATCH, "/run", "/mnt", "/media", "/var/folders", "/var/run", "/Volumes")
SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/ssl/private", "/etc/wireguard", "/etc/kubernetes", "/etc/krb5.keytab", "/etc/docker"),
    *(
        "/etc/NetworkManager/system-connections",
        "/etc/netplan",
        "/etc/ppp",
        "/etc/openvpn",
        "/etc/letsencrypt",
    ),
    *("/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/mysql", "/var/lib/postgresql"),
    *("/var/spool", "/var/mail", "/var/log", "/var/backups", "/boot", "/lost+found"),
    *("/etc/master.passwd", "/var/db/dslocal", "/Library/Keychains"),
    *("/proc/kcore", "/proc/keys", "/proc/sysrq-trigger", "/sys/kernel/debug", "/sys/kernel/tracing"),
)
OURS = ".quoth"
# Programs of PATH below home look for the rest of themselves in these folders.
TOOLCHAINS = (
    ".rustup",
    ".local/share/pipx",
    ".local/share/uv/tools",
    ".local/share/uv/python",
    ".local/pipx",
)
USUAL = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "CI", "DEBIAN_FRONTEND"),
        *(
            "TERM",
            "COLORTERM",
            "NO_COLOR",
            "COLUMNS",
            "LINES",
            "PYTHONDONTWRITEBYTECODE",
            "SOURCE_DATE_EPOCH",
        ),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "GOROOT", "RUSTUP_HOME", "NVM_DIR"),
    )
)


def environment(boundary: Boundary, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that are passed: the usual ones and the named ones. Keys in other variables stay
    outside."""
    named = {
        name: value
        for name, value in given.items()
        if name in USUAL or name.startswith("LC_") or name in boundary.variables
    }
    named.setdefault("PATH", os.defpath)
    return {**named, "TMPDIR": "/tmp", INSIDE: "1"}  # noqa: S108


def homes() -> Iterator[Path]:
    """The home folders of this user: as the environment and as the system say."""
    import pwd

    yield Path(os.environ.get("HOME") or "/")
    with contextlib.suppress(KeyError):
        yield Path(pwd.getpwuid(os.getuid()).pw_dir)


def places(boundary: Boundary) -> list[tuple[Path, Access]]:
    """Each place whose access differs from its surroundings, as its real path, outer places first; the system
    is read-only. Raises ToolError for a workspace around the home folder: everything there would be seen."""
    root = real(boundary.root)
    mine = {real(home) for home in (*map(Path, HOMES), *homes())} - {Path("/")}
    covered = {*mine, *map(real, boundary.covered)}
    covered |= {place for place in map(real, map(Path, COVERED)) if not idle(place)}
    if held := next((home for home in mine if home.is_relative_to(root)), None):
        raise ToolError(
            f"The workspace {root} contains {held}, whose files a program must not see: start in a"
            " project's folder."
        )
    found = {place: Access.COVERED for place in covered if place.exists()}

    def put(access: Access, *paths: Path) -> None:
        for path in map(real, paths):
            shut = access in (Access.PROTECTED, Access.HIDDEN)  # its owner may make it readable
            if os.access(path, os.R_OK) or (shut and os.path.exists(path)):  # noqa: PTH110
                found[path] = max(access, found.get(path, access))

    own_homes = sorted({str(real(home)) for home in homes()})
    needed = programs(os.environ.get("PATH", ""), sys.prefix, sys.base_prefix, *own_homes)
    found.update({place: Access.READ for place in needed if not place.is_relative_to(root)})
    put(Access.READ, *boundary.readable)
    put(Access.WRITE, boundary.root, *boundary.writable)
    put(Access.PROTECTED, root / OURS, *boundary.protected, *running(root))
    own = [real(folder) for folder in (state_dir(), config_dir(), cache_dir())]
    put(Access.HIDDEN, *boundary.hidden, *own)
    found.update(dict.fromkeys(secrets(), Access.HIDDEN))
    for folder in own:
        if root.is_relative_to(folder):
            found[folder] = Access.COVERED
    found[root] = Access.WRITE
    kept: dict[Path, Access] = {}
    for place, access in sorted(found.items(), key=lambda entry: len(entry[0].parts)):
        outer = around(place, kept)
        shown = (
            access == Access.PROTECTED and outer != Access.WRITE
        )  # through a link that leads outside the workspace
        if access != outer and (access, outer) != (Access.HIDDEN, Access.COVERED) and not shown:
            kept[place] = access
    return list(kept.items())


def around(place: Path, known: Mapping[Path, Access]) -> Access:
    """The access of the nearest known place around this one; the system is read-only."""
    return next((known[outer] for outer in place.parents if outer in known), Access.READ)


@functools.cache
def secrets() -> tuple[Path, ...]:
    """Files that the system hides from ordinary users, if this user may read them."""
    named = map(real, (*map(Path, SECRETS), *Path("/etc/ssh").glob("*_key")))
    return tuple(place for place in named if os.access(place, os.R_OK) and not idle(place))


def idle(place: Path) -> bool:
    """Whether a place need not be covered: it is missing or an empty folder, and not for scratch."""
    if place.is_dir():
        return str(place) not in SCRATCH and not any(place.iterdir())
    return not place.exists()


def running(root: Path) -> Iterator[Path]:
    """The Python environment of quoth itself, if it is in the workspace: its code must not change."""
    if real(Path(sys.prefix)).is_relative_to(root):
        yield Path(sys.prefix)


@functools.cache
def programs(path: str, *more: str) -> tuple[Path, ...]:
    """The folders below home that the programs of PATH and this Python need. In ``more``, the first two are
    Python's, the others are homes."""
    python, homes = more[:2], [Path(home) for home in more[2:]]
    found = [real(Path(folder)) for folder in (*python, *path.split(os.pathsep)) if folder.startswith("/")]
    for folder in tuple(found):
        whole = folder.parent
        deep = any(len(whole.parts) > len(home.parts) and whole.is_relative_to(home) for home in homes)
        if folder.name in ("bin", "shims") and deep and whole.name not in (".local", ".cargo"):
            found.append(whole)
    found += [home / part for home in homes for part in TOOLCHAINS]
    return tuple(place for place in found if os.access(place, os.R_OK))


def real(path: Path) -> Path:
    return Path(os.path.realpath(path))


TIED = "tied"  # descriptor 9 is writable until the parent of the program wants it dead
# bash limits processes with -u, dash with -p; a user namespace counts its processes from zero.
SCRIPT = (
    "ulimit -c 0; ulimit -n $1; ulimit -f $2; ulimit -t $3; ulimit -d $4;"
    " if [ $5 -gt 0 ]; then ulimit -u $5 2>/dev/null || ulimit -p $5; fi;"
    ' [ -z "$6" ] || { echo >&9 && exec 9>&-; } || exit 1; shift 6; exec "$@"'
)
LIMITED = ("/bin/sh", "-c", SCRIPT, "limits")


def limit_words(boundary: Boundary, processes: bool = True, tied: bool = False) -> tuple[str, ...]:
    """The arguments of SCRIPT: open files, blocks of 512 bytes, seconds, kilobytes, processes (0: unlimited),
    and whether the program is TIED to its parent."""
    return (
        str(boundary.open_files),
        str(boundary.file_size // 512),
        str(boundary.seconds),
        str(boundary.memory // 1024),
        str(boundary.processes if processes else 0),
        TIED if tied else "",
    )
