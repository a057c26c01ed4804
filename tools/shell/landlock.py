"""A boundary without namespaces: Landlock and seccomp by sandlock. Makes the command, and starts nothing."""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from quoth.tools.shell.view import (
    LIMITED,
    Access,
    Boundary,
    Launch,
    environment,
    limit_words,
    places,
    real,
    running,
)

# The system calls that no confined program needs, as a filter of the kernel: a few instructions of BPF.
#
# Namespaces do not confine these: other address families, keys of the kernel, new namespaces.


EPERM, ENOSYS, ALLOW = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS, 0x7FFF0000
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
CALL, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
X32 = 0x40000000
FAMILIES = (1, 2, 10, 16)  # unix, IPv4, IPv6, netlink; and neither vsock nor packet, alg, bluetooth
NAMESPACES = 0x7E020080  # CLONE_NEW…
TYPED = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX put words into a terminal's input
SET_ID = 0o6000  # such a file runs as its owner for any user outside

# Names with their numbers on x86_64 and on aarch64; -1 for a missing call.
CALLS = {"socket": (41, 198), "clone": (56, 220), "ioctl": (16, 29)}
UNREADABLE = {"clone3": (435, 435), "openat2": (437, 437)}  # flags in memory; the older call is used then
MODES = {  # and which argument is the mode of a file
    "chmod": (90, -1, 1),
    "fchmod": (91, 52, 1),
    "fchmodat": (268, 53, 2),
    "fchmodat2": (452, 452, 2),
    "creat": (85, -1, 1),
    "mknod": (133, -1, 1),
    "mknodat": (259, 33, 2),
}
OPENED = {"open": (2, -1, 2), "openat": (257, 56, 3)}  # the mode counts if the argument before says "create"
CREATE = 0o20000100  # O_CREAT or O_TMPFILE
REFUSED = """
    ptrace 101 117; process_vm_readv 310 270; process_vm_writev 311 271; pidfd_getfd 438 438;
    kcmp 312 272; process_madvise 440 440; unshare 272 97; setns 308 268; mount 165 40; umount2 166 39;
    pivot_root 155 41; chroot 161 51; open_tree 428 428; move_mount 429 429; fsopen 430 430;
    fsconfig 431 431; fsmount 432 432; fspick 433 433; mount_setattr 442 442; open_tree_attr 467 467;
    name_to_handle_at 303 264; open_by_handle_at 304 265; add_key 248 217; request_key 249 218;
    keyctl 250 219; bpf 321 280; perf_event_open 298 241; userfaultfd 323 282; io_uring_setup 425 425;
    io_uring_enter 426 426; io_uring_register 427 427; init_module 175 105; finit_module 313 273;
    delete_module 176 106; kexec_load 246 104; kexec_file_load 320 294; reboot 169 142; swapon 167 224;
    swapoff 168 225; acct 163 89; quotactl 179 60; settimeofday 164 170; clock_settime 227 112;
    adjtimex 159 171; clock_adjtime 305 266; syslog 103 116; lookup_dcookie 212 18; vhangup 153 58;
    nfsservctl 180 42; quotactl_fd 443 443
"""
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def filter_program(machine: str = platform.machine(), modes_only: bool = False) -> bytes:
    """The instructions for a machine; empty for a machine whose call numbers are not known."""
    if machine not in MACHINES:
        return b""
    column, architecture = MACHINES[machine]
    return b"".join(_instructions(column, architecture, modes_only))


def filter_file() -> int | None:
    """A file in memory with the filter of this machine, for ``bwrap --add-seccomp-fd``."""
    if not (program := filter_program()):
        return None
    number = os.memfd_create("filter", os.MFD_CLOEXEC)
    os.write(number, program)
    os.lseek(number, 0, os.SEEK_SET)
    return number


def _instructions(column: int, architecture: int, modes_only: bool) -> Iterator[bytes]:
    yield _code(LOAD, ARCHITECTURE)
    yield _code(EQUAL, architecture, 1, 0)
    yield _code(RETURN, EPERM)  # the calls of another architecture have other numbers
    yield _code(LOAD, CALL)
    if column == 0:
        yield from _answer(AT_LEAST, X32, EPERM)
    if not modes_only:
        yield from _calls(column)
    yield from _modes(column)
    yield _code(RETURN, ALLOW)


def _calls(column: int) -> Iterator[bytes]:
    for numbers in UNREADABLE.values():
        yield from _answer(EQUAL, numbers[column], ENOSYS)
    for entry in REFUSED.split(";"):
        yield from _answer(EQUAL, int(entry.split()[1 + column]), EPERM)
    yield from _on(CALLS["socket"][column], 0, _only(FAMILIES))
    yield from _on(CALLS["clone"][column], 0, [*_answer(ANY_BIT, NAMESPACES, EPERM)])
    yield from _on(
        CALLS["ioctl"][column], 1, [step for word in TYPED for step in _answer(EQUAL, word, EPERM)]
    )


def _modes(column: int) -> Iterator[bytes]:
    refuse = [*_answer(ANY_BIT, SET_ID, EPERM)]
    for *numbers, argument in MODES.values():
        if numbers[column] >= 0:
            yield from _on(numbers[column], argument, refuse)
    for *numbers, argument in OPENED.values():
        if numbers[column] >= 0:
            mode = [_code(ANY_BIT, CREATE, 0, 3), _code(LOAD, ARGUMENTS + 8 * argument), *refuse]
            yield from _on(numbers[column], argument - 1, mode)


def _answer(test: int, value: int, answer: int) -> Iterator[bytes]:
    yield _code(test, value, 0, 1)
    yield _code(RETURN, answer)


def _only(values: tuple[int, ...]) -> list[bytes]:
    """Refuse any other value: each test jumps over the rest, and over the refusal."""
    steps = [_code(EQUAL, value, len(values) - place, 0) for place, value in enumerate(values)]
    return [*steps, _code(RETURN, EPERM)]


def _on(number: int, argument: int, steps: list[bytes]) -> Iterator[bytes]:
    """The steps for one call, on the low half of an argument; a call that passes them is allowed."""
    yield _code(EQUAL, number, 0, len(steps) + 2)
    yield _code(LOAD, ARGUMENTS + 8 * argument)
    yield from steps
    yield _code(RETURN, ALLOW)


def _code(operation: int, value: int, met: int = 0, unmet: int = 0) -> bytes:
    return struct.pack("<HBBI", operation, met, unmet, value)


CHILD = str(Path(__file__).with_name("landlock_child.py"))
DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))
SCRATCH = "quoth-shell-"
GIT = (".git/hooks", ".git/config")  # git outside runs commands that these name


def library() -> str:
    """The folder that contains sandlock, "" if it is not installed."""
    found = find_spec("sandlock")
    return str(Path(found.origin).parent.parent) if found and found.origin else ""


def command(argv: Sequence[str], boundary: Boundary) -> Launch:
    _clear()
    scratch = tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getpid()}-")
    limited = [*LIMITED, *limit_words(boundary, processes=False), *argv]
    rules = json.dumps(settings(boundary, scratch), separators=(",", ":"))
    program = filter_program(modes_only=True).hex()
    words = (sys.executable, "-I", "-S", CHILD, library(), program, rules, *limited)
    env = {**environment(boundary), "HOME": scratch, "TMPDIR": scratch}
    return Launch(words, env, close=lambda: shutil.rmtree(scratch, ignore_errors=True))


def _clear() -> None:
    """Remove the scratch folders of this user's processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*-*"):
        if not Path("/proc", folder.name.removeprefix(SCRATCH).partition("-")[0]).exists():
            shutil.rmtree(folder, ignore_errors=True)


def settings(boundary: Boundary, scratch: str) -> Mapping[str, object]:
    """The settings for sandlock. It grants whole folders: around a covered place, its neighbours are
    granted."""
    hooks, config = (real(boundary.root) / name for name in GIT)
    found = places(replace(boundary, protected=(*boundary.protected, hooks, config)))
    of: dict[Access, list[Path]] = {access: [] for access in Access}
    for place, access in found:
        of[access].append(place)
    readable = [*neighbours(Path("/"), {Path("/dev"), *of[Access.COVERED]}), *of[Access.READ]]
    if boundary.network:
        readable.append(real(Path("/etc/resolv.conf")))
    needed = {
        real(boundary.root) / ".git",
        config,
        *map(real, running(real(boundary.root))),
    }  # cannot be read only
    hidden = [*(place for place in of[Access.PROTECTED] if place not in needed), *of[Access.HIDDEN]]
    denied = [part for place in hidden for part in refused(place, set(of[Access.READ]))]
    writable = [*of[Access.WRITE], Path(scratch)]
    return {
        "fs_readable": [str(place) for place in readable],
        "fs_writable": [*map(str, writable), *(name for name in DEVICES if Path(name).exists())],
        "fs_denied": [str(place) for place in denied if not Path(scratch).is_relative_to(place)],
        "net_allow": ["*:*"] if boundary.network else [],
        "net_allow_bind": ["*"] if boundary.network else [],
        "max_memory": boundary.memory,
        "max_processes": boundary.processes,
        "cwd": str(real(boundary.cwd)),
    }


def refused(place: Path, shown: set[Path]) -> Iterator[Path]:
    """A place as a whole, or the files and folders beside its shown parts."""
    if any(part.is_relative_to(place) for part in shown):
        yield from neighbours(place, shown)
    else:
        yield place


def neighbours(folder: Path, without: set[Path]) -> Iterator[Path]:
    """The entries of a folder except some places: whole folders if none of these is below."""
    if not os.access(folder, os.R_OK):
        return
    for entry in folder.iterdir():
        if entry.is_symlink() or entry in without:
            continue
        if any(place.is_relative_to(entry) for place in without):
            yield from neighbours(entry, without)
        elif os.access(entry, os.R_OK):
            yield entry
