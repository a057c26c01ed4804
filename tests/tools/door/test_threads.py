"""Threads of bodies: one serves many, and one that was stopped serves none again."""

from __future__ import annotations

import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from words import table_of, tool

from quoth import AsyncAgent
from quoth.tools.door import execution
from quoth.tools.door.execution import end_idle_threads, start_thread


@pytest.fixture(autouse=True)
def none_before_and_after() -> Iterator[None]:
    end_idle_threads()
    yield
    end_idle_threads()


def idle() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "quoth-idle"]


def done(what: Callable[[], Any]) -> Any:
    """What a function gives that is run in a thread."""
    told: SimpleQueue[Any] = SimpleQueue()
    start_thread(lambda: partial(told.put, what()), "quoth-test")
    return told.get(timeout=20)


def test_one_thread_serves_all_that_come_one_after_the_other() -> None:
    assert len({done(threading.current_thread) for _ in range(20)}) == 1
    assert len(idle()) == 1


def test_those_at_once_have_a_thread_each_and_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "KEPT", 2)
    all_there, told = threading.Barrier(5, timeout=20), SimpleQueue[Any]()
    for _ in range(5):
        start_thread(lambda: partial(told.put, all_there.wait()), "quoth-test")
    assert sorted(told.get(timeout=20) for _ in range(5)) == [0, 1, 2, 3, 4]
    assert len(idle()) == 2


def test_a_thread_that_was_stopped_is_not_used_again() -> None:
    begun = threading.Event()
    stuck: list[threading.Thread] = []

    def endless() -> Callable[[], None]:
        stuck.append(threading.current_thread())
        begun.set()
        while True:
            pass

    stop = start_thread(endless, "quoth-test")
    begun.wait(20)
    assert done(threading.current_thread) is not stuck[0]  # it holds up nobody
    stop()
    stuck[0].join(20)
    assert not stuck[0].is_alive()
    assert stuck[0] not in idle()


def test_to_stop_what_has_ended_does_not_stop_the_next() -> None:
    told: SimpleQueue[Any] = SimpleQueue()
    go_on = threading.Event()
    stop = start_thread(lambda: partial(told.put, "first"), "quoth-test")
    assert told.get(timeout=20) == "first"
    start_thread(lambda: partial(told.put, go_on.wait(20)), "quoth-test")
    stop()
    go_on.set()
    assert told.get(timeout=20) is True
    assert len(idle()) == 1


def test_nothing_of_a_function_is_kept() -> None:
    class Heavy:
        pass

    left = threading.Event()

    def work(heavy: Heavy) -> None:
        weakref.finalize(heavy, left.set)

    assert done(partial(work, Heavy())) is None
    assert left.wait(20)


STUCK = """
import time
from quoth.tools.door.execution import start_thread
start_thread(lambda: time.sleep(60), "quoth-test")
start_thread(lambda: print, "quoth-test")
"""


def test_a_function_that_is_stuck_does_not_keep_the_process() -> None:
    assert subprocess.run([sys.executable, "-c", STUCK], timeout=30, check=False).returncode == 0


FORK = """
import os
from queue import SimpleQueue
from quoth.tools.door.execution import start_thread

def one():
    told = SimpleQueue()
    start_thread(lambda: lambda: told.put(1), "quoth-test")
    told.get(timeout=20)

one()
if not os.fork():
    one()
    os._exit(7)
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_fork_has_threads_of_its_own() -> None:
    assert subprocess.run([sys.executable, "-c", FORK], timeout=60, check=False).returncode == 7


async def test_an_agent_that_is_closed_leaves_none(tmp_path: Path) -> None:
    look = tool("look", lambda: threading.current_thread().name, effects=["reads"])
    async with AsyncAgent(workspace=tmp_path, tools=table_of(look)) as agent:
        assert (await agent.call("(look)")).value == "quoth-<lambda>"
        assert len(idle()) == 1
    assert idle() == []
