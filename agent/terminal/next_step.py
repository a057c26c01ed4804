"""Prints the commands that a person can type next.

Knows the wording; the caller chooses the commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from quoth.agent.terminal.output import complain

if TYPE_CHECKING:
    from quoth.tools.consent.requests import Request

# A task for the examples that the embedded model solves; README and the page start show it (a test compares).
# Each was tried five times: tests/bench/first_task.py.
FIRST_TASK = "How many pears were sold on Monday? Look in monday.txt."


def tell_next(
    aim: str,
    command: str,
    *,
    requests: Iterable[Request] = (),
    typed: Callable[..., str] = lambda *words, also="": "",
    name: str = "quoth: ",
) -> None:
    """Print for each of the ``requests`` the commands that decide or answer it, as ``typed`` spells them, and
    then ``aim`` with the ``command`` that continues. ``name`` begins each line."""
    for one in requests:
        if one.question is not None:
            complain(f"To answer: {typed('answer', one.id, also=' TEXT')}", name)
            continue
        refusal = typed("deny", one.id, also=" --why TEXT")
        complain(f"To decide: {typed('approve', one.id)}, or: {refusal}", name)
    complain(f"{aim}: {command}", name)
