"""Handles Ctrl-C: the first stops the run, which takes less than a second, the second ends all at once.

Knows only how to stop an agent.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from quoth.agent.terminal.output import complain

PATIENCE = 1.0  # seconds in which a run stops


class Interruptible(Protocol):
    """What Ctrl-C stops, such as an agent."""

    @property
    def stopping(self) -> bool: ...
    def interrupt(self) -> bool: ...


def interrupt_politely(agent: Interruptible) -> bool:
    """Ask the run in progress to stop, and print a hint if that takes long.

    Return False if there is no run or it was asked before; then the caller should stop at once."""
    if not agent.interrupt():
        return False

    def explain() -> None:
        if agent.stopping:
            complain("It is still stopping; Ctrl-C again ends all at once.")

    asyncio.get_running_loop().call_later(PATIENCE, explain)
    return True
