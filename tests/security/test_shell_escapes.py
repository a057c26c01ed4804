"""Law: a program of the shell stays inside its boundary: one table of attempts, as root and as a user.

The attempts (tests/vocabulary/escapes.py) are made without a boundary first, which shows that each can work.
What a kind of boundary cannot stop stands in CANNOT, and in the manual's page security.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import escapes
import pytest

from quoth.agent import manual
from quoth.tools.shell.boundary import Boundary, Kind, confined

ROOT = os.getuid() == 0
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
PYTHON = "/usr/bin/python3"  # the one that an ordinary user may run
SCRIPT = Path(escapes.__file__)
LIMITS = {"processes": 40, "memory": 96 << 20, "file_size": 1 << 20, "scratch": 4 << 20, "open_files": 64}

# What may fail without a boundary too: only root may do it, or this kernel does not know it.
FOR_ROOT = {
    *("read_the_passwords", "give_a_file_away", "make_a_disk", "change_the_root_folder", "set_the_kernel"),
    *("make_a_control_group", "set_the_clock", "name_the_machine", "read_the_log_of_the_kernel"),
    *(
        "have_the_rights_of_root",
        "raise_a_limit",
        "open_a_file_by_its_number",
        "enter_the_namespace_of_another",
    ),
    *("open_a_socket_of_raw_packets", "load_a_program_into_the_kernel", "put_words_into_the_terminal"),
    *("mount_a_folder", "write_by_the_root_of_another"),
}
# What this machine may refuse even to root, or what is a race.
BY_CHANCE = {
    *("write_through_a_folder_that_is_swapped", "raise_a_limit", "open_a_socket_to_the_host_of_a_machine"),
}
# What a kind cannot stop, and how the manual says it.
CANNOT: dict[str, dict[str, str]] = {
    "bubblewrap": {},
    "landlock": {
        "change_the_mode_outside": "change the mode",
        "change_the_time_outside": "the times",
        "mark_a_file_outside": "the extended attributes",
        "write_the_configuration_of_git": "write =.git/config=",
        "put_another_git_in_its_place": "replace your =.git=",
        "fill_the_scratch_folder": "a folder of the disk, which a program may fill",
    },
}
WHO = [
    pytest.param(who, id=name)
    for name, who in (("as-me", ()), ("as-nobody", NOBODY))
    if not who or (ROOT and shutil.which(who[0]) and Path(PYTHON).exists())
]


class Victim:
    """A workspace, a home with a key in it, a process with a secret, and servers that tell one."""

    def __init__(self, owner: tuple[str, ...], ends: ExitStack) -> None:
        self.owner, self.ends = owner, ends
        base = Path(tempfile.mkdtemp(prefix="quoth-escapes-", dir="/var/lib" if ROOT else None))
        ends.callback(shutil.rmtree, base)
        self.base, self.work, self.home = base, base / "work", base / "home"
        for name in (
            "work/.git/hooks",
            "work/.quoth",
            "work/keys/deep",
            "work/mounted",
            "outside",
            "beside",
            "home/.ssh",
        ):
            (base / name).mkdir(parents=True)
        secrets = (
            "home/.ssh/id",
            "home/.profile",
            "state/store",
            "work/.env",
            "work/.env2",
            "work/keys/deep/key",
        )
        plain = ("file", "truncated", "deleted", "renamed", "moved", "linked")
        rest = ("work/.git/config", "work/.quoth/other.hy", "work/given")
        for name in (*secrets, *rest, *(f"outside/{name}" for name in plain)):
            (base / name).parent.mkdir(exist_ok=True)
            (base / name).write_text(escapes.SECRET)
        self.script = shutil.copy(SCRIPT, base / "beside")
        self.sockets = Path(tempfile.mkdtemp(prefix="quoth-"))
        ends.callback(shutil.rmtree, self.sockets)
        base.chmod(0o755)
        self.sockets.chmod(0o755)
        if owner:
            for path in (*base.rglob("*"), base):
                os.chown(path, 65534, 65534)
        self.facts = self._facts()

    def _facts(self) -> dict[str, Any]:
        with (self.home / ".ssh/id").open() as secret:
            process = subprocess.Popen(
                [*self.owner, "sleep", "100"],
                cwd=self.home,
                stdin=secret,
                env={"TOKEN": escapes.SECRET, **_PATH},
            )
        self.ends.callback(process.wait)
        self.ends.callback(process.kill)
        loopback = (("tcp", socket.AF_INET, "127.0.0.1"), ("tcp6", socket.AF_INET6, "::1"))
        ports = {name: self._serves(family, (host, 0))[1] for name, family, host in loopback}
        ports["udp"] = self._serves(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)[1]
        abstract = f"quoth-{os.getpid()}-{self.base.name}"
        self._serves(socket.AF_UNIX, str(self.sockets / "stream"))
        self._serves(socket.AF_UNIX, str(self.sockets / "datagram"), socket.SOCK_DGRAM)
        self._serves(socket.AF_UNIX, "\0" + abstract)
        for name in ("stream", "datagram"):
            (self.sockets / name).chmod(0o777)
        self.survivor = f"99.{time.monotonic_ns()}"
        places = {name: str(self.base / name) for name in ("work", "outside", "beside", "home", "state")}
        files = {"file": str(self.sockets / "stream"), "datagram": str(self.sockets / "datagram")}
        return {
            **places,
            "victim": process.pid,
            "ports": ports,
            "sockets": {**files, "abstract": abstract},
            "limits": LIMITS,
            "survivor": self.survivor,
        }

    def _serves(self, family: int, address: Any, kind: int = socket.SOCK_STREAM) -> Any:
        """A server that tells the secret to whoever asks."""
        server = self.ends.enter_context(socket.socket(family, kind))
        server.bind(address)
        if kind == socket.SOCK_STREAM:
            server.listen()

        def serve() -> None:
            while True:
                try:
                    if kind == socket.SOCK_STREAM:
                        caller = server.accept()[0]
                        with caller:
                            caller.sendall(escapes.SECRET.encode())
                    else:
                        _, caller_address = server.recvfrom(100)
                        if caller_address:
                            server.sendto(escapes.SECRET.encode(), caller_address)
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        self.ends.callback(lambda: _shut(server))
        return server.getsockname()

    def boundary(self, **more: Any) -> Boundary:
        hidden = tuple(self.work / name for name in (".env", ".env2", "keys/deep/key"))
        return replace(Boundary(self.work, self.work, hidden=hidden, **LIMITS), **more)

    def confined(self, kind: Kind, **more: Any) -> Callable[[list[str]], subprocess.CompletedProcess[str]]:
        def start(words: list[str]) -> subprocess.CompletedProcess[str]:
            command = confined(words, self.boundary(**more), kind)
            argv = list(command.argv)
            if self.owner and kind == "landlock":
                argv[0] = PYTHON
                os.chown(command.env["TMPDIR"], 65534, 65534)
            argv = [*self.owner, *argv]
            try:
                return subprocess.run(
                    argv, capture_output=True, text=True, env=command.env, pass_fds=command.pass_fds
                )
            finally:
                command.close()

        return start

    def attempts(
        self,
        start: Callable[[list[str]], subprocess.CompletedProcess[str]],
        *,
        patience: int = 100,
        tell: bool = True,
    ) -> set[str]:
        """What worked; with ``tell`` what was said of each is printed. So often it is looked whether a
        survivor ends."""
        words = [PYTHON if self.owner else sys.executable, "-I", "-S", self.script, json.dumps(self.facts)]
        ended = start(words)
        assert ended.returncode == 0, ended.stderr
        told: dict[str, tuple[bool, str]] = json.loads(ended.stdout)
        for name, (worked, why) in told.items() if tell else ():
            print(f"{'WORKED' if worked else 'no'} {name} {why}")
        worked = {name for name, (did, _) in told.items() if did}
        if self.survives(patience):
            worked.add("go_on_in_the_background")
        return worked

    def survives(self, patience: int) -> bool:
        """Whether the survivor is there for good: the kernel may still be ending it."""
        for _ in range(patience):
            if not (found := self._survivors()):
                return False
            time.sleep(0.02)
        for number in found:
            os.kill(number, 9)
        return True

    def _survivors(self) -> list[int]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if self.survivor in (process / "cmdline").read_text().split("\0"):
                    found.append(int(process.name))
        return found


_PATH = {"PATH": os.environ.get("PATH", os.defpath)}


def _shut(server: socket.socket) -> None:
    try:
        server.shutdown(socket.SHUT_RDWR)
    except OSError:
        server.close()


@pytest.fixture
def victim_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[tuple[str, ...]], Victim]]:
    with ExitStack() as ends:

        def victim_of(owner: tuple[str, ...]) -> Victim:
            victim = Victim(owner, ends)
            monkeypatch.setenv("HOME", str(victim.home))
            monkeypatch.setenv("QUOTH_STATE", str(victim.base / "state"))
            monkeypatch.setenv("SERVICE_TOKEN", escapes.SECRET)
            if owner:  # an ordinary user may make no control group
                monkeypatch.setattr("quoth.tools.shell.boundary.HERE", Path("/nowhere"))
                monkeypatch.setattr(os, "getuid", lambda: 65534)
                monkeypatch.setattr(sys, "prefix", "/usr")
                monkeypatch.setattr(sys, "base_prefix", "/usr")
                monkeypatch.setenv("PATH", "/usr/bin:/bin")
            return victim

        yield victim_of


@pytest.mark.parametrize("who", WHO)
def test_without_a_boundary_each_attempt_works(who: tuple[str, ...], victim_of: Any) -> None:
    victim = victim_of(who)

    def start(words: list[str]) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "TMPDIR": str(victim.base / "beside")}
        return subprocess.run([*who, *words], capture_output=True, text=True, env=env, preexec_fn=_limited)

    worked = victim.attempts(start, patience=1)
    assert len(escapes.ATTEMPTS) >= 60
    assert set(escapes.ATTEMPTS) - worked <= BY_CHANCE | (FOR_ROOT if who or not ROOT else set())


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("who", WHO)
def test_inside_a_boundary_none_works(who: tuple[str, ...], kind: Kind, victim_of: Any) -> None:
    victim = victim_of(who)

    assert victim.attempts(victim.confined(kind)) == set(CANNOT[kind])


@pytest.mark.parametrize(
    ("kind", "more"), [("bubblewrap", {"reach_an_abstract_socket"}), ("landlock", set())]
)
def test_the_network_opens_servers_and_no_more(kind: Kind, more: set[str], victim_of: Any) -> None:
    victim = victim_of(())
    servers = {f"reach_a_server_by_{way}" for way in ("tcp", "ipv6", "udp")}
    assert victim.attempts(victim.confined(kind, network=True)) == {*CANNOT[kind], *servers, *more}


def test_the_manual_says_what_cannot_be_stopped() -> None:
    page = (Path(manual.__file__).parent / "security.org").read_text()
    told = page.partition("Landlock, in addition, does not")[2].partition("\n* ")[0]
    assert [words for words in CANNOT["landlock"].values() if words not in told] == []


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
