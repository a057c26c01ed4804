"""Handles Ctrl-C: the first asks the run to stop at its next safe point, the second ends it at once.

Knows only how to stop an agent.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from quoth.agent.terminal.output import complain

PATIENCE = 0.5  # seconds in which most calls end


class Interruptible(Protocol):
    """What Ctrl-C stops, such as an agent."""

    @property
    def stopping(self) -> bool: ...
    def interrupt(self) -> bool: ...


def interrupt_politely(agent: Interruptible) -> bool:
    """Ask the run in progress to stop at its next safe point, and print a hint if that takes long.

    Return False if there is no run or it was asked before; then the caller should stop at once."""
    if not agent.interrupt():
        return False

    def explain() -> None:
        if agent.stopping:
            complain("Waiting for the call in progress; Ctrl-C again stops it at once.")

    asyncio.get_running_loop().call_later(PATIENCE, explain)
    return True
