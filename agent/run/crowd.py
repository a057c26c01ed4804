"""Many agents at work in one process: Python's search for garbage would hold all of them up."""

from __future__ import annotations

import gc
from functools import cache
from weakref import WeakSet

CROWD = 100  # hosts of sessions in a process
PYTHONS_OWN = ((700, 10, 10), (2000, 10, 10))  # thresholds of Python 3.11 and 3.12, and of 3.13
_hosts = WeakSet[object]()


def search_seldom() -> None:
    """Make the garbage collector run less in a process that serves many users: never over the objects loaded
    so far, in short passes over new objects, and seldom over older ones. A pass stops every user, and runs
    leave no cycles."""
    gc.freeze()
    gc.set_threshold(700, 10, 100)  # those of a short command are in agent/entry.py


def join(host: object) -> None:
    """Count the host of a session, until it is closed or freed. A process's first crowd makes the search
    seldom."""
    _hosts.add(host)
    if len(_hosts) >= CROWD:
        _decide()


def leave(host: object) -> None:
    """Count it no longer."""
    _hosts.discard(host)


@cache  # the program may set it otherwise later
def _decide() -> None:
    """Look through older objects ten times as seldom, unless the program has set thresholds or switched the
    search off. What the program has made is not frozen: it would never be freed."""
    first, second, third = thresholds = gc.get_threshold()
    if gc.isenabled() and thresholds in PYTHONS_OWN:
        gc.set_threshold(first, second, 10 * third)
