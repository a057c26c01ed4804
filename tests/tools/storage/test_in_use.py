"""A session in use: many share it, whoever removes it has it alone, and each is told of the other."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sentences import IS_IN_USE_BY
from words import complaint

from quoth.tools.errors import BusyError, UsageError
from quoth.tools.storage import file_lock
from quoth.tools.storage.file_lock import in_use, lost_lock, not_in_use, sweep

HOLDS = """
import sys
from quoth.tools.storage.file_lock import in_use, not_in_use
with {how}:
    print("mine", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody here waits long for a lock that another keeps."""
    monkeypatch.setattr(file_lock, "WAIT_SECONDS", 0.1)


@contextlib.contextmanager
def another(how: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a lock until the end of the block."""
    words = [sys.executable, "-c", HOLDS.format(how=how)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdin
        assert other.stdout.readline() == "mine\n"
        yield other
        other.stdin.close()


def use(session: str = "s") -> None:
    with in_use("store", session):
        pass


def remove(session: str = "s") -> None:
    with not_in_use("store", session, file_lock.WAIT_SECONDS):
        pass


def test_many_share_a_session_and_whoever_removes_it_is_told_who_they_are() -> None:
    with another("in_use('store', 's', 'run')") as other:
        use()
        said = complaint(BusyError, remove)
        assert said == f"Session s {IS_IN_USE_BY} process {other.pid} (a run). Try again when that has ended."
        assert complaint(BusyError, lambda: remove("")) == said.replace("Session s", "This workspace")
        remove("t")
        with not_in_use("another store"):
            pass
    remove()
    remove("")


@pytest.mark.parametrize("session", ["s", ""])
def test_nobody_works_in_a_session_that_is_removed(session: str) -> None:
    with another(f"not_in_use('store', {session!r})") as other:
        said = f"Session s is being removed or rewritten by process {other.pid}."
        assert complaint(BusyError, use) == f"{said} Try again when that has ended."
        assert complaint(BusyError, remove) == f"{said} Try again when that has ended."
        if session:
            use("t")
    use()


def test_a_process_that_is_killed_uses_nothing() -> None:
    with another("in_use('store', 's')") as other:
        other.kill()
        other.wait()
        remove()


def test_a_process_counts_its_users_and_shares_with_none_what_it_has_alone() -> None:
    refused: list[str] = []
    with in_use("store", "s", "flight"):
        with in_use("store", "s", "flight"), in_use("store", "s", "call"), in_use("store", "t"):
            pass
        said = complaint(BusyError, remove)
        assert said.startswith(f"Session s {IS_IN_USE_BY} process {os.getpid()} (a flight).")
        with another("in_use('store', 's')"):  # closing a file of theirs must not release ours
            pass
        with another("not_in_use('store', 't')"):
            pass
        assert complaint(BusyError, remove) == said
    with not_in_use("store", "s"):
        thread = threading.Thread(target=lambda: refused.append(complaint(BusyError, use)))
        thread.start()
        thread.join()
        use("t")
    assert refused[0].startswith(f"Session s is being removed or rewritten by process {os.getpid()}.")


def test_a_lock_of_a_session_is_kept_while_it_is_held_and_lost_with_its_folder(state: Path) -> None:
    with in_use("store", "s"):
        assert sweep(2e10) == 0
        assert lost_lock("store") is None
        shutil.rmtree(state / "locks")
        assert "/locks/" in str(lost_lock("store"))
        assert lost_lock("another store") is None
    assert lost_lock("store") is None
    use()


def test_a_folder_of_locks_that_cannot_be_used_is_a_sentence(state: Path) -> None:
    (state / "locks").write_text("")
    assert complaint(UsageError, use).startswith(f"The lock {state}/locks/")
