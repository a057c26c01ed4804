"""What a confined program may see, write and use, said once for every kind of boundary.

It reads the file system and the environment; it knows no kernel interface and starts nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

from quoth.tools.errors import ToolError
from quoth.tools.policy.places import WORKSPACE_FOLDER
from quoth.tools.storage.paths import cache_dir, config_dir, state_dir

INSIDE = "QUOTH_INSIDE"  # set for programs that tools run: quoth takes no decisions from them
GIB = 1 << 30


@dataclass(frozen=True)
class Boundary:
    """What one program may do. Paths need not exist; what is named here is seen as it is on this machine."""

    root: Path  # the workspace, writable
    cwd: Path
    network: bool = False
    readable: tuple[Path, ...] = ()  # parts of home, or of another covered folder, that are shown
    writable: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()  # seen but not written, also where the workspace is writable
    hidden: tuple[Path, ...] = ()  # not seen, also where the workspace is readable
    variables: tuple[str, ...] = ()  # names of the environment that are passed beside the usual ones
    memory: int = 2 * GIB
    processes: int = 256
    open_files: int = 1024
    file_size: int = GIB
    seconds: int = 3600  # of processor time, for each process
    scratch: int = GIB  # bytes of /tmp, of home and of /dev/shm


@dataclass(frozen=True)
class Command:
    """How to start a confined program. Call ``close`` once it has ended, or if it was never started."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    pass_fds: tuple[int, ...] = ()
    clean: tuple[Callable[[], object], ...] = field(default=(), repr=False)

    def close(self) -> None:
        for step in self.clean:
            with contextlib.suppress(OSError):
                step()


class Access(IntEnum):
    """What a place is inside. Of two rules for one place the greater wins, of nested ones the inner."""

    COVERED = 1  # empty, and written to a scratch file system
    READ = 2
    WRITE = 3
    PROTECTED = 4
    HIDDEN = 5


# Covered: the homes, what other programs put down for a while, their sockets, and other disks.
COVERED = ("/home", "/root", "/run", "/var/run", "/tmp", "/var/tmp", "/mnt", "/media")  # noqa: S108
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
    *("/proc/kcore", "/proc/keys", "/proc/sysrq-trigger", "/sys/kernel/debug", "/sys/kernel/tracing"),
)
GIT = (".git/hooks", ".git/config")  # git outside runs what these name
# Programs of PATH below home look for the rest of themselves in these folders.
TOOLCHAINS = (
    ".rustup",
    ".local/share/pipx",
    ".local/share/uv/tools",
    ".local/share/uv/python",
    ".local/pipx",
)
USUAL = frozenset(
    ["PATH", "HOME", "LANG", "LANGUAGE", "TERM", "COLORTERM", "NO_COLOR", "TZ", "USER", "LOGNAME", "SHELL", "COLUMNS", "LINES", "VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "GOROOT", "RUSTUP_HOME", "NVM_DIR", "PYTHONDONTWRITEBYTECODE", "SOURCE_DATE_EPOCH", "CI", "DEBIAN_FRONTEND"]
)


def environment(boundary: Boundary, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that are passed: the usual ones and those named, so that a key in another one stays out."""
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
    """Each place that differs from "read only", as its real path, outer ones first. Raises ToolError for a
    workspace around the home folder: everything there would be seen."""
    root = real(boundary.root)
    covered = {real(place) for place in (*map(Path, COVERED), *homes())} - {Path("/")}
    around = next((home for home in covered if home.is_relative_to(root)), None)
    if around:
        raise ToolError(
            f"The workspace {root} holds {around}, whose files a program must not see: start in the folder of"
            " a project."
        )
    found: dict[Path, Access] = {}

    def put(access: Access, paths: Iterable[Path]) -> None:
        for path in paths:
            if path.exists():
                found[path] = max(access, found.get(path, access))

    put(Access.COVERED, covered)
    put(Access.READ, (place for place in map(real, programs()) if under(place, covered)))
    put(Access.READ, map(real, boundary.readable))
    put(Access.WRITE, map(real, (boundary.root, *boundary.writable)))
    put(
        Access.PROTECTED,
        map(real, (root / WORKSPACE_FOLDER, *(root / part for part in GIT), *boundary.protected)),
    )
    own = (state_dir(), config_dir(), cache_dir())
    put(
        Access.HIDDEN,
        map(real, (*boundary.hidden, *own, *map(Path, SECRETS), *Path("/etc/ssh").glob("*_key"))),
    )
    for folder in own:  # a workspace below one of them stays seen; what holds the workspace is covered
        if root.is_relative_to(real(folder)):
            found[real(folder)] = Access.COVERED
    found[root] = Access.WRITE
    return sorted(found.items(), key=lambda entry: len(entry[0].parts))


def programs() -> Iterator[Path]:
    """The folders that programs of PATH, and this Python, need: read-only inside, also below home."""
    yield from (Path(sys.prefix), Path(sys.base_prefix))
    mine = {real(home) for home in homes()}
    for name in os.environ.get("PATH", "").split(os.pathsep):
        folder = Path(name)
        if not name or not folder.is_absolute():
            continue
        yield folder
        around = folder.parent
        deep = any(len(around.parts) > len(home.parts) and around.is_relative_to(home) for home in mine)
        if folder.name in ("bin", "shims") and deep and around.name not in (".local", ".cargo"):
            yield around
    for home in mine:
        yield from (home / part for part in TOOLCHAINS)


def real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def under(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
