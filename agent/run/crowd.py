"""Many agents at work in one process: Python's search for garbage would hold all of them up."""

from __future__ import annotations

import gc
from functools import cache
from weakref import WeakSet

CROWD = 100  # hosts of sessions in a process
PYTHONS_OWN = 10  # the last of Python's thresholds; one that the program has set is its business
_hosts = WeakSet[object]()


def search_seldom() -> None:
    """Make the garbage collector run less in a process that serves many users: never over the objects loaded
    so far, in short passes over new objects, and seldom over older ones. A pass stops every user, and runs
    leave no cycles."""
    gc.freeze()
    # Python's own are 700, 10 and 10; those of a short command are in agent/entry.py.
    gc.set_threshold(700, 10, 10 * PYTHONS_OWN)


def join(host: object) -> None:
    """Count the host of a session, until it is freed. A process's first crowd makes the search seldom."""
    _hosts.add(host)
    if len(_hosts) >= CROWD:
        _decide()


@cache  # to count what is frozen takes as long as a search over it
def _decide() -> None:
    """Search seldom, unless the program has set the threshold, frozen objects or switched the search off."""
    if gc.isenabled() and gc.get_threshold()[2] == PYTHONS_OWN and not gc.get_freeze_count():
        search_seldom()
