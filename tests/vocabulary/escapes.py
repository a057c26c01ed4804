"""Attempts to get out of a boundary: ``escapes.py FACTS NAME…`` makes each in a process of its own, and
prints what worked, as JSON.

It is run inside the boundary, and outside to show that each attempt can work; it imports nothing of ours.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import mmap
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ATTEMPTS: dict[str, Callable[[Any], object]] = {}
SECRET = "the key is under the mat"
libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"


class Facts:
    """Where the victim is: the names of its files, its process and its servers."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.work = Path(facts["work"])  # the workspace
        self.outside = Path(
            facts["outside"]
        )  # a folder that all see, and that is writable without a boundary
        self.beside = Path(facts["beside"])  # a folder beside the workspace
        self.home = Path(facts["home"])
        self.state = Path(facts["state"])
        self.victim = int(facts["victim"])  # a process with the secret in its memory and environment
        self.ports: dict[str, int] = facts["ports"]
        self.sockets: dict[str, str] = facts["sockets"]
        self.limits: dict[str, int] = facts["limits"]
        self.survivor = str(facts["survivor"])  # how long it sleeps, and how it is known


def attempt(function: Callable[[Facts], object]) -> Callable[[Facts], object]:
    """It worked if it gives something true."""
    ATTEMPTS[function.__name__] = function
    return function


def system(x86: int, arm: int, *arguments: Any) -> int:
    given = libc.syscall(x86 if X86 else arm, *arguments)
    if given < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(given)


def considered(x86: int, arm: int, *arguments: Any) -> bool:
    """Whether the kernel looks at the arguments of a call at all, bad as they are."""
    try:
        system(x86, arm, *arguments)
    except OSError as error:
        return error.errno not in (errno.EPERM, errno.ENOSYS, errno.EACCES, errno.EAFNOSUPPORT)
    return True


def tells(path: Path) -> bool:
    return SECRET in path.read_text()


# Writing outside


@attempt
def write_a_new_file_outside(facts: Facts) -> object:
    return (facts.outside / "new").write_text("x")


@attempt
def append_outside(facts: Facts) -> object:
    with (facts.outside / "file").open("a") as file:
        return file.write("x")


@attempt
def truncate_outside(facts: Facts) -> object:
    os.truncate(facts.outside / "truncated", 0)
    return True


@attempt
def delete_outside(facts: Facts) -> object:
    (facts.outside / "deleted").unlink()
    return True


@attempt
def rename_outside(facts: Facts) -> object:
    return (facts.outside / "renamed").rename(facts.outside / "otherwise")


@attempt
def move_in_from_outside(facts: Facts) -> object:
    return (facts.outside / "moved").rename(facts.work / "moved")


@attempt
def make_a_folder_outside(facts: Facts) -> object:
    (facts.outside / "folder").mkdir()
    return True


@attempt
def make_a_pipe_outside(facts: Facts) -> object:
    os.mkfifo(facts.outside / "pipe")
    return True


@attempt
def write_through_a_link(facts: Facts) -> object:
    (facts.work / "link").symlink_to(facts.outside / "linked")
    return (facts.work / "link").write_text("x")


@attempt
def write_through_a_hard_link(facts: Facts) -> object:
    os.link(facts.outside / "file", facts.beside / "hard")
    return (facts.beside / "hard").write_text("x")


@attempt
def write_through_a_folder_that_is_swapped(facts: Facts) -> object:
    real, link, name = facts.work / "real", facts.work / "there", facts.work / "swapped"
    real.mkdir()
    link.symlink_to(facts.outside)
    (facts.work / "swapped").symlink_to(real)
    end = time.monotonic() + 0.15

    def swap() -> None:
        while time.monotonic() < end:
            for target in (facts.outside, real):
                with contextlib.suppress(OSError):
                    spare = facts.work / "spare"
                    spare.symlink_to(target)
                    spare.replace(name)

    racer = threading.Thread(target=swap)
    racer.start()
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            (name / "raced").write_text("x")
    racer.join()
    return (facts.outside / "raced").exists()


@attempt
def write_by_the_folder_above(facts: Facts) -> object:
    os.chdir(facts.work)
    up = "../" * len(facts.work.parts)
    return Path(f"{up}{facts.outside}/above").write_text("x")


@attempt
def write_by_proc_root(facts: Facts) -> object:
    return Path(f"/proc/self/root{facts.outside}/by-root").write_text("x")


@attempt
def write_by_the_root_of_another(facts: Facts) -> object:
    return Path(f"/proc/{facts.victim}/root{facts.outside}/by-victim").write_text("x")


@attempt
def write_by_a_folder_held_open(facts: Facts) -> object:
    folder = os.open(facts.outside, os.O_RDONLY)
    return os.open("held", os.O_WRONLY | os.O_CREAT, dir_fd=folder)


@attempt
def write_beside_the_workspace(facts: Facts) -> object:
    (facts.beside / "neighbour").write_text("x")
    return True


@attempt
def reopen_for_writing(facts: Facts) -> object:
    number = os.open(facts.outside / "file", os.O_RDONLY)
    return os.open(f"/proc/self/fd/{number}", os.O_WRONLY)


@attempt
def map_a_file_for_writing(facts: Facts) -> object:
    with (facts.outside / "file").open("r+b") as file, mmap.mmap(file.fileno(), 0) as there:
        there[0] = 1
    return True


@attempt
def change_the_mode_outside(facts: Facts) -> object:
    (facts.outside / "file").chmod(0o666)
    return True


@attempt
def change_the_time_outside(facts: Facts) -> object:
    os.utime(facts.outside / "file", (1, 1))
    return True


@attempt
def mark_a_file_outside(facts: Facts) -> object:
    os.setxattr(facts.outside / "file", "user.mark", b"1")
    return True


@attempt
def give_a_file_away(facts: Facts) -> object:
    os.chown(facts.work / "given", 12345, 12345)
    return True


# What the workspace protects


@attempt
def write_a_hook_of_git(facts: Facts) -> object:
    return (facts.work / ".git/hooks/pre-commit").write_text("#!/bin/sh")


@attempt
def write_the_configuration_of_git(facts: Facts) -> object:
    return (facts.work / ".git/config").write_text("[core]\n fsmonitor = evil\n")


@attempt
def put_another_git_in_its_place(facts: Facts) -> object:
    (facts.work / ".git").rename(facts.work / "old-git")
    return True


@attempt
def write_the_rules(facts: Facts) -> object:
    return (facts.work / ".quoth/policy.hy").write_text("(allow)")


@attempt
def delete_the_rules(facts: Facts) -> object:
    (facts.work / ".quoth/other.hy").unlink()
    return True


@attempt
def read_what_is_hidden(facts: Facts) -> object:
    return tells(facts.work / ".env")


@attempt
def link_what_is_hidden(facts: Facts) -> object:
    os.link(facts.work / ".env", facts.work / "shown")
    return tells(facts.work / "shown")


@attempt
def rename_what_is_hidden(facts: Facts) -> object:
    (facts.work / ".env2").rename(facts.work / "shown2")
    return tells(facts.work / "shown2")


@attempt
def rename_the_folder_of_what_is_hidden(facts: Facts) -> object:
    (facts.work / "keys").rename(facts.work / "locks")
    return tells(facts.work / "locks/deep/key")


# Home and secrets


@attempt
def read_a_key_in_home(facts: Facts) -> object:
    return tells(facts.home / ".ssh/id")


@attempt
def list_home(facts: Facts) -> object:
    return ".ssh" in os.listdir(facts.home)


@attempt
def read_a_key_through_a_link(facts: Facts) -> object:
    (facts.work / "key").symlink_to(facts.home / ".ssh/id")
    return tells(facts.work / "key")


@attempt
def read_home_by_the_folder_of_another(facts: Facts) -> object:
    return tells(Path(f"/proc/{facts.victim}/cwd/.ssh/id"))


@attempt
def read_home_by_the_root_of_another(facts: Facts) -> object:
    return tells(Path(f"/proc/{facts.victim}/root{facts.home}/.ssh/id"))


@attempt
def write_to_home(facts: Facts) -> object:
    with (facts.home / ".profile").open("a") as file:
        file.write("evil")
    return tells(facts.home / ".profile")


@attempt
def read_the_state_of_quoth(facts: Facts) -> object:
    return tells(facts.state / "store")


@attempt
def read_the_passwords(facts: Facts) -> object:
    return Path("/etc/shadow").read_text()


@attempt
def read_a_key_of_the_environment(facts: Facts) -> object:
    return SECRET in os.environ.values()


@attempt
def read_the_environment_of_another(facts: Facts) -> object:
    return SECRET in Path(f"/proc/{facts.victim}/environ").read_text()


@attempt
def read_an_open_file_of_another(facts: Facts) -> object:
    return tells(Path(f"/proc/{facts.victim}/fd/0"))


@attempt
def read_the_memory_of_another(facts: Facts) -> object:
    with open(f"/proc/{facts.victim}/mem", "rb") as memory:
        memory.seek(_stack(facts.victim))
        return memory.read(8)


@attempt
def read_the_memory_by_a_call(facts: Facts) -> object:
    kept = ctypes.create_string_buffer(8)
    pair = ctypes.c_void_p * 2
    ours, theirs = pair(ctypes.addressof(kept), 8), pair(_stack(facts.victim), 8)
    count = ctypes.c_ulong(1)
    return system(
        310, 270, facts.victim, ctypes.byref(ours), count, ctypes.byref(theirs), count, ctypes.c_ulong(0)
    )


def _stack(process: int) -> int:
    for line in Path(f"/proc/{process}/maps").read_text().splitlines():
        if line.endswith("[stack]"):
            return int(line.split("-")[0], 16) + 4096
    raise LookupError("no stack")


# Network


def _answer(family: int, kind: int, address: Any) -> object:
    with socket.socket(family, kind) as to:
        to.settimeout(2)
        to.connect(address)
        if kind == socket.SOCK_DGRAM:
            to.send(b"?")
        return SECRET in to.recv(100).decode()


@attempt
def reach_a_server_by_tcp(facts: Facts) -> object:
    return _answer(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", facts.ports["tcp"]))


@attempt
def reach_a_server_by_ipv6(facts: Facts) -> object:
    return _answer(socket.AF_INET6, socket.SOCK_STREAM, ("::1", facts.ports["tcp6"]))


@attempt
def reach_a_server_by_udp(facts: Facts) -> object:
    return _answer(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", facts.ports["udp"]))


@attempt
def reach_a_socket_of_a_file(facts: Facts) -> object:
    return _answer(socket.AF_UNIX, socket.SOCK_STREAM, facts.sockets["file"])


@attempt
def reach_an_abstract_socket(facts: Facts) -> object:
    return _answer(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + facts.sockets["abstract"])


@attempt
def send_to_a_socket_without_connecting(facts: Facts) -> object:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        return to.sendmsg([b"?"], [], 0, facts.sockets["datagram"])


@attempt
def open_a_socket_to_the_host_of_a_machine(facts: Facts) -> object:
    return considered(41, 198, 40, 1, 0)  # AF_VSOCK


@attempt
def open_a_socket_of_raw_packets(facts: Facts) -> object:
    return considered(41, 198, 17, 3, 0)  # AF_PACKET


# Other processes


@attempt
def signal_another(facts: Facts) -> object:
    os.kill(facts.victim, 0)
    return True


@attempt
def trace_another(facts: Facts) -> object:
    return not system(101, 117, 0x4206, facts.victim, 0, 0)  # PTRACE_SEIZE


@attempt
def take_an_open_file_of_another(facts: Facts) -> object:
    there = os.pidfd_open(facts.victim)
    return os.pread(system(438, 438, there, 0, 0), 100, 0)


@attempt
def enter_the_namespace_of_another(facts: Facts) -> object:
    place = os.open(f"/proc/{facts.victim}/ns/mnt", os.O_RDONLY)
    return considered(308, 268, place, 0)


@attempt
def go_on_in_the_background(facts: Facts) -> object:
    """The test looks whether it is alive after the command has ended."""
    if os.fork():
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    for number in range(3, 64):
        with contextlib.suppress(OSError):
            os.close(number)
    return os.execvp("sleep", ["sleep", facts.survivor])


# Limits


@attempt
def fork_without_end(facts: Facts) -> object:
    children: list[int] = []
    try:
        for _ in range(facts.limits["processes"] * 2):
            child = os.fork()
            if not child:
                time.sleep(5)
                os._exit(0)
            children.append(child)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)
    return True


@attempt
def take_memory_without_end(facts: Facts) -> object:
    taken = mmap.mmap(-1, facts.limits["memory"] * 2, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in range(0, len(taken), mmap.PAGESIZE):
        taken[page] = 1
    return True


@attempt
def write_a_file_without_end(facts: Facts) -> object:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with (facts.work / "large").open("wb") as file:
        file.seek(facts.limits["file_size"] + 4096)
        file.write(b"x")
        file.flush()
    return True


@attempt
def fill_the_scratch_folder(facts: Facts) -> object:
    return _fill(Path(os.environ.get("TMPDIR") or facts.beside), facts)


@attempt
def fill_the_shared_memory(facts: Facts) -> object:
    return _fill(Path("/dev/shm"), facts)


def _fill(folder: Path, facts: Facts) -> object:
    piece = facts.limits["file_size"] // 2
    made = [
        folder / f"piece-{os.getpid()}-{number}" for number in range(facts.limits["scratch"] // piece + 1)
    ]
    try:
        for file in made:
            file.write_bytes(bytes(piece))
    finally:
        for file in made:
            file.unlink(missing_ok=True)
    return True


@attempt
def open_files_without_end(facts: Facts) -> object:
    kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(facts.limits["open_files"] + 1)]
    return len(kept)


@attempt
def raise_a_limit(facts: Facts) -> object:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))
    return True


# Rights


@attempt
def leave_a_program_that_runs_as_its_owner(facts: Facts) -> object:
    program = facts.work / "set-id"
    program.write_text("x")
    program.chmod(0o4755)
    return program.stat().st_mode & 0o4000


@attempt
def create_a_program_that_runs_as_its_owner(facts: Facts) -> object:
    os.umask(0)
    number = os.open(facts.work / "set-id-2", os.O_CREAT | os.O_WRONLY, 0o4755)
    return os.fstat(number).st_mode & 0o4000


@attempt
def gain_rights_by_running_a_program(facts: Facts) -> object:
    return not libc.prctl(39, 0, 0, 0, 0)  # PR_GET_NO_NEW_PRIVS


@attempt
def have_the_rights_of_root(facts: Facts) -> object:
    return int(Path("/proc/self/status").read_text().partition("CapPrm:")[2].split()[0], 16)


@attempt
def make_a_user_namespace(facts: Facts) -> object:
    return not system(272, 97, 0x10000000)


@attempt
def clone_into_a_user_namespace(facts: Facts) -> object:
    child = system(56, 220, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if not child:
        os._exit(0)
    return child


@attempt
def mount_a_folder(facts: Facts) -> object:
    with contextlib.suppress(OSError):
        system(272, 97, 0x20000)  # CLONE_NEWNS: the mount is ours alone
    return not system(165, 40, b"none", os.fsencode(facts.work / "mounted"), b"tmpfs", 0, None)


@attempt
def change_the_root_folder(facts: Facts) -> object:
    os.chroot(facts.work)
    return True


@attempt
def make_a_disk(facts: Facts) -> object:
    os.mknod(facts.work / "disk", 0o60600, os.makedev(7, 0))
    return True


@attempt
def set_the_kernel(facts: Facts) -> object:
    setting = Path("/proc/sys/kernel/core_pattern")
    kept = setting.read_text()
    return setting.write_text(kept)


@attempt
def make_a_control_group(facts: Facts) -> object:
    for place in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")):
        if place.is_dir():
            (place / f"escape-{os.getpid()}").mkdir()
            (place / f"escape-{os.getpid()}").rmdir()
            return True
    return False


@attempt
def set_the_clock(facts: Facts) -> object:
    time.clock_settime(time.CLOCK_REALTIME, time.time())
    return True


@attempt
def name_the_machine(facts: Facts) -> object:
    socket.sethostname(socket.gethostname())
    return True


@attempt
def read_the_log_of_the_kernel(facts: Facts) -> object:
    return system(103, 116, 10, 0, 0) + 1  # SYSLOG_ACTION_SIZE_BUFFER


@attempt
def read_the_keys_of_the_kernel(facts: Facts) -> object:
    return considered(250, 219, 0, -3, 0)


@attempt
def load_a_program_into_the_kernel(facts: Facts) -> object:
    return considered(321, 280, 0, None, 0)


@attempt
def watch_the_processor(facts: Facts) -> object:
    return considered(298, 241, None, 0, -1, -1, 0)


@attempt
def use_a_ring_of_calls(facts: Facts) -> object:
    return considered(425, 425, 4, None)


@attempt
def open_a_file_by_its_number(facts: Facts) -> object:
    return considered(304, 265, -1, None, 0)


@attempt
def put_words_into_the_terminal(facts: Facts) -> object:
    _, theirs = os.openpty()
    return considered(16, 29, theirs, 0x5412, b"x")


def made(names: list[str], facts: Facts) -> Iterator[tuple[str, bool, str]]:
    for name in names:
        told, tell = os.pipe()
        child = os.fork()
        if not child:
            signal.alarm(5)
            try:
                worked = bool(ATTEMPTS[name](facts))
                os.write(tell, b"\1" if worked else b"\0")
            except BaseException as error:
                os.write(tell, b"\0" + f"{type(error).__name__}: {error}".encode()[:300])
            os._exit(0)
        os.close(tell)
        answer = b""
        while piece := os.read(told, 1000):
            answer += piece
        os.close(told)
        os.waitpid(child, 0)
        yield name, answer[:1] == b"\1", answer[1:].decode(errors="replace")


if __name__ == "__main__":
    given = Facts(json.loads(sys.argv[1]))
    print(json.dumps({name: [worked, why] for name, worked, why in made(sys.argv[2:] or [*ATTEMPTS], given)}))
