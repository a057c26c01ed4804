"""Locks between processes: one holds, all see it, and a process that ends lets go."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from words import complaint, wait_until

from quoth.tools.errors import BusyError, UsageError
from quoth.tools.storage.file_lock import hold, is_held

HOLDS = """
import sys
from quoth.tools.storage.file_lock import hold
with hold("a", "no"):
    print("mine", flush=True)
    sys.stdin.readline()
"""


def test_a_lock_is_held_by_one_and_seen_by_all() -> None:
    with hold("a", "Somebody has it."):
        assert is_held("a")
        assert not is_held("b")
        assert complaint(BusyError, lambda: hold("a", "Somebody has it.").__enter__()) == "Somebody has it."
        with hold("b", "no"):
            pass
    assert not is_held("a")
    with hold("a", "no"):
        pass


def test_a_lock_is_let_go_when_what_was_done_within_it_fails() -> None:
    with pytest.raises(KeyError), hold("a", "no"):
        raise KeyError
    assert not is_held("a")


def test_to_look_at_a_lock_that_nobody_ever_held_makes_nothing(state: Path) -> None:
    assert not is_held("a")
    assert list(state.iterdir()) == []


@pytest.mark.parametrize("name", ["", "a/b", "ä" * 300, "\n", "x" * 10_000, "\udcff", "a\0b"])
def test_a_lock_may_have_any_name(name: str) -> None:
    with hold(name, "no"):
        assert is_held(name)
        assert not is_held(name + "_")


def test_a_process_holds_a_lock_until_it_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == "mine\n"
        assert is_held("a")
        assert complaint(BusyError, lambda: hold("a", "no").__enter__()) == "no"
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert not is_held("a")


def test_who_looks_is_in_nobodys_way() -> None:
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            is_held("a")

    with hold("a", "no"):  # so that there is something to look at
        pass
    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(300):
            with hold("a", "Who looks has taken it."):
                pass
    finally:
        over.set()
        looking.join()


def test_without_a_refusal_a_lock_is_waited_for() -> None:
    taken = threading.Event()

    def wait() -> None:
        with hold("a"):
            taken.set()

    waiting = threading.Thread(target=wait)
    with hold("a", "no"):
        waiting.start()
        assert not taken.wait(0.05)
    wait_until(taken.is_set)
    waiting.join()


def test_a_lock_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.tools.storage.file_lock.LOCK_WAIT_SECONDS", 0.02)
    with hold("a", "no"):
        said = complaint(BusyError, lambda: hold("a").__enter__())
    assert said.endswith(".lock is held by another process.")


def test_a_place_where_no_lock_can_be_is_told(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (state / "file").touch()
    monkeypatch.setenv("QUOTH_STATE", str(state / "file"))
    said = complaint(UsageError, lambda: hold("a", "no").__enter__())
    assert said.startswith(f"The lock {state / 'file' / 'locks'}")
    assert said.endswith(" cannot be taken: Not a directory.")
    assert not is_held("a")
