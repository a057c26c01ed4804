"""The pages answer processes of the user who runs the server, and no one else's on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from powerless import NOBODY
from viewing import Viewed

from quoth.agent.view import peer
from quoth.agent.view.peer import is_stranger

CLIENT = """
import socket, sys
port, path, family = int(sys.argv[1]), sys.argv[2], socket.AF_INET6 if sys.argv[3] == "6" else socket.AF_INET
with socket.socket(family) as at:
    at.connect(("::ffff:127.0.0.1" if sys.argv[3] == "6" else "127.0.0.1", port))
    at.sendall(f"GET {path} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nConnection: close\\r\\n\\r\\n".encode())
    print(at.recv(1000).split(b" ")[1].decode())
"""


def status(home: str, path: str, *who: str, family: str = "4") -> str:
    """The status of a page as a program of another user gets it."""
    port = str(httpx.URL(home).port)
    words = [*who, sys.executable, "-I", "-S", "-c", CLIENT, port, path, family]
    return subprocess.run(
        words, capture_output=True, text=True, check=True, timeout=120, cwd="/"
    ).stdout.strip()


def test_another_user_of_the_machine_cannot_use_a_code_and_its_owner_can(view: Viewed) -> None:
    others = [NOBODY] if os.getuid() == 0 else []
    code = view.code()
    with view.served() as home:
        for who in others:
            assert status(home, f"/view/in?code={code}", *who) == "403"
            assert status(home, "/view/", *who) == "403"
            assert status(home, "/view/nowhere", *who, family="6") == "403"
        assert status(home, "/view/", family="6") == "401"
        assert status(home, f"/view/in?code={code}") == "303"


ROW = (
    "   0: 0100007F:{0} 0100007F:20E4 01 00000000:00000000 00:00000000 00000000 {1:5}        0 {2} 1 0 100\n"
)


@pytest.mark.parametrize(
    ("user", "inode", "stranger"),
    [(os.getuid(), 7, False), (0, 7, False), (4711, 7, True), (0, 0, True), (None, 0, True)],
    ids=["this user", "root", "another", "a closed connection", "no connection"],
)
def test_the_row_of_a_connection_says_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int | None, inode: int, stranger: bool
) -> None:
    rows = "" if user is None else ROW.format("C000", user, inode)
    (tmp_path / "tcp").write_text("  sl  local_address\n" + ROW.format("C001", 4711, 7) + rows)
    monkeypatch.setattr(peer, "TABLES", (tmp_path / "tcp", tmp_path / "tcp6"))
    scope = {"client": ("127.0.0.1", 0xC000), "server": ("127.0.0.1", 0x20E4)}
    assert is_stranger(scope) is stranger


def test_where_the_system_does_not_say_it_everyone_with_a_cookie_is_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "TABLES", (tmp_path / "none",))
    assert not is_stranger({"client": ("127.0.0.1", 5), "server": ("127.0.0.1", 6)})
    assert not is_stranger({"client": ("/a.sock", 5), "server": None})
