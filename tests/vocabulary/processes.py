"""A piece of a test in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable


def in_a_process(work: Callable[[], object]) -> int:
    """Begin it in a fork; returns its process id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def ended_well(children: list[int]) -> bool:
    """Wait for them; whether none of them raised."""
    ends = [os.waitpid(child, 0)[1] for child in children]
    return not any(ends)
