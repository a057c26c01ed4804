"""A boundary on macOS: the profile for ``sandbox-exec``, as text, and the command. It starts nothing itself.

It has not been tested on a Mac yet, so it is used only if it is chosen. Of two rules for one place the last
one counts. The kernel compares the real path of a file, so each place is written as the kernel spells it;
places are parameters of the profile and are never quoted into it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from quoth.tools.shell.view import LIMITED, Access, Boundary, Launch, environment, limit_words, places, real

PROGRAM = "/usr/bin/sandbox-exec"
GIT = (".git/hooks", ".git/config")  # git outside runs what these name
# The message of doctor about it.
NOT_PROMISED = (
    "it does not bound memory or the number of processes; a hidden file can be read by another name (a hard"
    " link), and its name is seen; a program that starts a session of its own may outlive the call"
)
# What every program needs: to start others, to find its libraries, users and the time.
NEEDED = """\
(version 1)
(deny default)
(allow process-fork process-exec* file-map-executable)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow mach-lookup
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read*)
(deny file-read* (subpath "/dev"))
(allow file-read* (literal "/dev") (subpath "/dev/fd"))
(allow file-read* file-write-data file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom")
  (literal "/dev/dtracehelper"))"""
NETWORK = """\
(allow system-socket)
(allow network-outbound (remote ip) (literal "/private/var/run/mDNSResponder"))
(allow network-inbound network-bind (local ip))
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.trustd.agent"))"""
NOTHING = ("deny file-read* file-write* file-map-executable process-exec*",)
READ = ("allow file-read* file-map-executable process-exec*", "deny file-write*")
WRITE = ("allow file-read* file-write* file-map-executable process-exec*",)
RULES = {
    Access.COVERED: NOTHING,
    Access.READ: READ,
    Access.WRITE: WRITE,
    Access.PROTECTED: READ,
    Access.HIDDEN: NOTHING,
}


def command(argv: Sequence[str], boundary: Boundary) -> Launch:
    """How to start ``argv`` inside. HOME and TMPDIR are a scratch folder, which ``close`` removes."""
    scratch = tempfile.mkdtemp(prefix="quoth-shell-")
    text, named = profile(boundary, Path(scratch))
    defined = [word for name, value in named.items() for word in ("-D", f"{name}={value}")]
    limited = [*LIMITED, *limit_words(boundary, processes=False), *argv]
    env = {**environment(boundary), "HOME": scratch, "TMPDIR": scratch}
    return Launch(
        (PROGRAM, *defined, "-p", text, *limited),
        env,
        close=lambda: shutil.rmtree(scratch, ignore_errors=True),
    )


def profile(boundary: Boundary, scratch: Path) -> tuple[str, Mapping[str, str]]:
    """The profile, and the value of each of its parameters."""
    git = (real(boundary.root) / name for name in GIT)
    found = places(replace(boundary, protected=(*boundary.protected, *git)))
    named: dict[str, str] = {}

    def param(place: Path) -> str:
        named.setdefault(str(canonical(place)), f"PLACE_{len(named)}")
        return f'(param "{named[str(canonical(place))]}")'

    lines = [NEEDED, *([NETWORK] if boundary.network else [])]
    for place, access in [*found, (scratch, Access.WRITE)]:
        lines += [f"({rule} (subpath {param(place)}))" for rule in RULES[access]]
    lines.append(f"(allow network* (subpath {param(scratch)}))")  # sockets of its own
    shown = [place for place, access in found if access not in (Access.COVERED, Access.HIDDEN)]
    for folder in _above((*shown, scratch)):  # the lookup of a place needs its parent folders
        lines.append(f"(allow file-read-metadata (literal {param(folder)}))")
    kept = [place for place, access in found if access in (Access.PROTECTED, Access.HIDDEN)]
    for folder in _above(kept):  # after a rename, its content would be at a place that no rule names
        lines.append(f"(deny file-write-unlink (literal {param(folder)}))")
    return "\n".join(lines), {name: value for value, name in named.items()}


def _above(found: Sequence[Path]) -> list[Path]:
    return sorted({folder for place in found for folder in place.parents if folder != Path("/")})


def canonical(place: Path) -> Path:
    """A place as the kernel spells it: if names have no case, ``realpath`` leaves them as they were typed. A
    place that cannot be opened keeps its own name in its parent folder."""
    if not hasattr(fcntl, "F_GETPATH") or place == place.parent:
        return place
    try:
        number = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return canonical(place.parent) / place.name
    try:
        return Path(os.fsdecode(fcntl.fcntl(number, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0")))
    finally:
        os.close(number)
